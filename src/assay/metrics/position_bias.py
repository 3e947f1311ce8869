"""Whether a judge of pairs favours a seat."""

import numpy as np

from assay.metrics._matches import COLUMNS, NO_MATCH, in_both_seats, pairs_of
from assay.sdk import Group, Values, metric
from assay.stats.intervals import item_contributions, item_weights


@metric(columns=COLUMNS, scale=(-0.5, 0.5))
def position_bias(group: Group) -> Values:
    """The share of decided verdicts that the first seat won, less 0.5: above 0 the judge favours the answer that it
    reads first, below 0 the second; ±0.5 if it looks at nothing else.

    Only pairs with a verdict in both orders of the seats count: there, each answer has had each seat. Ties do not.
    """
    pairs = pairs_of(group)
    item, seated, swapped, rows = in_both_seats(pairs)
    payoff = np.concatenate([seated, 1 - swapped])  # of the first seat, above 0.5: it won
    decided = payoff != 0.5
    won = (payoff[decided] > 0.5).astype(np.float64)
    counts = {"decided": len(won), "ties": len(payoff) - len(won), "pairs": len(item)}
    if not len(won):
        missing = (
            "all verdicts are ties"
            if len(item)
            else "no pair has a verdict in both orders of the seats"
        )
        return Values(
            fields={"first_seat_rate": None, **counts},
            reason=missing if pairs else NO_MATCH,
        )
    rate = float(won.mean())
    items = np.concatenate([item, item])[decided]
    return Values(
        value=rate - 0.5,
        fields={"first_seat_rate": rate, **counts},
        rows=rows,
        per_item=item_contributions(items, won),
        weights=item_weights(items),
        items=items,
        scale=(0.0, 1.0),
        transform=lambda share: share - 0.5,
    )
