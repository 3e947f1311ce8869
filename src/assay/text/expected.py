"""What an item's ground truth says a right answer is."""

from typing import Any

from assay.records import Item
from assay.registry import nearest

USUAL_FIELDS = ("expected_output", "answer", "answers", "target", "label", "expected_content")


def accepted(ground_truth: Any, field: str | None = None) -> list[str]:
    """The accepted answers as texts; LookupError if there is none, so that a missing expectation never passes."""
    if isinstance(ground_truth, dict):
        ground_truth = _field(ground_truth, field)
    if isinstance(ground_truth, list):
        texts: list[str] = []
        for entry in ground_truth:
            if type(entry) is str:
                texts.append(entry)
            else:
                texts += _texts(entry)
    else:
        texts = _texts(ground_truth)
    if not texts:
        raise LookupError("the item has no expected answer")
    return texts


def expectation(item: Item, field: str | None, *own: str) -> Any:
    """The raw expected value: the field that is named, else the first of a scorer's own fields, else a usual one, else
    a ground truth that is no object. LookupError if there is none."""
    truth = item.ground_truth
    if isinstance(truth, dict):
        named = next((name for name in own if name in truth), None) if field is None else None
        truth = truth[named] if named is not None else _field(truth, field)
    if truth is None or truth == []:
        raise LookupError("the item has no expected answer")
    return truth


def _field(ground_truth: dict[str, Any], field: str | None) -> Any:
    if field is not None:
        if field not in ground_truth:
            raise LookupError(f"the ground truth has no field {field!r}; {nearest(field, ground_truth)}")
        return ground_truth[field]
    for name in USUAL_FIELDS:
        if name in ground_truth:
            return ground_truth[name]
    raise LookupError(
        f"the ground truth has none of {', '.join(USUAL_FIELDS)}; name its field with the parameter `expected`"
    )


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, bool):
        return ["true", "True"] if value else ["false", "False"]
    if isinstance(value, int):
        return [str(value)]
    if isinstance(value, float):
        return [str(value), str(int(value))] if value.is_integer() else [str(value)]
    if value is None:
        return []
    raise LookupError(f"the expected answer must be text, a number or a list of those, found {type(value).__name__}")
