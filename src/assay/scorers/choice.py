"""The option that an answer to a multiple-choice question names."""

import string
from typing import Any

from assay.scorers._parameters import Texts, reads_answer, verdict
from assay.sdk import Item, Response, Score, as_list, scorer
from assay.text.answers import Unparsed, answer_of
from assay.text.choices import find_choice
from assay.text.expected import expectation
from assay.text.normalise import squad

_FIELDS = ("choices", "options")


@scorer(reads="item", params=Texts, version=2)
@reads_answer
def choice(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    expected_content: str | None = None,
    options: str | list[str] | None = None,
    labels: str | list[str] | None = None,
    response_field: str | None = None,
) -> Score:
    r"""The answer names the right option of a multiple-choice question.

    Score: 1 or 0. The option that was read is in `detailed_results`. It is read through markdown, brackets and
    reasoning, from the surest sign to the weakest: `\boxed{B}`, the letter alone, the last "the answer is B", a first
    or last line that begins with it, the only letter in brackets, the text of an option. An answer that names none,
    or two, is unparsed: nothing is guessed.

    The right option may be given as its label, its text, or its number counted from 0.

    Parameters:
    expected: the field of the ground truth that has the right option
    expected_content: the right option itself, for all items
    options: the texts of the options, or the field of the item that has them (a list, or an object by label);
      by default `choices` or `options`
    labels: what the options are called; A, B, C … by default, as many as there are options (four, if these are
      unknown)
    """
    texts, names = _options(item, options, list(labels) if labels is not None else None)
    right = _label(
        expected_content if expected_content is not None else expectation(item, expected),
        texts,
        names,
    )
    chosen = find_choice(answer_of(response, response_field), names, texts)
    if chosen is None:
        raise Unparsed("the answer names no option, or more than one")
    return verdict(chosen in right, choice=chosen)


def _options(
    item: Item, options: str | list[str] | None, labels: list[str] | None
) -> tuple[dict[str, str] | None, list[str]]:
    """The texts by label, where they are known, and the labels."""
    value: Any = options
    if not isinstance(options, list):
        value = _field(item, options)
    if isinstance(value, dict):
        # as in ARC
        if isinstance(value.get("text"), list) and isinstance(value.get("label"), list):
            value = dict(zip(value["label"], value["text"], strict=False))
        texts = {str(label): str(text) for label, text in value.items()}
        return texts, labels or list(texts)
    if isinstance(value, list) and value:
        known = labels or list(string.ascii_uppercase[: len(value)])
        return {label: str(text) for label, text in zip(known, value, strict=False)}, known
    return None, labels or list("ABCD")


def _field(item: Item, name: str | None) -> Any:
    places = [
        place for place in (item.data, item.extra, item.ground_truth) if isinstance(place, dict)
    ]
    for field in [name] if name is not None else _FIELDS:
        for place in places:
            if field in place:
                return place[field]
    if name is not None:
        raise LookupError(f"the item has no field {name!r} with the options")
    return None


def _label(value: Any, texts: dict[str, str] | None, labels: list[str]) -> set[str]:
    return {_one_label(entry, texts, labels) for entry in as_list(value)}


def _one_label(value: Any, texts: dict[str, str] | None, labels: list[str]) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(labels):
        return labels[value]
    text = str(value).strip()
    by_name = {label.lower(): label for label in labels}
    bare = text.strip("()[]. ").lower()
    if bare in by_name:
        return by_name[bare]
    same = [label for label, option in (texts or {}).items() if squad(option) == squad(text)]
    if len(same) == 1:
        return same[0]
    raise LookupError(
        f"the expected option {text[:80]!r} is none of {', '.join(labels)}, nor the text of one"
    )
