"""The harness's standard errors: formulas, and the bootstrap with the harness's own draws.

The harness draws by `random.Random(number of the chunk).choices`, one document at a time. numpy's generator gives the
same numbers from the same state, many at a time.
"""

import random
from collections.abc import Callable, Iterator

import numpy as np

from assay.formats.lm_eval.scoring import aggregations
from assay.formats.lm_eval.scoring.aggregations import Aggregation, Items, aggregation, restored
from assay.formats.lm_eval.scoring.calls import called
from assay.formats.lm_eval.scoring.corpora import Corpus, Table
from assay.formats.lm_eval.tasks.definition import Definition
from assay.interfaces import IntArray

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
        return called(_estimate, what, definition.file, chosen, restored(values), iterations, sound)


def _estimate(chosen: Aggregation, values: Items, iterations: int, sound: bool) -> float | None:
    if chosen in FORMULAS:
        return FORMULAS[chosen](values)
    if isinstance(chosen, Corpus):
        scores = _corpus(chosen, values, drawn(len(values), iterations))
    elif chosen in RESAMPLED:
        scores = RESAMPLED[chosen](values, drawn(len(values), iterations))
    elif sound:
        rows = (
            row.tolist() for block in drawn(len(values), min(iterations, CHUNK)) for row in block
        )
        scores = np.array([float(chosen([values[at] for at in row])) for row in rows])
    else:
        return None
    return float(np.std(scores, ddof=1))


def drawn(size: int, iterations: int) -> Draws:
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
    aggregations.mean: aggregations.mean_stderr,
    aggregations.acc_all: aggregations.acc_all_stderr,
}
RESAMPLED: dict[Aggregation, Callable[[Items, Draws], Table]] = {
    aggregations.perplexity: _perplexity,
    aggregations.median: _median,
    aggregations.nanmean: _nanmean,
    aggregations.middle: lambda values, draws: _each(
        values, draws, lambda table: np.median(table, axis=1)
    ),
}
