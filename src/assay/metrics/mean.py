"""The mean score."""

from assay.sdk import Group, Values, metric
from assay.stats.intervals import item_contributions, item_weights


@metric
def mean(group: Group) -> Values:
    """The mean of the scores of all rows, x̄ = Σx / n."""
    return Values(
        value=float(group.score.mean()),
        per_item=item_contributions(group.item, group.score),
        weights=item_weights(group.item),
    )
