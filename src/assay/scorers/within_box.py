"""A point inside a box: clicks on a screen, places in an image."""

from typing import Any, cast

from assay.scorers._parameters import reads_answer, verdict
from assay.sdk import Item, JsonMapping, Response, Score, scorer
from assay.text.answers import Unparsed, json_of
from assay.text.expected import expectation
from assay.text.json_out import at_path


@scorer(reads="ground_truth", version=1)
@reads_answer
def within_box(
    item: Item, response: Response, *, expected: str | None = None, x: str = "x", y: str = "y"
) -> Score:
    """The point in the answer's JSON lies in the expected box; its edges belong to it.

    Score: 1 if left ≤ x ≤ left + width and top ≤ y ≤ top + height, else 0. The box is an object with `x`, `y` (its
    corner with the least coordinates), `width` and `height`. An answer without two coordinates is unparsed.

    Parameters:
    expected: the field of the ground truth that has the box; without it `bbox`, `box` or a usual one
    x: the field (a dotted path) of the answer's JSON that has the first coordinate
    y: the field that has the second one
    """
    box = _box(item, expected)
    given = json_of(response)
    try:
        point = [float(at_path(given, place)) for place in (x, y)]
    except (KeyError, TypeError, ValueError):
        raise Unparsed(f"the answer has no numbers in {x!r} and {y!r}") from None
    return verdict(contains(box, *point), point=point)


def contains(box: JsonMapping, x: float, y: float) -> bool:
    """Return whether the box, edges included, has the point; KeyError, TypeError or ValueError if
    it is not a box."""
    left, top = float(box["x"]), float(box["y"])
    return left <= x <= left + float(box["width"]) and top <= y <= top + float(box["height"])


def _box(item: Item, field: str | None) -> JsonMapping:
    truth: Any = item.ground_truth
    if field is not None or not (
        isinstance(truth, dict) and {"x", "y", "width", "height"} <= truth.keys()
    ):
        truth = expectation(item, field, "bbox", "box")
    try:
        contains(truth, 0.0, 0.0)
    except (KeyError, TypeError, ValueError):
        raise LookupError(
            "the expected box must have the numbers `x`, `y`, `width` and `height`"
        ) from None
    return cast("JsonMapping", truth)
