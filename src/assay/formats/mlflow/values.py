"""Values of MLflow's tables and assessments as ours."""

import math
from typing import Any, cast

import msgspec

from assay.engine.experiment.imports.foreign import evaluation_of, key_of
from assay.records import Evaluation, Response

_RATINGS = {"yes": 1.0, "no": 0.0}  # as MLflow counts them


def number_of(value: Any) -> float | None:
    """A finite number, or yes and no as MLflow counts them; None for anything else."""
    if isinstance(value, (int, float)):
        return float(value) if math.isfinite(value) else None
    return _RATINGS.get(value.lower()) if isinstance(value, str) else None


def text_of(value: Any) -> str:
    """What a model said: text, the text of a chat's completion, or JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, dict):
        choices = cast("dict[str, Any]", value).get("choices")
        try:
            content = cast("Any", choices)[0]["message"]["content"]
        except (TypeError, LookupError):
            content = None
        if isinstance(content, str):
            return content
    return msgspec.json.encode(value).decode()


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
        outcome="errored" if failed else "scored",
        error=(error or "MLflow has no value of this metric for this row") if failed else None,
        error_kind="permanent" if failed else None,
        value=None if failed or not isinstance(value, (str, list, dict)) else value,
    )
