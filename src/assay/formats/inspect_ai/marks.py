"""What inspect_ai's scorers gave, as evaluations: one label for each scorer, or for each key of a score that is a dict
or a list. The outcome is ours, `value` what the tool had."""

from typing import Any, NamedTuple

from assay.engine.experiment.imports.values import fields_of, first_text, list_of
from assay.engine.experiment.imports.values import number_of as finite
from assay.formats.inspect_ai.shapes import Mark
from assay.records import EvaluationOutcome

_LETTERS = {"C": (1.0, True), "I": (0.0, False), "P": (0.5, False), "N": (0.0, False)}
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
    if reason is None and mark.metadata:
        reason = first_text(mark.metadata, ["unscored_reason"]) or None
    if isinstance(value, dict):
        parts = [*fields_of(value).items()]
    elif isinstance(value, list):
        parts = [*enumerate(list_of(value))]
    else:
        return [_verdict(scorer, value, reason)]
    return [_verdict(f"{scorer}.{key}", inner, reason) for key, inner in parts]


def _verdict(label: str, value: Any, reason: str | None) -> Verdict:
    number, passed = number_of(value)
    outcome = _REASONS.get(reason) if reason is not None else None
    if outcome is not None:
        return Verdict(label, outcome, None, None, number, reason, value)
    if value is None:
        why = f"not scored: {reason or 'no reason is given'}"
        return Verdict(label, "errored", None, None, None, why, None)
    return Verdict(label, "scored", number, passed, number, None, value)


def number_of(value: Any) -> tuple[float | None, bool | None]:
    """A value as a number, as the tool's own metrics read it, and whether it is right, where it says so."""
    if isinstance(value, bool):
        return float(value), value
    if not isinstance(value, str):
        return finite(value), None
    known = _LETTERS.get(value) or _WORDS.get(value.lower())
    if known is not None:
        return known
    try:
        return finite(float(value)), None
    except ValueError:
        return None, None
