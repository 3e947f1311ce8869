"""From the values of all documents to one number, as the harness aggregates them. Values may come from JSON."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from assay.formats.lm_eval.scoring.corpora import (
    EVERY,
    Corpus,
    Table,
    bleu,
    chrf,
    chrfpp,
    f1_score,
    matthews_corrcoef,
    ter,
)
from assay.formats.lm_eval.scoring.measures import MetricEntry, entries
from assay.formats.lm_eval.tasks.definition import Definition, Hook, call_hook, registered_value
from assay.sdk import IntArray, JsonObject, UserError

Items = Sequence[Any]
NOT_FINITE = "float"  # {"float": "nan"} stands for a number that JSON has not
Aggregation = Callable[[Items], Any]


def aggregate(definition: Definition, metric: str, values: Items, *, sound: bool = False) -> float:
    """The metric of a task: by the entry's aggregation, a metric without an entry by the mean."""
    what = f"{metric} of {definition.task} cannot be aggregated"
    return call_hook(
        lambda: float(aggregation(definition, metric, sound=sound)(restored_values(values))),
        what,
        definition.file,
    )


def restored_values(values: Items) -> list[Any]:
    """Values with the numbers that JSON has not."""
    return [
        _restore(value) if isinstance(value, dict | list | tuple) else value for value in values
    ]


def _restore(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {NOT_FINITE}:
            return float(value[NOT_FINITE])
        return {key: _restore(entry) for key, entry in value.items()}
    return [_restore(entry) for entry in value] if isinstance(value, list | tuple) else value


def higher_is_better(definition: Definition, metric: str) -> bool | None:
    entry = _entry(definition, metric)
    return entry.higher_is_better if entry else None


def aggregation(definition: Definition, metric: str, *, sound: bool = False) -> Aggregation:
    entry = _entry(definition, metric)
    chosen = "mean" if entry is None else entry.aggregation
    if isinstance(chosen, Hook):
        return chosen.value
    function = AGGREGATIONS.get(chosen) or registered_value(definition, "aggregation", str(chosen))
    if function is None:
        fix = f"aggregations: {', '.join(AGGREGATIONS)}"
        raise UserError(f"there is no aggregation {chosen!r}", where=definition.file, fix=fix)
    return SOUND.get(function, function) if sound else function


def _entry(definition: Definition, metric: str) -> MetricEntry | None:
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


def _questions(items: Items, key: Callable[[JsonObject], Any]) -> list[int]:
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


ITERATIONS = 100_000
CHUNK = 1000  # draws from one state of the generator
FEW = {"bleu", "chrf", "chrf++", "ter"}  # metrics of these names have at most FEW_ITERATIONS draws
FEW_ITERATIONS = 100
_BLOCK = 4_000_000  # numbers in memory at a time
Draws = Iterator[IntArray]


def stderr(
    definition: Definition,
    metric: str,
    values: Items,
    bootstrap_iters: int = ITERATIONS,
    *,
    sound: bool = False,
) -> float | None:
    """None where the harness has none: a single value, an aggregation without a formula, no iterations. `sound` knows
    one for every aggregation."""
    if bootstrap_iters <= 0 or len(values) < 2:
        return None
    chosen = aggregation(definition, metric, sound=sound)
    iterations = min(bootstrap_iters, FEW_ITERATIONS) if metric in FEW else bootstrap_iters
    what = f"{metric} of {definition.task} has no standard error"
    with np.errstate(invalid="ignore", over="ignore"):
        return call_hook(
            _estimate, what, definition.file, chosen, restored_values(values), iterations, sound
        )


def _estimate(chosen: Aggregation, values: Items, iterations: int, sound: bool) -> float | None:
    if chosen in FORMULAS:
        return FORMULAS[chosen](values)
    if isinstance(chosen, Corpus):
        scores = _corpus(chosen, values, resamples(len(values), iterations))
    elif chosen in RESAMPLED:
        scores = RESAMPLED[chosen](values, resamples(len(values), iterations))
    elif sound:
        table = np.fromiter(values, object, len(values))
        draws = resamples(len(values), min(iterations, CHUNK))
        scores = np.array([float(chosen(table[row].tolist())) for rows in draws for row in rows])
    else:
        return None
    return float(np.std(scores, ddof=1))


def resamples(size: int, iterations: int) -> Draws:
    """Blocks of rows; a row has the numbers of the documents of one resample."""
    chunk = min(CHUNK, iterations)
    generator = np.random.RandomState()
    rows = max(1, _BLOCK // size)
    for number in range(iterations // chunk):
        *key, position = random.Random(number).getstate()[1]
        generator.set_state(("MT19937", np.array(key, np.uint32), position, 0, 0.0))
        for start in range(0, chunk, rows):
            yield (generator.random_sample((min(rows, chunk - start), size)) * size).astype(
                np.int64
            )


def _corpus(corpus: Corpus, values: Items, draws: Draws) -> Table:
    table = corpus.table(values)
    parts: list[Table] = []
    for numbers in draws:
        rows, size = numbers.shape
        cells = (numbers + np.arange(0, rows * size, size)[:, None]).ravel()
        weights = np.bincount(cells, minlength=rows * size).reshape(rows, size)
        parts.append(corpus.scores(weights @ table))
    return np.concatenate(parts)


def _each(values: Items, draws: Draws, score: Callable[[Table], Table]) -> Table:
    table = np.asarray(values, np.float64)
    return np.concatenate([score(table[numbers]) for numbers in draws])


def _perplexity(values: Items, draws: Draws) -> Table:
    return _each(values, draws, lambda table: np.exp(-table.mean(axis=1)))


def _median(values: Items, draws: Draws) -> Table:
    middle = len(values) // 2
    return _each(values, draws, lambda table: np.partition(table, middle, axis=1)[:, middle])


def _nanmean(values: Items, draws: Draws) -> Table:
    def score(table: Table) -> Table:
        present = ~np.isnan(table)
        count = present.sum(axis=1)
        sums = np.where(present, table, 0).sum(axis=1)
        return np.divide(sums, count, out=np.full(len(table), np.nan), where=count > 0)

    return _each(values, draws, score)


FORMULAS: dict[Aggregation, Callable[[Items], float]] = {
    mean: mean_stderr,
    acc_all: acc_all_stderr,
}
RESAMPLED: dict[Aggregation, Callable[[Items, Draws], Table]] = {
    perplexity: _perplexity,
    median: _median,
    nanmean: _nanmean,
    middle: lambda values, draws: _each(values, draws, lambda table: np.median(table, axis=1)),
}
