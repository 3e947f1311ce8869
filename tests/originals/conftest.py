"""Checkouts of the five originals, fetched by hand into the folder that `make test-originals ORIGINALS=DIR` names."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORIES = {
    "een": "pootow/een-eval-framework",
    "sygra": "ServiceNow/SyGra",
    "intelligence_layer": "Aleph-Alpha/intelligence-layer-sdk",
    "mixeval": "Psycoy/MixEval (now JinjieNi/MixEval)",
    "ragicamp": "graphs4ai/ragicamp at commit 7483fca",
}


@pytest.fixture
def originals() -> Callable[[str], Path]:
    """Return the checkout of an original by its name; the test is skipped where there is none."""

    def checkout(name: str) -> Path:
        folder = Path(os.environ.get("ASSAY_ORIGINALS") or "originals").absolute() / name
        if not folder.is_dir() or not any(folder.iterdir()):
            pytest.skip(f"{folder} is missing: it is a checkout of {REPOSITORIES[name]}")
        return folder

    return checkout
