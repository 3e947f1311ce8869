"""The numbers of a log's header, and how they come from its rows.

inspect_ai leaves out samples that failed, but counts answers that could not be read at the value that the scorer gave
them: where both occur, its numbers are computed here, from the values as its own metrics take them."""

from collections import Counter
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from assay.engine.experiment.imports.headlines import by_item
from assay.foreign import Headline
from assay.formats.inspect_ai.header import LogHeader
from assay.formats.inspect_ai.shapes import GivenScore
from assay.sdk import (
    EvaluationOutcome,
    JsonObject,
    as_object,
    first_text,
    id_hash,
    list_of,
    number_of,
)
from assay.store.table.columns import Growing

_LETTERS = {"C": (1.0, True), "I": (0.0, False), "P": (0.5, False), "N": (0.0, False)}
_WORDS = {"yes": (1.0, True), "true": (1.0, True), "no": (0.0, False), "false": (0.0, False)}
_REASONS: dict[str, EvaluationOutcome] = {
    "no_response": "unparsed",
    "invalid_response_format": "unparsed",
    "refusal": "refused",
    "grader_failed": "errored",
    "scoring_failed": "errored",
}


class ScoreVerdict(NamedTuple):
    """`number` is the value as the tool's metrics take it; None if they leave it out."""

    label: str
    outcome: EvaluationOutcome
    score: float | None = None
    passed: bool | None = None
    number: float | None = None
    error: str | None = None
    value: Any = None


def parts_of(scorer: str, mark: GivenScore) -> list[ScoreVerdict]:
    """Return the labels of one score."""
    value, reason = mark.value, mark.reason
    if reason is None and mark.metadata:
        reason = first_text(mark.metadata, ["unscored_reason"]) or None
    if isinstance(value, dict):
        parts = [*as_object(value).items()]
    elif isinstance(value, list):
        parts = [*enumerate(list_of(value))]
    else:
        return [_verdict(scorer, value, reason)]
    return [_verdict(f"{scorer}.{key}", inner, reason) for key, inner in parts]


def _verdict(label: str, value: Any, reason: str | None) -> ScoreVerdict:
    number, passed = _number_and_verdict(value)
    outcome = _REASONS.get(reason) if reason is not None else None
    if outcome is not None:
        return ScoreVerdict(label, outcome, number=number, error=reason, value=value)
    if value is None:
        return ScoreVerdict(label, "errored", error=f"not scored: {reason or 'no reason is given'}")
    return ScoreVerdict(label, "scored", number, passed, number, value=value)


def _number_and_verdict(value: Any) -> tuple[float | None, bool | None]:
    """Return a value as a number, as the tool's own metrics read it, and whether it is right, where it says so."""
    if isinstance(value, bool):
        return float(value), value
    if not isinstance(value, str):
        return number_of(value), None
    known = _LETTERS.get(value) or _WORDS.get(value.lower())
    if known is not None:
        return known
    try:
        return number_of(float(value)), None
    except ValueError:
        return None, None


Reduce = Literal["mean", "median", "mode", "max"]
_REDUCERS: dict[str, Reduce] = {"": "mean", **{name: name for name in get_args(Reduce)}}
_MEANS = ("accuracy", "mean")


class CountedValues:
    """What the tool's metrics counted of one label, by item; `odd`: rows that have no verdict, but were counted."""

    def __init__(self) -> None:
        self.items, self.values = Growing("id"), Growing("float")
        self.odd = 0


class LogNumbers:
    """Collects the values of a log while its samples are read, and then checks its numbers."""

    def __init__(self, header: LogHeader) -> None:
        self._header = header
        self._values: dict[str, CountedValues] = {}
        self._texts: Counter[str] = Counter()
        self.facets = sorted({facet for score in header.scores for _, facet in _groups(score)})

    def add(self, item_id: str, verdict: ScoreVerdict) -> None:
        """Add a value, as soon as it is read."""
        if verdict.number is None:
            self._texts[verdict.label] += isinstance(verdict.value, str)
            return
        values = self._values.get(verdict.label)
        if values is None:
            values = self._values[verdict.label] = CountedValues()
        values.items.append(id_hash(item_id))
        values.values.append(verdict.number)
        values.odd += verdict.outcome != "scored"

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Return (scorer, label) of all that the header has numbers for; without any, of its scorers."""
        named = [
            (str(score.get("scorer") or score.get("name")), self._label(score))
            for score in self._header.scores
        ]
        return list(dict.fromkeys(named)) or [(name, name) for name in self._header.scorers]

    def _label(self, score: JsonObject) -> str:
        name, scorer = str(score.get("name")), str(score.get("scorer") or score.get("name"))
        return name if name == scorer else f"{scorer}.{name}"

    def headlines(self) -> list[Headline]:
        """Return every number of the header."""
        return [headline for score in self._header.scores for headline in self._of_score(score)]

    def _of_score(self, score: JsonObject) -> list[Headline]:
        metrics = {name: as_object(each) for name, each in as_object(score.get("metrics")).items()}
        reducer, label = str(score.get("reducer") or ""), self._label(score)
        several = sum(self._label(row) == label for row in self._header.scores)
        error: JsonObject = {}
        if _is_simple(metrics.get("stderr", {})) and not metrics.keys().isdisjoint(_MEANS):
            error = metrics.pop("stderr", {})  # it stands beside its mean
        made: list[Headline] = []
        for name, metric in metrics.items():
            shown = f"{name} ({reducer})" if several > 1 and reducer else name
            headline = Headline(label=label, metric=shown, value=number_of(metric.get("value")))
            if name in _MEANS:
                headline.stderr = number_of(error.get("value"))
            made.append(self._with_origin(headline, name, metric, reducer))
        return made

    def _with_origin(
        self, headline: Headline, name: str, metric: JsonObject, reducer: str
    ) -> Headline:
        """Return a headline with how it comes from the rows."""
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

    def _compute(self, headline: Headline, name: str, metric: JsonObject, reduce: Reduce) -> None:
        values = self._values.get(headline.label)
        if values is None:
            headline.reason = "no sample has a number for it"
            return
        numbers = by_item(values.items.numbers, values.values.numbers, reduce)
        if name in _MEANS:
            headline.ours, headline.is_mean, headline.reduce = float(numbers.mean()), True, reduce
            if len(numbers) > 1:
                headline.ours_stderr = float(numbers.std(ddof=1)) / len(numbers) ** 0.5
        elif name in ("std", "var", "stderr") and _is_simple(metric):
            deviation = float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0
            headline.ours = {"std": deviation, "var": deviation**2}.get(
                name, deviation / len(numbers) ** 0.5
            )
        else:
            headline.reason = f"{name} is not computed here"

    def notes(self, failed: int) -> list[str]:
        """Return the other number, where answers that failed are left out of the tool's own and only it was computed."""
        if not self._header.scores:
            return []
        notes = [
            f"{label}: texts that are not marks, which inspect_ai counts as 0 and which have no score here: {count:,}"
            for label, count in self._texts.items()
            if count
        ]
        for score in self._header.scores:
            label, values = self._label(score), self._values.get(self._label(score))
            is_reduced = str(score.get("reducer") or "") in _REDUCERS
            if values is not None and values.odd and failed and is_reduced:
                numbers = values.values.numbers
                share = float(np.sum(numbers)) / (len(numbers) + failed)
                notes.append(
                    f"{label}: inspect_ai leaves {failed:,} failed samples out of its numbers; with these counted as 0 "
                    f"the mean over all samples is {share:.4f}"
                )
        return list(dict.fromkeys(notes))


def _is_simple(metric: JsonObject) -> bool:
    """Return whether a metric has no parameters that change what it is."""
    return not any(as_object(metric.get("params")).values())


def _group(metric: JsonObject) -> tuple[str, str]:
    """Return the metric and the field of a number that is about one group of samples."""
    params = as_object(metric.get("params"))
    facet = params.get("group_key")
    if not isinstance(facet, str) or not metric.get("group"):
        return "", ""
    inner = params.get("metric")
    name = inner.get("name") if isinstance(inner, dict) else inner
    return str(name or "").rpartition("/")[2], facet


def _groups(score: JsonObject) -> list[tuple[str, str]]:
    metrics = as_object(score.get("metrics")).values()
    return [group for metric in metrics if (group := _group(as_object(metric)))[1]]
