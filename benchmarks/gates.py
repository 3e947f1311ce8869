"""How often a gate is wrong whose bound is the truth: false passes and false fails, each at most 2.5 %.

The bound is on either side, so an interval above the truth is a false pass of `min` and a false fail of `max`.
"""

import math
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from assay.engine.aggregate.measure import bind_metric
from assay.interfaces import FloatArray
from assay.metrics.classification import ACTUAL, PREDICTED
from assay.stats.intervals import (
    clopper_pearson,
    item_contributions,
    item_weights,
    mean_interval,
    quantile_interval,
    skewed_interval,
)
from assay.stats.paired import Differences, significance, strict_interval
from benchmarks.coverage import AREAS, AVERAGES, Cell, of_bound
from benchmarks.measure import Line

Ends = tuple[float | None, float | None]
ALLOWED, REPEATS = 0.025, 20_000


class Wrong(NamedTuple):
    """The share of intervals that lie above the truth, and of those below."""

    above: float
    below: float


class Truth(NamedTuple):
    """A kind of numbers: what is true of them, and the strict interval of an experiment with n items."""

    name: str
    truth: float
    interval: Callable[[np.random.Generator, int], Ends]


def errors(kind: Truth, n: int, repeats: int) -> Wrong:
    """Return how often the interval is wrong on each side."""
    random = np.random.default_rng(n)
    above = below = 0
    for _ in range(repeats):
        low, high = kind.interval(random, n)
        above += low is not None and low >= kind.truth - 1e-9
        below += high is not None and high < kind.truth - 1e-9
    return Wrong(above / repeats, below / repeats)


def _mean(
    name: str,
    truth: float,
    draw: Callable[[np.random.Generator, int], FloatArray],
    ends: bool = True,
) -> Truth:
    def interval(random: np.random.Generator, n: int) -> Ends:
        return _strict(draw(random, n), truth, n, None, ends=ends)

    return Truth(name, truth, interval)


def _strict(
    values: FloatArray, truth: float, samples: int, weights: FloatArray | None, *, ends: bool = True
) -> Ends:
    """Return the interval, or an open one if the truth lies within one of those of which it is the outermost."""
    mean, unseen = float(values.mean()), 1 - ALLOWED ** (1 / len(values))
    inner = [skewed_interval(values, strict=True)]
    inner += [(mean - unseen * mean, mean + unseen * (1 - mean))] if ends else []
    if any(low < truth < high for low, high in inner):
        return None, None
    scale = (0.0, 1.0) if ends else (None, None)
    found = mean_interval(values, weights=weights, samples=samples, scale=scale, way="strict")
    return found.low, found.high


def _samples(p: float, each: int, alike: float) -> Truth:
    """Items with so many verdicts each, or with 1 to 20 if that is 0, whose correlation is `alike`."""

    def interval(random: np.random.Generator, n: int) -> Ends:
        counts = np.full(n, each) if each else random.integers(1, 21, n)
        odds = (1 - alike) / alike
        chance = random.beta(p * odds, (1 - p) * odds, n)
        item = np.repeat(np.arange(n), counts)
        rows = (random.random(len(item)) < chance[item]).astype(np.float64)
        return _strict(item_contributions(item, rows), p, len(item), item_weights(item))

    return Truth(f"verdicts at {p:.0%}, {each or '1–20'} each, alike {alike:g}", p, interval)


def _precision(p: float, alike: float) -> Truth:
    """Items with 4 samples each, of which some say yes and are right with a chance that differs by item."""

    def interval(random: np.random.Generator, n: int) -> Ends:
        odds = (1 - alike) / alike
        said = random.binomial(4, random.beta(1, 2, n))
        item = np.repeat(np.arange(n), said)
        chance = random.beta(p * odds, (1 - p) * odds, n)[item]
        rows = (random.random(len(item)) < chance).astype(np.float64)
        return _strict(item_contributions(item, rows), p, len(item), item_weights(item))

    return Truth(f"precision {p:.0%}, 4 samples, alike {alike:g}", p, interval)


def _beta(a: float, b: float, failing: float = 0.0) -> Truth:
    """Scores of which a share is 0 instead."""

    def draw(random: np.random.Generator, n: int) -> FloatArray:
        return np.where(random.random(n) < failing, 0.0, random.beta(a, b, n))

    name = f"Beta({a:g}, {b:g})" + (f", {failing:.0%} fail" if failing else "")
    return _mean(name, (1 - failing) * a / (a + b), draw)


def _lognormal(sigma: float) -> Truth:
    return _mean(
        f"lognormal {sigma:g}",
        math.exp(sigma**2 / 2),
        lambda random, n: random.lognormal(0, sigma, n),
        ends=False,
    )


def _drop(
    name: str,
    truth: float,
    draw: Callable[[np.random.Generator, int], FloatArray],
    scale: float = 1.0,
) -> Truth:
    def interval(random: np.random.Generator, n: int) -> Ends:
        return strict_interval(Differences(draw(random, n), scale, bounded=scale == 1))

    return Truth(f"drop: {name}", truth, interval)


def _four_samples(drop: float) -> Truth:
    def draw(random: np.random.Generator, n: int) -> FloatArray:
        chance = random.beta(6, 2, n)
        worse = chance * (1 - drop / 0.75)
        return (random.binomial(4, worse) - random.binomial(4, chance)) / 4

    return _drop(f"4 samples, {drop:.0%}", -drop, draw)


def _graded(drop: float) -> Truth:
    def draw(random: np.random.Generator, n: int) -> FloatArray:
        chance = random.beta(5, 1, n)
        old, new = (20 * chance * kept + 1e-6 for kept in (1, 1 - drop * 1.2))
        return random.beta(new, 20 - new + 2e-6) - random.beta(old, 20 - old + 2e-6)

    return _drop(f"scores, {drop:.0%}", -drop, draw)


def _some_fail(share: float) -> Truth:
    """Scores that hardly change, but for a share of answers that fail."""

    def draw(random: np.random.Generator, n: int) -> FloatArray:
        return np.where(random.random(n) < share, -0.9, 0.0) + 0.03 * random.standard_normal(n)

    return _drop(f"{share:.0%} fail", -0.9 * share, draw)


MEANS = [
    *(_samples(p, 4, alike) for p in (0.5, 0.95) for alike in (0.1, 0.3, 0.9)),
    *(_samples(p, 0, 0.3) for p in (0.5, 0.9)),
    *(_beta(a, b) for a, b in ((0.5, 0.5), (5, 1), (1, 9), (20, 20), (200, 2))),
    *(_beta(a, b, share) for a, b, share in ((200, 2, 0.01), (200, 35, 0.01), (50, 5, 0.1))),
    *(_lognormal(sigma) for sigma in (0.5, 1.0)),
]
RATIOS = [_precision(p, alike) for p in (0.5, 0.95) for alike in (0.1, 0.6)]
DROPS = [
    *(_four_samples(drop) for drop in (0.0, 0.02, 0.05)),
    *(_graded(drop) for drop in (0.0, 0.05)),
    *(_some_fail(share) for share in (0.01, 0.05)),
    _drop("lognormal", math.exp(0.5), lambda random, n: random.lognormal(0, 1, n), math.inf),
]


def _binomial(n: int, p: float) -> FloatArray:
    """Return the chances of 0 to n."""
    logs = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)]
    at = np.arange(n + 1)
    if p in (0.0, 1.0):
        return (at == n * p).astype(np.float64)
    return np.exp(np.array(logs) + at * math.log(p) + (n - at) * math.log1p(-p))


def exact_rates(n: int, bounds: tuple[float, ...]) -> Iterator[Wrong]:
    """Return the errors of one verdict an item for each bound, by enumeration."""
    ends = [clopper_pearson(k, n) for k in range(n + 1)]
    for bound in bounds:
        chances = _binomial(n, bound)
        yield Wrong(
            sum(chances[k] for k in range(n + 1) if ends[k][0] >= bound - 1e-9),
            sum(chances[k] for k in range(n + 1) if ends[k][1] < bound - 1e-9),
        )


def exact_quantile(n: int, share: float) -> Wrong:
    """Return the errors of a quantile of n different values: the ends are values of which only the ranks matter."""
    low, high, _ = quantile_interval(np.arange(n), np.arange(1.0, n + 1), share)
    chances = _binomial(n, share)  # of so many values below the true quantile
    return Wrong(
        0.0 if low is None else float(chances[: int(low)].sum()),
        0.0 if high is None else float(chances[int(high) :].sum()),
    )


def exact_differs(n: int, churn: float) -> float:
    """Return how often equal sides of paired verdicts are told apart, by enumeration."""
    wrong = 0.0
    for fewer, chance in enumerate(_binomial(n, churn / 2)):
        for more, further in enumerate(_binomial(n - fewer, churn / 2 / (1 - churn / 2))):
            if chance * further > 1e-7:
                steps = np.repeat([1.0, -1.0, 0.0], [more, fewer, n - fewer - more])
                wrong += chance * further * (significance(Differences(steps)) < 0.05)
    return wrong


def equal_verdicts() -> list[Line]:
    """How often equal sides with one verdict an item are told apart, enumerated."""
    cells = [(n, churn) for n in (20, 30, 50, 100, 200) for churn in (0.02, 0.05, 0.1, 0.2, 0.4)]
    worst, n, churn = max((exact_differs(n, churn), n, churn) for n, churn in cells)
    detail = f"worst: {n} items, {churn:.0%} changed"
    return [Line("equal sides told apart, exact", worst, "<=", 0.05, detail)]


def exact_drop(n: int, drop: float, churn: float) -> Wrong:
    """Return the errors of paired verdicts, of which a share changes, by enumeration."""
    lost, gained = (churn + drop) / 2, (churn - drop) / 2
    above = below = 0.0
    for fewer, chance in enumerate(_binomial(n, lost)):
        for more, further in enumerate(_binomial(n - fewer, gained / (1 - lost))):
            if chance * further > 1e-8:
                steps = np.repeat([1.0, -1.0, 0.0], [more, fewer, n - fewer - more])
                low, high = strict_interval(Differences(steps))
                above += chance * further * (low >= -drop - 1e-9)
                below += chance * further * (high < -drop - 1e-9)
    return Wrong(above, below)


Ratio = Literal["recall", "precision", "specificity", "f1"]
# the rows that a ratio is about, as (true, predicted) of one that is right and one that is not, and of all others
_ROWS: dict[Ratio, tuple[tuple[str, str], tuple[str, str], tuple[str, str]]] = {
    "recall": (("yes", "yes"), ("yes", "no"), ("no", "no")),
    "precision": (("yes", "yes"), ("no", "yes"), ("no", "no")),
    "specificity": (("no", "no"), ("no", "yes"), ("yes", "yes")),
    "f1": (("yes", "yes"), ("yes", "no"), ("no", "no")),
}


class Detector(NamedTuple):
    """A classifier of two classes: the share of positives, how many it finds, how many negatives it leaves."""

    positives: float
    recall: float
    specificity: float

    def about(self, ratio: Ratio) -> tuple[float, float]:
        """Return the share of rows that the ratio is about, and how many of them are right (of F1: of hits, misses and
        false alarms)."""
        hits = self.positives * self.recall
        alarms = (1 - self.positives) * (1 - self.specificity)
        share = {
            "recall": self.positives,
            "precision": hits + alarms,
            "specificity": 1 - self.positives,
            "f1": self.positives + alarms,
        }[ratio]
        right = 1 - self.positives - alarms if ratio == "specificity" else hits
        return share, right / share


def strict_ratio(ratio: Ratio, n: int, rows: int, right: int) -> Ends:
    """Return the engine's strict interval of n items, of which the ratio is about some and right for some of those."""
    named = np.repeat(np.array(_ROWS[ratio]), [right, rows - right, n - rows], axis=0)
    bound = bind_metric(type="classification", params={"statistic": ratio, "positive": "yes"})
    columns = {ACTUAL: named[:, 0].tolist(), PREDICTED: named[:, 1].tolist()}
    found = of_bound(msgspec.structs.replace(bound, interval="strict"), columns)
    return found.low, found.high


def exact_ratio(ratio: Ratio, detector: Detector, n: int) -> Wrong:
    """Return the errors of a ratio of n items, by enumeration of how many rows it is about and how many are right."""
    share, rate = detector.about(ratio)
    truth = 2 * rate / (1 + rate) if ratio == "f1" else rate
    above = below = 0.0
    for rows, chance in enumerate(_binomial(n, share)):
        for right, further in enumerate(_binomial(rows, rate)):
            if chance * further > 1e-7:
                low, high = strict_ratio(ratio, n, rows, right)
                above += chance * further * (low is not None and low >= truth - 1e-9)
                below += chance * further * (high is not None and high < truth - 1e-9)
    return Wrong(above, below)


DETECTORS = (Detector(0.1, 0.95, 0.98), Detector(0.05, 0.7, 0.98))


RATES = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)


def gate_exact() -> list[Line]:
    """The worst error of gates on rates, on quantiles and on drops of verdicts, enumerated."""
    rates = max(max(wrong) for n in (20, 50, 100, 200, 500) for wrong in exact_rates(n, RATES))
    drops = max(
        max(exact_drop(n, drop, churn))
        for n in (20, 50, 100, 200)
        for drop in (0.0, 0.02, 0.05, 0.1)
        for churn in (0.02, 0.05, 0.1, 0.2, 0.3)
        if churn >= drop
    )
    quantiles = max(
        max(exact_quantile(n, share))
        for n in range(20, 501, 10)
        for share in (0.5, 0.9, 0.95, 0.99)
    )
    return [
        Line("false verdicts of gates on quantiles, exact", quantiles, "<=", ALLOWED, "196 cells"),
        Line("false verdicts of gates on rates, exact", rates, "<=", ALLOWED, "35 cells"),
        Line(
            "false verdicts of gates on drops of verdicts, exact", drops, "<=", ALLOWED, "68 cells"
        ),
    ]


def gate_ratios() -> list[Line]:
    """The worst error of gates on recall, precision, specificity and F1, enumerated."""
    found = {
        f"{ratio}, {detector.positives:.0%} positive, {n} items": max(
            exact_ratio(ratio, detector, n)
        )
        for ratio in _ROWS
        for detector in DETECTORS
        for n in (50, 100, 200)
    }
    worst = max(found, key=lambda cell: found[cell])
    return [
        Line(
            "false verdicts of gates on ratios, exact",
            found[worst],
            "<=",
            ALLOWED,
            f"worst: {worst}",
        )
    ]


def gate_simulated() -> list[Line]:
    """The worst error of gates on means, ratios and drops, by simulation."""
    bound = ALLOWED + 2 * math.sqrt(ALLOWED * (1 - ALLOWED) / REPEATS)
    lines: list[Line] = []
    for name, kinds in (("means", MEANS), ("ratios of several samples", RATIOS), ("drops", DROPS)):
        found = {
            f"{kind.name}, {n} items": max(errors(kind, n, REPEATS))
            for kind in kinds
            for n in (30, 100, 500)
        }
        worst = max(found, key=lambda cell: found[cell])
        lines.append(
            Line(f"false verdicts of gates on {name}", found[worst], "<=", bound, f"worst: {worst}")
        )
    return lines


def _usual(cell: Cell) -> Truth:
    """The usual interval of a statistic that has no strict one."""
    return Truth(cell.name, cell.truth, lambda random, n: cell.interval(cell.draw(random, n))[:2])


def gate_usual(repeats: int = 300) -> list[Line]:
    """The worst error of gates on statistics without a strict interval: what docs/statistics.md says about them."""
    lines: list[Line] = []
    for n, most, cells in (
        (30, 0.09, AVERAGES),
        (100, 0.053, AVERAGES),
        (200, 0.041, AREAS),
    ):
        found = {cell.name: max(errors(_usual(cell), n, repeats)) for cell in cells}
        worst = max(found, key=lambda name: found[name])
        bound = most + 3 * math.sqrt(most * (1 - most) / repeats)
        lines.append(
            Line(f"wrong on a side, usual intervals of {n} items", found[worst], "<=", bound, worst)
        )
    return lines


BENCHMARKS = [gate_exact, gate_ratios, gate_simulated, gate_usual, equal_verdicts]


if __name__ == "__main__":
    for ratio in _ROWS:
        for detector in DETECTORS:
            for n in (50, 100, 200):
                print(ratio, detector, n, exact_ratio(ratio, detector, n), flush=True)
    for kind in (*MEANS, *RATIOS, *DROPS):
        for n in (30, 100, 500):
            print(kind.name, n, errors(kind, n, REPEATS), flush=True)
