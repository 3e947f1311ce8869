"""Precision and recall of labels where a scorer's verdict, not the equality of two labels, says what is right."""

from typing import Any, Literal

import numpy as np

from assay.sdk import FloatArray, Group, JsonMapping, JsonObject, Resampled, Values, metric
from assay.stats.classification import harmonic_mean, mean_ratio
from assay.stats.resampling import of_cells

PREDICTED = "detailed_results.predicted"
ACTUAL = "detailed_results.expected"


class LabelCounts:
    """How often each label was predicted and true, and how often the row was then right."""

    def __init__(self) -> None:
        self.predicted: dict[str, int] = {}
        self.actual: dict[str, int] = {}
        self.predicted_right: dict[str, int] = {}
        self.actual_right: dict[str, int] = {}

    def add(self, predicted: str | None, actual: str | None, right: bool) -> None:
        """A side that has no label is None and counts nowhere."""
        if predicted is not None:
            self.predicted[predicted] = self.predicted.get(predicted, 0) + 1
            self.predicted_right[predicted] = self.predicted_right.get(predicted, 0) + right
        if actual is not None:
            self.actual[actual] = self.actual.get(actual, 0) + 1
            self.actual_right[actual] = self.actual_right.get(actual, 0) + right

    def precision(self) -> tuple[float, dict[str, float]]:
        return mean_ratio(self.predicted_right, self.predicted)

    def recall(self) -> tuple[float, dict[str, float]]:
        return mean_ratio(self.actual_right, self.actual)

    def f1(self) -> tuple[float, dict[str, float]]:
        """The harmonic mean of the two averages, which is not the mean of the labels' own F1."""
        (precision, precisions), (recall, recalls) = self.precision(), self.recall()
        each = {
            label: harmonic_mean(precisions.get(label, 0.0), recalls.get(label, 0.0))
            for label in precisions | recalls
        }
        return harmonic_mean(precision, recall), each


def _columns(params: JsonMapping) -> list[str]:
    return [params.get("predicted", PREDICTED), params.get("actual", ACTUAL)]


@metric(columns=_columns, verdicts="needed", lower_is_better=False, scale=(0, 1))
def label_scores(
    group: Group,
    *,
    predicted: str = PREDICTED,
    actual: str = ACTUAL,
    statistic: Literal["precision", "recall", "f1"] = "f1",
) -> Values:
    """Precision, recall and F1 of each label by the verdicts of a scorer, which may forgive spelling or case.

    A label's precision is the share of the rows it was predicted in that passed, its recall the share of the rows it
    was true in. The averages are unweighted means over the labels that occur on that side; the average F1 is their
    harmonic mean. Labels are texts as they stand: `Music` and `music` are two. Rows without a label are ignored on
    that side. For averages of classes that are compared themselves, see `classification`.

    Parameters:
    predicted: the field of the predicted label, in the row, as `response.…` or as `item.…`
    actual: the field of the true label, likewise (`item.ground_truth`)
    statistic: which average is the value
    """
    counts = LabelCounts()
    labels = [*map(_label, group.columns[predicted])], [*map(_label, group.columns[actual])]
    for guess, true, right in zip(*labels, group.passed.tolist(), strict=True):
        counts.add(guess, true, right)
    scores = {"precision": counts.precision(), "recall": counts.recall(), "f1": counts.f1()}
    fields: JsonObject = {}
    for name, (average, each) in scores.items():
        fields |= {f"average_{name}": average, f"{name}_per_label": each}
    if not (counts.predicted or counts.actual):
        return Values(fields=fields, reason=f"no row has {predicted!r} or {actual!r}")
    resampled = _resampling(group, *labels, statistic)
    return Values(
        value=scores[statistic][0], fields=fields, resampled=resampled, rows=_with_labels(*labels)
    )


def _resampling(group: Group, predicted: list[Any], actual: list[Any], statistic: str) -> Resampled:
    """Return how the averages change with the items. What was not seen is a right and a wrong row
    of each label."""
    cells: dict[tuple[Any, Any, bool], int] = {}
    labels = sorted({*predicted, *actual} - {None})
    unseen = [(label, label, right) for label in labels for right in (False, True)]
    rows = [*zip(predicted, actual, group.passed.tolist(), strict=True), *unseen]
    numbers = np.array([cells.setdefault(row, len(cells)) for row in rows])
    right = np.array([cell[2] for cell in cells])

    def average(weights: FloatArray, side: int) -> FloatArray:
        has = np.array([[cell[side] == label for label in labels] for cell in cells], np.float64)
        occurs = weights @ has
        ratios = np.divide(
            (weights * right) @ has, occurs, out=np.zeros_like(occurs), where=occurs > 0
        )
        return ratios.sum(axis=1) / np.maximum((occurs > 0).sum(axis=1), 1)

    def value(weights: FloatArray) -> FloatArray:
        precision = average(weights, 0)
        recall = average(weights, 1)
        both = np.maximum(precision + recall, 1e-300)
        return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / both}[
            statistic
        ]

    return of_cells(group.item, numbers, len(unseen), value, (0.0, 1.0))


def _with_labels(predicted: list[str | None], actual: list[str | None]) -> list[int]:
    """Return the rows that have a label on one of the sides."""
    pairs = zip(predicted, actual, strict=True)
    return [at for at, pair in enumerate(pairs) if pair != (None, None)]


def _label(value: Any) -> str | None:
    return None if value is None else str(value)
