"""How soon each step succeeds, where a step may be tried again."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from assay.interfaces import Integers
from assay.sdk import FloatArray, Group, JsonMapping, Mask, Values, metric
from assay.stats.intervals import codes_of


def _retry(params: JsonMapping) -> list[str]:
    return [params["retry"]] if params.get("retry") else []


@metric(columns=_retry, verdicts="needed", lower_is_better=False, scale=(0, 1))
def step_efficiency(
    group: Group, *, penalty: Annotated[float, Meta(ge=0, le=1)] = 0.2, retry: str = ""
) -> Values:
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


def first_passes(step: Integers, attempt: FloatArray, passed: Mask) -> FloatArray:
    """The least attempt that passed of each step, in the order of the steps' numbers; infinity where none did."""
    steps = codes_of(step)
    first = np.full(int(steps.max(initial=-1)) + 1, np.inf)
    np.minimum.at(first, steps[passed], attempt[passed])
    return first


def efficiency(first: FloatArray, penalty: float) -> FloatArray:
    """max(0, 1 - penalty · retries) of each step, 0 for those that never passed."""
    return np.where(
        np.isfinite(first),
        np.maximum(0.0, 1.0 - np.where(np.isfinite(first), first, 0) * penalty),
        0.0,
    )


def attempt_counts(first: FloatArray) -> dict[str, float | int]:
    """How many steps passed at once, later and never, and how many retries those needed that passed."""
    late = first[np.isfinite(first) & (first != 0)]
    done = int(np.isfinite(first).sum())
    return {
        "total_steps": len(first),
        "first_attempt_correct": int((first == 0).sum()),
        "retry_correct": len(late),
        "never_correct": len(first) - done,
        "avg_retries_when_correct": float(late.sum()) / done if done else 0.0,
    }
