"""Whether a model is right as often as it is sure."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from assay.metrics._likelihoods import DETAILS, numbers
from assay.sdk import FloatArray, Group, Mask, Values, metric
from assay.stats.classification import binned_error


@metric(columns=[f"{DETAILS}confidence"], verdicts="needed", lower_is_better=True, scale=(0, 1))
def calibration_error(group: Group, *, bins: Annotated[int, Meta(ge=1, le=100)] = 10) -> Values:
    """Σ (n_b / n) · |share that is right - mean confidence| over bins of equal width (Naeini et al. 2015).

    The confidence of a row is in its `detailed_results`: `likelihood_choice` and `letter_likelihood` put that of the
    choice there, your own scorer any number from 0 to 1. The row has `bins` for a reliability plot.

    Of few rows the value is too high: no bin is exact by chance. The lower end of the interval leaves
    out all that chance may add, and is 0 where that is all. `ci_method` says what a model that is
    calibrated would have.

    Parameters:
    bins: how many there are from 0 to 1
    """
    rows, confidence = numbers(group, "confidence")
    counts = {"ignored_count": len(group.item) - len(rows)}
    if not rows:
        return Values(fields=counts, reason="no label has a confidence in its details")
    place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    passed = group.passed[rows]
    gaps = np.bincount(place, passed - confidence)
    shown = [
        _bin(at / bins, (at + 1) / bins, place == at, confidence, passed) for at in range(bins)
    ]
    return Values(
        value=float(np.abs(gaps).sum() / len(rows)),
        fields={**counts, "bins": [entry for entry in shown if entry["count"]]},
        rows=rows,
        interval=binned_error(passed, confidence, place, group.unit[rows], group.level),
    )


def _bin(
    low: float,
    high: float,
    here: Mask,
    confidence: FloatArray,
    passed: Mask,
) -> dict[str, float | int | None]:
    count = int(here.sum())
    means = [float(values[here].mean()) if count else None for values in (confidence, passed)]
    return {"low": low, "high": high, "count": count, "confidence": means[0], "accuracy": means[1]}
