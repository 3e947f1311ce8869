"""How often 95 % intervals hold the truth, over kinds of scores: the table in docs/statistics.md.

`python -m benchmarks.coverage` prints it, with 4,000 experiments for each cell; tests run the grid with fewer.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray
from assay.stats.intervals import item_contributions, item_weights, mean_interval, t_interval
from benchmarks.measure import Line

# values of the items, their weights, and how many samples they had
Drawn = tuple[FloatArray, FloatArray | None, int]


class Kind(NamedTuple):
    """A kind of scores: its true mean, and how an experiment with n items is drawn."""

    name: str
    truth: float
    draw: Callable[[np.random.Generator, int], Drawn]


class Covered(NamedTuple):
    """The share of intervals that hold the truth, and their width against that of the plain t interval."""

    share: float
    width_to_t: float


def covered(kind: Kind, n: int, repeats: int) -> Covered:
    random = np.random.default_rng(n)
    held, widths, plain = 0, 0.0, 0.0
    for _ in range(repeats):
        values, weights, samples = kind.draw(random, n)
        low, high, _ = mean_interval(
            values, weights=weights, samples=samples, bounded=kind.truth < 1 or None
        )
        if low is None or high is None:
            continue
        held += low <= kind.truth <= high
        widths += high - low
        usual = t_interval(values)
        plain += usual[1] - usual[0]
    return Covered(held / repeats, widths / plain if plain else float("inf"))


def _plain(
    draw: Callable[[np.random.Generator, int], FloatArray],
) -> Callable[[np.random.Generator, int], Drawn]:
    return lambda random, n: (draw(random, n), None, n)


def _verdicts(p: float, samples: int, alike: float) -> Kind:
    """Items with `samples` verdicts each, or with 1 to 20 if that is 0, whose correlation is `alike`."""

    def draw(random: np.random.Generator, n: int) -> Drawn:
        counts: npt.NDArray[np.int64] = (
            np.full(n, samples) if samples else random.integers(1, 21, n)
        )
        odds = (1 - alike) / alike if alike else 0
        chance = random.beta(p * odds, (1 - p) * odds, n) if alike else np.full(n, p)
        item = np.repeat(np.arange(n), counts)
        rows = (random.random(len(item)) < chance[item]).astype(np.float64)
        return item_contributions(item, rows), item_weights(item), len(item)

    return Kind(f"verdicts at {p:.0%}, {samples or '1–20'} each, alike {alike:g}", p, draw)


def _beta(a: float, b: float) -> Kind:
    return Kind(f"Beta({a:g}, {b:g})", a / (a + b), _plain(lambda random, n: random.beta(a, b, n)))


def _ordinal(*shares: float) -> Kind:
    grades = np.linspace(0, 1, len(shares))
    name = f"grades of {' '.join(f'{share:.0%}' for share in shares)}"
    return Kind(
        name, float(grades @ shares), _plain(lambda random, n: random.choice(grades, n, p=shares))
    )


def _sparse(share: float) -> Kind:
    def draw(random: np.random.Generator, n: int) -> FloatArray:
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


def grid() -> list[Line]:
    """The least and the mean share of intervals of 50 items that hold the truth."""
    shares = [covered(kind, 50, repeats=400).share for kind in GRID]
    detail = f"mean {np.mean(shares):.3f} of {len(shares)} kinds of scores"
    return [
        Line("coverage of 95 % intervals, the worst kind of scores", min(shares), ">=", 0.9, detail)
    ]


BENCHMARKS = [grid]

if __name__ == "__main__":
    for kind in (*GRID, *WEAK):
        cells = [covered(kind, n, repeats=4000) for n in (20, 50, 100)]
        shares = " | ".join(f"{cell.share:.3f}" for cell in cells)
        print(f"| {kind.name} | {shares} | {cells[1].width_to_t:.2f} |", flush=True)
