"""Who met whom, and who ever beat whom: whether matches can tell how strong players are."""

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def pieces(met: Flags) -> list[list[int]]:
    """The groups of players that are linked by matches, the largest first. More than one: they cannot be compared."""
    found = _groups(_reached(met | met.T))
    return sorted(found, key=lambda group: (-len(group), group))


def rungs(wins: Counts, ties: Counts) -> list[list[int]]:
    """Groups of players, the best first, such that nobody ever won or tied against a better group.

    More than one: the most likely difference between them is infinite.
    """
    reached = _reached((wins > 0) | (ties > 0))
    return sorted(_groups(reached & reached.T), key=lambda group: (-int(reached[group[0]].sum()), group))


def bounded(wins: Counts, ties: Counts) -> bool:
    """Whether finite strengths are the most likely ones.

    Players must be on one rung. And where there are ties, some way round must have more wins than ties: if A beat B
    and tied with B, ever larger strengths of A with ever more ties fit ever better.
    """
    if len(rungs(wins, ties)) > 1 or not wins.any():
        return False
    if not ties.any() or ((wins > 0) & (wins.T > 0)).any():
        return True
    gain = np.where(wins > 0, 1.0, np.where(ties > 0, -1.0, -np.inf))
    height = np.zeros(len(wins))
    for _ in range(len(wins)):  # Bellman and Ford: a way that still gains after this many steps goes round
        higher = np.maximum(height, (gain + height[None, :]).max(axis=1))
        if (higher == height).all():
            return False
        height = higher
    return True


def _reached(links: Flags) -> Flags:
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
