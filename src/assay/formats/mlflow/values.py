"""Values of MLflow's tables and assessments as ours."""

from typing import Any

from assay.engine.experiment.imports.foreign import evaluation_of, key_of
from assay.engine.experiment.imports.values import answer_text, failure, fields_of, json_value
from assay.engine.experiment.imports.values import number_of as finite
from assay.records import Evaluation, Response

_RATINGS = {"yes": 1.0, "no": 0.0}  # as MLflow counts them


def number_of(value: Any) -> float | None:
    """A finite number, or yes and no as MLflow counts them; None for anything else."""
    return _RATINGS.get(value.lower()) if isinstance(value, str) else finite(value)


def text_of(value: Any) -> str:
    """What a model said: text, the text of a chat's completion, or JSON."""
    try:
        content = fields_of(value)["choices"][0]["message"]["content"]
    except (TypeError, LookupError):
        content = None
    return content if isinstance(content, str) else answer_text(value)


def decoded(text: Any) -> Any:
    """JSON that is stored as text; text that is not JSON is itself."""
    try:
        return json_value(text.encode("utf-8", "replace")) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def evaluation(
    response: Response,
    label: str,
    value: Any,
    *,
    scorer: str = "",
    error: str | None = None,
    part: Any = None,
) -> Evaluation:
    """A score, a rating or a text as a row; nothing at all is an error."""
    number = number_of(value)
    failed = error is not None or value is None or (isinstance(value, float) and number is None)
    rated = isinstance(value, bool) or (isinstance(value, str) and number is not None)
    return evaluation_of(
        response,
        label,
        passed=bool(number) if rated and not failed else None,
        score=None if failed else number,
        key=key_of("mlflow", response.key, label, scorer, part),
        scorer=scorer or label,
        value=None if failed or not isinstance(value, (str, list, dict)) else value,
        **failure((error or "MLflow has no value of this metric for this row") if failed else None),
    )
