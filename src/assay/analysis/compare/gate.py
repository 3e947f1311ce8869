"""Pass or fail an experiment against bounds and a baseline, with two honest other answers: inconclusive, incomplete.

A bound passes only when the whole interval keeps it and fails only when the whole interval breaks it. With `point`
the plain number decides.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from assay.analysis.compare.gate_calibration import Check, Outcome, calibration_checks, decided
from assay.analysis.compare.measured import Measured, bound_metric, matched, measured
from assay.analysis.compare.paired import Side, checked_level, read_side, shared_label
from assay.config import Config, GateConfig, load
from assay.engine.aggregate.facets import text_of
from assay.engine.aggregate.measure import BoundMetric, Policy
from assay.engine.calls.failures import failures_of
from assay.engine.experiment.bind import bind_metrics
from assay.engine.experiment.resolve import find_source
from assay.engine.experiment.trust import CONFIG, stored_config
from assay.errors import UserError
from assay.records import MetricRow
from assay.registry import nearest
from assay.shown import Shown
from assay.stats.paired import interval
from assay.stats.student import POWER, items_for_difference, t_quantile

EXIT_CODES: dict[Outcome, int] = {"passed": 0, "failed": 3, "inconclusive": 4, "incomplete": 4}


Kind = Literal["min", "max", "max_drop"]
Values = tuple[float | None, float | None, float | None]  # a number, and the ends of its interval


class Gated(Shown, kw_only=True):
    """All checks of an experiment: one that fails fails all, and one that is inconclusive leaves the rest open.
    `reasons` says why rows of it are errors."""

    path: str
    level: float
    outcome: Outcome
    checks: list[Check]
    reasons: list[str] = []

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]


def gate(
    path: str | Path,
    gates: Sequence[GateConfig] = (),
    *,
    config: str | Path | Config | None = None,
    level: float | None = None,
    point: bool = False,
    partial: bool = False,
    baseline: str | Path = "",
    max_error_rate: float | None = None,
    **bounds: Any,
) -> Gated:
    """Check an experiment. Gates are those given, or one made of `bounds` (the keys of a gate in a config), or those of
    the config: the one named, or the folder's own. `baseline` is for gates that name none. Unfinished or
    damaged evidence is `incomplete`, unless `partial` wants to judge what there is."""
    loaded = _config(path, config)
    chosen = list(gates) or ([_of_bounds(bounds)] if bounds else loaded.gates if loaded else [])
    chosen = _completed(chosen, str(baseline), max_error_rate)
    used = checked_level(level or (loaded.ci_level if loaded else 0.95))
    checks: list[Check] = []
    for gate in chosen:
        if gate.calibration is not None:
            checks += calibration_checks(path, gate.calibration, point=point)
        if any(bound is not None for bound in (gate.min, gate.max, gate.max_drop)):
            side = read_side(find_source(path, "evaluation"), gate.facets)
            checks += _Gate(side, gate, _metric(gate, loaded, used), point, partial).checks()
    if not checks:
        raise UserError(
            "there is nothing to check",
            fix="add --min, --max or --max-drop, or `gates:` to the config",
        )
    outcomes: set[Outcome] = {check.outcome for check in checks}
    worst: Outcome = next(outcome for outcome in _WORST_FIRST if outcome in outcomes)
    return Gated(path=str(path), level=used, outcome=worst, checks=checks, reasons=_reasons(path))


def _reasons(path: str | Path) -> list[str]:
    source = find_source(path, "evaluation")
    failures = failures_of(source.manifest("run"), source.manifest("evaluation"))
    return [line for each in failures for line in each.lines()]


_WORST_FIRST: Sequence[Outcome] = ("failed", "incomplete", "inconclusive", "passed")


def _completed(
    gates: Sequence[GateConfig], baseline: str, max_error_rate: float | None
) -> list[GateConfig]:
    """The gates with what is given for all of them."""
    if baseline and gates and all(gate.max_drop is None for gate in gates):
        raise UserError("a baseline is only for a gate on a drop", fix="add --max-drop 0.02")
    completed: list[GateConfig] = []
    for gate in gates:
        changes: dict[str, Any] = (
            {} if max_error_rate is None else {"max_error_rate": max_error_rate}
        )
        if baseline and gate.max_drop is not None and not gate.baseline:
            changes["baseline"] = baseline
        completed.append(msgspec.structs.replace(gate, **changes))
    return completed


def _of_bounds(bounds: Mapping[str, Any]) -> GateConfig:
    keys = GateConfig.__struct_fields__
    for name in bounds:
        if name not in keys:
            raise UserError(f"a gate has no {name!r}", fix=nearest(name, keys))
    try:
        return msgspec.convert(bounds, GateConfig)
    except msgspec.ValidationError as error:
        raise UserError(f"the gate cannot be checked: {error}") from None


def _config(path: str | Path, config: str | Path | Config | None) -> Config | None:
    """The config named, else the one in the experiment's folder, if there is one."""
    if isinstance(config, Config):
        return config
    if config is not None:
        return load(config, need="gate")
    folder = find_source(path, "evaluation").folder
    return (
        None if folder is None or not (folder / CONFIG).is_file() else stored_config(folder, "gate")
    )


class _Gate:
    """The checks of one gate."""

    def __init__(
        self, side: Side, gate: GateConfig, bound: BoundMetric, point: bool, partial: bool
    ) -> None:
        self.side, self.gate, self.bound = side, gate, bound
        self.level, self.point, self.judges_partial = bound.level, point, partial
        self.partial = side.partial
        if gate.max_drop is not None and not gate.baseline:
            raise UserError(
                "a gate on a drop needs a baseline",
                fix="add `baseline:` to the gate, or --baseline PATH",
            )

    def checks(self) -> list[Check]:
        gate = self.gate
        checks: list[Check] = []
        if gate.min is not None or gate.max is not None:
            label, scorer = self._label(self.side)
            measure = measured(self.bound, self.side, label, scorer)
            checks += [self._bounded("min", gate.min, measure)] if gate.min is not None else []
            checks += [self._bounded("max", gate.max, measure)] if gate.max is not None else []
        return checks if gate.max_drop is None else [*checks, self._dropped(gate.max_drop)]

    def _label(self, *sides: Side) -> tuple[str, str]:
        """Where all calls failed no label is known, and the gate is inconclusive about the one that was wanted."""
        if any(side.labels() for side in sides):
            return shared_label(sides, self.gate.label, self.bound)
        named = self.side.labels(verdicts=False)
        label = self.gate.label or min(named)
        return label, named.get(label, next(iter(named.values())))

    def _bounded(self, kind: Kind, threshold: float, measure: Measured) -> Check:
        row = measure.row
        value, low, high = values = row["value"], row["ci_low"], row["ci_high"]
        open_because = self._undecided(row)
        if open_because:
            return self._check(kind, threshold, row, "inconclusive", open_because, values)
        ends = (value, low or 0, high or 0) if kind == "min" else (value, high or 0, low or 0)
        sign = 1 if kind == "min" else -1
        outcome, why = decided(*(sign * (end - threshold) for end in ends), point=self.point)
        if outcome == "inconclusive":
            n = row["total_item_count"]
            deviation = (high - low) / 2 / t_quantile((1 + self.level) / 2, max(n - 1, 1)) * n**0.5
            why += settling([measure], n, deviation, value - threshold, self.level)
        return self._check(kind, threshold, row, outcome, why, values)

    def _undecided(self, row: MetricRow) -> str:
        """Why no bound can be checked on this row, if that is so."""
        if row["value"] is None:
            return str(row.get("error") or row.get("reason") or "there is no value")
        errors = self._errors(self.side, row)
        if not errors and row["ci_low"] is None and not self.point:
            return f"there is no interval ({row['ci_method'].removeprefix('none: ')}); see --point"
        return errors

    def _dropped(self, allowed: float) -> Check:
        other = read_side(find_source(self.gate.baseline, "evaluation"), self.gate.facets)
        if other.partial:
            self.partial = "; ".join(
                filter(None, [self.side.partial, f"baseline: {other.partial}"])
            )
        label, scorer = self._label(self.side, other)
        candidate, baseline = (
            measured(self.bound, side, label, scorer) for side in (self.side, other)
        )
        errors = self._errors(self.side, candidate.row) or self._errors(other, baseline.row)
        if candidate.values is None or baseline.values is None:
            missing = candidate.row if candidate.values is None else baseline.row
            why = (
                errors
                or missing.get("error")
                or missing.get("reason")
                or f"{self.bound.name} is not a mean over items"
            )
            return self._check(
                "max_drop", allowed, candidate.row, "inconclusive", str(why), (None, None, None)
            )
        match = matched(candidate, baseline)
        differences = match.differences
        low, high = interval(differences, self.level)
        rise = candidate.lower_is_better  # then a rise is what a drop is elsewhere
        ends = (-differences.mean, -high, -low) if rise else (differences.mean, low, high)
        outcome, why = decided(*(end + allowed for end in ends), point=self.point)
        if errors:
            outcome, why = "inconclusive", errors
        elif outcome == "inconclusive":
            room = ends[0] + allowed
            why += settling(
                [candidate, baseline], differences.n, differences.deviation, room, self.level
            )
        left_out = len(candidate.items) + len(baseline.items) - 2 * len(match.items)
        why += f" ({left_out:,} items are only on one side)" if left_out else ""
        return self._check(
            "max_drop", allowed, candidate.row, outcome, why, (differences.mean, low, high), rise
        )

    def _errors(self, side: Side, row: MetricRow) -> str:
        errored, total = row["errored_count"], row["total_sample_count"]
        if not total or errored / total <= self.gate.max_error_rate:
            return ""
        return f"{errored:,} of {total:,} rows of {side.name!r} are errors, more than {self.gate.max_error_rate:.3g}"

    def _check(
        self,
        kind: Kind,
        threshold: float,
        row: MetricRow,
        outcome: Outcome,
        why: str,
        values: Values,
        rise: bool = False,
    ) -> Check:
        facets = "".join(f", {name} = {text_of(value)}" for name, value in self.gate.facets.items())
        if self.partial:
            why = f"partial: {self.partial}" + (f"; {why}" if self.judges_partial else "")
            outcome = outcome if self.judges_partial else "incomplete"
        return Check(
            name=f"{self.bound.name} {row['label']}{facets}",
            bound=kind,
            threshold=threshold,
            outcome=outcome,
            why=why,
            value=values[0],
            low=values[1],
            high=values[2],
            items=row["total_item_count"],
            samples=row["total_sample_count"],
            counts={
                name: row[f"{name}_count"] for name in ("errored", "unparsed", "refused", "skipped")
            },
            label=row["label"],
            facets=dict(self.gate.facets),
            baseline=self.gate.baseline if kind == "max_drop" else "",
            lower_is_better=rise,
            partial=self.partial,
        )


def _metric(gate: GateConfig, config: Config | None, level: float) -> BoundMetric:
    """The config's metric of this name, of several the one of the gate's label, over all rows that the gate chooses; or
    the plug-in of this name."""
    named = [
        bound for bound in (bind_metrics(config) if config else ()) if bound.name == gate.metric
    ]
    of_label = [
        bound
        for bound in named
        if gate.label == bound.together or (not bound.together and bound.takes(gate.label))
    ]
    for bound in (of_label if gate.label else []) + named:
        return msgspec.structs.replace(bound, facets=[], level=level)
    policy: Mapping[str, str] = msgspec.to_builtins(config.policy) if config else {}
    return bound_metric(gate.metric, msgspec.convert(policy, Policy), level)


def settling(sides: Sequence[Measured], n: int, deviation: float, room: float, level: float) -> str:
    """A sentence about a value of `n` items that lies `room` from its bound; `deviation` is that of its items. What it
    names finds out 4 times in 5, if the value is the true one."""
    needed = items_for_difference(deviation, room, 1 - level)
    if needed is None:
        return "; the value is at the bound, and no number of items would settle it"
    ways = [f"about {max(needed - n, 1):,} more items"]
    more = _more_samples(sides, n, deviation, room, level)
    if more:
        ways.append(f"{more:,} more samples of each item")
    return f"; {' or '.join(ways)} would settle it"


def _more_samples(
    sides: Sequence[Measured], n: int, deviation: float, room: float, level: float
) -> int | None:
    """None where samples are one each, or where items differ so much that samples do not help."""
    within = sum(side.within for side in sides)
    each = min(
        side.row["total_sample_count"] / max(side.row["total_item_count"], 1) for side in sides
    )
    freedom = max(n - 1, 1)
    reach = t_quantile((1 + level) / 2, freedom) + t_quantile(POWER, freedom)
    spare = room**2 * n / reach**2 - (deviation**2 - within)
    if not within or not np.isfinite(within) or spare <= 0:
        return None
    return max(math.ceil(each * within / spare - each), 1)
