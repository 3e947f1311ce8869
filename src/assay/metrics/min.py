"""The lowest score."""

from assay.sdk import Group, Values, metric


@metric
def min(group: Group) -> Values:
    """The lowest score of all rows."""
    return Values(
        value=float(group.score.min()), reason="the lowest score is not a mean over items"
    )
