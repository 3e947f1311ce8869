"""How often 95 % intervals hold the truth, and how wide they are: the tables in docs/statistics.md.

`python -m benchmarks.coverage [NAME …]` prints them, with 4,000 experiments for each cell (of the lists of these names);
`make bench` and the tests run them with fewer. A list of cells is all that a new kind of number needs.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from assay.engine.aggregate.measure import BoundMetric, Sample, bind_metric, measure
from assay.formats.lm_eval.metric import _evidence, _Task
from assay.formats.lm_eval.scoring import aggregations
from assay.interfaces import FloatArray, Group, Resampled, Scale
from assay.metrics._samples import pass_at_k
from assay.metrics.classification import ACTUAL, PREDICTED, classification
from assay.metrics.corpus_score import CORPUS, corpus_score
from assay.stats.agreement import agreement
from assay.stats.elo import elo
from assay.stats.intervals import (
    Interval,
    item_contributions,
    item_weights,
    mean_interval,
    quantile_interval,
    straightened,
    wilson,
)
from assay.stats.matches import Matches
from assay.stats.paired import Differences, interval, significance
from assay.stats.student import t_quantile
from benchmarks.measure import Line

Random = np.random.Generator
Ends = tuple[float, float]
Drawn = tuple[FloatArray, FloatArray | None, int]  # values of the items, weights, samples
LEAST = 0.93
ENOUGH = 5  # informative rows


class Cell(NamedTuple):
    """Experiments with n items: the truth, how one is drawn, and the interval that Assay makes of it. `rivals` are
    other intervals of the same experiment; `slow` ones are made of only a part of the experiments. `informative` counts
    the rows that a ratio is about, or those of the rarer class."""

    name: str
    truth: float
    draw: Callable[[Random, int], Any]
    interval: Callable[[Any], Interval]
    rivals: Mapping[str, Callable[[Any], Ends]] = {}
    sizes: Sequence[int] = (20, 50, 100)
    slow: frozenset[str] = frozenset()
    informative: Callable[[Any], int] | None = None


class Covered(NamedTuple):
    """The share of intervals that hold the truth, their mean width, the share that is marked weak, the share that has
    both ends; share and mean width of each rival; and the share that is marked weak of those with enough informative
    rows."""

    share: float
    width: float
    weak: float
    made: float
    rivals: dict[str, tuple[float, float]]
    marked: float

    @property
    def width_to_t(self) -> float:
        return self.width / self.rivals["t"][1]

    def to_narrowest(self, least: float) -> float | None:
        """Return the width against that of the narrowest rival that holds the truth this often; None without one."""
        widths = [width for share, width in self.rivals.values() if share >= least]
        return self.width / min(widths) if widths else None


def covered(cell: Cell, n: int, repeats: int, part: float = 1.0) -> Covered:
    """Draw experiments; those without an interval do not count, and an open end holds whatever is on its side.
    `part`: of how many slow rivals are made."""
    random = np.random.default_rng(n)
    found: list[tuple[float, float, bool]] = []
    marked: list[bool] = []
    rivals: dict[str, list[Ends]] = {name: [] for name in cell.rivals}
    for at in range(repeats):
        data = cell.draw(random, n)
        low, high, method = cell.interval(data)
        if low is None and high is None:
            continue
        low, high = -np.inf if low is None else low, np.inf if high is None else high
        found.append((low, high, "; weak" in method))
        if cell.informative is None or cell.informative(data) >= ENOUGH:
            marked.append("; weak" in method)
        for name, rival in cell.rivals.items():
            if name not in cell.slow or at < repeats * part:
                rivals[name].append(rival(data))

    def of(ends: Sequence[Sequence[float]]) -> tuple[float, float]:
        held = [end[0] - 1e-9 <= cell.truth <= end[1] + 1e-9 for end in ends]
        widths = [end[1] - end[0] for end in ends if np.isfinite(end[1] - end[0])] or [np.nan]
        return (float(np.mean(held)), float(np.mean(widths))) if ends else (np.nan, np.nan)

    weak = sum(end[2] for end in found) / max(len(found), 1)
    others = {name: of(ends) for name, ends in rivals.items()}
    closed = sum(bool(np.isfinite(end[1] - end[0])) for end in found)
    return Covered(*of(found), weak, closed / repeats, others, sum(marked) / max(len(marked), 1))


# ---- means


def _of_mean(truth: float) -> Callable[[Drawn], Interval]:
    return lambda data: mean_interval(
        data[0], weights=data[1], samples=data[2], scale=(0.0, 1.0) if truth < 1 else None
    )


def t_interval(values: FloatArray, level: float = 0.95) -> Ends:
    """Return Student's interval of the mean."""
    n, mean = len(values), float(values.mean())
    half = t_quantile((1 + level) / 2, n - 1) * float(values.std(ddof=1)) / n**0.5
    return mean - half, mean + half


def Kind(name: str, truth: float, draw: Callable[[Random, int], Drawn]) -> Cell:
    """Return the cell of a mean of scores, beside the plain t interval."""
    return Cell(name, truth, draw, _of_mean(truth), {"t": lambda data: t_interval(data[0])})


def _plain(
    draw: Callable[[Random, int], FloatArray],
) -> Callable[[Random, int], Drawn]:
    return lambda random, n: (draw(random, n), None, n)


def _verdicts(p: float, samples: int, alike: float) -> Cell:
    """Items with `samples` verdicts each, or with 1 to 20 if that is 0, whose correlation is `alike`."""

    def draw(random: Random, n: int) -> Drawn:
        counts: npt.NDArray[np.int64] = (
            np.full(n, samples) if samples else random.integers(1, 21, n)
        )
        odds = (1 - alike) / alike if alike else 0
        chance = random.beta(p * odds, (1 - p) * odds, n) if alike else np.full(n, p)
        item = np.repeat(np.arange(n), counts)
        rows = (random.random(len(item)) < chance[item]).astype(np.float64)
        return item_contributions(item, rows), item_weights(item), len(item)

    return Kind(f"verdicts at {p:.0%}, {samples or '1–20'} each, alike {alike:g}", p, draw)


def _beta(a: float, b: float) -> Cell:
    return Kind(f"Beta({a:g}, {b:g})", a / (a + b), _plain(lambda random, n: random.beta(a, b, n)))


def _ordinal(*shares: float) -> Cell:
    grades = np.linspace(0, 1, len(shares))
    name = f"grades of {' '.join(f'{share:.0%}' for share in shares)}"
    return Kind(
        name, float(grades @ shares), _plain(lambda random, n: random.choice(grades, n, p=shares))
    )


def _sparse(share: float) -> Cell:
    def draw(random: Random, n: int) -> FloatArray:
        return np.where(random.random(n) < share, random.beta(2, 2, n), 0.0)

    return Kind(f"0 but for {share:.0%}", share / 2, _plain(draw))


GRID = [
    *(_verdicts(p, 1, 0) for p in (0.1, 0.5, 0.8)),
    *(_verdicts(p, 4, alike) for p in (0.1, 0.5) for alike in (0.0, 0.3, 0.9)),
    *(_verdicts(p, 0, alike) for p in (0.05, 0.2, 0.5, 0.9) for alike in (0.0, 0.3, 0.6)),
    *(_beta(a, b) for a, b in ((0.5, 0.5), (2, 2), (20, 20), (5, 1), (1, 9), (2, 20))),
    *(
        _ordinal(*shares)
        for shares in ((0.1, 0.2, 0.4, 0.2, 0.1), (0.7, 0.1, 0.1, 0.05, 0.05), (0.02, 0.08, 0.9))
    ),
]
WEAK = [
    *(_sparse(share) for share in (0.3, 0.1, 0.03)),
    _beta(0.3, 6),
    Kind("lognormal", float(np.exp(0.5)), _plain(lambda random, n: random.lognormal(0, 1, n))),
]


# ---- statistics that are not means


@lru_cache
def _bound(type: str, *params: tuple[str, Any]) -> BoundMetric:
    return bind_metric(type=type, params=dict(params))


def measured(
    type: str,
    columns: Mapping[str, list[Any]],
    passed: Any = None,
    *,
    score: FloatArray | None = None,
    scale: Scale | None = None,
    **params: Any,
) -> Interval:
    """Return the interval of a metric over items with one row each, as the engine makes it."""
    return of_bound(_bound(type, *params.items()), columns, passed, score, scale)


def of_bound(
    bound: BoundMetric,
    columns: Mapping[str, list[Any]],
    passed: Any = None,
    score: FloatArray | None = None,
    scale: Scale | None = None,
) -> Interval:
    """Return the interval of a metric that is bound to its parameters."""
    n = len(next(iter(columns.values()))) if score is None else len(score)
    right = np.ones(n, np.bool_) if passed is None else np.asarray(passed, np.bool_)
    sample = Sample(
        label="label",
        facets={},
        item=np.arange(n, dtype=np.int32),
        sample=np.zeros(n, np.int32),
        passed=right,
        score=right.astype(np.float64) if score is None else score,
        outcome=np.zeros(n, np.int8),
        load=list,
        take=lambda name: columns.get(name) or [None] * n,
        scale=scale,
    )
    row = measure(bound, sample)[0]
    return Interval(row["ci_low"], row["ci_high"], row["ci_method"])


def group_of(columns: Mapping[str, list[Any]]) -> Group:
    n = len(next(iter(columns.values())))
    flags = {f"detailed_results.{flag}": [None] * n for flag in ("tp", "tn", "fp", "fn")}
    return Group(
        item=np.arange(n, dtype=np.int32),
        sample=np.zeros(n, np.int32),
        passed=np.ones(n, np.bool_),
        score=np.ones(n),
        columns={**flags, **columns},
    )


def _resampled(made: Resampled | None) -> tuple[FloatArray, FloatArray, Resampled]:
    """Return the counts of kinds, those with one right and one wrong item of each class more, and the statistic."""
    assert made is not None
    counts = made.counts.astype(np.float64)
    more = np.bincount(np.asarray(made.unseen, np.int64), minlength=len(counts))
    return counts, counts + more, made


def _influence(made: Resampled, counts: FloatArray) -> tuple[float, FloatArray]:
    here = counts > 0
    less = counts - np.diag(np.minimum(counts, 1.0))
    value = float(made.statistic(counts[None, :])[0])
    changes = np.zeros(len(counts))
    changes[here] = np.nan_to_num(value - made.statistic(less[here]))
    return value, changes - counts @ changes / counts.sum()


def percentile(made: Resampled | None, draws: int = 400) -> Ends:
    """Return the percentile bootstrap (Koehn 2004)."""
    counts, _, made = _resampled(made)
    n = int(counts.sum())
    drawn = made.statistic(np.random.default_rng(0).multinomial(n, counts / n, draws))
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return float(low), float(high)


def bca(made: Resampled | None, draws: int = 400) -> Ends:
    """Return Efron's (1987) bias-corrected and accelerated bootstrap, with the pseudo-counts."""
    counts, more, made = _resampled(made)
    value, changes = _influence(made, more)
    drawn = made.statistic(
        np.random.default_rng(0).multinomial(int(counts.sum()), more / more.sum(), draws)
    )
    drawn = drawn[np.isfinite(drawn)]
    normal, below = NormalDist(), float(np.mean(drawn < value) + np.mean(drawn == value) / 2)
    shift = normal.inv_cdf(min(max(below, 0.002), 0.998))
    third, second = float(more @ changes**3), float(more @ changes**2)
    bend = third / (6 * second**1.5) if second > 0 else 0.0
    ends: list[float] = []
    for share in (0.025, 0.975):
        at = shift + normal.inv_cdf(share)
        ends.append(float(np.quantile(drawn, normal.cdf(shift + at / (1 - bend * at)))))
    own = float(made.statistic(counts[None, :])[0])
    return min(ends[0], own), max(ends[1], own)


def bootstrap_t(made: Resampled | None, draws: int = 100) -> Ends:
    """Return the studentised bootstrap, with the pseudo-counts."""
    counts, more, made = _resampled(made)
    value, changes = _influence(made, more)
    error = float(more @ changes**2) ** 0.5
    ratios: list[float] = []
    for drawn in np.random.default_rng(0).multinomial(int(counts.sum()), more / more.sum(), draws):
        weights = drawn + more - counts
        other, changed = _influence(made, weights)
        if np.isfinite(other) and weights @ changed**2 > 0:
            ratios.append((other - value) / float(weights @ changed**2) ** 0.5)
    low, high = np.quantile(ratios, (0.025, 0.975))
    own = float(made.statistic(counts[None, :])[0])
    bottom, top = made.scale
    ends = min(value - high * error, own), max(value - low * error, own)
    return max(ends[0], -np.inf if bottom is None else bottom), min(
        ends[1], np.inf if top is None else top
    )


SLOW = frozenset(("percentile", "bca", "bootstrap_t"))


def _slow(made: Callable[[Any], Resampled | None]) -> dict[str, Callable[[Any], Ends]]:
    return {
        "percentile": lambda data: percentile(made(data)),
        "bca": lambda data: bca(made(data)),
        "bootstrap_t": lambda data: bootstrap_t(made(data)),
    }


Columns = dict[str, list[Any]]


def _confusion(shares: Sequence[float], right: Sequence[float], to_common: bool) -> FloatArray:
    """Return the probability of each true and predicted class; errors go to all others alike, or by their share."""
    classes = len(shares)
    table = np.zeros((classes, classes))
    for true in range(classes):
        others = np.array(shares if to_common else np.ones(classes), np.float64)
        others[true] = 0
        table[true] = others / others.sum() * (1 - right[true])
        table[true, true] = right[true]
    return table * np.array(shares)[:, None]


def _truth(table: FloatArray, statistic: str) -> float:
    hits, support, guessed = np.diag(table), table.sum(axis=1), table.sum(axis=0)
    f1 = 2 * hits / (support + guessed)
    by_chance = float(support @ guessed)
    spread = (1 - float(guessed @ guessed)) * (1 - float(support @ support))
    return {
        "recall": hits[0] / support[0],
        "precision": hits[0] / guessed[0],
        "specificity": 1 - (guessed[0] - hits[0]) / (1 - support[0]),
        "f1": f1[0],
        "micro_f1": hits.sum(),
        "macro_f1": f1.mean(),
        "weighted_f1": f1 @ support,
        "balanced_accuracy": (hits / support).mean(),
        "kappa": (hits.sum() - by_chance) / (1 - by_chance),
        "mcc": (hits.sum() - by_chance) / spread**0.5,
    }[statistic]


def _classes(
    name: str,
    statistic: str,
    shares: Sequence[float],
    right: Sequence[float],
    sizes: Sequence[int] = (30, 100, 500),
    to_common: bool = False,
) -> Cell:
    table = _confusion(shares, right, to_common)
    classes, cumulated = len(shares), np.cumsum(table.ravel())
    params: dict[str, Any] = {"statistic": statistic, "positive": 0}

    def draw(random: Random, n: int) -> Columns:
        cells = np.minimum(np.searchsorted(cumulated, random.random(n)), classes**2 - 1)
        true, guess = np.divmod(cells, classes)
        return {ACTUAL: true.tolist(), PREDICTED: guess.tolist()}

    def support(data: Columns) -> Any:
        true, guess = np.array(data[ACTUAL]), np.array(data[PREDICTED])
        return {
            "recall": true == 0,
            "precision": guess == 0,
            "specificity": true != 0,
            "f1": (true == 0) | (guess == 0),
        }[statistic]

    def of_support(data: Columns) -> Ends:
        true, guess = np.array(data[ACTUAL]), np.array(data[PREDICTED])
        rows = support(data)
        right = (guess != 0) if statistic == "specificity" else true == guess
        low, high = wilson(float(right[rows].sum()), float(rows.sum()))
        return (2 * low / (1 + low), 2 * high / (1 + high)) if statistic == "f1" else (low, high)

    rivals: dict[str, Callable[[Any], Ends]] = {"wilson": of_support}
    is_ratio = statistic in ("recall", "precision", "specificity", "f1")
    if not is_ratio:
        rivals = {}
        if statistic != "micro_f1":
            rivals = _slow(lambda data: classification(group_of(data), **params).resampled)
    return Cell(
        f"{statistic}, {name}",
        float(_truth(table, statistic)),
        draw,
        lambda data: measured("classification", data, **params),
        rivals,
        sizes,
        SLOW,
        (lambda data: int(support(data).sum())) if is_ratio else None,
    )


def _area(
    name: str, draw_scores: Callable[[Random, Any], FloatArray], share: float, fixed: bool
) -> Cell:
    half = np.arange(400_000) % 2 == 1
    score = draw_scores(np.random.default_rng(0), half)
    truth = _delong(score, half)[0]

    def draw(random: Random, n: int) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        positive = np.arange(n) < round(n * share) if fixed else random.random(n) < share
        return draw_scores(random, positive), positive

    def interval(data: tuple[FloatArray, npt.NDArray[np.bool_]]) -> Interval:
        columns = {"detailed_results.value": data[0].tolist(), ACTUAL: data[1].tolist()}
        return measured("auroc", columns, predicted="detailed_results.value")

    rivals = {"logit DeLong": _logit_delong, "Newcombe": _newcombe}
    return Cell(
        f"AUROC, {name}",
        truth,
        draw,
        interval,
        rivals,
        (20, 50, 200),
        informative=lambda data: int(min(data[1].sum(), (~data[1]).sum())),
    )


def _delong(score: FloatArray, positive: Any) -> tuple[float, float]:
    """Return the area and its variance, by the sorted scores of the other class."""
    above, below = score[positive], np.sort(score[~positive])
    ahead = (np.searchsorted(below, above) + np.searchsorted(below, above, "right")) / 2
    above, rest = np.sort(above), score[~positive]
    behind = (np.searchsorted(above, rest) + np.searchsorted(above, rest, "right")) / 2
    first, second = ahead / len(rest), behind / len(above)
    variance = sum(
        float(each.var(ddof=1)) / len(each) if len(each) > 1 else np.inf for each in (first, second)
    )
    return float(first.mean()), variance


def _logit_delong(data: tuple[FloatArray, Any]) -> Ends:
    area, variance = _delong(*data)
    if not 0 < area < 1:
        return area, area
    centre = np.log(area / (1 - area))
    half = 1.96 * variance**0.5 / (area * (1 - area))
    low, high = (1 / (1 + np.exp(-(centre + sign * half))) for sign in (-1, 1))
    return float(low), float(high)


def _newcombe(data: tuple[FloatArray, Any]) -> Ends:
    area, positives = _delong(*data)[0], int(data[1].sum())
    negatives = len(data[1]) - positives
    areas = np.linspace(0, 1, 4001)
    mean = (positives + negatives) / 2 - 1
    variance = (
        areas
        * (1 - areas)
        * (1 + mean * ((1 - areas) / (2 - areas) + areas / (1 + areas)))
        / (positives * negatives)
    )
    inside = areas[(areas - area) ** 2 <= 1.96**2 * variance]
    return (float(inside[0]), float(inside[-1])) if len(inside) else (area, area)


def _normal(apart: float, spread: float = 1.0) -> Callable[[Random, Any], FloatArray]:
    return lambda random, positive: np.where(
        positive, random.normal(apart, spread, len(positive)), random.normal(0, 1, len(positive))
    )


def _grades(apart: float) -> Callable[[Random, Any], FloatArray]:
    return lambda random, positive: np.searchsorted(
        [-0.5, 0.5, 1.5, 2.5], _normal(apart)(random, positive)
    ).astype(np.float64)


def _votes(rare: float, right: float, raters: int) -> Cell:
    """Raters who each see the truth with the same chance."""
    agree = right**2 + (1 - right) ** 2
    share = rare * right + (1 - rare) * (1 - right)
    truth = 1 - (1 - agree) / (2 * share * (1 - share))

    def draw(random: Random, n: int) -> FloatArray:
        kind = (random.random(n) < rare)[:, None]
        return np.where(random.random((n, raters)) < right, kind, ~kind).astype(np.float64)

    def interval(votes: FloatArray) -> Interval:
        names = [f"judge.{rater}" for rater in range(raters)]
        rows = [dict(zip(names, row, strict=True)) for row in votes.tolist()]
        return measured("agreement", {"detailed_results.votes": rows})

    rivals = _slow(lambda votes: agreement(votes).resampled)
    name = f"Krippendorff's α, {raters} raters, votes {agree:.0%} alike"
    return Cell(name, truth, draw, interval, rivals, (20, 50, 150), SLOW)


def _word_errors(rate: float, alike: float, words: int) -> Cell:
    """Answers of about so many words, whose error rates differ."""
    odds = (1 - alike) / alike

    def draw(random: Random, n: int) -> Columns:
        lengths = random.integers(words // 2, words * 3 // 2 + 1, n)
        wrong = random.binomial(lengths, random.beta(rate * odds, (1 - rate) * odds, n))
        pairs = zip(wrong.tolist(), lengths.tolist(), strict=True)
        return _corpus("wer", [[one, other] for one, other in pairs])

    return _of_corpus(f"word errors {rate:.0%}, alike {alike:g}", rate, draw, (20, 50, 150))


def _bleu(quality: float) -> Cell:
    """Answers that differ in how many of their n-grams are right; the brevity penalty is 1 but for chance."""

    def draw(random: Random, n: int) -> Columns:
        lengths = random.integers(8, 31, n)
        level = random.beta(quality * 6, (1 - quality) * 6, n)
        total = np.maximum(lengths[:, None] - np.arange(4), 1)
        right = random.binomial(total, level[:, None] ** (1 + 0.5 * np.arange(4)))
        counts = np.hstack([(lengths + 1)[:, None], lengths[:, None], right, total])
        return _corpus("bleu", counts.tolist())

    large = draw(np.random.default_rng(1), 400_000)
    truth = corpus_score(group_of(large)).value
    assert truth is not None
    return _of_corpus(f"corpus BLEU {truth:.2f}", truth, draw, (10, 30, 100))


def _corpus(measure: str, counts: list[Any]) -> Columns:
    entries = (
        {"measure": measure, "options": {}, "references": 1, "counts": row} for row in counts
    )
    return {CORPUS: list(entries)}


def _of_corpus(name: str, truth: float, draw: Any, sizes: Sequence[int]) -> Cell:
    rivals = _slow(lambda data: corpus_score(group_of(data)).resampled)
    del rivals["bootstrap_t"]
    return Cell(name, truth, draw, lambda data: measured("corpus_score", data), rivals, sizes, SLOW)


def _calibration(over: float, low: float, high: float) -> Cell:
    """Confidences of which each is too high by the same."""

    def draw(random: Random, n: int) -> tuple[list[float], npt.NDArray[np.bool_]]:
        sure = random.uniform(low, high, n)
        return sure.tolist(), random.random(n) < sure - over

    def interval(data: tuple[list[float], npt.NDArray[np.bool_]]) -> Interval:
        return measured("calibration_error", {"detailed_results.confidence": data[0]}, data[1])

    return Cell(
        f"calibration error {over:g}, confidence {low:g}–{high:g}",
        over,
        draw,
        interval,
        sizes=(50, 200, 1000),
    )


def _perplexity() -> Cell:
    def draw(random: Random, n: int) -> Columns:
        lengths = random.integers(20, 200, n)
        logprobs = -lengths * random.gamma(9, 3 / 9, n)
        return {
            "detailed_results.logprob": logprobs.tolist(),
            "detailed_results.words": lengths.tolist(),
        }

    return Cell(
        "perplexity 20",
        float(np.exp(3)),
        draw,
        lambda data: measured("perplexity", data),
        sizes=(30, 100, 500),
    )


RARE_ROWS = [
    cell
    for statistic in ("recall", "precision", "f1")
    for cell in (
        _classes("10 % positive, recall 95 %", statistic, (0.1, 0.9), (0.95, 0.98)),
        _classes("10 % positive, specificity 95 %", statistic, (0.1, 0.9), (0.95, 0.95)),
        _classes("5 % positive, recall 70 %", statistic, (0.05, 0.95), (0.7, 0.98)),
    )
]
EVEN = [0.1] * 10
RARE = {
    "3 classes, 8 % and 12 % rare": ((0.8, 0.12, 0.08), (0.95, 0.7, 0.6), False),
    "4 classes, 8 % and 12 % rare": ((0.6, 0.2, 0.12, 0.08), (0.9, 0.9, 0.9, 0.9), True),
    "3 classes, 5 % and 10 % rare": ((0.85, 0.1, 0.05), (0.95, 0.95, 0.95), False),
}
AVERAGES = [
    *(
        _classes(f"10 even classes, {right:.0%} right", "macro_f1", EVEN, [right] * 10)
        for right in (0.6, 0.8, 0.95)
    ),
    *(
        _classes(name, statistic, shares, right, to_common=common)
        for statistic in ("macro_f1", "balanced_accuracy", "weighted_f1", "mcc", "kappa")
        for name, (shares, right, common) in RARE.items()
    ),
    _classes("10 even classes, 80 % right", "micro_f1", EVEN, [0.8] * 10),
]
AREAS = [
    _area("10 % positive, 1 apart", _normal(1), 0.1, True),
    _area("10 % positive, 3 apart", _normal(3), 0.1, True),
    _area("10 % positive at random, 1 apart", _normal(1), 0.1, False),
    _area("10 % positive at random, 3 apart", _normal(3), 0.1, False),
    _area("half positive, 1 apart", _normal(1), 0.5, False),
    _area("half positive, 3 apart", _normal(3), 0.5, False),
    _area("10 % positive, 5 grades", _grades(1.1), 0.1, True),
]
OTHERS = [
    _votes(0.07, 0.975, 2),
    _votes(0.06, 0.98, 3),
    _votes(0.3, 0.9, 3),
    *(_word_errors(rate, alike, 12) for rate, alike in ((0.05, 0.05), (0.1, 0.2), (0.3, 0.1))),
    *(_bleu(quality) for quality in (0.5, 0.75)),
    _perplexity(),
]
CALIBRATION = [
    _calibration(over, low, high)
    for over in (0.0, 0.1, 0.2)
    for low, high in ((0.5, 1.0), (0.2, 1.0))
]
# ---- means near an end, without ends, on other scales; quantiles


def hall_interval(values: FloatArray, level: float = 0.95) -> Ends:
    """Return Hall's (1992) interval of the mean of skewed values."""
    n, mean, deviation = len(values), float(values.mean()), float(values.std(ddof=1))
    skew = float((((values - mean) / deviation) ** 3).mean()) if deviation else 0.0
    reach = t_quantile((1 + level) / 2, n - 1) / n**0.5
    low, high = (mean - deviation * straightened(end, skew, n) for end in (reach, -reach))
    return low, high


def _with_hall(cell: Cell, sizes: Sequence[int]) -> Cell:
    rivals = {**cell.rivals, "Hall": lambda data: hall_interval(data[0])}
    return cell._replace(rivals=rivals, sizes=sizes)


def _rarely_zero(a: float, b: float, failing: float) -> Cell:
    """Graded scores near their upper end, of which a share is 0 instead."""

    def draw(random: Random, n: int) -> FloatArray:
        return np.where(random.random(n) < failing, 0.0, random.beta(a, b, n))

    truth = (1 - failing) * a / (a + b)
    return Kind(f"Beta({a:g}, {b:g}), {failing:.0%} are 0", truth, _plain(draw))


def _missed(a: float, b: float, k: int) -> float:
    """Return the chance that all of k samples fail, if items pass with a chance of Beta(a, b)."""
    return float(np.prod((b + np.arange(k)) / (a + b + np.arange(k))))


def _pass_at(k: int, truth: float, samples: int, a: float = 2.0) -> Cell:
    """Items whose chances to pass are Beta distributed, so that pass@k is the truth."""
    b, factor = 1.0, 2.0
    for _ in range(60):
        b *= factor if _missed(a, b, k) < 1 - truth else 1 / factor
        factor **= 0.8

    def draw(random: Random, n: int) -> Drawn:
        passes = random.binomial(samples, random.beta(a, b, n))
        return pass_at_k(np.full(n, samples), passes, k), None, n * samples

    return Kind(f"pass@{k} of {samples} samples at {truth:g}", truth, draw)


def _quantile(share: float) -> Cell:
    return Cell(
        f"p{100 * share:g} of a lognormal",
        float(np.exp(NormalDist().inv_cdf(share))),
        lambda random, n: random.lognormal(0, 1, n),
        lambda values: quantile_interval(np.arange(len(values)), values, share),
        sizes=(20, 50, 100, 200, 500),
    )


def _lognormal(sigma: float) -> Cell:
    truth = float(np.exp(sigma**2 / 2))
    return Kind(
        f"lognormal, σ {sigma:g}", truth, _plain(lambda random, n: random.lognormal(0, sigma, n))
    )


def _on_scale(name: str, scale: Scale, values: Sequence[float], shares: Sequence[float]) -> Cell:
    """Scores on a declared scale, of which each value has a share."""
    return Cell(
        name,
        float(np.dot(values, shares)),
        lambda random, n: random.choice(np.array(values, np.float64), n, p=shares),
        lambda score: measured("mean", {}, score=score, scale=scale),
        {"t": t_interval, "Hall": hall_interval},
        (12, 30, 100, 500),
    )


CEILING = [
    _with_hall(_rarely_zero(200, 2, 0.01), (30, 100, 500)),
    *(_with_hall(_pass_at(16, 0.998, samples), (30, 100, 164)) for samples in (16, 64)),
    *(_verdicts(p, 1, 0)._replace(sizes=(5,), rivals={}) for p in (0.02, 0.2, 0.5, 0.9, 0.98)),
]
# what the zeros that were not seen cost where there are none
PRICE = [_with_hall(cell, (30, 100, 500)) for cell in (_beta(200, 2), _beta(50, 2), _beta(20, 2))]
SKEWED = [_with_hall(_lognormal(sigma), (20, 50, 200, 500)) for sigma in (1.0, 0.5)]
QUANTILES = [_quantile(share) for share in (0.5, 0.9, 0.95, 0.99)]
SCALES = [
    _on_scale("ratings 1–5, 80 % are 5", (1, 5), (1, 2, 3, 4, 5), (0.01, 0.02, 0.05, 0.12, 0.8)),
    _on_scale("ratings 1–5, 95 % are 5", (1, 5), (1, 2, 3, 4, 5), (0.01, 0.01, 0.01, 0.02, 0.95)),
    *(
        _on_scale(f"rewards of ±1, {p:.0%} are 1", (-1, 1), (-1, 1), (1 - p, p))
        for p in (0.5, 0.9, 0.98)
    ),
]


# ---- items that belong together


Clustered = tuple[FloatArray, npt.NDArray[np.int64]]


def _passages(random: Random, clusters: int, each: int, p: float, alike: float) -> Clustered:
    """Draw verdicts of questions about passages, of which each has this many, or 1 to 20 if that is 0."""
    counts = np.full(clusters, each) if each else random.integers(1, 21, clusters)
    odds = (1 - alike) / alike
    passage = np.repeat(np.arange(clusters), counts)
    chance = random.beta(p * odds, (1 - p) * odds, clusters)[passage]
    return (random.random(len(passage)) < chance).astype(np.float64), passage


def _clustered(each: int, p: float, alike: float, sizes: Sequence[int]) -> Cell:
    """The mean over questions; n is the number of passages."""

    def found(data: Clustered) -> Interval:
        rows, passage = data
        return mean_interval(rows, samples=len(rows), scale=(0.0, 1.0), clusters=passage)

    return Cell(
        f"passages of {each or '1–20'} questions at {p:.0%}, alike {alike:g}",
        p,
        lambda random, n: _passages(random, n, each, p, alike),
        found,
        {"t": lambda data: t_interval(item_contributions(data[1], data[0]))},
        sizes,
    )


def _equal_sides(random: Random, clusters: int, each: int, alike: float) -> Clustered:
    """Draw the differences of two equally good sides, each with passages that it misreads."""
    first, passage = _passages(random, clusters, each, 0.7, alike)
    counts = np.bincount(passage)
    odds = (1 - alike) / alike
    chance = np.repeat(random.beta(0.7 * odds, 0.3 * odds, clusters), counts)
    second = (random.random(len(passage)) < chance).astype(np.float64)
    return second - first, passage


def _equal(each: int, alike: float, sizes: Sequence[int]) -> Cell:
    def found(data: Clustered) -> Interval:
        differences = Differences(data[0], clusters=data[1])
        low, high = interval(differences)
        return Interval(low, high, f"interval{differences.weakness}")

    return Cell(
        f"equal sides, passages of {each or '1–20'} questions, alike {alike:g}",
        0.0,
        lambda random, n: _equal_sides(random, n, each, alike),
        found,
        {"t": lambda data: t_interval(item_contributions(data[1], data[0]))},
        sizes,
    )


CLUSTERS = [
    _clustered(10, 0.7, 0.3, (20,)),
    _clustered(20, 0.7, 0.3, (48,)),
    _clustered(20, 0.7, 0.1, (48,)),
    _clustered(0, 0.7, 0.3, (20, 48)),
    _clustered(10, 0.9, 0.3, (20, 48)),
]
EQUAL_SIDES = [
    _equal(10, 0.3, (20,)),
    _equal(20, 0.3, (48,)),
    _equal(20, 0.1, (48,)),
    _equal(0, 0.3, (20, 48)),
]


class _Part(_Task):
    """A task whose value is the mean of these."""

    def __init__(self, values: FloatArray, first: int) -> None:
        self.values, self.aggregation = values.tolist(), aggregations.mean
        self.rows = list(range(first, first + len(values)))
        self.value = float(values.mean())


Tasks = tuple[list[FloatArray], FloatArray]  # the verdicts of each, and its weight


def _of_tasks(data: Tasks) -> Interval:
    """Return the interval of a group of lm-eval's tasks, as its metric makes it."""
    tasks, weights = data
    score = np.concatenate(tasks)
    item, first = np.arange(len(score), dtype=np.int32), np.cumsum([0, *map(len, tasks)])
    group = Group(item=item, sample=np.zeros_like(item), passed=score > 0, score=score)
    parts = [_Part(values, int(at)) for values, at in zip(tasks, first, strict=False)]
    value = float(weights @ [part.value for part in parts]) / float(weights.sum())
    found = _evidence(
        group, value, 0.1, dict(zip(parts, weights.astype(int).tolist(), strict=True))
    )
    return mean_interval(
        found["per_item"], samples=len(score), weights=found["weights"], scale=(0.0, 1.0)
    )


def _of_stderrs(data: Tasks) -> Ends:
    """Return what the harness's pooled standard error gives."""
    shares = data[1] / data[1].sum()
    value = float(shares @ [task.mean() for task in data[0]])
    error = float(
        np.hypot.reduce(shares * [task.std(ddof=1) / len(task) ** 0.5 for task in data[0]])
    )
    return value - 1.96 * error, value + 1.96 * error


def _mover(data: Tasks) -> Ends:
    """Return the interval with the squared arms of the tasks' own (Zou and Donner 2008)."""
    shares = data[1] / data[1].sum()
    own = [wilson(float(task.sum()), len(task)) for task in data[0]]
    means = np.array([task.mean() for task in data[0]])
    value = float(shares @ means)
    low, high = (float(np.hypot.reduce(shares * (means - ends))) for ends in np.transpose(own))
    return value - low, value + high


def _group(least: float, most: float, by_size: bool) -> Cell:
    """Tasks of 20 to 100 documents whose rates go from the least to the most; n is the number of tasks."""

    def sizes(tasks: int) -> npt.NDArray[np.int64]:
        return np.linspace(20, 100, tasks).astype(np.int64)

    def weights(tasks: int) -> FloatArray:
        return sizes(tasks).astype(np.float64) if by_size else np.ones(tasks)

    def draw(random: Random, tasks: int) -> Tasks:
        rates = np.linspace(least, most, tasks)
        # the weighted mean of the rates is the truth for any number of tasks
        rates += truth - float(weights(tasks) @ rates) / float(weights(tasks).sum())
        drawn = zip(sizes(tasks).tolist(), rates.tolist(), strict=True)
        return [(random.random(n) < p).astype(np.float64) for n, p in drawn], weights(tasks)

    truth = (least + most) / 2
    weighted = "by size" if by_size else "alike"
    return Cell(
        f"tasks of 20–100 documents, {least:.0%} to {most:.0%} right, weighted {weighted}",
        truth,
        draw,
        _of_tasks,
        {"MOVER": _mover, "stderr": _of_stderrs},
        (3, 57),
    )


TASKS = [
    _group(least, most, by_size)
    for least, most in ((0.5, 0.9), (0.9, 0.98), (0.99, 0.99))
    for by_size in (True, False)
]


LISTS = {
    "means": [*GRID, *WEAK],
    "ceiling": CEILING,
    "price": PRICE,
    "skewed": SKEWED,
    "scales": SCALES,
    "quantiles": QUANTILES,
    "ratios": RARE_ROWS,
    "averages": AVERAGES,
    "areas": AREAS,
    "others": OTHERS,
    "calibration": CALIBRATION,
    "clusters": CLUSTERS,
    "equal": EQUAL_SIDES,
    "tasks": TASKS,
}


def grid() -> list[Line]:
    """The least and the mean share of intervals of 50 items that hold the truth."""
    shares = [covered(cell, 50, repeats=400).share for cell in GRID]
    detail = f"mean {np.mean(shares):.3f} of {len(shares)} kinds of scores"
    return [
        Line("coverage of 95 % intervals, the worst kind of scores", min(shares), ">=", 0.9, detail)
    ]


def statistics() -> list[Line]:
    """The worst coverage, width and share of marks over statistics that are not means."""
    repeats, found = 150, list[tuple[float, str]]()
    ratios, weak = list[tuple[float, str]](), list[tuple[float, str]]()
    for name in ("ratios", "averages", "areas", "others", "calibration"):
        for cell in LISTS[name]:
            n = cell.sizes[1]
            made = covered(cell, n, repeats, part=0.2)
            found.append((made.share, cell.name))
            ratio = made.to_narrowest(LEAST)
            if ratio is not None:
                ratios.append((ratio, cell.name))
            if n >= 30:
                weak.append((made.marked, cell.name))
    least, widest, marked = min(found), max(ratios), max(weak)
    mean = float(np.mean([share for share, _ in found]))
    error = (LEAST * (1 - LEAST) / repeats) ** 0.5
    return [
        Line("coverage of statistics, mean", mean, ">=", 0.94, f"{len(found)} cells"),
        Line("coverage of statistics, the worst", least[0], ">=", LEAST - 3 * error, least[1]),
        Line("width to the narrowest that covers", widest[0], "<=", 1.3, widest[1]),
        Line("share of marks", marked[0], "<=", 0.1, marked[1]),
    ]


def _lines(name: str, what: str, repeats: int = 400, width: bool = True) -> list[Line]:
    """Return the worst coverage of a list, with an allowance for the number of experiments; and from 30 items on the
    width to the narrowest rival that covers, and the share of marks."""
    error = (LEAST * (1 - LEAST) / repeats) ** 0.5
    shares, ratios = list[tuple[float, str]](), list[tuple[float, str]]()
    weak = list[tuple[float, str]]()
    for cell in LISTS[name]:
        for n in cell.sizes:
            made, place = covered(cell, n, repeats), f"{cell.name}, {n}"
            shares.append((made.share, place))
            if n >= 30:
                weak.append((made.marked, place))
                ratio = made.to_narrowest(LEAST)
                ratios += [] if ratio is None else [(ratio, place)]
    least, marked = min(shares), max(weak, default=(0.0, ""))
    lines = [
        Line(f"coverage of {what}, the worst", least[0], ">=", LEAST - 3 * error, least[1]),
        Line(f"share of marks of {what}", marked[0], "<=", 0.1, marked[1] if marked[0] else ""),
    ]
    if width:
        widest = max(ratios)
        lines.append(
            Line(f"width of {what} to the narrowest that covers", widest[0], "<=", 1.15, widest[1])
        )
    return lines


def ceiling() -> list[Line]:
    """Scores that are nearly all at their upper end."""
    return _lines("ceiling", "scores near the ceiling")


def skewed_means() -> list[Line]:
    """Means of values without ends."""
    return _lines("skewed", "skewed means")


def scales() -> list[Line]:
    """Means on declared scales that are not 0 to 1."""
    return _lines("scales", "means on other scales")


def quantiles() -> list[Line]:
    """Quantiles of seconds, where an open end holds whatever is on its side."""
    return _lines("quantiles", "quantiles", width=False)


def clusters() -> list[Line]:
    """Questions about the same passages: means, and how often equally good sides are told apart."""
    found, plain = dict[str, float](), list[float]()
    repeats = 400
    for each, alike, passages in ((10, 0.3, 20), (20, 0.3, 48), (20, 0.1, 48)):
        random = np.random.default_rng(passages)
        drawn = [_equal_sides(random, passages, each, alike) for _ in range(repeats)]
        name = f"{passages} passages of {each}, alike {alike:g}"
        differ = (significance(Differences(steps, clusters=of)) < 0.05 for steps, of in drawn)
        found[name] = sum(differ) / repeats
        plain.append(sum(significance(Differences(steps)) < 0.05 for steps, _ in drawn) / repeats)
    worst = max(found, key=lambda name: found[name])
    detail = f"worst: {worst}; without clusters {min(plain):.0%} to {max(plain):.0%}"
    bound = 0.06 + 3 * (0.06 * 0.94 / repeats) ** 0.5
    return [
        *_lines("clusters", "means over clusters"),
        Line("equal sides told apart over clusters", found[worst], "<=", bound, detail),
    ]


def tasks() -> list[Line]:
    """Groups of lm-eval's tasks."""
    return _lines("tasks", "groups of tasks", repeats=300)


def least_of_wilson(n: int) -> tuple[float, float]:
    """Return the least share of `wilson` intervals that hold the rate, over all rates, and that rate.

    Between two neighbouring ends the share is a difference of two tails, which has no minimum inside: so the least is
    just beyond one of the ends.
    """
    ends = np.array([wilson(k, n) for k in range(n + 1)])
    logs = np.array(
        [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)]
    )
    near = np.concatenate([ends.ravel() - 1e-9, ends.ravel() + 1e-9])
    rates = near[(near > 0) & (near < 1)][:, None]
    at = np.arange(n + 1)
    chances = np.exp(logs + at * np.log(rates) + (n - at) * np.log1p(-rates))
    shares = (chances * ((ends[:, 0] <= rates) & (rates <= ends[:, 1]))).sum(axis=1)
    worst = int(shares.argmin())
    return float(shares[worst]), float(rates[worst, 0])


def wilson_exact() -> list[Line]:
    """The least coverage of one verdict an item over all rates, enumerated."""
    sizes = (*range(8, 301), 500, 1000)
    (least, rate), n = min((least_of_wilson(n), n) for n in sizes)
    detail = f"of {n} items at {rate:.4f}"
    return [Line("coverage of verdicts over all rates, exact", least, ">=", 0.91, detail)]


STRENGTHS = np.array([1275.0, 1425.0, 1575.0, 1725.0])


def rated(matches: int, repeats: int) -> tuple[float, float]:
    """Return the mean Elo rating of the strongest of four players, and how often its interval holds the strength."""
    random, found, held = np.random.default_rng(matches), list[float](), 0
    players = np.array([*combinations(range(4), 2)], np.int32)[np.arange(matches) % 6]
    apart = STRENGTHS[players[:, 1]] - STRENGTHS[players[:, 0]]
    for seed in range(repeats):
        wins = random.random(matches) < 1 / (1 + 10 ** (apart / 400))
        played = Matches(
            item=np.arange(matches, dtype=np.int32),
            first=players[:, 0],
            second=players[:, 1],
            half_points=np.where(wins, 2, 0).astype(np.int32),
            players=4,
        )
        _, ranked = elo(played, level=0.95, rounds=500, seed=seed)
        found.append(float(ranked.value[3]))
        held += bool(ranked.low[3] <= STRENGTHS[3] <= ranked.high[3])
    return float(np.mean(found)), held / repeats


def elo_ratings() -> list[Line]:
    """How far Elo ratings of few matches lie from the strengths behind them."""
    few, held = rated(50, 60)
    many, later = rated(400, 60)
    detail = f"{STRENGTHS[3] - few:.0f} after 50, held {held:.0%}; after 400 held {later:.0%}"
    return [Line("Elo points short after 400 matches", STRENGTHS[3] - many, "<=", 10, detail)]


BENCHMARKS = [
    grid,
    ceiling,
    skewed_means,
    scales,
    quantiles,
    statistics,
    clusters,
    tasks,
    wilson_exact,
    elo_ratings,
]


def _printed(cell: Cell, repeats: int) -> str:
    """Return a row of a table: coverage / width of each size, and width to the narrowest rival that covers."""
    error = 2 * (LEAST * (1 - LEAST) / repeats) ** 0.5
    parts: list[str] = []
    for n in cell.sizes:
        made = covered(cell, n, repeats, part=0.1)
        ratio = made.to_narrowest(LEAST - error)
        beside = "–" if ratio is None else f"{ratio:.2f}"
        marks = f", weak {made.weak:.0%}" if made.weak else ""
        marks += f", open {1 - made.made:.0%}" if made.made < 1 else ""
        parts.append(f"{n}: {made.share:.3f} / {made.width:.3f} ({beside}){marks}")
    return f"| {cell.name} | {cell.truth:.3f} | {' | '.join(parts)} |"


if __name__ == "__main__":
    count = int(sys.argv.pop(1)) if sys.argv[1:] and sys.argv[1].isdigit() else 4000
    for name in sys.argv[1:] or LISTS:
        print(f"\n{name}\n")
        for cell in LISTS[name]:
            print(_printed(cell, count), flush=True)
