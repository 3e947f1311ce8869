"""From the values of all documents to one number, as the harness aggregates them. Values may come from JSON."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from assay.errors import UserError
from assay.formats.lm_eval.scoring.calls import called, registered
from assay.formats.lm_eval.scoring.corpora import (
    EVERY,
    bleu,
    chrf,
    chrfpp,
    f1_score,
    matthews_corrcoef,
    ter,
)
from assay.formats.lm_eval.scoring.measures import Entry, entries
from assay.formats.lm_eval.tasks.definition import Definition, Hook

Items = Sequence[Any]
NOT_FINITE = "float"  # {"float": "nan"} stands for a number that JSON has not
Aggregation = Callable[[Items], Any]


def aggregate(definition: Definition, metric: str, values: Items, *, sound: bool = False) -> float:
    """The metric of a task: by the entry's aggregation, a metric without an entry by the mean."""
    what = f"{metric} of {definition.task} cannot be aggregated"
    return called(
        lambda: float(aggregation(definition, metric, sound=sound)(restored(values))),
        what,
        definition.file,
    )


def restored(values: Items) -> list[Any]:
    """Values with the numbers that JSON has not."""
    return [
        _restored(value) if isinstance(value, dict | list | tuple) else value for value in values
    ]


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {NOT_FINITE}:
            return float(value[NOT_FINITE])
        return {key: _restored(entry) for key, entry in value.items()}
    return [_restored(entry) for entry in value] if isinstance(value, list | tuple) else value


def higher_is_better(definition: Definition, metric: str) -> bool | None:
    entry = _entry(definition, metric)
    return entry.higher_is_better if entry else None


def aggregation(definition: Definition, metric: str, *, sound: bool = False) -> Aggregation:
    entry = _entry(definition, metric)
    chosen = "mean" if entry is None else entry.aggregation
    if isinstance(chosen, Hook):
        return chosen.value
    function = AGGREGATIONS.get(chosen) or registered(definition, "aggregation", str(chosen))
    if function is None:
        fix = f"aggregations: {', '.join(AGGREGATIONS)}"
        raise UserError(f"there is no aggregation {chosen!r}", where=definition.file, fix=fix)
    return SOUND.get(function, function) if sound else function


def _entry(definition: Definition, metric: str) -> Entry | None:
    """A function that returns several metrics gives them its own aggregation: the first function of the task is taken
    for theirs."""
    listed = entries(definition)
    if metric in listed or definition.process_results:
        return listed.get(metric)
    return next((entry for entry in listed.values() if entry.may_return_several), None)


def mean(arr: Items) -> Any:
    return sum(arr) / len(arr)


def nanmean(arr: Items) -> Any:
    return math.nan if len(arr) == 0 or np.isnan(arr).all() else np.nanmean(arr)


def median(arr: Items) -> Any:
    """The upper one of an even number."""
    return sorted(arr)[len(arr) // 2]


def middle(arr: Items) -> float:
    """The median."""
    return float(np.median(arr))


def perplexity(items: Items) -> float:
    return math.exp(-mean(items))


def weighted_mean(items: Items) -> float:
    sums, weights = zip(*items, strict=True)
    return sum(sums) / sum(weights)


def weighted_perplexity(items: Items) -> float:
    return math.exp(-weighted_mean(items))


def bits_per_byte(items: Items) -> float:
    return -weighted_mean(items) / math.log(2)


def brier_score(items: Items) -> float:
    """The mean squared distance of the probabilities to the right choice's; all documents need as many choices."""
    golds, probabilities = zip(*items, strict=True)
    table = np.array(probabilities)
    return float(np.mean(((table - np.eye(table.shape[1])[list(golds)]) ** 2).sum(axis=1)))


def bypass_agg(arr: Items) -> int:
    return 999


def acc_all(items: Items) -> float:
    """The share of questions all of whose answers are judged right; an item is (judgement, document)."""
    return float(np.mean(_questions(items, lambda idx: (idx["paragraph"], idx["question"]))))


def acc_all_stderr(items: Items) -> float:
    """Questions of the same number count as one question here, whatever their paragraphs: so does the harness."""
    return mean_stderr(_questions(items, lambda idx: idx["question"]))


def _questions(items: Items, key: Callable[[dict[str, Any]], Any]) -> list[int]:
    right: dict[Any, bool] = {}
    for judgement, doc in items:
        name = key(doc["idx"])
        right[name] = right.get(name, True) and (doc["label"] == 1) == judgement
    return [int(flag) for flag in right.values()]


def sample_stddev(arr: Items) -> float:
    centre = mean(arr)
    return math.sqrt(sum((value - centre) ** 2 for value in arr) / (len(arr) - 1))


def mean_stderr(arr: Items) -> float:
    return sample_stddev(arr) / math.sqrt(len(arr))


_OTHER_NAMES = {"f1": "f1_score", "chrf++": "chrfpp", "bypass": ""}  # of functions
AGGREGATIONS: dict[Any, Aggregation] = {
    "mean": mean,
    "nanmean": nanmean,
    "median": median,
    "perplexity": perplexity,
    "weighted_perplexity": weighted_perplexity,
    "bits_per_byte": bits_per_byte,
    "bypass": bypass_agg,
    "brier_score": brier_score,
    "f1": f1_score,
    "matthews_corrcoef": matthews_corrcoef,
    "bleu": bleu,
    "chrf": chrf,
    "chrf++": chrfpp,
    "ter": ter,
}
SOUND: dict[Aggregation, Aggregation] = {median: middle, **EVERY}
# what tasks import of the harness, and its standard errors know by identity
BY_IDENTITY: dict[str, Aggregation] = {
    **{name: function for name, function in AGGREGATIONS.items() if name not in _OTHER_NAMES},
    **{name: AGGREGATIONS[other] for other, name in _OTHER_NAMES.items() if name},
    "acc_all": acc_all,
    "acc_all_stderr": acc_all_stderr,
    "mean_stderr": mean_stderr,
    "sample_stddev": sample_stddev,
    "weighted_mean": weighted_mean,
}
