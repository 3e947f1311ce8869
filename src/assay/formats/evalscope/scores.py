"""The scores of evalscope's reports as headlines: of a dataset, its categories and its subsets.

Reports name metrics by their meaning (`rouge`, `l`, `recall`), samples by a short name (`Rouge-L-R`). Reports have four
digits, and compute means of rounded means.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from assay.engine.experiment.imports.foreign import Headline

Row = dict[str, Any]
_DIGITS = 4
_SHORT = {"r": "recall", "p": "precision", "f": "f1", "acc": "accuracy"}
_WORDS = re.compile(r"[-_ /]+")


class Sum(NamedTuple):
    """Of one label in one subset: the sum of `scored` scores, and how many failures evalscope has counted as `zeros` or
    has `left_out`."""

    total: float = 0.0
    scored: int = 0
    zeros: int = 0
    left_out: int = 0

    @property
    def mean(self) -> float | None:
        counted = self.scored + self.zeros
        return self.total / counted if counted else None


def _together(sums: Iterable[Sum]) -> Sum:
    found = list(sums)
    return Sum(
        sum(each.total for each in found),
        sum(each.scored for each in found),
        sum(each.zeros for each in found),
        sum(each.left_out for each in found),
    )


class Sums:
    """What our rows have, by model, dataset, subset and label."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str, str], Sum] = {}

    @property
    def zeros(self) -> int:
        """How many failures evalscope has counted as 0."""
        return sum(found.zeros for found in self._sums.values())

    def add(
        self, place: tuple[str, str, str], label: str, score: float | None, *, counted: bool
    ) -> None:
        """The score of a row, or None for a failure, which evalscope has `counted` as 0, or not at all."""
        old = self._sums.get((*place, label), Sum())
        new = Sum(0.0, 0, int(counted), int(not counted)) if score is None else Sum(score, 1)
        self._sums[*place, label] = _together([old, new])

    def headlines(self, report: Row, several: bool) -> Iterator[Headline]:
        """The numbers of a report; `several`: the run has more than one model."""
        model, dataset = str(report.get("model_name") or ""), str(report.get("dataset_name") or "")
        own = {key[2:]: found for key, found in self._sums.items() if key[:2] == (model, dataset)}
        labels = {words(label): label for _, label in own}
        where = {"dataset": dataset, **({"model_name": model} if several else {})}
        for metric in _dicts(report.get("metrics")):
            identity = cast(
                "Row", metric.get("identity") or {"name": metric.get("name"), "aggregation": "mean"}
            )
            label = labels.get(_identity_words(identity))
            name = str(identity.get("name"))
            if label is None or identity.get("aggregation") not in ("mean", "identity"):
                what = (
                    f"evalscope aggregates it by {identity.get('aggregation')!r}"
                    if label
                    else "no sample has this score"
                )
                metric_name = str(identity.get("aggregation"))
                yield Headline(
                    label=label or name,
                    metric=metric_name,
                    value=_score(metric),
                    where=where,
                    reason=what,
                )
                continue
            subsets = {subset: found for (subset, of), found in own.items() if of == label}
            yield from _of_metric(metric, label, where, subsets)


def _of_metric(metric: Row, label: str, where: Row, sums: dict[str, Sum]) -> Iterator[Headline]:
    categories = _dicts(metric.get("categories"))
    subsets = [entry for category in categories for entry in _dicts(category.get("subsets"))]
    real = [entry for entry in subsets if not entry.get("is_aggregate")]
    covered = {str(entry.get("name")) for entry in real} == sums.keys()
    yield _headline(
        label, "score", _score(metric), where, sums.values() if covered else None, micro=True
    )
    if len(real) > 1:
        macro = (
            [_mean_of(_macro(_sums_of(category, sums))) for category in categories]
            if covered
            else []
        )
        theirs = metric.get("macro_score")
        if len(categories) > 1 and theirs is not None:
            means = [_micro(_sums_of(category, sums)) for category in categories] if covered else []
            yield Headline(
                label=label,
                metric="macro score",
                value=theirs,
                where=where,
                **_ours(_mean_of(means)),
            )
        for category, ours in zip(categories, macro or [None] * len(categories), strict=True):
            named = " / ".join(map(str, category.get("name") or ()))
            yield Headline(
                label=label,
                metric=f"macro score of {named}",
                value=category.get("macro_score"),
                where=where,
                **_ours(ours),
            )
        for entry in subsets:
            subset = str(entry.get("name"))
            known = [sums[subset]] if subset in sums and not entry.get("is_aggregate") else None
            yield _headline(label, "score", _score(entry), {**where, "subset": subset}, known)


def _headline(
    label: str,
    metric: str,
    value: float | None,
    where: Row,
    sums: Iterable[Sum] | None,
    *,
    micro: bool = False,
) -> Headline:
    """A mean over rows, which the importer computes; unless evalscope has rounded in between, or has counted some
    failures as 0 and left out others."""
    if sums is None:
        return Headline(label=label, metric=metric, value=value, where=where, **_ours(None))
    found = list(sums)
    every = _together(found)
    is_mean = every.mean is None or value is None or round(every.mean, _DIGITS) == value
    rounded = is_mean and every.mean is not None and value in (0.0, 1.0) and every.mean != value
    if is_mean and not rounded and not (every.zeros and every.left_out):
        failed_as = 0.0 if every.zeros else None
        return Headline(
            label=label, metric=metric, value=value, where=where, reduce="none", failed_as=failed_as
        )
    ours = _micro(found) if micro or rounded else every.mean
    return Headline(label=label, metric=metric, value=value, where=where, **_ours(ours))


def _ours(value: float | None) -> Row:
    return (
        {"reason": "it is not made of the scores of samples alone"}
        if value is None
        else {"ours": value}
    )


def _micro(sums: Iterable[Sum]) -> float | None:
    """The mean of rounded means, weighted by their counts."""
    means = [
        (round(each.mean, _DIGITS), each.scored + each.zeros)
        for each in sums
        if each.mean is not None
    ]
    total = sum(count for _, count in means)
    return round(sum(mean * count for mean, count in means) / total, _DIGITS) if total else None


def _macro(sums: Iterable[Sum]) -> list[float | None]:
    return [None if each.mean is None else round(each.mean, _DIGITS) for each in sums]


def _mean_of(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), _DIGITS) if known else None


def _sums_of(category: Row, sums: dict[str, Sum]) -> list[Sum]:
    names = [
        str(entry.get("name"))
        for entry in _dicts(category.get("subsets"))
        if not entry.get("is_aggregate")
    ]
    return [sums[name] for name in names if name in sums]


def _score(entry: Row) -> float | None:
    value = entry.get("score")
    return float(value) if isinstance(value, (int, float)) else None


def _dicts(value: Any) -> list[Row]:
    entries = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Row", entry) for entry in entries if isinstance(entry, dict)]


def words(label: str) -> frozenset[str]:
    """The parts of a sample's name for a metric, as a report spells them."""
    first, *others = _WORDS.split(label.lower())
    return frozenset(
        [
            _SHORT.get(first, first) if not others else first,
            *(_SHORT.get(word, word) for word in others),
        ]
    )


def _identity_words(identity: Row) -> frozenset[str]:
    dimensions = cast("Row", identity.get("dimensions") or {})
    return words("_".join([str(identity.get("name")), *map(str, dimensions.values())]))
