"""Pass or fail an experiment against bounds and a baseline, with two honest other answers: inconclusive, incomplete.

A bound passes only when the whole interval keeps it and fails only when the whole interval breaks it. The interval is
the strict one, which errs as rarely as it says on each side. With `point` the plain number decides.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from assay.analysis.compare.gate_calibration import (
    BoundEvidence,
    Check,
    Manner,
    Outcome,
    calibration_checks,
)
from assay.analysis.compare.measured import (
    MeasuredSide,
    bound_metric,
    failure_counts,
    match_sides,
    measured,
)
from assay.analysis.compare.paired import (
    Side,
    checked_level,
    read_side,
    shared_cluster_by,
    shared_label,
)
from assay.config import Config, GateConfig, load
from assay.engine.aggregate.measure import BoundMetric, Policy
from assay.engine.calls.failures import failures_of
from assay.engine.experiment.bind import bind_metrics
from assay.engine.experiment.resolve import find_source
from assay.engine.experiment.trust import CONFIG, stored_config
from assay.sdk import JsonMapping, MetricRow, UserError, check_name
from assay.shown import Shown
from assay.stats.paired import Differences, strict_interval
from assay.store.table.facets import text_of

EXIT_CODES: dict[Outcome, int] = {"passed": 0, "failed": 3, "inconclusive": 4, "incomplete": 4}


Kind = Literal["min", "max", "max_drop"]
_ALL_WRONG = Policy(on_error="wrong", on_unparsed="wrong", on_refused="wrong")


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
    allow_weak: bool = False,
    baseline: str | Path = "",
    max_error_rate: float | None = None,
    cluster_by: str = "",
    **bounds: Any,
) -> Gated:
    """Check an experiment. Gates are those given, or one made of `bounds` (the keys of a gate in a
    config), or those of the config: the one named, or the folder's own. `baseline` is for gates
    that name none. Unfinished or damaged evidence is `incomplete`, unless `partial` wants to judge
    what there is; weak evidence is inconclusive, unless `allow_weak` lets it decide. `cluster_by`
    is what items share that belong together, by default that of the config or of the experiment's
    own metrics."""
    loaded = _config(path, config)
    own = loaded.gates if loaded else ()
    if bounds:
        own = [_of_bounds(bounds)]
    chosen = _with_defaults(gates or own, str(baseline), max_error_rate)
    used = checked_level(level or (loaded.ci_level if loaded else 0.95))
    manner = Manner(
        level=used,
        point=point,
        partial=partial,
        allow_weak=allow_weak,
        cluster_by=cluster_by or (loaded.cluster_by if loaded else ""),
    )
    checks = _checks(path, chosen, loaded, manner)
    if not checks:
        raise UserError(
            "there is nothing to check",
            fix="add --min, --max or --max-drop, or `gates:` to the config",
        )
    outcomes: set[Outcome] = {check.outcome for check in checks}
    worst: Outcome = next(outcome for outcome in _WORST_FIRST if outcome in outcomes)
    return Gated(path=str(path), level=used, outcome=worst, checks=checks, reasons=_reasons(path))


def _checks(
    path: str | Path,
    chosen: Sequence[GateConfig],
    loaded: Config | None,
    manner: Manner,
) -> list[Check]:
    checks: list[Check] = []
    gates: list[_Gate] = []
    for gate in chosen:
        if gate.calibration is not None:
            checks += calibration_checks(path, gate.calibration, manner)
        if any(bound is not None for bound in (gate.min, gate.max, gate.max_drop)):
            side = read_side(find_source(path, "evaluation"), gate.facets)
            bound = _metric(gate, loaded)
            shared = manner.cluster_by or bound.cluster_by or shared_cluster_by([side.source])
            bound = replace(bound, cluster_by=shared)
            gates.append(_Gate(side, gate, bound, manner))
    return checks + _holm(gates, manner)


def _holm(gates: Sequence["_Gate"], manner: Manner) -> list[Check]:
    """Return the checks, of which only those fail that do so after correction for their number
    (Holm 1979): with m checks of which r fail, the others must fail at 1 - alpha / (m - r)."""

    def checks_at(level: float) -> list[Check]:
        return [check for gate in gates for check in gate.checks(level)]

    checks = final = checks_at(manner.level)
    rejected = -1
    count = 0
    if not any(check.outcome == "failed" for check in checks) or manner.point:
        return checks
    while rejected < count:
        rejected = count
        final = checks_at(1 - (1 - manner.level) / max(len(checks) - rejected, 1))
        count = sum(check.outcome == "failed" for check in final)
    for check, corrected in zip(checks, final, strict=True):
        if check.outcome == "failed":
            check.bound_used = corrected.bound_used
            if corrected.outcome != "failed":
                check.outcome = "inconclusive"
                check.why = f"fails alone, not after correction for {len(checks)} checks"
    return checks


def _reasons(path: str | Path) -> list[str]:
    source = find_source(path, "evaluation")
    failures = failures_of(source.manifest("run"), source.manifest("evaluation"))
    return [line for each in failures for line in each.lines()]


_WORST_FIRST: Sequence[Outcome] = ("failed", "incomplete", "inconclusive", "passed")


def _with_defaults(
    gates: Sequence[GateConfig], baseline: str, max_error_rate: float | None
) -> list[GateConfig]:
    """The gates with what is given for all of them."""
    if baseline and gates and all(gate.max_drop is None for gate in gates):
        raise UserError("a baseline is only for a gate on a drop", fix="add --max-drop 0.02")
    completed: list[GateConfig] = []
    for gate in gates:
        of_drop = baseline if gate.max_drop is not None else ""
        rate = gate.max_error_rate if max_error_rate is None else max_error_rate
        changes = {"baseline": gate.baseline or of_drop, "max_error_rate": rate}
        completed.append(replace(gate, **changes))
    return completed


def _of_bounds(bounds: JsonMapping) -> GateConfig:
    keys = GateConfig.__struct_fields__
    for name in bounds:
        check_name(name, keys, "a gate has no")
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

    def __init__(self, side: Side, gate: GateConfig, bound: BoundMetric, manner: Manner) -> None:
        self.side = side
        self.gate = gate
        self.manner = manner
        self.bound = replace(bound, facets=[], interval="strict")
        self.partial = side.partial
        if gate.max_drop is not None and not gate.baseline:
            raise UserError(
                "a gate on a drop needs a baseline",
                fix="add `baseline:` to the gate, or --baseline PATH",
            )

    def checks(self, level: float) -> Iterator[Check]:
        """Yield the checks with intervals of this level."""
        self.bound = replace(self.bound, level=level)
        gate = self.gate
        if gate.min is not None:
            yield self._check("min", gate.min, self._bound_evidence(1, gate.min))
        if gate.max is not None:
            yield self._check("max", gate.max, self._bound_evidence(-1, gate.max))
        if gate.max_drop is not None:
            yield self._check("max_drop", gate.max_drop, self._drop_evidence(gate.max_drop))

    def _label(self, *sides: Side) -> tuple[str, str]:
        """Return the label and its scorer. Where all calls failed no label is known, and the gate
        is inconclusive about the one that was wanted."""
        if any(side.labels() for side in sides):
            return shared_label(sides, self.gate.label, self.bound)
        named = self.side.labels(verdicts=False)
        label = self.gate.label or min(named)
        return label, named.get(label, next(iter(named.values())))

    def _bound_evidence(self, sign: int, threshold: float) -> BoundEvidence:
        label, scorer = self._label(self.side)
        own = measured(self.bound, self.side, label, scorer)
        row = own.row

        def missing(outcome: Outcome) -> str:
            """Tell what the missing rows could do: if all were wrong, and if all were right, when
            the interval moves as far as its value does."""
            if row["used_sample_count"] == row["total_sample_count"]:
                return ""
            bound = replace(self.bound, policy=_ALL_WRONG)
            wrong = measured(bound, self.side, label, scorer).row
            count = wrong["used_sample_count"] - row["used_sample_count"]
            right = row["value_if_missing_right"]
            moved = math.nan if right is None else right - row["value"]
            extremes = _of_row(wrong, sign, threshold), _of_row(row, sign, threshold - moved)
            if not count or all(each.decision()[0] == outcome for each in extremes):
                return ""
            return f"{count:,} missing row{'s' * (count > 1)} could reverse it"

        found = _of_row(row, sign, threshold)
        found.missing = missing
        found.why = self._open_reason(own) or self.manner.weakness(row["ci_method"])
        return found

    def _open_reason(self, own: MeasuredSide) -> str:
        """Why no bound can be checked on this row, if that is so."""
        row = own.row
        if row["value"] is None:
            return own.no_value or "there is no value"
        errors = self._errors(self.side, row)
        if not errors and row["ci_low"] is row["ci_high"] is None and not self.manner.point:
            return f"there is no interval ({row['ci_method'].removeprefix('none: ')}); see --point"
        return errors

    @cached_property
    def _baseline(self) -> Side:
        return read_side(find_source(self.gate.baseline, "evaluation"), self.gate.facets)

    def _drop_evidence(self, allowed: float) -> BoundEvidence:
        other = self._baseline
        if other.partial:
            texts = self.side.partial, f"baseline: {other.partial}"
            self.partial = "; ".join(filter(None, texts))
        label, scorer = self._label(self.side, other)
        candidate, baseline = (
            measured(self.bound, side, label, scorer) for side in (self.side, other)
        )
        base = BoundEvidence(
            row=candidate.row,
            sign=-1 if candidate.lower_is_better else 1,  # then a rise is what a drop is elsewhere
            offset=allowed,
            why=self._errors(self.side, candidate.row) or self._errors(other, baseline.row),
        )
        no_mean = f"{self.bound.name} is not a mean over items"
        for lacking in (candidate, baseline):
            if lacking.values is None:
                base.why = base.why or lacking.no_value or no_mean
                return base
        return self._paired_evidence(base, candidate, baseline)

    def _paired_evidence(
        self, base: BoundEvidence, candidate: MeasuredSide, baseline: MeasuredSide
    ) -> BoundEvidence:
        match = match_sides(candidate, baseline)

        def evidence(differences: Differences) -> BoundEvidence:
            ends = strict_interval(differences, self.bound.level)
            return replace(base, value=differences.mean, ends=ends, items=differences.n)

        found = evidence(match.differences)
        found.method = match.differences.weakness
        found.why = base.why or self.manner.weakness(found.method)
        found.missing = lambda outcome: match.missing_text(
            lambda others: evidence(others).decision()[0] == outcome
        )
        left_out = len(candidate.items) + len(baseline.items) - 2 * len(match.items)
        found.note = f" ({left_out:,} items are only on one side)" if left_out else ""
        return found

    def _errors(self, side: Side, row: MetricRow) -> str:
        errored = row["errored_count"]
        total = row["total_sample_count"]
        if not total or errored / total <= self.gate.max_error_rate:
            return ""
        return f"{errored:,} of {total:,} rows of {side.name!r} are errors, more than {self.gate.max_error_rate:.3g}"

    def _outcome(self, evidence: BoundEvidence) -> tuple[Outcome, str]:
        outcome, why = evidence.outcome(point=self.manner.point)
        why += evidence.note
        if not self.partial:
            return outcome, why
        partial = f"partial: {self.partial}"
        return (outcome, f"{partial}; {why}") if self.manner.partial else ("incomplete", partial)

    def _check(self, kind: Kind, threshold: float, evidence: BoundEvidence) -> Check:
        own = self.gate.facets
        facets = "".join(f", {name} = {text_of(value)}" for name, value in own.items())
        outcome, why = self._outcome(evidence)
        row, (low, high) = evidence.row, evidence.ends
        used = low if (outcome == "failed") == (evidence.sign < 0) else high
        return Check(
            name=f"{self.bound.name} {row['label']}{facets}",
            bound=kind,
            threshold=threshold,
            outcome=outcome,
            why=why,
            value=evidence.value,
            low=low,
            high=high,
            bound_used=None if self.manner.point else used,
            ci_method=evidence.method,
            items=row["total_item_count"],
            samples=row["total_sample_count"],
            counts=failure_counts(row),
            label=row["label"],
            facets=dict(own),
            baseline=self.gate.baseline if kind == "max_drop" else "",
            lower_is_better=kind == "max_drop" and evidence.sign < 0,
            partial=self.partial,
        )


def _of_row(row: MetricRow, sign: int, threshold: float) -> BoundEvidence:
    """Return the evidence that a row of a metric is."""
    return BoundEvidence(
        row=row,
        sign=sign,
        offset=-sign * threshold,
        value=row["value"],
        ends=(row["ci_low"], row["ci_high"]),
        items=row["total_item_count"],
        method=row["ci_method"],
    )


def _metric(gate: GateConfig, config: Config | None) -> BoundMetric:
    """The config's metric of this name, of several the one of the gate's label, over all rows that
    the gate chooses; or the plug-in of this name."""
    named = [
        bound for bound in (bind_metrics(config) if config else ()) if bound.name == gate.metric
    ]
    of_label = [
        bound
        for bound in named
        if gate.label == bound.together or (not bound.together and bound.takes(gate.label))
    ]
    for bound in (of_label if gate.label else []) + named:
        return bound
    policy: Mapping[str, str] = msgspec.to_builtins(config.policy) if config else {}
    return bound_metric(gate.metric, msgspec.convert(policy, Policy), 0.95)
