"""The scores of evalscope's reports as headlines: of a dataset, its categories and its subsets.

Reports name metrics by their meaning (`rouge`, `l`, `recall`), samples by a short name (`Rouge-L-R`). Reports have four
digits, and compute means of rounded means.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from assay.engine.experiment.imports.foreign import Headline, Row, fields_of, number_of, rows_of

_DIGITS = 4
_NO_SCORE = "no sample has this score"
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
    return Sum(*map(sum, zip(Sum(), *sums, strict=True)))


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
        for metric in rows_of(report.get("metrics")):
            identity = fields_of(metric.get("identity"))
            identity = identity or {"name": metric.get("name"), "aggregation": "mean"}
            label = labels.get(_identity_words(identity))
            how = identity.get("aggregation")
            if label is None or how not in ("mean", "identity"):
                yield Headline(
                    label=label or str(identity.get("name")),
                    metric=str(how),
                    value=number_of(metric.get("score")),
                    where=where,
                    reason=f"evalscope aggregates it by {how!r}" if label else _NO_SCORE,
                )
                continue
            subsets = {subset: found for (subset, of), found in own.items() if of == label}
            yield from _of_metric(metric, label, where, subsets)


def _of_metric(metric: Row, label: str, where: Row, sums: dict[str, Sum]) -> Iterator[Headline]:
    categories = rows_of(metric.get("categories"))
    subsets = [entry for category in categories for entry in rows_of(category.get("subsets"))]
    real = [entry for entry in subsets if not entry.get("is_aggregate")]
    covered = {str(entry.get("name")) for entry in real} == sums.keys()
    value = number_of(metric.get("score"))
    yield _headline(label, value, where, sums.values() if covered else None, micro=True)
    if len(real) < 2:
        return
    of_category = [_sums_of(category, sums) if covered else [] for category in categories]
    theirs = metric.get("macro_score")
    if len(categories) > 1 and theirs is not None:
        ours = _mean_of([*map(_micro, of_category)])
        yield _made(label, "macro score", theirs, where, ours)
    for category, own in zip(categories, of_category, strict=True):
        named = f"macro score of {' / '.join(map(str, category.get('name') or ()))}"
        yield _made(label, named, category.get("macro_score"), where, _mean_of(_macro(own)))
    for entry in subsets:
        subset = str(entry.get("name"))
        known = [sums[subset]] if subset in sums and not entry.get("is_aggregate") else None
        value = number_of(entry.get("score"))
        yield _headline(label, value, {**where, "subset": subset}, known)


def _headline(
    label: str, value: float | None, where: Row, sums: Iterable[Sum] | None, *, micro: bool = False
) -> Headline:
    """A mean over rows, which the importer computes; unless evalscope has rounded in between, or has counted some
    failures as 0 and left out others."""
    found = list(sums or ())
    every = _together(found)
    is_mean = every.mean is None or value is None or round(every.mean, _DIGITS) == value
    rounded = is_mean and value in (0.0, 1.0) and every.mean not in (None, value)
    if sums is not None and is_mean and not rounded and not (every.zeros and every.left_out):
        headline = Headline(label=label, metric="score", value=value, where=where, reduce="none")
        headline.failed_as = 0.0 if every.zeros else None
        return headline
    return _made(label, "score", value, where, _micro(found) if micro or rounded else every.mean)


def _made(label: str, metric: str, value: float | None, where: Row, ours: float | None) -> Headline:
    reason = "it is not made of the scores of samples alone" if ours is None else ""
    return Headline(label=label, metric=metric, value=value, where=where, ours=ours, reason=reason)


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
    real = [entry for entry in rows_of(category.get("subsets")) if not entry.get("is_aggregate")]
    return [sums[name] for entry in real if (name := str(entry.get("name"))) in sums]


def words(label: str) -> frozenset[str]:
    """The parts of a sample's name for a metric, as a report spells them."""
    first, *others = _WORDS.split(label.lower())
    spelt = [_SHORT.get(word, word) for word in others]
    return frozenset([first, *spelt] if others else [_SHORT.get(first, first)])


def _identity_words(identity: Row) -> frozenset[str]:
    dimensions = fields_of(identity.get("dimensions"))
    return words("_".join([str(identity.get("name")), *map(str, dimensions.values())]))
