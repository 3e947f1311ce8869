"""The share of rows that passed."""

from assay.sdk import Group, Values, metric
from assay.stats.intervals import item_contributions, item_weights


@metric(verdicts="needed", lower_is_better=False, scale=(0, 1))
def pass_rate(group: Group) -> Values:
    """The share of rows that passed: passed_count / total_count."""
    passed = group.passed
    return Values(
        value=float(passed.mean()),
        fields={"passed_count": int(passed.sum()), "total_count": len(passed)},
        per_item=item_contributions(group.item, passed),
        weights=item_weights(group.item),
    )
