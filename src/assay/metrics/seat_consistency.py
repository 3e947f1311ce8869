"""Whether a judge of pairs says the same when the answers change their seats."""

import numpy as np

from assay.metrics._matches import COLUMNS, NO_MATCH, in_both_seats, pairs_of
from assay.sdk import Group, Values, metric
from assay.stats.intervals import item_contributions, item_weights


@metric(columns=COLUMNS, lower_is_better=False, scale=(0, 1))
def seat_consistency(group: Group) -> Values:
    """The share of pairs on which the judge says the same in both orders of the seats: the same winner, or twice a tie.

    Pairs with a verdict in only one order are left out.
    """
    pairs = pairs_of(group)
    item, seated, swapped, rows = in_both_seats(pairs)
    counts = {"pairs": len(item), "unread": sum(pair.unread for pair in pairs)}
    if not len(item):
        reason = "no pair has a verdict in both orders of the seats" if pairs else NO_MATCH
        return Values(fields=counts, reason=reason)
    same = (seated == swapped).astype(np.float64)
    return Values(
        value=float(same.mean()),
        fields={"consistent": int(same.sum()), **counts},
        per_item=item_contributions(item, same),
        weights=item_weights(item),
        rows=rows,
    )
