"""Attempts at a step, one after another: which one is the first that passes."""

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray


def first_passes(step: npt.NDArray[np.integer], attempt: FloatArray, passed: npt.NDArray[np.bool_]) -> FloatArray:
    """The least attempt that passed of each step, in the order of the steps' numbers; infinity where none did."""
    _, steps = np.unique(step, return_inverse=True)
    first = np.full(int(steps.max(initial=-1)) + 1, np.inf)
    np.minimum.at(first, steps[passed], attempt[passed])
    return first


def efficiency(first: FloatArray, penalty: float) -> FloatArray:
    """max(0, 1 - penalty · retries) of each step, 0 for those that never passed."""
    return np.where(np.isfinite(first), np.maximum(0.0, 1.0 - np.where(np.isfinite(first), first, 0) * penalty), 0.0)


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
