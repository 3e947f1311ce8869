"""The median score."""

from assay.metrics._responses import quantile
from assay.sdk import Group, Values, metric


@metric
def median(group: Group) -> Values:
    """The middle score of all rows; of an even number of rows, the mean of the two in the middle."""
    return quantile(group, 0.5, {})
