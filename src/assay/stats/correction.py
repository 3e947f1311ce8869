"""The true pass rate behind the verdicts of a judge that errs, from people's labels of some of the answers.

`rogan_gladen` needs only how often the judge errs, which may come from another set of answers of the same kind.
`prediction_powered` needs the labels themselves, on a part of the very answers that the judge saw, and is then the
sharper one; `from_labels` is never wider than the labels alone. All assume that labelled answers were chosen at random.
Where they were chosen by how much they promised to tell, each must count with one over the chance that it had: as
`weights` here, in the cells of the Confusion there. What had no chance at all is beyond help.
"""

import math
from statistics import NormalDist

import msgspec
import numpy as np

from assay.interfaces import FloatArray, Integers
from assay.stats.intervals import (
    Interval,
    codes_of,
    effective_samples,
    item_contributions,
    item_weights,
    mean_interval,
)
from assay.stats.student import t_quantile

Items = Integers
_LITTLE = 0.1  # tuning: of a judge that helps less, one would only choose the shorter of two alike


class Confusion(msgspec.Struct, frozen=True):
    """How often the judge (positive: pass) was right and wrong about answers that people passed and failed.

    Where labels weigh differently or share items, the cells say how many independent ones would tell as much.
    """

    tp: float
    fp: float
    fn: float
    tn: float

    @property
    def positives(self) -> float:
        """Answers that people passed."""
        return self.tp + self.fn

    @property
    def negatives(self) -> float:
        return self.tn + self.fp

    @property
    def sensitivity(self) -> float:
        """The share that the judge passes of what people passed; NaN without any."""
        return self.tp / self.positives if self.positives else math.nan

    @property
    def specificity(self) -> float:
        """The share that the judge fails of what people failed; NaN without any."""
        return self.tn / self.negatives if self.negatives else math.nan

    @property
    def problem(self) -> str | None:
        """Why a pass rate cannot be corrected with this."""
        if not self.positives or not self.negatives:
            verdict, errors = (
                ("failed", "false passes") if self.positives else ("passed", "false fails")
            )
            return f"people {verdict} none of the labelled answers, so that nothing is known about {errors}"
        if self.sensitivity + self.specificity <= 1:
            return (
                f"sensitivity {self.sensitivity:.2f} + specificity {self.specificity:.2f} is not above 1: "
                "the judge tells good answers from bad ones no better than chance"
            )
        return None


class CorrectedRate(msgspec.Struct, frozen=True):
    """A corrected pass rate. Without one, `reason` says why. `tuning` is how far prediction-powered inference leans on
    the judge: 0 not at all, 1 fully."""

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str = ""
    reason: str | None = None
    tuning: float | None = None


def rogan_gladen(
    pass_rate: float, n: float, errors: Confusion, level: float = 0.95
) -> CorrectedRate:
    """The true pass rate given the judge's, over `n` (effective) answers (Rogan and Gladen 1978):
    (rate + specificity - 1) / (sensitivity + specificity - 1), within 0 and 1.

    The interval (Lang and Reiczigel 2014) carries the uncertainty of all three rates. They count as independent;
    where labelled answers are among the `n`, it is a little wider than need be.
    """
    if errors.problem is not None:
        return CorrectedRate(None, reason=errors.problem)
    gain = errors.sensitivity + errors.specificity - 1
    value = min(max((pass_rate + errors.specificity - 1) / gain, 0.0), 1.0)
    z = NormalDist().inv_cdf((1 + level) / 2)
    rate = (n * pass_rate + z * z / 2) / (n + z * z)
    rate_n = n + z * z
    right = (errors.tp + 1) / (errors.positives + 2)
    right_n = errors.positives + 2
    wrong = (errors.fp + 1) / (errors.negatives + 2)
    wrong_n = errors.negatives + 2
    gain = right - wrong
    low = 0.0
    high = 1.0
    if gain > 0:
        centre = (rate - wrong) / gain
        of_right = right * (1 - right) / right_n
        of_wrong = wrong * (1 - wrong) / wrong_n
        spread = (
            math.sqrt(
                rate * (1 - rate) / rate_n + centre**2 * of_right + (1 - centre) ** 2 * of_wrong
            )
            / gain
        )
        centre += 2 * z * z * (centre * of_right - (1 - centre) * of_wrong)
        low = centre - z * spread
        high = centre + z * spread
    return CorrectedRate(
        value, max(0.0, min(low, value)), min(1.0, max(high, value)), "rogan_gladen"
    )


def prediction_powered(
    judged: FloatArray,
    truth: FloatArray,
    item: Items,
    weights: FloatArray,
    level: float = 0.95,
) -> CorrectedRate:
    """The mean of `truth`, known for some answers and NaN for the others, with the judge's verdicts on all of them
    (prediction-powered inference, Angelopoulos et al. 2023; PPI++ with its tuning, 2024). Both are from 0 to 1.

    It is the mean of the labels, moved by how much the judge likes all answers more than the labelled ones, times a
    tuning factor that makes the variance smallest: a useless judge is ignored. The variance is that of sums over items.
    To it comes one item whose error the labels happen not to show: without it, intervals from 20 labels hold a pass
    rate of 3 % only 29 % of the time; with it 92 % or more, for 20 to 200 labels and pass rates of 3 to 97 %.
    """
    labelled = np.isfinite(truth)
    place = codes_of(item)
    items = len(np.unique(place[labelled]))
    if items < 2:
        return CorrectedRate(None, reason="labels of at least two items are needed")
    share = np.where(labelled, weights, 0.0)
    share /= share.sum()
    known = np.where(labelled, truth, 0.0)
    mean = float(share @ known)
    of_labelled = float(share @ judged)
    of_all = float(judged.mean())
    own = np.bincount(place, share * (known - mean))
    lent = np.bincount(place, share * (judged - of_labelled) - (judged - of_all) / len(judged))
    power = float(lent @ lent)
    tuning = min(max(float(own @ lent) / power, 0.0), 1.0) if power > 1e-24 else 0.0
    value = mean - tuning * (of_labelled - of_all)
    unseen = (float(share.max()) * int(labelled.sum()) / items) ** 2
    variance = float(((own - tuning * lent) ** 2).sum()) * items / (items - 1) + unseen
    half = t_quantile((1 + level) / 2, items - 1) * math.sqrt(variance)
    value = min(max(value, 0.0), 1.0)
    return CorrectedRate(
        value, max(0.0, value - half), min(1.0, value + half), "ppi", tuning=tuning
    )


def from_labels(
    judged: FloatArray, truth: FloatArray, item: Items, weights: FloatArray, level: float = 0.95
) -> CorrectedRate:
    """Return the mean of `truth` by `prediction_powered`, or by the labels alone where their
    interval is shorter, where the judge hardly helps (to choose the shorter one there would hold
    the truth 90 % of the time), and where every answer has a label: then all count alike."""
    found = prediction_powered(judged, truth, item, weights, level)
    labelled = np.isfinite(truth)
    complete = bool(labelled.all())
    own = truth[labelled]
    weights = np.ones(len(truth)) if complete else weights[labelled]
    if found.low is None or found.high is None:
        return found
    low, high, method = weighted_interval(item[labelled], own, weights, level)
    helped = not complete and (found.tuning or 0.0) > _LITTLE
    if low is None or high is None or (helped and found.high - found.low <= high - low):
        return found
    return CorrectedRate(float(np.average(own, weights=weights)), low, high, f"labels_{method}")


def weighted_interval(
    item: Items, values: FloatArray, weight: FloatArray, level: float
) -> Interval:
    """Return the interval of the weighted mean of values from 0 to 1."""
    per_item, shares = weighted_contributions(item, values, weight)
    return mean_interval(per_item, samples=len(item), scale=(0.0, 1.0), level=level, weights=shares)


def weighted_contributions(
    item: Items, values: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Return per-item values whose mean is the weighted mean, and how much each item weighs in it,
    as `item_contributions` and `item_weights` have them for rows that weigh the same."""
    weight = weight / weight.mean()
    if np.allclose(weight, 1):
        return item_contributions(item, values), item_weights(item)
    mean = float((weight * values).mean())
    return item_contributions(item, mean + weight * (values - mean)), item_weights(item, weight)


def worth(item: Items, values: FloatArray, weight: FloatArray) -> float:
    """Return how many independent answers would tell as much about the mean of these."""
    if not len(values):
        return 0.0
    (per_item, _), size = weighted_contributions(item, values, weight), equal_samples(weight)
    return float(size) if len(per_item) == size else effective_samples(per_item, size)


def equal_samples(weight: FloatArray) -> int:
    """The number of answers, or of equally weighted ones that would tell as much (Kish 1965)."""
    alike = np.allclose(weight, weight[0])
    return len(weight) if alike else int(weight.sum() ** 2 / (weight**2).sum())
