"""How well a score tells two classes apart."""

from typing import Any

import numpy as np

from assay.sdk import Group, JsonMapping, Values, metric
from assay.stats.classification import area

ACTUAL = "detailed_results.expected"
_USUAL = {
    **dict.fromkeys(("true", "yes", "1", "positive"), True),
    **dict.fromkeys(("false", "no", "0", "negative"), False),
}


def _columns(params: JsonMapping) -> list[str]:
    return [name for name in (params.get("predicted"), params.get("actual", ACTUAL)) if name]


@metric(columns=_columns, lower_is_better=False, scale=(0, 1))
def auroc(
    group: Group, *, predicted: str | None = None, actual: str = ACTUAL, positive: Any = None
) -> Values:
    """The area under the ROC curve: the chance that a positive case has a higher score than a negative one, ties
    counting half (Hanley and McNeil 1982).

    0.5 is chance, 1 a score that separates the classes. With `predicted:
    detailed_results.confidence` and `actual: passed` it says whether a model is surer where it is
    right. Rows without a score or a class are ignored. It is null where only one class occurs. The
    interval is Newcombe's (2006), with DeLong's (1988) variance over items.

    Parameters:
    predicted: the field of the score, in the row, as `response.…` or as `item.…`; the label's own score if null
    actual: the field of the true class, likewise (`item.ground_truth`)
    positive: the class that is sought; by default true, yes, 1 or positive, and the other one false, no, 0 or negative
    """
    values: list[Any] = group.score.tolist() if predicted is None else group.columns[predicted]
    cases = [
        (at, float(value), _is_positive(true, positive))
        for at, (value, true) in enumerate(zip(values, group.columns[actual], strict=True))
        if isinstance(value, int | float) and value == value and true is not None
    ]
    counts = {"sample_count": len(cases), "ignored_count": len(group.item) - len(cases)}
    if any(sought is None for _, _, sought in cases):
        return Values(fields=counts, reason="the classes are not true and false: set `positive`")
    sought = np.array([case[2] for case in cases], np.float64)
    counts |= {
        "positive_count": int(sought.sum()),
        "negative_count": int(len(sought) - sought.sum()),
    }
    if not counts["positive_count"] or not counts["negative_count"]:
        return Values(fields=counts, reason=f"it needs cases of both classes in {actual!r}")
    rows = [case[0] for case in cases]
    score = np.array([case[1] for case in cases])
    value, interval = area(score, sought > 0, group.unit[rows], group.level)
    return Values(value=value, fields=counts, rows=rows, interval=interval)


def _is_positive(value: Any, positive: Any) -> bool | None:
    if positive is not None:
        return value == positive or str(value) == str(positive)
    return _USUAL.get(str(value).strip().lower().removesuffix(".0"))
