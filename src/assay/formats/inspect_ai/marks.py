"""What inspect_ai's scorers gave, as evaluations: one label for each scorer, or for each key of a score that is a dict
or a list. The outcome is ours, `value` what the tool had."""

import math
from typing import Any, NamedTuple, cast

from assay.formats.inspect_ai.shapes import Mark
from assay.records import EvaluationOutcome

WORDS = {"C": (1.0, True), "I": (0.0, False), "P": (0.5, False), "N": (0.0, False)}
_WORDS = {"yes": (1.0, True), "true": (1.0, True), "no": (0.0, False), "false": (0.0, False)}
_REASONS: dict[str, EvaluationOutcome] = {
    "no_response": "unparsed",
    "invalid_response_format": "unparsed",
    "refusal": "refused",
    "grader_failed": "errored",
    "scoring_failed": "errored",
}


class Verdict(NamedTuple):
    """`number` is the value as the tool's metrics take it; None if they leave it out."""

    label: str
    outcome: EvaluationOutcome
    score: float | None
    passed: bool | None
    number: float | None
    error: str | None
    value: Any


def parts_of(scorer: str, mark: Mark) -> list[Verdict]:
    """The labels of one score."""
    value, reason = mark.value, mark.reason
    if (
        reason is None
        and mark.metadata
        and isinstance(old := mark.metadata.get("unscored_reason"), str)
    ):
        reason = old
    if isinstance(value, dict):
        keys = cast("dict[str, Any]", value)
        return [_verdict(f"{scorer}.{key}", inner, reason) for key, inner in keys.items()]
    if isinstance(value, list):
        several = cast("list[Any]", value)
        return [
            _verdict(f"{scorer}.{number}", inner, reason) for number, inner in enumerate(several)
        ]
    return [_verdict(scorer, value, reason)]


def _verdict(label: str, value: Any, reason: str | None) -> Verdict:
    number, passed = number_of(value)
    outcome = _REASONS.get(reason) if reason is not None else None
    if outcome is not None:
        return Verdict(label, outcome, None, None, number, reason, value)
    if value is None:
        return Verdict(
            label,
            "errored",
            None,
            None,
            None,
            f"not scored: {reason or 'no reason is given'}",
            None,
        )
    return Verdict(label, "scored", number, passed, number, None, value)


def number_of(value: Any) -> tuple[float | None, bool | None]:
    """A value as a number, as the tool's own metrics read it, and whether it is right, where it says so."""
    if isinstance(value, bool):
        return float(value), value
    if isinstance(value, (int, float)):
        return (float(value), None) if math.isfinite(value) else (None, None)
    if not isinstance(value, str):
        return None, None
    known = WORDS.get(value) or _WORDS.get(value.lower())
    if known is not None:
        return known
    try:
        number = float(value)
    except ValueError:
        return None, None
    return (number, None) if math.isfinite(number) else (None, None)
