"""The share of rows that passed."""

import numpy as np

from assay.interfaces import Group, Values
from assay.metrics._on_rows import on_rows
from assay.registry import metric
from assay.stats.intervals import item_contributions


@metric
@on_rows
def pass_rate(group: Group) -> Values:
    """The share of rows that passed: passed_count / total_count."""
    passed = group.passed.astype(np.float64)
    return Values(
        value=float(passed.mean()),
        fields={"passed_count": int(group.passed.sum()), "total_count": len(passed)},
        per_item=item_contributions(group.item, passed),
    )
