"""The highest score."""

from assay.interfaces import Group, Values
from assay.registry import metric


@metric
def max(group: Group) -> Values:
    """The highest score of all rows."""
    return Values(
        value=float(group.score.max()), reason="the highest score is not a mean over items"
    )
