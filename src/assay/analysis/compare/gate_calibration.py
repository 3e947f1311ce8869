"""A gate on a judge: there is a calibration of the very judge that gave the rows, not too old, and good enough."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay.analysis.judge.accuracy import Estimate
from assay.analysis.judge.calibrate import Calibration
from assay.analysis.judge.judged import judge_ids
from assay.config import CalibrationConfig
from assay.engine.evaluate.judges import Judges
from assay.engine.experiment.resolve import find_source

Outcome = Literal["passed", "failed", "inconclusive", "incomplete"]
_ROUNDING = 1e-9  # 0.88 - 0.90 is a little below -0.02


class Check(msgspec.Struct, kw_only=True):
    """One bound. `value` is the metric, or for a drop the difference to the baseline; `low` and
    `high` its strict interval, None where it is open, made by `ci_method`; `bound_used` is the
    one-sided bound that decided, or that does not let it pass. Where lower is better, a drop is a
    rise. Of a calibration that must be `fresh`, the value is its age in days; the threshold is the
    most allowed, or 0. `partial` is what there is of unfinished evidence."""

    name: str
    bound: Literal["min", "max", "max_drop", "fresh"]
    threshold: float
    outcome: Outcome
    why: str
    value: float | None
    low: float | None = None
    high: float | None = None
    bound_used: float | None = None
    ci_method: str = ""
    items: int = 0
    samples: int = 0
    counts: dict[str, int] = {}
    label: str
    facets: dict[str, Any] = {}
    baseline: str = ""
    lower_is_better: bool = False
    partial: str = ""


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How all checks of a call decide: by intervals of this level or by the plain number (`point`), on unfinished
    evidence (`partial`), on weak evidence, with items drawn together that share something."""

    level: float
    point: bool = False
    partial: bool = False
    allow_weak: bool = False
    cluster_by: str = ""

    def weakness(self, method: str) -> str:
        """Return why an interval made in this way decides nothing, if that is so."""
        reason = method.partition("; weak: ")[2]
        if not reason or self.point or self.allow_weak:
            return ""
        return f"the evidence is weak: {reason}; see --allow-weak"


def decided(room: float, lowest: float, highest: float, *, point: bool) -> tuple[Outcome, str]:
    """`room` is how far the value keeps its bound; the other two are its interval. With `point` the number decides."""
    if point:
        keeps = room >= -_ROUNDING
        return (
            ("passed", "the number keeps the bound")
            if keeps
            else ("failed", "the number breaks the bound")
        )
    if lowest >= -_ROUNDING:
        return "passed", "the whole interval keeps the bound"
    if highest < -_ROUNDING:
        return "failed", "the whole interval breaks the bound"
    return "inconclusive", "the bound lies within the interval"


_DAY = 86_400.0


def calibration_checks(path: str | Path, wanted: CalibrationConfig, manner: Manner) -> list[Check]:
    """Whether it is fresh, and, if it is, a check for each bound."""
    place = wanted.path or str(path)
    calibration = _stored(place, wanted.label)
    age = None if calibration is None else (time.time() - calibration.created) / _DAY
    run = f"run `assay judge calibrate {place} --label {wanted.label}`"
    problem = f"there is no calibration of it in {place!r}; {run}" if calibration is None else ""
    if calibration is not None:
        problem = _stale(path, calibration, age or 0.0, wanted, run)
    size: dict[str, Any] = (
        {"items": calibration.items, "samples": calibration.labels} if calibration else {}
    )
    fresh = Check(
        name=f"calibration {wanted.label}",
        bound="fresh",
        threshold=wanted.max_age_days or 0.0,
        outcome="failed" if problem else "passed",
        why=problem or "it is of the judge that gave the rows",
        value=age,
        label=wanted.label,
        **size,
    )
    return (
        [fresh]
        if calibration is None or problem
        else [fresh, *_bounds(calibration, wanted, manner)]
    )


def _stored(place: str, label: str) -> Calibration | None:
    kept = Judges([find_source(place, "evaluation").manifest("evaluation")]).calibration(label)
    try:
        return None if kept is None else msgspec.convert(kept, Calibration)
    except msgspec.ValidationError:  # of another version of Assay: to be made again
        return None


def _stale(
    path: str | Path, calibration: Calibration, age: float, wanted: CalibrationConfig, run: str
) -> str:
    """Why the calibration says nothing about these rows, or not any more."""
    ids = judge_ids(find_source(path, "evaluation"), wanted.label)
    if not ids:
        return f"no row with the label {wanted.label!r} names its judge; score the answers with a judge"
    if ids != {calibration.judge}:
        return f"it is of the judge {calibration.judge}, and the rows are by {', '.join(sorted(ids))}; {run}"
    if wanted.max_age_days is not None and age > wanted.max_age_days:
        return f"it is {age:.0f} days old, more than {wanted.max_age_days:g}; {run}"
    return ""


def _bounds(calibration: Calibration, wanted: CalibrationConfig, manner: Manner) -> Iterator[Check]:
    measures: dict[str, tuple[float | None, Estimate]] = {
        "kappa": (wanted.min_kappa, calibration.agreement.kappa),
        "sensitivity": (wanted.min_sensitivity, calibration.sensitivity),
        "specificity": (wanted.min_specificity, calibration.specificity),
    }
    for name, (threshold, estimate) in measures.items():
        if threshold is None:
            continue
        value, low, high = estimate.value, estimate.low, estimate.high
        outcome, why = "inconclusive", manner.weakness(estimate.method)
        if not why and value is not None and (manner.point or None not in (low, high)):
            rooms = (number - threshold for number in (value, low or 0.0, high or 0.0))
            outcome, why = decided(*rooms, point=manner.point)
            if outcome == "inconclusive":
                why += "; more labels would settle it"
        yield Check(
            name=f"{name} of judge {wanted.label}",
            bound="min",
            threshold=threshold,
            outcome=outcome,
            why=why or estimate.method.removeprefix("none: "),
            value=value,
            low=low,
            high=high,
            items=calibration.items,
            samples=calibration.labels,
            label=wanted.label,
        )
