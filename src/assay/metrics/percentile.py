"""A percentile of the scores."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from assay.metrics._responses import quantile
from assay.sdk import Group, Values, metric


@metric
def percentile(group: Group, *, percentile: Annotated[float, Meta(ge=0, le=100)] = 95.0) -> Values:
    """The score that this percentage of the rows does not exceed, interpolated linearly between rows.

    Parameters:
    percentile: from 0, the lowest score, to 100, the highest
    """
    percentile = float(percentile)
    value = float(np.percentile(group.score, percentile))
    fields = {f"percentile_{percentile}": value, f"percentile_{percentile:g}": value}
    return quantile(group, percentile / 100, fields)
