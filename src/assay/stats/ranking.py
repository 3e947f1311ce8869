"""Rankings of players with their uncertainty, from matches that belong to items.

The unit is the item: its matches are drawn together, because they are alike. A round draws as many items as there are,
with replacement, and ranks anew. Where items are many, they are dealt at random into blocks, which are drawn instead:
blocks are as independent as items are, and a round's cost no longer depends on the number of matches.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray, Mask
from assay.stats.davidson import (
    DavidsonFit,
    Tally,
    Virtual,
    add_virtual,
    chances,
    even,
    fit,
    fitted,
    parameters,
    slopes,
)
from assay.stats.intervals import item_contributions, item_weights, mean_interval
from assay.stats.matches import Ints, Matches, bounded, cells_of, move, table_of
from assay.stats.student import t_quantile

Weights = npt.NDArray[np.float32]
_MOST_BLOCKS = 2000
_FEWEST_BLOCKS = 250
_MOST_CELLS = 1 << 20  # of the table of blocks and outcomes: 12 MB
_DRAWS = 1 << 20  # numbers drawn at once: 8 MB
_FITTED = 1 << 16  # cells of win matrices that are fitted at once
_CHECKED = 10  # rounds that are fitted in full before the others may be stepped to
_NEAR = 0.05  # of a standard error: below the noise of 1,000 rounds
ONE_ITEM = "none: an interval needs at least two items"
_LEAST = 1e-3  # of a virtual match: nobody's strength is beyond all measure


class Ranked(NamedTuple):
    """A value for each player; its interval, NaN where there is none (`method` says why); and the best and the worst
    rank that is left open by the pairs of players which can be told apart."""

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


def bradley_terry(
    matches: Matches,
    *,
    level: float = 0.95,
    rounds: int = 1000,
    seed: int = 0,
    prior: float | None = None,
) -> BradleyTerry:
    """Davidson's strengths by maximum likelihood, with bootstrap intervals over items.

    Where no finite strengths are the most likely ones (somebody won or lost everything), each player is given `prior`
    virtual matches against the average of the others, half won and half lost; None: one, and only there. All rounds
    have such matches, of random weight: a player who won all of 20 matches might lose the next, which no resample of
    those 20 shows. For two players the interval is then close to Wilson's.
    """
    random = np.random.default_rng(seed)
    blocks = _Blocks(matches, random)
    finite = bounded(blocks.table.wins, blocks.table.ties)
    weight = prior if prior is not None else 0.0 if finite else 1.0
    if not (weight or finite):
        raise ValueError("no finite strengths are the most likely ones")
    whole = blocks.tally(np.ones((1, blocks.count), np.float32))
    found = fit(whole, even(weight * blocks.weight, matches.players) if weight else None)
    strengths = found.strengths[0]
    tie = float(found.tie[0])
    if blocks.items < 2:
        return BradleyTerry(without_ranges(strengths, ONE_ITEM), tie, weight)
    drawn = _refit(blocks, found, whole, rounds, random)
    return BradleyTerry(_with_ranges(strengths, drawn, blocks.items, level), tie, weight)


def win_rates(
    matches: Matches, *, level: float = 0.95, rounds: int = 1000, seed: int = 0
) -> Ranked:
    """Points per match, with the interval of a mean over items; ranks from rounds like those of `bradley_terry`."""
    random = np.random.default_rng(seed)
    blocks = _Blocks(matches, random)
    points, games = blocks.by_player()
    value = points.sum(axis=0, dtype=np.float64) / games.sum(axis=0, dtype=np.float64)
    if blocks.items < 2:
        return without_ranges(value, ONE_ITEM)
    drawn = blocks.drawn(rounds, random)
    virtual = _virtual(blocks, rounds, random)
    rates = (drawn @ points + virtual.won) / (drawn @ games + virtual.won + virtual.lost)
    ranked = _with_ranges(value, rates, blocks.items, level)
    spans = [_rate_interval(matches, player, level) for player in range(matches.players)]
    low, high = (
        np.array([np.nan if end is None else end for end in ends])
        for ends in zip(*spans, strict=True)
    )
    return ranked._replace(low=low, high=high, method="wilson_of_items")


def _rate_interval(
    matches: Matches, player: int, level: float
) -> tuple[float | None, float | None]:
    payoffs = matches.half_points / 2
    own = np.flatnonzero((matches.first == player) | (matches.second == player))
    payoffs = np.where(matches.first[own] == player, payoffs[own], 1 - payoffs[own])
    values = item_contributions(matches.item[own], payoffs)
    weights = item_weights(matches.item[own])
    low, high, _ = mean_interval(
        values, samples=len(own), scale=(0.0, 1.0), level=level, weights=weights
    )
    return low, high


# ---- rounds


class _Blocks:
    """Items, or groups of them, and what happened in each between the pairs of players that met at all."""

    def __init__(self, matches: Matches, random: np.random.Generator) -> None:
        self.players = matches.players
        cells, sums = cells_of(matches)
        self.table = table_of(sums, self.players)
        pairs = np.flatnonzero(sums.any(axis=0))
        self.first, self.second = np.divmod(pairs, self.players)
        self.items = matches.items
        self.count = min(
            self.items, _MOST_BLOCKS, max(_FEWEST_BLOCKS, _MOST_CELLS // (3 * len(pairs) + 1))
        )
        block = (
            np.arange(self.items)
            if self.count == self.items
            else random.permutation(self.items) % self.count
        )
        column = np.zeros(sums.shape, np.int64)
        column[:, pairs] = np.arange(3 * len(pairs)).reshape(3, -1)
        move(cells, matches.item, block * 3 * len(pairs), column.ravel())
        found = np.bincount(cells, minlength=self.count * 3 * len(pairs)).astype(np.float32)
        losses, draws, victories = found.reshape(self.count, 3, -1).swapaxes(0, 1)
        # Blocks x pairs: numbers of matches, exact up to 16 million.
        self.played: Weights = losses + draws + victories
        self.payoff: Weights = victories + (draws / 2).astype(np.float32)
        self.ties = draws.sum(axis=1)
        met = np.count_nonzero(self.played) if self.count == self.items else len(cells)
        # of a virtual match: as often as two players meet on one item
        self.weight = len(cells) / max(met, 1)

    def tally(self, weights: Weights) -> Tally:
        """Return what happened in rounds that have the blocks so often."""
        met, payoff = (
            (weights @ self.played).astype(np.float64),
            (weights @ self.payoff).astype(np.float64),
        )
        played, points = np.zeros((2, len(weights), self.players, self.players))
        played[:, self.first, self.second] = played[:, self.second, self.first] = met
        points[:, self.first, self.second] = payoff
        points[:, self.second, self.first] = met - payoff
        return Tally(played, points.sum(axis=2), (weights @ self.ties).astype(np.float64))

    def scores(self, place: FloatArray) -> Weights:
        """Return how each block pulls at each parameter: what happened in it less what was to be
        expected."""
        expected, tied = (
            table[0, self.first, self.second].astype(np.float32)
            for table in chances(place, self.players)
        )
        surprise: Weights = (self.payoff - self.played * expected).astype(np.float32, copy=False)
        found = self._player_sums(surprise, -surprise)
        ties = self.ties - self.played @ tied
        return (
            found
            if place.shape[1] == self.players
            else np.concatenate([found, ties[:, None]], axis=1)
        )

    def by_player(self) -> tuple[Weights, Weights]:
        """Points and matches of each player (blocks x players)."""
        return self._player_sums(self.payoff, self.played - self.payoff), self._player_sums(
            self.played, self.played
        )

    def _player_sums(self, first: Weights, second: Weights) -> Weights:
        """Sums over the pairs of each player, of what the first and the second of each pair get."""
        sums = np.zeros((self.count, self.players), np.float32)
        piece = max(1, _FITTED // self.players)
        for start in range(0, len(self.first), piece):
            part = slice(start, start + piece)
            for values, player in ((first, self.first), (second, self.second)):
                sums += values[:, part] @ (player[part, None] == np.arange(self.players)).astype(
                    np.float32
                )
        return sums

    def drawn(self, rounds: int, random: np.random.Generator) -> Weights:
        """Return how often each round has each block."""
        drawn = np.empty((rounds, self.count), np.float32)
        piece = max(1, _DRAWS // self.count)
        for start in range(0, rounds, piece):
            part = drawn[start : start + piece]
            numbers = random.integers(0, self.count, part.shape, dtype=np.uint16)
            places = numbers + np.arange(len(part))[:, None] * self.count
            part[:] = np.bincount(places.ravel(), minlength=part.size).reshape(part.shape)
        return drawn


def _refit(
    blocks: _Blocks, fitted: DavidsonFit, whole: Tally, rounds: int, random: np.random.Generator
) -> FloatArray:
    """The strengths in every round (rounds x players).

    With many matches one Newton step from the data's own fit is as good as a full fit of the round. Whether it is, the
    first rounds tell: they are made in both ways. If the ways differ by more than a little, all rounds are fitted.
    """
    drawn = blocks.drawn(rounds, random)
    virtual = _virtual(blocks, rounds, random)
    stepped = _newton_step(blocks, fitted, whole, drawn, virtual)
    few = _fits(blocks, drawn[:_CHECKED], _some(virtual, slice(_CHECKED)), fitted)
    off = np.sqrt(np.square(few - stepped[:_CHECKED]).mean(axis=0)) / stepped.std(axis=0)
    if off.max() < _NEAR:
        return stepped
    return np.concatenate(
        [few, _fits(blocks, drawn[_CHECKED:], _some(virtual, slice(_CHECKED, None)), fitted)]
    )


def _newton_step(
    blocks: _Blocks, found: DavidsonFit, whole: Tally, drawn: Weights, virtual: Virtual
) -> FloatArray:
    place = parameters(found)
    information = slopes(place, whole, even(blocks.weight, blocks.players))[1][0]
    gradient = (drawn @ blocks.scores(place)).astype(np.float64)
    add_virtual(gradient, None, place, virtual)
    return fitted(place + np.linalg.solve(information, gradient.T).T, blocks.players).strengths


def _fits(blocks: _Blocks, drawn: Weights, virtual: Virtual, fitted: DavidsonFit) -> FloatArray:
    piece = max(1, _FITTED // blocks.players**2)
    strengths: list[FloatArray] = []
    for start in range(0, len(drawn), piece):
        part = slice(start, start + piece)
        tally = blocks.tally(drawn[part])
        begin = DavidsonFit(*(np.repeat(one, len(tally.points), axis=0) for one in fitted))
        strengths.append(fit(tally, _some(virtual, part), start=begin, tolerance=1e-3).strengths)
    return np.concatenate(strengths) if strengths else np.zeros((0, blocks.players))


def _virtual(blocks: _Blocks, rounds: int, random: np.random.Generator) -> Virtual:
    """Virtual matches of random weight: on average one for each player, half won, and one tie.

    Half the square of a normal variate is a Gamma variate of shape 1/2, the weight that a prior of half a match has.
    """
    won, lost = (
        np.maximum(random.standard_normal((2, rounds, blocks.players)) ** 2 / 2, _LEAST)
        * blocks.weight
    )
    tied, decided = np.maximum(random.standard_exponential((2, rounds)), _LEAST) * blocks.weight
    return Virtual(won, lost, tied, decided)


def _some(virtual: Virtual, rounds: slice) -> Virtual:
    return Virtual(*(one[rounds] for one in virtual))


# ---- ranks


def _with_ranges(value: FloatArray, drawn: FloatArray, items: int, level: float) -> Ranked:
    """Intervals from percentiles, widened from the normal to Student's quantile: plain ones are too narrow for few
    items (Hesterberg 2015)."""
    t = t_quantile((1 + level) / 2, items - 1)
    tail = 1 - NormalDist().cdf(t * (items / (items - 1)) ** 0.5)
    low, high = np.quantile(drawn, (tail, 1 - tail), axis=0)
    best, worst = open_ranks(_behind(value, np.ascontiguousarray(drawn.T), tail))
    return Ranked(value, np.minimum(low, value), np.maximum(high, value), best, worst, "bootstrap")


def _behind(value: FloatArray, drawn: FloatArray, tail: float) -> Mask:
    """Return whether each player surely stands behind each other one: it is ahead in less than a
    `tail` of the rounds, and they lie apart by more than the largest of all pairs' distances goes
    astray but in a share of two `tail`s of the rounds, in standard errors (`drawn`: players x
    rounds).

    Told apart one by one, four players who are all alike would be separated somewhere in one ranking of ten; and the
    standard errors of very few items say little.
    """
    players, rounds = drawn.shape
    largest = np.zeros(rounds)
    errors = np.empty((players, players))
    ahead = np.empty((players, players), np.int64)
    for player, own in enumerate(drawn):
        astray = own - drawn
        ahead[player] = np.count_nonzero(astray >= 0, axis=1)
        astray -= astray.mean(axis=1, keepdims=True)
        errors[player] = np.sqrt(np.einsum("ij,ij->i", astray, astray) / rounds)
        astray /= np.maximum(errors[player], 1e-300)[:, None]
        np.maximum(largest, np.abs(astray, out=astray).max(axis=0, initial=0.0), out=largest)
    reach = float(np.quantile(largest, max(1 - 2 * tail, 0.0)))
    apart = value[None, :] - value[:, None] > np.maximum(reach * errors, 1e-12)
    return apart & (ahead < tail * rounds)


def open_ranks(behind: Mask) -> tuple[Ints, Ints]:
    """The best and the worst rank of each player; `behind`: whether it surely stands behind each other one."""
    return 1 + behind.sum(axis=1), len(behind) - behind.sum(axis=0)


def without_ranges(value: FloatArray, why: str) -> Ranked:
    """Values of which nobody knows how sure they are."""
    nothing = np.full(len(value), np.nan)
    return Ranked(
        value, nothing, nothing, *open_ranks(np.zeros((len(value), len(value)), np.bool_)), why
    )
