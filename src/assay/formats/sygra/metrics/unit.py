"""Unit metrics: is one prediction right? The functions `equal`, `alike`, `same_direction` and the core's `contains` say
so, for the classes here and for the scorers of the same names.

Whatever goes wrong in a comparison makes a wrong answer with the error in its metadata; it never ends a run.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

from assay.formats.sygra.metrics.results import (
    BaseMetricMetadata,
    ConfiguredMetric,
    UnitMetricRegistry,
    UnitMetricResult,
    settings,
    unit_metric,
)
from assay.scorers.within_box import contains
from assay.text.blocks import differences, ratio
from assay.text.normalise import normaliser

__all__ = [
    "ActionWithinBboxMetric",
    "BaseMetricMetadata",
    "BaseUnitMetric",
    "ExactMatchMetric",
    "FuzzyMatchMetric",
    "ScrollAmountMetric",
    "ScrollDirectionMetric",
    "TypedValueMatchMetric",
    "UnitMetricRegistry",
    "UnitMetricResult",
    "unit_metric",
]

DIRECTIONS = ("up", "down", "left", "right")
Share = Annotated[float, Meta(ge=0, le=1)]
NotNegative = Annotated[float, Meta(ge=0)]


class BaseUnitMetric(ConfiguredMetric):
    """What a user's own unit metric inherits from."""

    @abstractmethod
    def evaluate(self, golden: list[Any], predicted: list[Any]) -> list[UnitMetricResult]:
        """A result for each pair."""


class _BuiltIn(BaseUnitMetric):
    """A metric that is described by its parameters, its description and a judgement on one pair."""

    parameters: type[msgspec.Struct]
    about: BaseMetricMetadata
    wraps = True

    def validate_config(self) -> None:
        for name, value in msgspec.structs.asdict(settings(self.parameters, self.config, type(self).__name__)).items():
            setattr(self, name, value)

    def get_metadata(self) -> BaseMetricMetadata:
        return self.about

    def evaluate(self, golden: Sequence[Any], predicted: Sequence[Any]) -> list[UnitMetricResult]:
        if len(golden) != len(predicted):
            counts = f"(got {len(golden)} and {len(predicted)})"
            raise ValueError(f"{type(self).__name__}: golden and predicted must have same length {counts}")
        return [
            self._result(golden_side, predicted_side)
            for golden_side, predicted_side in zip(golden, predicted, strict=True)
        ]

    def _result(self, golden: Any, predicted: Any) -> UnitMetricResult:
        if self.wraps:
            golden, predicted = _wrapped(golden), _wrapped(predicted)
        try:
            correct, details = self.judge(golden, predicted)
        except Exception as error:
            correct, details = False, {"error": str(error)}
        return UnitMetricResult(correct, golden, predicted, {"validator": self.about.name, **details})

    @abstractmethod
    def judge(self, golden: Any, predicted: Any) -> tuple[bool, dict[str, Any]]:
        """Whether it is right, and what else the metadata shall say."""


def _wrapped(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"value": value}


# ---- what is right


def equal(golden: str, predicted: str, *, case_sensitive: bool = False, normalize_whitespace: bool = True) -> bool:
    """Whether two texts are equal once made comparable."""
    normalise = _normaliser(case_sensitive, normalize_whitespace)
    return normalise(golden) == normalise(predicted)


def alike(golden: str, predicted: str, *, case_sensitive: bool = False) -> float:
    """How alike two texts are, by their common blocks."""
    normalise = _normaliser(case_sensitive, True)
    return ratio(normalise(golden), normalise(predicted))


def same_direction(golden: Any, predicted: Any) -> bool:
    return golden == predicted and isinstance(predicted, str) and predicted in DIRECTIONS


def _normaliser(case_sensitive: bool, normalize_whitespace: bool) -> Callable[[str], str]:
    if normalize_whitespace:
        return normaliser("spaces" if case_sensitive else "lower_spaces", strip_whitespace=False)
    return normaliser("none" if case_sensitive else "lower", strip_whitespace=False)


# ---- texts


class _ExactMatch(msgspec.Struct):
    case_sensitive: bool = False
    normalize_whitespace: bool = True
    key: str | None = None


@unit_metric("exact_match")
class ExactMatchMetric(_BuiltIn):
    """The texts are equal; without a `key` the whole values are compared as Python writes them."""

    parameters = _ExactMatch
    about = BaseMetricMetadata(
        name="exact_match", display_name="Exact Match", description="Whether two texts are equal once made comparable"
    )
    wraps = False
    case_sensitive: bool
    normalize_whitespace: bool
    key: str | None

    def judge(self, golden: Any, predicted: Any) -> tuple[bool, dict[str, Any]]:
        expected, actual = self._text(golden), self._text(predicted)
        flags = {"case_sensitive": self.case_sensitive, "normalize_whitespace": self.normalize_whitespace}
        return equal(str(expected), str(actual), **flags), {"golden_text": expected, "predicted_text": actual, **flags}

    def _text(self, value: Any) -> Any:
        if self.key and isinstance(value, dict):
            return cast("dict[str, Any]", value).get(self.key, "")
        return str(value)


class _FuzzyMatch(msgspec.Struct):
    key: str | None = None
    threshold: Share = 0.8
    case_sensitive: bool = False


@unit_metric("fuzzy_match")
class FuzzyMatchMetric(_BuiltIn):
    """The texts are alike; what is compared is what exact_match would compare."""

    parameters = _FuzzyMatch
    about = BaseMetricMetadata(
        name="fuzzy_match", display_name="Fuzzy Match", description="Whether two texts are alike enough"
    )
    wraps = False
    key: str | None
    threshold: float
    case_sensitive: bool

    def judge(self, golden: Any, predicted: Any) -> tuple[bool, dict[str, Any]]:
        texts = str(self._text(golden)), str(self._text(predicted))
        similarity = alike(*texts, case_sensitive=self.case_sensitive)
        return similarity >= self.threshold, {"similarity": similarity, "threshold": self.threshold}

    _text = ExactMatchMetric._text


class _TypedValueMatch(msgspec.Struct):
    golden_text_key: str = "text"
    predicted_text_key: str = "text"
    fuzzy_match_threshold: Share = 0.8


@unit_metric("typed_value_match")
class TypedValueMatchMetric(_BuiltIn):
    """What was typed equals what should have been, or is alike enough."""

    parameters = _TypedValueMatch
    about = BaseMetricMetadata(
        name="typed_value_match", display_name="Typed Value Match", description="Whether the right text was typed"
    )
    golden_text_key: str
    predicted_text_key: str
    fuzzy_match_threshold: float

    def judge(self, golden: Any, predicted: Any) -> tuple[bool, dict[str, Any]]:
        texts = str(golden.get(self.golden_text_key, "")), str(predicted.get(self.predicted_text_key, ""))
        expected, actual = map(normaliser("lower_spaces"), texts)
        exact, similarity = expected == actual, ratio(expected, actual)
        fuzzy = similarity >= self.fuzzy_match_threshold
        return exact or fuzzy, {
            "golden_text": texts[0],
            "predicted_text": texts[1],
            "exact_match": exact,
            "similarity_score": similarity,
            "fuzzy_match": fuzzy,
            "differences": [
                {"operation": step.operation, "golden": step.first, "predicted": step.second}
                for step in ([] if exact else differences(expected, actual))
            ],
        }


# ---- actions on a screen


class _ActionWithinBbox(msgspec.Struct):
    predicted_x_key: str = "x"
    predicted_y_key: str = "y"
    golden_bbox_key: str = "bbox"


@unit_metric("action_within_bbox")
class ActionWithinBboxMetric(_BuiltIn):
    """The point lies in the box; what cannot be read as numbers is wrong."""

    parameters = _ActionWithinBbox
    about = BaseMetricMetadata(
        name="action_within_bbox", display_name="Action Within BBox", description="Whether a point lies in a box"
    )
    predicted_x_key: str
    predicted_y_key: str
    golden_bbox_key: str

    def judge(self, golden: Any, predicted: Any) -> tuple[bool, dict[str, Any]]:
        details = {name: getattr(self, name) for name in ("predicted_x_key", "predicted_y_key", "golden_bbox_key")}
        box: Any = golden.get(self.golden_bbox_key)
        if not isinstance(box, Mapping):
            return False, details
        try:
            x, y = float(predicted[self.predicted_x_key]), float(predicted[self.predicted_y_key])
            return contains(cast("Mapping[str, Any]", box), x, y), details
        except (KeyError, TypeError, ValueError):
            return False, details


class _ScrollDirection(msgspec.Struct):
    golden_direction_key: str = "direction"
    predicted_direction_key: str = "direction"


@unit_metric("scroll_direction")
class ScrollDirectionMetric(_BuiltIn):
    """The directions are equal, and are directions."""

    parameters = _ScrollDirection
    about = BaseMetricMetadata(
        name="scroll_direction", display_name="Scroll Direction", description="Whether two directions are the same"
    )
    golden_direction_key: str
    predicted_direction_key: str

    def judge(self, golden: Any, predicted: Any) -> tuple[bool, dict[str, Any]]:
        expected, actual = golden.get(self.golden_direction_key), predicted.get(self.predicted_direction_key)
        details = {"golden_direction": expected, "predicted_direction": actual}
        return same_direction(expected, actual), details


class _ScrollAmount(msgspec.Struct):
    golden_amount_key: str = "amount"
    predicted_amount_key: str = "amount"
    tolerance_percent: NotNegative = 20.0
    scroll_threshold: NotNegative = 10.0


@unit_metric("scroll_amount")
class ScrollAmountMetric(_BuiltIn):
    """The amounts differ by few percent, or by little where none was due. An amount that is missing is 0."""

    parameters = _ScrollAmount
    about = BaseMetricMetadata(
        name="scroll_amount", display_name="Scroll Amount", description="Whether two amounts are nearly the same"
    )
    golden_amount_key: str
    predicted_amount_key: str
    tolerance_percent: float
    scroll_threshold: float

    def judge(self, golden: Any, predicted: Any) -> tuple[bool, dict[str, Any]]:
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
