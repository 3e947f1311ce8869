"""Whether a judge of pairs favours a seat."""

from assay.interfaces import Group, Values
from assay.metrics._matches import COLUMNS, NO_MATCH, in_both_seats, pairs_of
from assay.registry import metric
from assay.stats.seats import first_seat


@metric(columns=COLUMNS)
def position_bias(group: Group) -> Values:
    """The share of decided verdicts that the first seat won, less 0.5: above 0 the judge favours the answer that it
    reads first, below 0 the second; ±0.5 if it looks at nothing else.

    Only pairs with a verdict in both orders of the seats count: there, each answer has had each seat. Ties do not.
    """
    pairs = pairs_of(group)
    item, seated, swapped = in_both_seats(pairs)
    first = first_seat(item, seated, swapped, group.level)
    fields = {"first_seat_rate": first.rate, "decided": first.decided, "ties": first.ties, "pairs": len(item)}
    if first.rate is None:
        missing = "all verdicts are ties" if len(item) else "no pair has a verdict in both orders of the seats"
        return Values(value=None, fields=fields, reason=missing if pairs else NO_MATCH)
    low, high, method = first.interval
    if low is None or high is None:
        return Values(value=first.rate - 0.5, fields=fields, reason=method.removeprefix("none: "))
    return Values(value=first.rate - 0.5, fields=fields, interval=(low - 0.5, high - 0.5, method))
