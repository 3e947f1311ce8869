"""Unit metrics: is one prediction right? The functions `equal`, `alike`, `same_direction` and the core's `contains` say
so, for the classes here and for the scorers of the same names.

Whatever goes wrong in a comparison makes a wrong answer with the error in its metadata; it never ends a run.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Annotated, Any, cast

from msgspec import Meta

from assay.formats.sygra.metrics import (
    BaseUnitMetric,
    BuiltIn,
    UnitMetricRegistry,
    UnitMetricResult,
    built_in,
)
from assay.scorers.edit_similarity import ratio
from assay.scorers.within_box import contains
from assay.sdk import JsonMapping, JsonObject
from assay.text.normalise import normaliser

DIRECTIONS = ("up", "down", "left", "right")
Share = Annotated[float, Meta(ge=0, le=1)]
NotNegative = Annotated[float, Meta(ge=0)]
Verdict = tuple[bool, JsonObject]


class _BuiltIn(BuiltIn, BaseUnitMetric):
    """A metric with a judgement on one pair. What is not an object is `{"value": …}` to those that look for keys."""

    wraps = True

    def evaluate(self, golden: Sequence[Any], predicted: Sequence[Any]) -> list[UnitMetricResult]:
        if len(golden) != len(predicted):
            counts = f"(got {len(golden)} and {len(predicted)})"
            raise ValueError(
                f"{type(self).__name__}: golden and predicted must have same length {counts}"
            )
        return list(map(self._result, golden, predicted))

    def _result(self, golden: Any, predicted: Any) -> UnitMetricResult:
        if self.wraps:
            golden, predicted = _as_object(golden), _as_object(predicted)
        try:
            correct, details = self.judge(golden, predicted)
        except Exception as error:
            correct, details = False, {"error": str(error)}
        return UnitMetricResult(
            correct, golden, predicted, {"validator": self.about.name, **details}
        )

    @abstractmethod
    def judge(self, golden: Any, predicted: Any) -> Verdict:
        """Return whether it is right, and what else the metadata shall say."""


def _as_object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {"value": value}


_metric = partial(built_in, UnitMetricRegistry)


def equal(
    golden: str, predicted: str, *, case_sensitive: bool = False, normalize_whitespace: bool = True
) -> bool:
    """Return whether two texts are equal once made comparable."""
    normalise = _normaliser(case_sensitive, normalize_whitespace)
    return normalise(golden) == normalise(predicted)


def alike(golden: str, predicted: str, *, case_sensitive: bool = False) -> float:
    """Return how alike two texts are, by their common blocks."""
    normalise = _normaliser(case_sensitive, True)
    return ratio(normalise(golden), normalise(predicted))


def same_direction(golden: Any, predicted: Any) -> bool:
    return golden == predicted and isinstance(predicted, str) and predicted in DIRECTIONS


def _normaliser(case_sensitive: bool, normalize_whitespace: bool) -> Callable[[str], str]:
    if normalize_whitespace:
        return normaliser("spaces" if case_sensitive else "lower_spaces", strip_whitespace=False)
    return normaliser("none" if case_sensitive else "lower", strip_whitespace=False)


def _text(value: Any, key: str | None) -> Any:
    """Without a key the whole value, as Python writes it."""
    return cast("JsonObject", value).get(key, "") if key and isinstance(value, dict) else str(value)


@_metric("exact_match", "Exact Match", "Whether two texts are equal once made comparable")
class ExactMatchMetric(_BuiltIn):
    """The texts are equal.

    Parameters:
    case_sensitive: whether case counts
    normalize_whitespace: whether runs of whitespace count as one space, and none around the text
    """

    wraps = False
    case_sensitive: bool = False
    normalize_whitespace: bool = True
    key: str | None = None

    def judge(self, golden: Any, predicted: Any) -> Verdict:
        expected, actual = _text(golden, self.key), _text(predicted, self.key)
        flags = {
            "case_sensitive": self.case_sensitive,
            "normalize_whitespace": self.normalize_whitespace,
        }
        return equal(str(expected), str(actual), **flags), {
            "golden_text": expected,
            "predicted_text": actual,
            **flags,
        }


@_metric("fuzzy_match", "Fuzzy Match", "Whether two texts are alike enough")
class FuzzyMatchMetric(_BuiltIn):
    """The texts are alike.

    Parameters:
    threshold: the least likeness that passes
    case_sensitive: whether case counts
    """

    wraps = False
    key: str | None = None
    threshold: Share = 0.8
    case_sensitive: bool = False

    def judge(self, golden: Any, predicted: Any) -> Verdict:
        texts = str(_text(golden, self.key)), str(_text(predicted, self.key))
        similarity = alike(*texts, case_sensitive=self.case_sensitive)
        return similarity >= self.threshold, {"similarity": similarity, "threshold": self.threshold}


@_metric("typed_value_match", "Typed Value Match", "Whether the right text was typed")
class TypedValueMatchMetric(_BuiltIn):
    """What was typed equals what should have been, or is alike enough.

    Parameters:
    golden_text_key: the field of the ground truth that has the text
    predicted_text_key: the field of the JSON in the answer
    fuzzy_match_threshold: the least likeness that passes
    """

    golden_text_key: str = "text"
    predicted_text_key: str = "text"
    fuzzy_match_threshold: Share = 0.8

    def judge(self, golden: Any, predicted: Any) -> Verdict:
        texts = (
            str(golden.get(self.golden_text_key, "")),
            str(predicted.get(self.predicted_text_key, "")),
        )
        expected, actual = map(normaliser("lower_spaces"), texts)
        exact, similarity = expected == actual, ratio(expected, actual)
        fuzzy = similarity >= self.fuzzy_match_threshold
        return exact or fuzzy, {
            "golden_text": texts[0],
            "predicted_text": texts[1],
            "exact_match": exact,
            "similarity_score": similarity,
            "fuzzy_match": fuzzy,
            "differences": differences(expected, actual),
        }


def differences(golden: str, predicted: str) -> list[dict[str, str]]:
    """Return what to do with parts of the first text (`replace`, `delete`, `insert`) to get the
    second."""
    steps = SequenceMatcher(None, golden, predicted).get_opcodes()
    return [
        {"operation": step, "golden": golden[a:b], "predicted": predicted[c:d]}
        for step, a, b, c, d in steps
        if step != "equal"
    ]


@_metric("action_within_bbox", "Action Within BBox", "Whether a point lies in a box")
class ActionWithinBboxMetric(_BuiltIn):
    """The point lies in the box; what cannot be read as numbers is wrong.

    Parameters:
    predicted_x_key: the field of the answer's JSON that has the first coordinate
    predicted_y_key: the field that has the second one
    golden_bbox_key: the field of the ground truth that has the box
    """

    predicted_x_key: str = "x"
    predicted_y_key: str = "y"
    golden_bbox_key: str = "bbox"

    def judge(self, golden: Any, predicted: Any) -> Verdict:
        details = {field.name: getattr(self, field.name) for field in self.fields}
        box: Any = golden.get(self.golden_bbox_key)
        if not isinstance(box, Mapping):
            return False, details
        try:
            x, y = float(predicted[self.predicted_x_key]), float(predicted[self.predicted_y_key])
            return contains(cast("JsonMapping", box), x, y), details
        except (KeyError, TypeError, ValueError):
            return False, details


@_metric("scroll_direction", "Scroll Direction", "Whether two directions are the same")
class ScrollDirectionMetric(_BuiltIn):
    """The directions are equal, and are directions.

    Parameters:
    golden_direction_key: the field of the ground truth that has the direction
    predicted_direction_key: the field of the JSON in the answer
    """

    golden_direction_key: str = "direction"
    predicted_direction_key: str = "direction"

    def judge(self, golden: Any, predicted: Any) -> Verdict:
        expected, actual = (
            golden.get(self.golden_direction_key),
            predicted.get(self.predicted_direction_key),
        )
        details = {"golden_direction": expected, "predicted_direction": actual}
        return same_direction(expected, actual), details


@_metric("scroll_amount", "Scroll Amount", "Whether two amounts are nearly the same")
class ScrollAmountMetric(_BuiltIn):
    """The amounts differ by few percent, or by little where none was due. An amount that is missing is 0.

    Parameters:
    golden_amount_key: the field of the ground truth that has the amount
    predicted_amount_key: the field of the JSON in the answer
    tolerance_percent: the greatest difference in percent of the expected amount
    scroll_threshold: the greatest amount where 0 is expected
    """

    golden_amount_key: str = "amount"
    predicted_amount_key: str = "amount"
    tolerance_percent: NotNegative = 20.0
    scroll_threshold: NotNegative = 10.0

    def judge(self, golden: Any, predicted: Any) -> Verdict:
        due = float(golden.get(self.golden_amount_key, 0.0))
        actual = float(predicted.get(self.predicted_amount_key, 0.0))
        difference = abs(due - actual)
        if due:
            percent = difference / abs(due) * 100
            correct = percent <= self.tolerance_percent
        else:
            percent = float("inf") if difference else 0.0
            correct = difference <= self.scroll_threshold
        return correct, {
            "is_valid": correct,
            "difference": difference,
            "difference_percent": percent,
            "tolerance_used": self.tolerance_percent,
            "scroll_threshold": self.scroll_threshold,
            "golden_scroll_amount": due,
            "predicted_scroll_amount": actual,
        }
