"""Rankings of players with their uncertainty, from matches that belong to items.

The unit is the item: its matches are drawn together, because they are alike. A round draws as many items as there are,
with replacement, and ranks anew. More than 500 items are dealt at random into 500 blocks, which are drawn instead:
blocks are as independent as items are, and a round's cost no longer depends on the number of matches.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray
from assay.stats.davidson import Fitted, Tally, Virtual, chances, even, fit, add_virtual, fitted, slopes, start_at
from assay.stats.match_graph import bounded
from assay.stats.student import t_quantile

Ints = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]
_MOST_BLOCKS, _MOST_CELLS = 500, 1 << 24
_DRAWS = 1 << 20  # numbers drawn at once: 8 MB
_CHECKED = 10  # rounds that are fitted in full before the others may be stepped to
_NEAR = 0.05  # of a standard error: below the noise of 1,000 rounds
_CELLS_AT_ONCE = 1 << 16
_PIECE = 1 << 15
_LEAST = 1e-3  # of a virtual match: nobody's strength is beyond all measure


class Matches(NamedTuple):
    """Columns of equal length: the number of the item and of both players, and the half points of the first: 2 for a
    win, 1 for a tie, 0 for a loss."""

    item: npt.NDArray[np.integer]
    first: npt.NDArray[np.integer]
    second: npt.NDArray[np.integer]
    half_points: npt.NDArray[np.integer]
    players: int


class Ranked(NamedTuple):
    """A value for each player; its interval, NaN where there is none (`method` says why); and the best and the worst
    rank that pairs of players leave open: i stands before j if it does so in nearly all rounds."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    best: Ints
    worst: Ints
    method: str


class BradleyTerry(NamedTuple):
    """Strengths on the scale of log odds, ν, and the weight of the virtual matches that were needed: 0 for the plain
    maximum of the likelihood."""

    ranked: Ranked
    tie: float
    prior: float


class Counted(NamedTuple):
    """Who won how often against whom (row against column), and how often they tied."""

    wins: Ints
    ties: Ints

    @property
    def played(self) -> Ints:
        return self.wins + self.wins.T + self.ties


def counted(matches: Matches) -> Counted:
    """The win matrix."""
    return _table(_cells(matches)[1], matches.players)


def _table(sums: Ints, players: int) -> Counted:
    losses, draws, victories = sums.reshape(3, players, players)
    return Counted(victories + losses.T, draws + draws.T)


def bradley_terry(
    matches: Matches, *, level: float = 0.95, rounds: int = 1000, seed: int = 0, prior: float | None = None
) -> BradleyTerry:
    """Davidson's strengths by maximum likelihood, with bootstrap intervals over items.

    Where no finite strengths are the most likely ones (somebody won or lost everything), each player is given `prior`
    virtual matches against an average one, half won and half lost; None: one, and only there. All rounds have one of
    random weight: a player who won all of 20 matches might lose the next, which no resample of those 20 shows. For two
    players that is close to Jeffreys' interval of a proportion.
    """
    random = np.random.default_rng(seed)
    blocks = _Blocks(matches, random)
    finite = bounded(blocks.table.wins, blocks.table.ties)
    weight = prior if prior is not None else 0.0 if finite else 1.0
    if not (weight or finite):
        raise ValueError("no finite strengths are the most likely ones")
    whole = blocks.tally(np.ones((1, blocks.count), np.float32))
    found = fit(whole, even(weight, matches.players) if weight else None)
    strengths, tie = found.strengths[0], float(found.tie[0])
    if blocks.items < 2:
        return BradleyTerry(_alone(strengths), tie, weight)
    drawn = _refitted(blocks, found, whole, rounds, random)
    return BradleyTerry(_ranked(strengths, drawn, blocks.items, level), tie, weight)


def win_rates(matches: Matches, *, level: float = 0.95, rounds: int = 1000, seed: int = 0) -> Ranked:
    """Points per match, with bootstrap intervals over items. In a round without a player its rate is what it was."""
    random = np.random.default_rng(seed)
    blocks = _Blocks(matches, random)

    def rates(weights: Weights) -> FloatArray:
        tally = blocks.tally(weights)
        return tally.points / tally.played.sum(axis=2)

    with np.errstate(invalid="ignore"):
        value = rates(np.ones((1, blocks.count), np.float32))[0]
        if blocks.items < 2:
            return _alone(value)
        drawn = rates(blocks.drawn(rounds, random))
    return _ranked(value, np.where(np.isnan(drawn), value, drawn), blocks.items, level)


# ---- rounds


class _Blocks:
    """Items, or groups of them, with what happened in each: blocks x (losses, ties, wins of the pairs that met)."""

    def __init__(self, matches: Matches, random: np.random.Generator) -> None:
        self.players = matches.players
        cells, sums = _cells(matches)
        self.table = _table(sums, self.players)
        pairs = np.flatnonzero(sums.any(axis=0))
        self.first, self.second = np.divmod(pairs, self.players)
        self.items = int(matches.item.max(initial=-1)) + 1
        self.count = min(self.items, _MOST_BLOCKS, max(64, _MOST_CELLS // (3 * len(pairs) + 1)))
        block = np.arange(self.items) if self.count == self.items else random.permutation(self.items) % self.count
        column = np.zeros(sums.shape, np.int64)
        column[:, pairs] = np.arange(3 * len(pairs)).reshape(3, -1)
        places = _places(matches.item, block * 3 * len(pairs), cells, column.ravel())
        found = np.bincount(places, minlength=self.count * 3 * len(pairs)).reshape(self.count, 3, -1)
        # Numbers of matches, exact up to 16 million: blocks x pairs.
        self.played = found.sum(axis=1).astype(np.float32)
        self.payoff = (found[:, 2] + found[:, 1] / 2).astype(np.float32)
        self.ties = found[:, 1].sum(axis=1).astype(np.float32)
        met = np.count_nonzero(self.played) if self.count == self.items else len(cells)
        self.weight = len(cells) / max(met, 1)
        """Of a virtual match: as often as two players met on one item."""

    def tally(self, weights: Weights) -> Tally:
        """What happened in rounds that have the blocks so often."""
        met, payoff = (weights @ self.played).astype(np.float64), (weights @ self.payoff).astype(np.float64)
        played, points = np.zeros((2, len(weights), self.players, self.players))
        played[:, self.first, self.second] = played[:, self.second, self.first] = met
        points[:, self.first, self.second] = payoff
        points[:, self.second, self.first] = met - payoff
        return Tally(played, points.sum(axis=2), (weights @ self.ties).astype(np.float64))

    def scores(self, place: FloatArray) -> Weights:
        """How each block pulls at each parameter: what happened in it less what was to be expected."""
        expected, tied = (table[0, self.first, self.second].astype(np.float32) for table in chances(place, self.players))
        pulls = np.zeros((len(self.first), self.players), np.float32)
        at = np.arange(len(self.first))
        pulls[at, self.first], pulls[at, self.second] = 1, -1
        found = (self.payoff - self.played * expected) @ pulls
        ties = self.ties - self.played @ tied
        return found if place.shape[1] == self.players else np.concatenate([found, ties[:, None]], axis=1)

    def drawn(self, rounds: int, random: np.random.Generator) -> Weights:
        """How often each round has each block."""
        drawn = np.empty((rounds, self.count), np.float32)
        piece = max(1, _DRAWS // self.count)
        for start in range(0, rounds, piece):
            part = drawn[start : start + piece]
            numbers = random.integers(0, self.count, part.shape, dtype=np.uint16)
            places = numbers + np.arange(len(part))[:, None] * self.count
            part[:] = np.bincount(places.ravel(), minlength=part.size).reshape(part.shape)
        return drawn


def _cells(matches: Matches) -> tuple[npt.NDArray[np.int32], Ints]:
    """One number for an outcome and two players, the lower one first; and how often each occurs (outcomes x pairs).

    In pieces that stay in the processor's cache, which is twice as fast.
    """
    cells = np.empty(len(matches.item), np.int32)
    sums = np.zeros(3 * matches.players**2, np.int64)
    for start in range(0, len(cells), _PIECE):
        part = slice(start, start + _PIECE)
        first, second, half_points = matches.first[part], matches.second[part], matches.half_points[part]
        turned = first > second
        if turned.any():
            first, second = np.where(turned, second, first), np.where(turned, first, second)
            half_points = np.where(turned, 2 - half_points, half_points)
        cells[part] = (half_points * np.int32(matches.players) + first) * np.int32(matches.players) + second
        sums += np.bincount(cells[part], minlength=len(sums))
    return cells, sums.reshape(3, -1)


def _places(item: npt.NDArray[np.integer], block: Ints, cells: npt.NDArray[np.int32], column: Ints) -> Ints:
    """Where each match counts: in the row of its item's block, in the column of its cell."""
    places = np.empty(len(cells), np.int64)
    for start in range(0, len(cells), _PIECE):
        part = slice(start, start + _PIECE)
        np.add(np.take(block, item[part]), np.take(column, cells[part]), out=places[part])
    return places


def _refitted(
    blocks: _Blocks, found: Fitted, whole: Tally, rounds: int, random: np.random.Generator
) -> FloatArray:
    """The strengths in every round (rounds x players).

    With many matches one Newton step from the data's own fit is as good as a full fit of the round. Whether it is, the
    first rounds tell: they are made in both ways. If the ways differ by more than a little, all rounds are fitted.
    """
    drawn = blocks.drawn(rounds, random)
    virtual = _virtual(blocks, rounds, random)
    stepped = _stepped(blocks, found, whole, drawn, virtual)
    few = _fits(blocks, drawn[:_CHECKED], _some(virtual, slice(_CHECKED)), found)
    off = np.sqrt(np.square(few - stepped[:_CHECKED]).mean(axis=0)) / stepped.std(axis=0)
    if off.max() < _NEAR:
        return stepped
    return np.concatenate([few, _fits(blocks, drawn[_CHECKED:], _some(virtual, slice(_CHECKED, None)), found)])


def _stepped(blocks: _Blocks, found: Fitted, whole: Tally, drawn: Weights, virtual: Virtual) -> FloatArray:
    place = start_at(found)
    information = slopes(place, whole, even(blocks.weight, blocks.players))[1][0]
    gradient = (drawn @ blocks.scores(place)).astype(np.float64)
    add_virtual(gradient, None, np.repeat(place, len(drawn), axis=0), virtual)
    return fitted(place + np.linalg.solve(information, gradient.T).T, blocks.players).strengths


def _fits(blocks: _Blocks, drawn: Weights, virtual: Virtual, found: Fitted) -> FloatArray:
    piece = max(1, _CELLS_AT_ONCE // blocks.players**2)
    strengths: list[FloatArray] = []
    for start in range(0, len(drawn), piece):
        part = slice(start, start + piece)
        tally = blocks.tally(drawn[part])
        begin = Fitted(*(np.repeat(one, len(tally.points), axis=0) for one in found))
        strengths.append(fit(tally, _some(virtual, part), start=begin, tolerance=1e-6).strengths)
    return np.concatenate(strengths) if strengths else np.zeros((0, blocks.players))


def _virtual(blocks: _Blocks, rounds: int, random: np.random.Generator) -> Virtual:
    """Virtual matches whose weights are Gamma variates of shape 1/2: one match on average, half of it won."""

    def weights(*shape: int) -> FloatArray:
        return np.maximum(random.standard_normal(shape) ** 2 / 2, _LEAST) * blocks.weight

    won, lost = weights(2, rounds, blocks.players)
    tied, decided = weights(2, rounds)
    return Virtual(won, lost, tied, decided)


def _some(virtual: Virtual, rounds: slice) -> Virtual:
    return Virtual(*(one[rounds] for one in virtual))


# ---- ranks


def _ranked(value: FloatArray, drawn: FloatArray, items: int, level: float) -> Ranked:
    """Intervals from percentiles, widened from the normal to Student's quantile: plain ones are too narrow for few
    items (Hesterberg 2015)."""
    t = t_quantile((1 + level) / 2, items - 1)
    tail = 1 - NormalDist().cdf(t * (items / (items - 1)) ** 0.5)
    low, high = np.quantile(drawn, (tail, 1 - tail), axis=0)
    behind = (drawn[:, :, None] >= drawn[:, None, :]).mean(axis=0)  # how often each is not behind another
    surely = (behind < tail) & (value[:, None] < value[None, :])
    best, worst = 1 + surely.sum(axis=1), len(value) - surely.sum(axis=0)
    return Ranked(value, np.minimum(low, value), np.maximum(high, value), best, worst, "bootstrap")


def _alone(value: FloatArray) -> Ranked:
    """One item tells nothing about others."""
    nothing = np.full(len(value), np.nan)
    first, last = np.ones(len(value), np.int64), np.full(len(value), len(value))
    return Ranked(value, nothing, nothing, first, last, "none: an interval needs at least two items")
