from tests.cli.conftest import *  # noqa: F403
