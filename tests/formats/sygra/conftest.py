from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.server import Options, running
from tests.formats.sygra.folder import Folder


@pytest.fixture(scope="session")
def sygra_url() -> Iterator[str]:
    """A server that is always right."""
    with running(Options(skill=1.0)) as address:
        yield address


@pytest.fixture
def folder(tmp_path: Path, sygra_url: str) -> Folder:
    return Folder(tmp_path, sygra_url)
