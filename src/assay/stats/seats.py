"""Whether a judge of pairs looks at the answers or at the seats that they stand in."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray
from assay.stats.intervals import Interval, item_contributions, mean_interval


class FirstSeat(NamedTuple):
    """The share of decided verdicts that the first seat won: 0.5 if seats do not matter; None if all were ties."""

    rate: float | None
    decided: int
    ties: int
    interval: Interval


def first_seat(
    item: npt.NDArray[np.integer], seated: FloatArray, swapped: FloatArray, level: float = 0.95
) -> FirstSeat:
    """How often the first seat wins, over pairs judged in both orders: whichever answer is better, it has had it once.

    `seated` is the first player's payoff (above 0.5: it won) in the first seat, `swapped` that in the second.
    """
    payoff = np.concatenate([seated, 1 - swapped])
    decided = payoff != 0.5
    count = int(decided.sum())
    if not count:
        return FirstSeat(None, 0, len(payoff), Interval(None, None, "none: there is no value"))
    won = (payoff[decided] > 0.5).astype(np.float64)
    contributions = item_contributions(np.concatenate([item, item])[decided], won)
    interval = mean_interval(contributions, samples=count, bounded=True, level=level)
    return FirstSeat(float(won.mean()), count, len(payoff) - count, interval)
