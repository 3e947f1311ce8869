"""A gate on a judge: there is a calibration of the very judge that gave the rows, not too old, and good enough."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from assay.analysis.judge.calibrate import Calibration
from assay.analysis.judge.judged import judge_ids
from assay.config import CalibrationConfig
from assay.engine.evaluate.judges import Judges
from assay.engine.experiment.resolve import find_source
from assay.records import JsonObject, MetricRow

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
    facets: JsonObject = {}
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


class BoundEvidence(msgspec.Struct, kw_only=True):
    """A number with its interval, for one bound: it keeps the bound by `sign` times the number plus
    `offset`. `why` it cannot decide, if that is known; `more` says what would settle it, and
    `missing` what rows without a verdict could do to an outcome; `note` is said in any case."""

    row: MetricRow = {}
    sign: int = 1
    offset: float
    value: float | None = None
    ends: tuple[float | None, float | None] = (None, None)
    items: int = 0
    method: str = ""
    why: str = ""
    more: str = ""
    note: str = ""
    missing: Callable[[Outcome], str] = lambda outcome: ""

    def rooms(self) -> list[float]:
        """Return by how much the interval keeps the bound, at least and at most."""
        low, high = self.ends
        numbers = -math.inf if low is None else low, math.inf if high is None else high
        return sorted(self.sign * number + self.offset for number in numbers)

    def decision(self, *, point: bool = False) -> tuple[Outcome, str]:
        """Return what the interval, or with `point` the number, says of the bound."""
        what, (lowest, highest) = "whole interval", self.rooms()
        if point:
            what, lowest = "number", self.sign * (self.value or 0.0) + self.offset
            highest = lowest
        if lowest >= -_ROUNDING:
            return "passed", f"the {what} keeps the bound"
        if highest < -_ROUNDING:
            return "failed", f"the {what} breaks the bound"
        return "inconclusive", "the bound lies within the interval"

    def outcome(self, *, point: bool) -> tuple[Outcome, str]:
        """Return what is to be said of the bound, all things considered."""
        outcome, why = self.decision(point=point)
        if self.why:
            return "inconclusive", self.why
        if outcome == "inconclusive":
            return outcome, why + (self.more or self._more_items())
        missing = "" if point else self.missing(outcome)
        return ("inconclusive", missing) if missing else (outcome, why)

    def _more_items(self) -> str:
        """Return what to say of an interval with the bound in it: how many more items it takes at
        least. So many do if it shrinks as fast as any, to half with twice the items, and the value
        moves to the end farther from the bound."""
        if None in self.ends:
            return f", which is open {'below' if self.ends[0] is None else 'above'}"
        shorter, longer = sorted(map(abs, self.rooms()))
        more = math.ceil(self.items * shorter / longer)
        return f"; it takes at least {more:,} more item{'s' * (more != 1)}"


_DAY = 86_400.0


def calibration_checks(path: str | Path, wanted: CalibrationConfig, manner: Manner) -> list[Check]:
    """Return whether it is fresh, and, if it is, a check for each bound."""
    place = wanted.path or str(path)
    calibration = _stored_calibration(place, wanted.label)
    run = f"run `assay judge calibrate {place} --label {wanted.label}`"
    fresh = Check(
        name=f"calibration {wanted.label}",
        bound="fresh",
        threshold=wanted.max_age_days or 0.0,
        outcome="failed",
        why=f"there is no calibration of it in {place!r}; {run}",
        value=None,
        label=wanted.label,
    )
    if calibration is None:
        return [fresh]
    age = fresh.value = (time.time() - calibration.created) / _DAY
    fresh.items, fresh.samples = calibration.items, calibration.labels
    ids = judge_ids(find_source(path, "evaluation"), wanted.label)
    if problem := _stale(ids, calibration, age, wanted):
        fresh.why = f"{problem}; {run if ids else 'score the answers with a judge'}"
        return [fresh]
    fresh.outcome, fresh.why = "passed", "it is of the judge that gave the rows"
    return [fresh, *_bounds(calibration, wanted, manner, fresh)]


def _stored_calibration(place: str, label: str) -> Calibration | None:
    kept = Judges([find_source(place, "evaluation").manifest("evaluation")]).calibration(label)
    try:
        return None if kept is None else msgspec.convert(kept, Calibration)
    except msgspec.ValidationError:  # of another version of Assay: to be made again
        return None


def _stale(ids: set[str], calibration: Calibration, age: float, wanted: CalibrationConfig) -> str:
    """Return why the calibration says nothing about the rows of these judges, or not any more."""
    if not ids:
        return f"no row with the label {wanted.label!r} names its judge"
    if ids != {calibration.judge}:
        return (
            f"it is of the judge {calibration.judge}, and the rows are by {', '.join(sorted(ids))}"
        )
    if wanted.max_age_days is not None and age > wanted.max_age_days:
        return f"it is {age:.0f} days old, more than {wanted.max_age_days:g}"
    return ""


def _bounds(
    calibration: Calibration, wanted: CalibrationConfig, manner: Manner, fresh: Check
) -> Iterator[Check]:
    estimates = {
        "kappa": calibration.agreement.kappa,
        "sensitivity": calibration.sensitivity,
        "specificity": calibration.specificity,
    }
    for name, estimate in estimates.items():
        threshold: float | None = getattr(wanted, f"min_{name}")
        if threshold is None:
            continue
        evidence = BoundEvidence(
            offset=-threshold,
            value=estimate.value,
            ends=(estimate.low, estimate.high),
            why=manner.weakness(estimate.method),
            more="; more labels would settle it",
        )
        if estimate.value is None or (None in evidence.ends and not manner.point):
            evidence.why = evidence.why or estimate.method.removeprefix("none: ")
        outcome, why = evidence.outcome(point=manner.point)
        yield replace(
            fresh,
            name=f"{name} of judge {wanted.label}",
            bound="min",
            threshold=threshold,
            outcome=outcome,
            why=why,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
        )
