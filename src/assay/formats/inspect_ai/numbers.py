"""The numbers of a log's header, and how they come from its rows.

inspect_ai leaves out samples that failed, but counts answers that could not be read at the value that the scorer gave
them: where both occur, its numbers are computed here, from the values as its own metrics take them."""

from array import array
from collections import Counter
from typing import Any, Literal, cast

import numpy as np

from assay.engine.experiment.imports.foreign import Headline
from assay.formats.inspect_ai.header import Header
from assay.formats.inspect_ai.marks import Verdict
from assay.interfaces import FloatArray
from assay.store.keys import id_hash

Reduce = Literal["mean", "median", "mode", "max"]
_REDUCERS: dict[str, Reduce] = {
    "": "mean",
    "mean": "mean",
    "median": "median",
    "mode": "mode",
    "max": "max",
}
_MEANS = ("accuracy", "mean")
_ERRORS = ("stderr",)
Row = dict[str, Any]


class Values:
    """What the tool's metrics counted of one label, by item; `odd`: rows that have no verdict, but were counted."""

    def __init__(self) -> None:
        self.items, self.numbers = array("Q"), array("d")
        self.odd = 0

    def reduced(self, reduce: Reduce) -> FloatArray:
        """One value for each item."""
        numbers = np.frombuffer(self.numbers, np.float64)
        _, place = np.unique(np.frombuffer(self.items, np.uint64), return_inverse=True)
        counts = np.bincount(place)
        if not len(counts) or counts.max() == 1:
            return numbers
        if reduce == "mean":
            return np.bincount(place, numbers) / counts
        order = np.argsort(place, kind="stable")
        groups = np.split(numbers[order], np.cumsum(counts)[:-1])
        if reduce == "max":
            return np.array([group.max() for group in groups])
        chosen = np.median if reduce == "median" else _mode
        return np.array([chosen(group) for group in groups])


def _mode(values: FloatArray) -> float:
    seen = values.tolist()
    return max(dict.fromkeys(seen), key=seen.count)


class Numbers:
    """Collects the values of a log while its samples are read, and then checks its numbers."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._values: dict[str, Values] = {}
        self._texts: Counter[str] = Counter()
        self.facets = sorted({facet for score in header.scores for _, facet in _groups(score)})

    def add(self, item_id: str, verdict: Verdict) -> None:
        """Add a value, as soon as it is read."""
        if verdict.number is None:
            self._texts[verdict.label] += isinstance(verdict.value, str)
            return
        values = self._values.get(verdict.label)
        if values is None:
            values = self._values[verdict.label] = Values()
        values.items.append(id_hash(item_id))
        values.numbers.append(verdict.number)
        values.odd += verdict.outcome != "scored"

    @property
    def labels(self) -> list[tuple[str, str]]:
        """(scorer, label) of all that the header has numbers for; without any, of its scorers."""
        named = [
            (str(score.get("scorer") or score.get("name")), self._label(score))
            for score in self._header.scores
        ]
        return list(dict.fromkeys(named)) or [(name, name) for name in self._header.scorers]

    def _label(self, score: Row) -> str:
        name, scorer = str(score.get("name")), str(score.get("scorer") or score.get("name"))
        return name if name == scorer else f"{scorer}.{name}"

    def headlines(self) -> list[Headline]:
        """Every number of the header."""
        return [headline for score in self._header.scores for headline in self._of_score(score)]

    def _of_score(self, score: Row) -> list[Headline]:
        metrics = (
            cast("dict[str, Any]", score["metrics"])
            if isinstance(score.get("metrics"), dict)
            else {}
        )
        reducer = str(score.get("reducer") or "")
        label, several = (
            self._label(score),
            sum(self._label(row) == self._label(score) for row in self._header.scores),
        )
        errors = {
            name: _number(metric)
            for name, metric in metrics.items()
            if name in _ERRORS and _is_simple(metric)
        }
        made: list[Headline] = []
        for name, metric in metrics.items():
            if name in errors and any(mean in metrics for mean in _MEANS):
                continue  # it stands beside its mean
            shown = f"{name} ({reducer})" if several > 1 and reducer else name
            headline = Headline(label=label, metric=shown, value=_number(metric))
            if name in _MEANS:
                headline.stderr = next(iter(errors.values()), None)
            made.append(self._explained(headline, name, metric, reducer))
        return made

    def _explained(self, headline: Headline, name: str, metric: Row, reducer: str) -> Headline:
        """How a number comes from the rows."""
        group, facet = _group(metric)
        if reducer not in _REDUCERS:
            headline.reason = f"the reducer {reducer} is not computed here"
        elif facet:
            every = metric.get("name") == metric["params"].get("all_label", "all")
            if group not in _MEANS or not self._is_plain(headline.label):
                headline.reason = f"{group} by group is not computed here"
            elif every and metric["params"].get("all", "samples") != "samples":
                headline.reason = "a mean of groups is not computed here"
            else:
                headline.reduce = _REDUCERS[reducer]
                headline.where = {} if every else {facet: metric.get("name")}
        elif name in _MEANS and self._is_plain(headline.label):
            headline.reduce = _REDUCERS[reducer]
        else:
            self._compute(headline, name, metric, _REDUCERS[reducer])
        return headline

    def _is_plain(self, label: str) -> bool:
        return label not in self._values or not self._values[label].odd

    def _compute(self, headline: Headline, name: str, metric: Row, reduce: Reduce) -> None:
        values = self._values.get(headline.label)
        if values is None or not len(values.numbers):
            headline.reason = "no sample has a number for it"
            return
        numbers = values.reduced(reduce)
        if name in _MEANS:
            headline.ours, headline.is_mean, headline.reduce = float(numbers.mean()), True, reduce
            if len(numbers) > 1:
                headline.ours_stderr = float(numbers.std(ddof=1)) / len(numbers) ** 0.5
        elif name in ("std", "var", *_ERRORS) and _is_simple(metric):
            deviation = float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0
            headline.ours = {"std": deviation, "var": deviation**2}.get(
                name, deviation / len(numbers) ** 0.5
            )
        else:
            headline.reason = f"{name} is not computed here"

    def notes(self, failed: int) -> list[str]:
        """The other number, where answers that failed are left out of the tool's own and only it was computed."""
        notes = [
            f"{label}: texts that are not marks, which inspect_ai counts as 0 and which have no score here: {count:,}"
            for label, count in self._texts.items()
            if count and self._header.scores
        ]
        for score in self._header.scores:
            label, values = self._label(score), self._values.get(self._label(score))
            if (
                values is not None
                and values.odd
                and failed
                and str(score.get("reducer") or "") in _REDUCERS
            ):
                total = float(np.sum(np.frombuffer(values.numbers, np.float64)))
                share = total / (len(values.numbers) + failed)
                notes.append(
                    f"{label}: inspect_ai leaves {failed:,} failed samples out of its numbers; with these counted as 0 "
                    f"the mean over all samples is {share:.4f}"
                )
        return list(dict.fromkeys(notes))


def _number(metric: Any) -> float | None:
    value = cast("Row", metric).get("value") if isinstance(metric, dict) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_simple(metric: Any) -> bool:
    """Whether a metric has no parameters that change what it is."""
    params = cast("Row", metric).get("params") if isinstance(metric, dict) else None
    return not params or not any(cast("Row", params).values())


def _group(metric: Any) -> tuple[str, str]:
    """The metric and the field of a number that is about one group of samples."""
    params = cast("Row", metric).get("params") if isinstance(metric, dict) else None
    fields = cast("Row", params) if isinstance(params, dict) else {}
    facet = fields.get("group_key")
    if not isinstance(facet, str) or not cast("Row", metric).get("group"):
        return "", ""
    inner = fields.get("metric")
    name = cast("Row", inner).get("name") if isinstance(inner, dict) else inner
    return str(name or "").rpartition("/")[2], facet


def _groups(score: Row) -> list[tuple[str, str]]:
    metrics = score.get("metrics")
    found = (
        [_group(metric) for metric in cast("Row", metrics).values()]
        if isinstance(metrics, dict)
        else []
    )
    return [(name, facet) for name, facet in found if facet]
