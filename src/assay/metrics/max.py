"""The highest score."""

from assay.sdk import Group, Values, metric


@metric
def max(group: Group) -> Values:
    """The highest score of all rows."""
    return Values(
        value=float(group.score.max()), reason="the highest score is not a mean over items"
    )
