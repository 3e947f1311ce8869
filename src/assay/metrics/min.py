"""The lowest score."""

from assay.interfaces import Group, Values
from assay.metrics._on_rows import on_rows
from assay.registry import metric


@metric
@on_rows
def min(group: Group) -> Values:
    """The lowest score of all rows."""
    return Values(value=float(group.score.min()), reason="the lowest score is no mean over items")
