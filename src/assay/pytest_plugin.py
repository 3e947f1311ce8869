"""`assay gate` inside pytest: `def test_quality(assay_gate): assay_gate("output/demo", min=0.8)`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest


@pytest.fixture
def assay_gate() -> Callable[..., Any]:
    """Checks an experiment with the arguments of `assay.gate`; returns the checks if they pass."""
    return _gate


def _gate(
    path: str | Path, *, inconclusive: Literal["fail", "pass", "skip"] = "fail", **arguments: Any
) -> Any:
    __tracebackhide__ = True
    from assay import api
    from assay.errors import AssayError

    try:
        gated = api.gate(path, **arguments)
    except AssayError as error:
        pytest.fail(str(error), pytrace=False)
    if gated.outcome == "passed" or (gated.outcome == "inconclusive" and inconclusive == "pass"):
        return gated
    from assay.reports.compare import gate_text

    reasons = gate_text(gated)
    if gated.outcome == "inconclusive" and inconclusive == "skip":
        pytest.skip(reasons)
    pytest.fail(reasons, pytrace=False)
