"""The rows of matches, put together again: the verdicts about one pair of answers in each order of the seats."""

import msgspec
import numpy as np

from assay.sdk import FloatArray, Group, IntArray

COLUMNS = ["players", "seat", "outcome"]
NO_MATCH = "these rows are not matches: they have no `players`"
_UNREAD = ("unparsed", "refused")  # no verdict: neither player is wrong because of it


class Pair(msgspec.Struct):
    """Two players' answers to one item. `payoffs` has the first player's by seat, 0 where it had the first one: 1 won,
    0 lost, 0.5 tie; `rows` are the places of these verdicts, `unread` counts those that could not be read."""

    item: int
    players: tuple[str, str]
    payoffs: dict[int, float]
    rows: list[int] = []
    unread: int = 0

    def decision(self, seats: int) -> float:
        """The first player's payoff when all seats are taken together: who does not win in each of them does not win.
        A seat without a verdict is not a win either."""
        payoffs = set(self.payoffs.values())
        return payoffs.pop() if len(payoffs) == 1 and len(self.payoffs) == seats else 0.5


def pairs_of(group: Group) -> list[Pair]:
    """The pairs of a group, in order of item and sample; rows that are not matches are left out."""
    pairs: dict[tuple[int, int, str, str], Pair] = {}
    places = zip(group.item.tolist(), group.sample.tolist(), group.score.tolist(), strict=True)
    verdicts = zip(*(group.columns[name] for name in COLUMNS), strict=True)
    for at, (place, verdict) in enumerate(zip(places, verdicts, strict=True)):
        (item, sample, score), (players, seat, outcome) = place, verdict
        if not players:
            continue
        first, second = map(str, players)
        pair = pairs.setdefault((item, sample, first, second), Pair(item, (first, second), {}))
        if outcome in _UNREAD:
            pair.unread += 1
        else:
            pair.rows.append(at)
            pair.payoffs[seat or 0] = 1.0 if score > 0.5 else 0.0 if score < 0.5 else 0.5
    return list(pairs.values())


def seats_of(pairs: list[Pair]) -> int:
    """2 where pairs were judged in both orders, else 1."""
    return 2 if any(1 in pair.payoffs for pair in pairs) else 1


def rows_of(pairs: list[Pair]) -> list[int]:
    """Return the places of the rows whose verdicts the pairs have."""
    return [at for pair in pairs for at in pair.rows]


def in_both_seats(
    pairs: list[Pair],
) -> tuple[IntArray, FloatArray, FloatArray, list[int]]:
    """Return item, payoff in the first and in the second seat of pairs that have both, and rows."""
    both = [pair for pair in pairs if len(pair.payoffs) == 2]
    return (
        np.array([pair.item for pair in both], dtype=np.int64),
        np.array([pair.payoffs[0] for pair in both], dtype=np.float64),
        np.array([pair.payoffs[1] for pair in both], dtype=np.float64),
        rows_of(both),
    )
