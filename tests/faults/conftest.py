from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.server import Options, running
from tests.cli.shell import Shell


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """A server that answers as the demo model does."""
    with running(Options(skill=1.0)) as address:
        yield address


@pytest.fixture
def shell(tmp_path: Path, url: str) -> Shell:
    return Shell(tmp_path, url)
