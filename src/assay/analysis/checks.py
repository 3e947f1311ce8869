"""One check of a gate, and how an interval decides it."""

from typing import Any, Literal

import msgspec

Outcome = Literal["passed", "failed", "inconclusive"]
_ROUNDING = 1e-9  # 0.88 - 0.90 is a little below -0.02


class Check(msgspec.Struct, kw_only=True):
    """One bound. `value` is the metric, or for a drop the difference to the baseline; `low` and `high` its interval.
    Of a calibration that must be `fresh`, the value is its age in days; the threshold is the most allowed, or 0."""

    name: str
    bound: Literal["min", "max", "max_drop", "fresh"]
    threshold: float
    outcome: Outcome
    why: str
    value: float | None
    low: float | None
    high: float | None
    items: int
    samples: int
    counts: dict[str, int]
    label: str
    facets: dict[str, Any]
    baseline: str = ""


def decided(room: float, lowest: float, highest: float, *, point: bool) -> tuple[Outcome, str]:
    """`room` is how far the value keeps its bound; the other two are its interval. With `point` the number decides."""
    if point:
        keeps = room >= -_ROUNDING
        return ("passed", "the number keeps the bound") if keeps else ("failed", "the number breaks the bound")
    if lowest >= -_ROUNDING:
        return "passed", "the whole interval keeps the bound"
    if highest < -_ROUNDING:
        return "failed", "the whole interval breaks the bound"
    return "inconclusive", "the bound lies within the interval"
