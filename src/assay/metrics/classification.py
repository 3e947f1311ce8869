"""Precision, recall and their kin, from predicted and true classes or from the flags tp, tn, fp, fn."""

from typing import Any, Literal, NamedTuple

import numpy as np

from assay.metrics._samples import Positive
from assay.sdk import Codes, Group, JsonMapping, JsonObject, Scale, Values, metric
from assay.stats.classification import NONE, Matrix, Scores, confusion, resampled, scores
from assay.stats.intervals import item_contributions, item_weights

PREDICTED = "detailed_results.predicted"
ACTUAL = "detailed_results.expected"
FLAGS = {  # (true class, predicted class)
    "tp": ("positive", "positive"),
    "tn": ("negative", "negative"),
    "fp": ("negative", "positive"),
    "fn": ("positive", "negative"),
}
Statistic = Literal[
    "accuracy",
    "balanced_accuracy",
    "macro_f1",
    "micro_f1",
    "weighted_f1",
    "mcc",
    "kappa",
    "precision",
    "recall",
    "f1",
    "specificity",
]


def _columns(params: JsonMapping) -> list[str]:
    flags = [f"detailed_results.{flag}" for flag in FLAGS]
    return [params.get("predicted", PREDICTED), params.get("actual", ACTUAL), *flags]


def _scale(params: JsonMapping) -> Scale:
    return -1 if params.get("statistic") in ("mcc", "kappa") else 0, 1


@metric(
    columns=_columns,
    ordered=lambda params: params.get("num_trials") is not None,
    lower_is_better=False,
    scale=_scale,
)
def classification(
    group: Group,
    *,
    predicted: str = PREDICTED,
    actual: str = ACTUAL,
    positive: Any = None,
    statistic: Statistic = "accuracy",
    num_trials: Positive | None = None,
) -> Values:
    """How well predicted classes agree with true ones.

    The row has accuracy, balanced accuracy (the mean recall of the classes), precision, recall, F1 and support of
    each class and their macro, micro and weighted averages, the confusion matrix (true class, then predicted class),
    Matthews' correlation (Gorodkin 2004 for several classes) and Cohen's κ (1960), as in scikit-learn. With a
    `positive` class, also its precision, recall, F1 and specificity.

    A row without a prediction is wrong and is in the matrix under `null`. Rows that have a flag `tp`, `tn`, `fp` or
    `fn` in detailed_results instead are read as two classes, `positive` and `negative`. Rows with neither are ignored.

    Parameters:
    predicted: the field of the predicted class, in the row, as `response.…` or as `item.…`
    actual: the field of the true class, likewise (`item.ground_truth`)
    positive: the class that is sought, for precision, recall, F1 and specificity; with flags it is known
    statistic: which of the numbers is the value
    num_trials: count only the first samples of each item; all if null
    """
    cases = _cases(group, group.columns[predicted], group.columns[actual], num_trials)
    counts = {
        "sample_count": len(cases),
        "ignored_count": len(group.item) - len(cases),
        "total_count": len(group.item),
    }
    if not cases:
        missing = f"no row has {actual!r} or a flag tp, tn, fp or fn; name the fields in `predicted` and `actual`"
        return Values(fields=counts, reason=missing)
    names = sorted(
        {_sortable(name): name for case in cases for name in case[1:] if name is not None}.items()
    )
    numbers = {key: number for number, (key, _) in enumerate(names)}
    true = np.array([numbers[_sortable(case.actual)] for case in cases])
    guess = np.array(
        [NONE if case.predicted is None else numbers[_sortable(case.predicted)] for case in cases]
    )
    matrix = confusion(true, guess, len(names))
    fields = fields_of([_class_name(name) for _, name in names], matrix, scores(matrix)) | counts
    if positive is None and set(map(_sortable, ("negative", "positive"))) >= numbers.keys():
        positive = "positive"
    if positive is not None:
        fields |= _binary(matrix, numbers.get(_sortable(positive)))
    if statistic not in fields:
        return Values(fields=fields, reason=f"{statistic} needs the parameter `positive`")
    rows = [case.at for case in cases]
    found = Values(value=fields[statistic], fields=fields, rows=rows)
    ratio = _ratio(statistic, true, guess, numbers.get(_sortable(positive), -2))
    if ratio is None:
        found.resampled = resampled(matrix, group.item[rows], true, guess, statistic)
    else:
        _mean(found, group.item[rows], ratio, statistic)
    return found


def _mean(found: Values, items: Codes, ratio: tuple[Matrix, Matrix], statistic: Statistic) -> None:
    """Give the value the mean over rows that it is, or follows from."""
    times, right = ratio
    items = np.repeat(items, times)
    if len(items):
        found.per_item = item_contributions(items, np.repeat(right, times).astype(np.float64))
        found.weights = item_weights(items)
        found.items = items
        found.transform = _f1 if statistic.endswith("f1") else None


def _ratio(
    statistic: Statistic, true: Matrix, guess: Matrix, sought: int
) -> tuple[Matrix, Matrix] | None:
    """Return how often each row is in the ratio that the statistic is, and whether it is right
    there.

    F1 follows from hits over hits, misses and false alarms; a wrong prediction can be both of
    these. None if the statistic is no ratio.
    """
    is_true = true == sought
    is_guessed = guess == sought
    right = true == guess
    times = {
        "accuracy": true >= 0,
        "recall": is_true,
        "precision": is_guessed,
        "specificity": ~is_true,
        "f1": is_true | is_guessed,
        "micro_f1": 1 + (~right & (guess != NONE)),
    }.get(statistic)
    if times is None:
        return None
    right = ~is_guessed if statistic == "specificity" else right
    return times.astype(np.int64), right.astype(np.int64)


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


class _LabelledRow(NamedTuple):
    at: int
    actual: Any
    predicted: Any


def _cases(
    group: Group, predicted: list[Any], actual: list[Any], num_trials: int | None
) -> list[_LabelledRow]:
    """The rows that have a true class, or a flag that says it."""
    flags = {flag: group.columns[f"detailed_results.{flag}"] for flag in FLAGS}
    first = np.searchsorted(group.item, group.item)  # where the rows of the same item begin
    cases: list[_LabelledRow] = []
    for at, (guess, true) in enumerate(zip(predicted, actual, strict=True)):
        if num_trials is not None and at - first[at] >= num_trials:
            continue
        flag = next((flag for flag, values in flags.items() if values[at]), None)
        if flag is not None:
            cases.append(_LabelledRow(at, *FLAGS[flag]))
        elif true is not None:
            cases.append(_LabelledRow(at, true, guess))
    return cases


def fields_of(names: list[str], matrix: Matrix, scores: Scores) -> JsonObject:
    columns = zip(scores.precision, scores.recall, scores.f1, scores.support, strict=True)
    predicted = [*names, "null"] if matrix[:, -1].any() else names
    return {
        "accuracy": scores.accuracy,
        "balanced_accuracy": scores.balanced_accuracy,
        **{
            f"{average}_{name}": value
            for average, values in scores.averages.items()
            for name, value in values.items()
        },
        "mcc": scores.mcc,
        "kappa": scores.kappa,
        "classes": {
            name: {
                "precision": float(precision),
                "recall": float(recall),
                "f1": float(f1),
                "support": int(support),
            }
            for name, (precision, recall, f1, support) in zip(names, columns, strict=True)
        },
        "confusion_matrix": {
            name: dict(zip(predicted, row[: len(predicted)].tolist(), strict=True))
            for name, row in zip(names, matrix, strict=True)
        },
    }


def _binary(matrix: Matrix, at: int | None) -> JsonObject:
    """The four counts of one class against the rest, and what follows from them."""
    tp = fn = fp = 0
    if at is not None:
        tp = int(matrix[at, at])
        fn = int(matrix[at].sum())
        fp = int(matrix[:, at].sum())
        fn = fn - tp
        fp = fp - tp
    tn = int(matrix.sum()) - tp - fn - fp
    return {
        "precision": tp / (tp + fp) if tp + fp else 0.0,
        "recall": tp / (tp + fn) if tp + fn else 0.0,
        "f1": 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0,
        "specificity": tn / (tn + fp) if tn + fp else 0.0,
        "true_positives": tp,
        "true_negatives": tn,
        "false_positives": fp,
        "false_negatives": fn,
        "tp": tp,
        "tn": tn,
        "fp": fp,
        "fn": fn,
    }


def _sortable(name: Any) -> tuple[str, str]:
    return type(name).__name__, _class_name(name)


def _class_name(name: Any) -> str:
    return (
        name
        if isinstance(name, str)
        else str(name).lower()
        if isinstance(name, bool)
        else str(name)
    )
