"""Whether a model is right as often as it is sure."""

from typing import Annotated

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from assay.interfaces import FloatArray, Group, Values
from assay.metrics._likelihoods import DETAILS, numbers, per_item_sums, value_of
from assay.registry import metric


@metric(columns=[f"{DETAILS}confidence"], verdicts="needed", lower_is_better=True)
def calibration_error(group: Group, *, bins: Annotated[int, Meta(ge=1, le=100)] = 10) -> Values:
    """Σ (n_b / n) · |share that is right - mean confidence| over bins of equal width (Naeini et al. 2015).

    The confidence of a row is in its `detailed_results`: `likelihood_choice` and `letter_likelihood` put that of the
    choice there, your own scorer any number from 0 to 1. The row has `bins` for a reliability plot.
    Intervals are made by the bootstrap over items. Of few rows the error is too high: no bin is exact by chance.

    Parameters:
    bins: how many there are from 0 to 1
    """
    rows, confidence = numbers(group, "confidence")
    counts = {"ignored_count": len(group.item) - len(rows)}
    if not rows:
        return Values(value=None, fields=counts, reason="no label has a confidence in its details")
    place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gaps = group.passed[rows].astype(float) - confidence
    # for each item and bin: how many rows, and by how much more often right than sure
    columns = [
        np.where(place == at, part, 0.0)
        for part in (np.ones(len(rows)), gaps)
        for at in range(bins)
    ]
    sums = np.array(per_item_sums(group, rows, *columns)).T

    def statistic(weights: npt.NDArray[np.int64]) -> FloatArray:
        totals = weights @ sums
        return np.abs(totals[:, bins:]).sum(axis=1) / totals[:, :bins].sum(axis=1)

    shown = [
        _bin(at / bins, (at + 1) / bins, place == at, confidence, group.passed[rows])
        for at in range(bins)
    ]
    fields = {**counts, "bins": [entry for entry in shown if entry["count"]]}
    return value_of(statistic, len(sums), rows, fields)


def _bin(
    low: float,
    high: float,
    here: npt.NDArray[np.bool_],
    confidence: FloatArray,
    passed: npt.NDArray[np.bool_],
) -> dict[str, float | int | None]:
    count = int(here.sum())
    means = [float(values[here].mean()) if count else None for values in (confidence, passed)]
    return {"low": low, "high": high, "count": count, "confidence": means[0], "accuracy": means[1]}
