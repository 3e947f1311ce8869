"""The median score."""

from assay.interfaces import Group, Values
from assay.metrics._responses import quantile
from assay.registry import metric


@metric
def median(group: Group) -> Values:
    """The middle score of all rows; of an even number of rows, the mean of the two in the middle."""
    return quantile(group, 0.5, {})
