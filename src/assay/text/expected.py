"""What an item's ground truth says a right answer is."""

import re
from collections.abc import Iterable
from typing import Any, cast

from msgspec.structs import replace

from assay.records import Item, JsonObject
from assay.registry import nearest

USUAL_FIELDS = ("expected_output", "answer", "answers", "target", "label", "expected_content")


class NoExpectation(LookupError):
    """An item does not say what a right answer is."""


_ANSWER_NAME = re.compile(
    "(best|correct|expected|gold|golden|ideal|reference|target)(answers?|content|labels?|outputs?|response)?"
    "|answers?|answerkey|groundtruth|labels?|outputs?|references|solutions?|targets"
)


def answer_fields(names: Iterable[str]) -> list[str]:
    """Return those of some fields that probably hold the answer."""
    return [
        name
        for name in names
        if _ANSWER_NAME.fullmatch("".join(filter(str.isalnum, str(name).casefold())))
    ]


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
        raise NoExpectation("the item has no expected answer")
    return texts


def expectation(item: Item, field: str | None, *own: str) -> Any:
    """The raw expected value: the field that is named, else the first of a scorer's own fields, else a usual one, else
    a ground truth that is not an object. LookupError if there is none."""
    truth = item.ground_truth
    if isinstance(truth, dict):
        named = next((name for name in own if name in truth), None) if field is None else None
        truth = truth[named] if named is not None else _field(truth, field)
    if truth is None or truth == []:
        raise NoExpectation("the item has no expected answer")
    return truth


def answers_listed(item: Item, field: str | None = None) -> Item:
    """The item with its accepted answers alone, of SQuAD's shapes too: `{"text": [...], "answer_start": [...]}`, as a
    whole or in a field. An empty list is a question that cannot be answered: then only the empty answer is right."""
    truth: Any = item.ground_truth
    if isinstance(truth, dict):
        fields = cast("JsonObject", truth)
        names = ("text", *USUAL_FIELDS) if field is None else (field,)
        name = next((name for name in names if name in fields), None)
        truth = accepted(fields, field) if name is None else fields[name]
    if isinstance(truth, dict):
        truth = cast("JsonObject", truth).get("text")
    return replace(item, ground_truth=[""] if truth == [] else truth)


def _field(ground_truth: JsonObject, field: str | None) -> Any:
    if field is not None:
        if field not in ground_truth:
            raise NoExpectation(
                f"the ground truth has no field {field!r}; {nearest(field, ground_truth)}"
            )
        return ground_truth[field]
    for name in USUAL_FIELDS:
        if name in ground_truth:
            return ground_truth[name]
    raise NoExpectation(
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
    raise NoExpectation(
        f"the expected answer must be text, a number or a list of those, found {type(value).__name__}"
    )
