"""The mock server: OpenAI's and Anthropic's API on loopback, for trying out a pipeline and for our own tests.

`serve(options)` blocks, `MockServer` lives in an event loop, `with running(options)` is a child process.
No part of the engine imports it.
"""

from typing import Any

from assay.server.options import Options
from assay.server.process import running, serve, stats
from assay.server.server import MockServer

__all__ = ["MockServer", "Options", "mock_server", "running", "serve", "stats"]


def mock_server(**options: Any) -> None:
    """Serve an OpenAI-compatible demo model on loopback until it is interrupted; options as those of the command."""
    serve(Options(**options))
