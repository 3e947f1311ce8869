"""How soon each step succeeds, where a step may be tried again."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from assay.interfaces import Group, Values
from assay.registry import metric
from assay.stats.attempts import attempt_counts, efficiency, first_passes


def _retry(params: Mapping[str, Any]) -> list[str]:
    return [params["retry"]] if params.get("retry") else []


@metric(columns=_retry)
def step_efficiency(group: Group, *, penalty: Annotated[float, Meta(ge=0, le=1)] = 0.2, retry: str = "") -> Values:
    """How soon items pass, averaged over them: each retry that was needed costs a penalty.

    An item's value is max(0, 1 − penalty · r), where r is the number of its first passing sample, counted from 0; it
    is 0 if none passes. The row also has how many items passed at once, later and never.

    Parameters:
    penalty: what each retry costs
    retry: the field of the evaluation row that counts the retries from 0; the sample's index if empty
    """
    number = group.sample.astype(np.float64)
    if retry:
        number = np.array([float(value or 0) for value in group.columns[retry]], dtype=np.float64)
    first = first_passes(group.item, number, group.passed)
    per_item = efficiency(first, penalty)
    return Values(value=float(per_item.mean()), fields=attempt_counts(first), per_item=per_item)
