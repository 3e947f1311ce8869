"""The mock server: OpenAI's and Anthropic's API on loopback, for trying out a pipeline and for our own tests.

`serve(options)` blocks, `MockServer` lives in an event loop, `with running(options)` is a child process.
No part of the engine imports it.
"""

from assay.server.options import Options
from assay.server.process import mock_server, running, serve, stats
from assay.server.server import MockServer

__all__ = ["MockServer", "Options", "mock_server", "running", "serve", "stats"]
