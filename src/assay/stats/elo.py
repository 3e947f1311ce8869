"""Elo ratings, with a K factor that shrinks with the matches that a player has played.

A rating depends on the order of the matches, which means nothing in an evaluation; so it is the mean over many
shuffles. How much these differ says nothing about the data: the interval comes from a bootstrap over items.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from assay.interfaces import Codes, FloatArray, Integers
from assay.stats.matches import Matches
from assay.stats.ranking import ONE_ITEM, Ranked, open_ranks, without_ranges
from assay.stats.student import t_quantile

START = 1500.0
K_START = 20.0
K_FLOOR = 10.0
DECAY = 0.0005
SHUFFLES = 100
_METHOD = "bootstrap; weak: Elo ratings lag behind the strengths"
MOST_RESAMPLED = 20_000
_RESHUFFLES = 10  # of each resample
_AT_ONCE = 1 << 23  # matches that are played side by side: 100 MB

Orders = Codes


def k_factor(
    played: int, k_start: float = K_START, k_floor: float = K_FLOOR, decay: float = DECAY
) -> float:
    """Return how far a match moves a player who has played this many before."""
    return float((k_start - k_floor) * np.exp(-decay * played) + k_floor)


def expected(first: float, second: float) -> float:
    """The payoff that the first of two ratings may expect."""
    return 1 / (1 + 10 ** ((second - first) / 400))


class Elo:
    """Ratings after the matches played so far. An unknown player is a KeyError."""

    def __init__(
        self,
        players: Iterable[str],
        k_start: float = K_START,
        k_floor: float = K_FLOOR,
        decay: float = DECAY,
    ) -> None:
        self.ratings = dict.fromkeys(players, START)
        self.played = dict.fromkeys(self.ratings, 0)
        self._constants = k_start, k_floor, decay

    def play(self, first: str, second: str, payoff: float) -> None:
        """Take up one match, with the first player's payoff: 1, 0.5 or 0."""
        surprise = payoff - expected(self.ratings[first], self.ratings[second])
        for player, gain in ((first, surprise), (second, -surprise)):
            self.ratings[player] += k_factor(self.played[player], *self._constants) * gain
            self.played[player] += 1


class Shuffled(NamedTuple):
    """The mean rating of each player over the shuffles, and the standard error of that mean: noise of the shuffling."""

    mean: FloatArray
    standard_error: FloatArray


def shuffled(matches: Matches, *, shuffles: int = SHUFFLES, seed: int = 0) -> Shuffled:
    """The same for the same matches in any order."""
    matches = _in_order(matches)
    random = np.random.default_rng(seed)
    ratings = _shuffles(matches, [np.arange(len(matches.item), dtype=np.int32)] * shuffles, random)
    moved = ratings - ratings[0]  # 0 to the last bit where the order does not matter
    return Shuffled(ratings[0] + moved.mean(axis=0), moved.std(axis=0) / shuffles**0.5)


def elo(
    matches: Matches, *, level: float = 0.95, rounds: int = 1000, seed: int = 0
) -> tuple[Shuffled, Ranked]:
    """Ratings with intervals from a bootstrap over items: resamples, a fifth of `rounds`, each shuffled ten times."""
    found = shuffled(matches, seed=seed)
    items = matches.items
    if items < 2:
        return found, without_ranges(found.mean, ONE_ITEM)
    if len(matches.item) > MOST_RESAMPLED:
        return found, without_ranges(
            found.mean, f"none: Elo does not resample more than {MOST_RESAMPLED:,} matches"
        )
    covariance = _covariance(
        _in_order(matches), max(rounds // 5, 20), np.random.default_rng([seed, 1])
    )
    own = np.diag(covariance)
    half = t_quantile((1 + level) / 2, items - 1) * np.sqrt(np.maximum(own, 0))
    # all of them shall be right at this level (Bonferroni)
    pairs = matches.players * (matches.players - 1) / 2
    apart = t_quantile(1 - (1 - level) / (2 * max(pairs, 1)), items - 1) * np.sqrt(
        np.maximum(own[:, None] + own[None, :] - 2 * covariance, 0)
    )
    best, worst = open_ranks(found.mean[None, :] - found.mean[:, None] > apart)
    return found, Ranked(found.mean, found.mean - half, found.mean + half, best, worst, _METHOD)


def _covariance(matches: Matches, rounds: int, random: np.random.Generator) -> FloatArray:
    """Return how the mean ratings vary and covary with the items.

    The rounds' means vary with the items and with their few shuffles. The latter's share is known from the differences
    between these, and is taken off. Each round has further matches at random, about one for each player: who won all
    might lose the next.
    """
    players = matches.players
    items = matches.items
    count = len(matches.item)
    first, second = np.triu_indices(players, 1)
    further = [
        np.zeros(2 * len(first), np.int64),
        np.tile(first, 2),
        np.tile(second, 2),
        np.repeat([2, 0], len(first)),
    ]
    starts: list[int] = np.searchsorted(matches.item, np.arange(items + 1)).tolist()
    orders: list[Orders] = []
    for _ in range(rounds):
        chosen = random.integers(0, items, items).tolist()
        drawn = [np.arange(starts[item], starts[item + 1]) for item in chosen]
        at_random = count + random.integers(0, 2 * len(first), (players + 1) // 2)
        orders += [np.concatenate([*drawn, at_random]).astype(np.int32)] * _RESHUFFLES
    both = Matches._make(
        [*(np.concatenate(pair) for pair in zip(matches[:4], further, strict=True)), players]
    )
    ratings = _shuffles(both, orders, random).reshape(rounds, _RESHUFFLES, players)
    means = ratings.mean(axis=1)
    spread = (ratings - means[:, None, :]).reshape(-1, players)
    noise = spread.T @ spread / (rounds * (_RESHUFFLES - 1))
    centred = means - means.mean(axis=0)
    return centred.T @ centred / (rounds - 1) - noise / _RESHUFFLES + noise / SHUFFLES


def _in_order(matches: Matches) -> Matches:
    """An order that depends on the matches alone."""
    order = np.lexsort((matches.half_points, matches.second, matches.first, matches.item))
    return Matches._make([*(column[order] for column in matches[:4]), matches.players])


def _shuffles(matches: Matches, orders: list[Orders], random: np.random.Generator) -> FloatArray:
    """The ratings (shuffles x players) after the matches of each order were played in an order of its own."""
    longest = max(map(len, orders))
    width = max(1, _AT_ONCE // max(longest, 1))
    # The last match is for orders that have ended: two players whom nobody knows.
    table = np.stack(
        [np.append(matches.first, matches.players), np.append(matches.second, matches.players + 1)]
    )
    payoff = np.append(matches.half_points / 2, 0.5)
    found: list[FloatArray] = []
    for start in range(0, len(orders), width):
        part = orders[start : start + width]
        places = np.full((len(part), longest), len(payoff) - 1, np.int32)
        for row, order in zip(places, part, strict=True):
            row[: len(order)] = random.permutation(order)
        found.append(
            _play(table, payoff, np.ascontiguousarray(places.T), matches.players + 2)[:, :-2]
        )
    return np.concatenate(found)


def _play(table: Integers, payoff: FloatArray, orders: Orders, players: int) -> FloatArray:
    """Play the matches (steps x shuffles), one step after another, all shuffles side by side."""
    steps, width = orders.shape
    ratings = np.full(width * players, START)
    played = np.zeros(width * players, np.int64)
    factors = np.array([k_factor(number) for number in range(steps + 1)])
    home = np.arange(width) * players
    for order in orders:
        first = home + table[0, order]
        second = home + table[1, order]
        one = ratings[first]
        other = ratings[second]
        surprise = payoff[order] - 1 / (1 + 10 ** ((other - one) / 400))
        ratings[first] = one + factors[played[first]] * surprise
        ratings[second] = other - factors[played[second]] * surprise
        played[first] += 1
        played[second] += 1
    return ratings.reshape(width, players)
