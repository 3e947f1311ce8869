"""Where other tools are: each in an environment of its own, under the name of its format, in `.venv/peers`, where
`make test-peers` installs them, or in the folder that ASSAY_PEERS names."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("ASSAY_PEERS") or ROOT / ".venv/peers").absolute()
INSTALL = "make test-peers PEERS={} installs it"


def program(peer: str, name: str = "python") -> Path:
    """A program of a tool, whether it is there or not; a tool from npm has only its own."""
    return FOLDER / peer / ("node_modules/.bin" if peer == "promptfoo" else "bin") / name


def needed(peer: str, name: str = "python") -> Path:
    """A program of a tool; the test is skipped where the tool is not installed."""
    path = program(peer, name)
    if not path.exists():
        pytest.skip(f"{peer} is not in {FOLDER.name}: {INSTALL.format(peer)}")
    return path
