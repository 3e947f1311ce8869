"""The lowest score."""

from assay.interfaces import Group, Values
from assay.registry import metric


@metric
def min(group: Group) -> Values:
    """The lowest score of all rows."""
    return Values(
        value=float(group.score.min()), reason="the lowest score is not a mean over items"
    )
