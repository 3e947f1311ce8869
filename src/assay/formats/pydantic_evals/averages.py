"""The averages that pydantic-evals prints below a report, computed as it does: over cases, or, where cases were run
several times, over the averages of each. A report's file does not have them."""

from collections import Counter
from collections.abc import Iterator, Sequence

from assay.foreign import Headline
from assay.sdk import Evaluation, JsonObject, Response, as_object

_Sums = dict[tuple[str, ...], list[float]]  # (kind, name, …): sum and count


class Averages:
    """Filled case by case: with what the report has, and with what our rows have of it."""

    def __init__(self) -> None:
        self._groups: dict[str, tuple[_Sums, _Sums]] = {}
        self._kinds: dict[str, set[str]] = {}

    def add(
        self,
        group: str,
        row: JsonObject,
        response: Response,
        evaluations: Sequence[Evaluation],
    ) -> None:
        theirs, ours = self._groups.setdefault(group, ({}, {}))
        for key, value in _reported_numbers(row):
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
        made = Headline(label=(names or [kind])[0], metric="average", value=value)
        own_mean = "mean" if runs else "none"
        if kind == "score":
            made.reduce = own_mean
            if len(self._kinds.get(names[0], ())) > 1:
                made.reason = "assertions or labels have the same name"
            return made
        asserted = [label for label, kinds in self._kinds.items() if "assertion" in kinds]
        if kind == "label":
            made.metric = f"share of {names[1]!r}"
        elif kind == "assertion" and [self._kinds[label] for label in asserted] == [{kind}]:
            made.label, made.metric = asserted[0], "assertions"
            made.of, made.reduce = "passed", own_mean
            return made
        elif kind == "assertion":
            made.label, made.metric = "assertions", "share that holds"
        made.ours = ours
        return made


def _reported_numbers(row: JsonObject) -> Iterator[tuple[tuple[str, ...], float]]:
    for kind in ("scores", "labels", "assertions", "metrics"):
        for name, entry in as_object(row.get(kind)).items():
            value = as_object(entry).get("value") if isinstance(entry, dict) else entry
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
    """Return the mean over the groups that have a number, of each group's mean; of labels, the share of each value."""
    found: _Sums = {}
    labelled: Counter[str] = Counter()
    for sums in groups:
        for key, (total, count) in sums.items():
            if key[0] == "labels":
                labelled[key[1]] += 1
            else:
                of = sums["labels", key[1]][1] if key[0] == "label" else count
                _count(found, key, total / of)
    return {
        key: total / (labelled[key[1]] if key[0] == "label" else count)
        for key, (total, count) in found.items()
    }
