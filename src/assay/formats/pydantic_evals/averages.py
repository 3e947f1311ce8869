"""The averages that pydantic-evals prints below a report, computed as it does: over cases, or, where cases were run
several times, over the averages of each. A report's file does not have them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from assay.engine.experiment.imports.foreign import Headline
from assay.records import Evaluation, Response

_Sums = dict[tuple[str, ...], list[float]]  # (kind, name, …): sum and count


class Averages:
    """Filled case by case: with what the report has, and with what our rows have of it."""

    def __init__(self) -> None:
        self._groups: dict[str, tuple[_Sums, _Sums]] = {}
        self._kinds: dict[str, set[str]] = {}

    def add(
        self,
        group: str,
        row: Mapping[str, Any],
        response: Response,
        evaluations: Sequence[Evaluation],
    ) -> None:
        theirs, ours = self._groups.setdefault(group, ({}, {}))
        for key, value in _reported(row):
            _count(theirs, key, value)
        for evaluation in evaluations:
            kind = evaluation.detailed_results["kind"]
            self._kinds.setdefault(evaluation.label, set()).add(kind)
            if kind == "assertion":
                _count(ours, ("assertion",), float(evaluation.passed or False))
            elif kind == "label":
                _count(ours, ("label", evaluation.label, str(evaluation.value)), 1.0)
                _count(ours, ("labels", evaluation.label), 1.0)
        for name, value in response.metadata.get("metrics", {}).items():
            _count(ours, ("metric", name), value)
        _count(ours, ("task_duration",), response.inference_time)

    def headlines(self) -> list[Headline]:
        if not self._groups:
            return []
        theirs = _average([sums for sums, _ in self._groups.values()])
        ours = _average([sums for _, sums in self._groups.values()])
        runs = len(self._groups) > 1 or "" not in self._groups
        return [self._headline(key, value, ours.get(key), runs) for key, value in theirs.items()]

    def _headline(
        self, key: tuple[str, ...], value: float, ours: float | None, runs: bool
    ) -> Headline:
        kind, *names = key
        if kind == "score":
            mixed = len(self._kinds.get(names[0], ())) > 1
            return Headline(
                label=names[0],
                metric="average",
                value=value,
                reduce="mean" if runs else "none",
                reason="assertions or labels have the same name" if mixed else "",
            )
        if kind == "assertion":
            asserted = [label for label, kinds in self._kinds.items() if "assertion" in kinds]
            if len(asserted) == 1 and self._kinds[asserted[0]] == {"assertion"}:
                reduce = "mean" if runs else "none"
                return Headline(
                    label=asserted[0], metric="assertions", value=value, of="passed", reduce=reduce
                )
            return Headline(label="assertions", metric="share that holds", value=value, ours=ours)
        if kind == "label":
            return Headline(label=names[0], metric=f"share of {names[1]!r}", value=value, ours=ours)
        return Headline(label=names[0] if names else kind, metric="average", value=value, ours=ours)


def _reported(row: Mapping[str, Any]) -> Iterable[tuple[tuple[str, ...], float]]:
    for kind in ("scores", "labels", "assertions", "metrics"):
        entries = row.get(kind)
        for name, entry in (
            cast("dict[str, Any]", entries).items() if isinstance(entries, dict) else ()
        ):
            value = cast("dict[str, Any]", entry).get("value") if isinstance(entry, dict) else entry
            if kind == "labels":
                yield ("label", name, str(value)), 1.0
                yield ("labels", name), 1.0
            elif isinstance(value, (int, float)):
                yield ("assertion",) if kind == "assertions" else (kind[:-1], name), float(value)
    if isinstance(row.get("task_duration"), (int, float)):
        yield ("task_duration",), float(row["task_duration"])


def _count(sums: _Sums, key: tuple[str, ...], value: float) -> None:
    entry = sums.setdefault(key, [0.0, 0.0])
    entry[0] += value
    entry[1] += 1


def _average(groups: list[_Sums]) -> dict[tuple[str, ...], float]:
    """The mean over the groups that have a number, of each group's mean; of labels, the share of each value."""
    found: _Sums = {}
    for sums in groups:
        for key, (total, count) in sums.items():
            if key[0] == "label":
                _count(found, key, total / sums[("labels", key[1])][1])
            elif key[0] != "labels":
                _count(found, key, total / count)
    given = {
        key[1]: sum(("labels", key[1]) in sums for sums in groups)
        for key in found
        if key[0] == "label"
    }
    return {
        key: total / (given[key[1]] if key[0] == "label" else count)
        for key, (total, count) in found.items()
    }
