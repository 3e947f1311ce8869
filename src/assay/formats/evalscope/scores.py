"""The scores of evalscope's reports as headlines: of a dataset, its categories and its subsets.

Reports name metrics by their meaning (`rouge`, `l`, `recall`), samples by a short name (`Rouge-L-R`). Reports have four
digits, and compute means of rounded means.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from assay.foreign import Headline
from assay.sdk import JsonObject, as_object, number_of, rows_of

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
    def size(self) -> int:
        return self.scored + self.zeros

    @property
    def mean(self) -> float | None:
        return self.total / self.size if self.size else None

    @property
    def rounded_mean(self) -> float | None:
        return None if self.mean is None else round(self.mean, _DIGITS)


def _together(sums: Iterable[Sum]) -> Sum:
    return Sum(*map(sum, zip(Sum(), *sums, strict=True)))


class Sums:
    """What our rows have, by model and dataset, then by label and subset; `zeros` are the failures that evalscope has
    counted as 0."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], dict[str, dict[str, Sum]]] = {}
        self.zeros = 0

    def add(
        self, place: tuple[str, str, str], label: str, score: float | None, *, counted: bool
    ) -> None:
        """Add the score of a row, or None for a failure, which evalscope has `counted` as 0, or not at all."""
        *of, subset = place
        sums = self._sums.setdefault((of[0], of[1]), {}).setdefault(label, {})
        new = Sum(0.0, 0, int(counted), int(not counted)) if score is None else Sum(score, 1)
        self.zeros += new.zeros
        sums[subset] = _together([sums.get(subset, Sum()), new])

    def headlines(self, report: JsonObject, several: bool) -> Iterator[Headline]:
        """Yield the numbers of a report; `several`: the run has more than one model."""
        model, dataset = (str(report.get(name) or "") for name in ("model_name", "dataset_name"))
        own = self._sums.get((model, dataset), {})
        labels = {words(label): label for label in own}
        where = {"dataset": dataset, **({"model_name": model} if several else {})}
        for metric in rows_of(report.get("metrics")):
            identity = as_object(metric.get("identity"))
            identity = identity or {"name": metric.get("name"), "aggregation": "mean"}
            label, how = labels.get(_identity_words(identity)), identity.get("aggregation")
            if label is not None and how in ("mean", "identity"):
                yield from _of_metric(metric, label, where, own[label])
                continue
            value = number_of(metric.get("score"))
            name = label or str(identity.get("name"))
            left = Headline(label=name, metric=str(how), value=value, where=where)
            left.reason = f"evalscope aggregates it by {how!r}" if label else _NO_SCORE
            yield left


def _of_metric(
    metric: JsonObject, label: str, where: JsonObject, sums: dict[str, Sum]
) -> Iterator[Headline]:
    categories = rows_of(metric.get("categories"))
    subsets = [entry for category in categories for entry in rows_of(category.get("subsets"))]
    real = {str(entry.get("name")) for entry in subsets if not entry.get("is_aggregate")}
    covered = real == sums.keys()
    value = number_of(metric.get("score"))
    yield _score(label, value, where, sums.values() if covered else None, micro=True)
    if sum(not entry.get("is_aggregate") for entry in subsets) < 2:
        return
    yield from _macro_scores(metric, label, where, sums if covered else {})
    for entry in subsets:
        subset = str(entry.get("name"))
        known = [sums[subset]] if subset in sums and not entry.get("is_aggregate") else None
        value = number_of(entry.get("score"))
        yield _score(label, value, {**where, "subset": subset}, known)


def _macro_scores(
    metric: JsonObject, label: str, where: JsonObject, sums: dict[str, Sum]
) -> Iterator[Headline]:
    categories = rows_of(metric.get("categories"))
    of_category = [_sums_of(category, sums) for category in categories]
    theirs = metric.get("macro_score")
    if len(categories) > 1 and theirs is not None:
        yield _headline(label, "macro score", theirs, where, _mean_of(map(_micro, of_category)))
    for category, own in zip(categories, of_category, strict=True):
        named = f"macro score of {' / '.join(map(str, category.get('name') or ()))}"
        ours = _mean_of(each.rounded_mean for each in own)
        yield _headline(label, named, category.get("macro_score"), where, ours)


def _score(
    label: str,
    value: float | None,
    where: JsonObject,
    sums: Iterable[Sum] | None,
    *,
    micro: bool = False,
) -> Headline:
    """Return a mean over rows, which the importer computes; unless evalscope has rounded in between, or has counted
    some failures as 0 and left out others."""
    found = list(sums or ())
    every = _together(found)
    is_equal = value is None or every.rounded_mean in (None, value)
    is_cut = is_equal and value in (0.0, 1.0) and every.mean not in (None, value)
    if any((sums is None, not is_equal, is_cut, every.zeros and every.left_out)):
        ours = _micro(found) if micro or is_cut else every.mean
        return _headline(label, "score", value, where, ours)
    headline = Headline(label=label, metric="score", value=value, where=where, reduce="none")
    headline.failed_as = 0.0 if every.zeros else None
    return headline


def _headline(
    label: str, metric: str, value: float | None, where: JsonObject, ours: float | None
) -> Headline:
    reason = "it is not made of the scores of samples alone" if ours is None else ""
    return Headline(label=label, metric=metric, value=value, where=where, ours=ours, reason=reason)


def _micro(sums: Iterable[Sum]) -> float | None:
    """Return the mean of rounded means, weighted by their counts."""
    means = [(each.rounded_mean, each.size) for each in sums]
    total = sum(count for _, count in means)
    products = sum((mean or 0.0) * count for mean, count in means)
    return round(products / total, _DIGITS) if total else None


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), _DIGITS) if known else None


def _sums_of(category: JsonObject, sums: dict[str, Sum]) -> list[Sum]:
    real = [entry for entry in rows_of(category.get("subsets")) if not entry.get("is_aggregate")]
    return [sums[name] for entry in real if (name := str(entry.get("name"))) in sums]


def words(label: str) -> frozenset[str]:
    """Return the parts of a sample's name for a metric, as a report spells them."""
    first, *others = _WORDS.split(label.lower())
    spelt = [_SHORT.get(word, word) for word in others]
    return frozenset([first, *spelt] if others else [_SHORT.get(first, first)])


def _identity_words(identity: JsonObject) -> frozenset[str]:
    dimensions = as_object(identity.get("dimensions"))
    return words("_".join([str(identity.get("name")), *map(str, dimensions.values())]))
