"""The median score."""

import numpy as np

from assay.interfaces import Group, Values
from assay.registry import metric


@metric
def median(group: Group) -> Values:
    """The middle score of all rows; of an even number of rows, the mean of the two in the middle."""
    return Values(value=float(np.median(group.score)), reason="a median is not a mean over items")
