"""Which answers people should label, and with what chance each of them was chosen.

Answers that tell most (judges disagree, the score is near the threshold, a verdict is missing) are a stratum of their
own: at most a quarter of all, fixed by the rows and the seed. One random order of all answers serves everything. The
`random` ones are its beginning, and so a plain sample of all answers. The `telling` ones are the next of the telling
stratum. Within each stratum the chosen answers are thus a plain sample of it, and the chance of each is the share of
its stratum that is chosen: `probability`. Both kinds are shown in turns, evenly, so a session that ends early has
labelled the same part of both strata, and weights of one over the probability still have the right proportions.
Estimates use these weights, or the random answers alone without any. A larger count continues in the same order; the
size of the stratum is kept with each label, so that the chance can be told again from how many labels there are by
then.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from assay.analysis.judge.label_frame import Address, Frame, Unit
from assay.store.keys import canonical, digest

MOST_TELLING = 0.25


class Chosen(msgspec.Struct, frozen=True):
    """An answer to be labelled, `random` or `telling`. `probability` is the share that is chosen of its `stratum`
    (telling or other), which has `size` answers."""

    unit: Unit
    kind: str
    probability: float
    stratum: str
    size: int


def choose(frame: Frame, count: int, *, random: float, seed: int = 0) -> list[Chosen]:
    """This many answers, in the order in which they are to be shown; at least `random` of them are random ones."""
    order, telling = _drawn(frame, seed)
    count, total = min(count, len(order)), len(order)
    others = np.cumsum(~telling[order])  # how many of the other stratum are among the first ones of the order
    first = int(np.searchsorted(others, count - int(telling.sum()))) + 1 if count > telling.sum() else 0
    first = min(count, max(first, int(np.ceil(random * count))))
    rest = order[first:]
    kinds: dict[str, Any] = {"random": order[:first], "telling": rest[telling[rest]][: count - first]}
    sizes = {True: int(telling.sum()), False: total - int(telling.sum())}
    taken = telling[np.concatenate(list(kinds.values()))]
    share = {stratum: int((taken == stratum).sum()) / max(1, size) for stratum, size in sizes.items()}

    def chosen(at: int, kind: str) -> Chosen:
        stratum = bool(telling[at])
        return Chosen(frame.units[at], kind, share[stratum], "telling" if stratum else "other", sizes[stratum])

    turns = [
        ((number + 0.5) / len(places), chosen(int(at), kind))
        for kind, places in kinds.items()
        for number, at in enumerate(places)
    ]
    return [answer for _, answer in sorted(turns, key=lambda turn: turn[0])]


def _drawn(frame: Frame, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """All answers in random order, and which of them are in the telling stratum. It is cut off by other random numbers
    than those of the order, which would else not be random within it."""
    draws = [digest("label", b"%d" % seed, canonical(unit.address)) for unit in frame.units]
    numbers = np.frombuffer(b"".join(draws), dtype=">u8").reshape(-1, 2)
    degree = np.array([unit.telling for unit in frame.units])
    most = int(np.ceil(MOST_TELLING * len(degree)))
    telling = np.zeros(len(degree), dtype=np.bool_)
    telling[np.lexsort((numbers[:, 1], -degree))[:most]] = True
    return np.argsort(numbers[:, 0], kind="stable"), telling & (degree > 0)


def waiting(
    frame: Frame, labelled: Mapping[Address, set[str]], annotator: str, *, count: int, random: float, seed: int = 0
) -> list[Chosen]:
    """What is left for an annotator who labels `count` answers in all, given who has labelled which: first, up to half
    of the count, answers that others have labelled, in their order, so that agreement can be told; then new ones."""
    addresses = {unit.address for unit in frame.units}
    mine = {address for address, people in labelled.items() if annotator in people and address in addresses}
    others = [address for address, people in labelled.items() if people - {annotator} and address in addresses]
    shared = min(len(others), count // 2)
    planned = {
        answer.unit.address: answer for answer in choose(frame, count + len(others) - shared, random=random, seed=seed)
    }
    again = [address for address in others if address not in mine and address in planned]
    again = again[: max(0, shared - len(mine.intersection(others)))]
    anyone = mine.union(others)
    new = [address for address in planned if address not in anyone]
    return [planned[address] for address in (*again, *new)][: max(0, count - len(mine))]
