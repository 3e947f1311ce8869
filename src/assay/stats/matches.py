"""Matches between players as columns, the table of who beat whom, and whether it tells how strong players are."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assay.interfaces import IntArray, Integers, Mask

Ints = IntArray
Flags = Mask
_PIECE = 1 << 16  # matches at once: what is made of them stays in the processor's cache


class Matches(NamedTuple):
    """Columns of equal length: the number of the item and of both players, and the half points of the first: 2 for a
    win, 1 for a tie, 0 for a loss. Numbers begin at 0, and each item has a match."""

    item: Integers
    first: Integers
    second: Integers
    half_points: Integers
    players: int

    @property
    def items(self) -> int:
        return int(self.item.max(initial=-1)) + 1


class Counted(NamedTuple):
    """How often each player won against each other one (row against column), and how often they tied."""

    wins: Ints
    ties: Ints

    @property
    def played(self) -> Ints:
        return self.wins + self.wins.T + self.ties


def counted(matches: Matches) -> Counted:
    """The win matrix."""
    return table_of(cells_of(matches)[1], matches.players)


def table_of(sums: Ints, players: int) -> Counted:
    losses, draws, victories = sums.reshape(3, players, players)
    return Counted(victories + losses.T, draws + draws.T)


def cells_of(matches: Matches) -> tuple[Ints, Ints]:
    """One number for an outcome and two players, the lower one first; and how often each occurs (outcomes x pairs)."""
    cells = np.empty(len(matches.item), np.int64)
    sums = np.zeros(3 * matches.players**2, np.int64)
    for start in range(0, len(cells), _PIECE):
        part = slice(start, start + _PIECE)
        first, second, half_points = (
            matches.first[part],
            matches.second[part],
            matches.half_points[part],
        )
        turned = first > second
        if turned.any():
            first, second = np.where(turned, second, first), np.where(turned, first, second)
            half_points = np.where(turned, 2 - half_points, half_points)
        cells[part] = (half_points * np.int32(matches.players) + first) * np.int32(
            matches.players
        ) + second
        sums += np.bincount(cells[part], minlength=len(sums))
    return cells, sums.reshape(3, -1)


def move(cells: Ints, item: Integers, row: Ints, column: Ints) -> None:
    """Turn each cell into the place in a table where its match counts: the row of its item plus the cell's column."""
    # half the size, quicker to look up
    short_row = row.astype(np.int32)
    short_column = column.astype(np.int32)
    for start in range(0, len(cells), _PIECE):
        part = slice(start, start + _PIECE)
        np.add(np.take(short_row, item[part]), np.take(short_column, cells[part]), out=cells[part])


class Reconciled(NamedTuple):
    """One entry a pair of answers: half points of the first player, -1 where no verdict can be read; whether the two
    orders disagreed, and whether only one of them was read."""

    half_points: npt.NDArray[np.int8]
    disagreed: Mask
    one_sided: Mask


def reconciled(starts: Ints, half_points: npt.NDArray[np.int8], seats: Integers) -> Reconciled:
    """Return what the verdicts on each pair of answers come to: rows from one of `starts` to the
    next are of one pair.

    `seats` is how many orders of the seats a row's pair was to be judged in. Who does not win in each of them does not
    win: verdicts that disagree, or one where there should be two, are a tie.
    """
    read = half_points >= 0
    least = np.minimum.reduceat(np.where(read, half_points, 3), starts)
    most = np.maximum.reduceat(half_points, starts)
    verdicts = np.add.reduceat(read, starts, dtype=np.int64)
    disagreed = (verdicts > 1) & (least != most)
    one_sided = (verdicts > 0) & (verdicts < seats[starts])
    decided = np.where(disagreed | one_sided, 1, most)
    return Reconciled(np.where(verdicts > 0, decided, -1).astype(np.int8), disagreed, one_sided)


# ---- who met whom, and who ever beat whom


def pieces(met: Flags) -> list[list[int]]:
    """The groups of players that are linked by matches, the largest first. More than one: they cannot be compared."""
    found = _groups(_reach(met | met.T))
    return sorted(found, key=lambda group: (-len(group), group))


def rungs(wins: Ints, ties: Ints) -> list[list[int]]:
    """Groups of players, the best first, such that nobody ever won or tied against a better group.

    More than one: the most likely difference between them is infinite.
    """
    reached = _reach((wins > 0) | (ties > 0))
    return sorted(
        _groups(reached & reached.T), key=lambda group: (-int(reached[group[0]].sum()), group)
    )


def bounded(wins: Ints, ties: Ints) -> bool:
    """Return whether finite strengths are the most likely ones.

    Players must be on one rung. And where there are ties, some way round must have more wins than ties: if A beat B
    and tied with B, ever larger strengths of A with ever more ties fit ever better.
    """
    if len(rungs(wins, ties)) > 1 or not wins.any():
        return False
    if not ties.any() or ((wins > 0) & (wins.T > 0)).any():
        return True
    gain = np.where(wins > 0, 1.0, np.where(ties > 0, -1.0, -np.inf))
    height = np.zeros(len(wins))
    # Bellman and Ford: a way that still gains after this many steps goes round
    for _ in range(len(wins)):
        higher = np.maximum(height, (gain + height[None, :]).max(axis=1))
        if (higher == height).all():
            return False
        height = higher
    return True


def _reach(links: Flags) -> Flags:
    """Whom each player reaches over any number of links."""
    reached = links | np.eye(len(links), dtype=np.bool_)
    while True:
        further = (reached.astype(np.float32) @ reached.astype(np.float32)) > 0
        if (further == reached).all():
            return reached
        reached = further


def _groups(alike: Flags) -> list[list[int]]:
    """The classes of an equivalence."""
    first = alike.argmax(axis=1)
    return [np.flatnonzero(first == number).tolist() for number in np.unique(first)]
