"""The highest score."""

from assay.interfaces import Group, Values
from assay.metrics._on_rows import on_rows
from assay.registry import metric


@metric
@on_rows
def max(group: Group) -> Values:
    """The highest score of all rows."""
    return Values(value=float(group.score.max()), reason="the highest score is no mean over items")
