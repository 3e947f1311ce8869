"""The rows of one scorer call: what came back, or why nothing did."""

import time
from typing import Any

import msgspec

from assay.errors import CallError
from assay.interfaces import Score
from assay.records import Evaluation
from assay.steps.cases import Call
from assay.steps.scoring import labels_of

Result = tuple[Any, BaseException | None]
"""What a scorer returned, and what it raised."""


def rows_of(call: Call, result: Result | None, seconds: float) -> list[Evaluation]:
    """The rows of one call; a call without labels still leaves one, so that it is not made again."""
    kind = None
    more: dict[str, Any] = {}
    if call.settled is not None:
        scores = [call.settled]
        seconds = 0.0
    else:
        assert result is not None
        if _is_ready(result[0]):
            return [_row(call, result[0], (0, 1), more, seconds, kind)]
        value, failure = result
        scores: list[Score] = []
        if failure is None:
            try:
                scores, more = _storable(*labels_of(value, call.scorer.name))
            except Exception as raised:  # a scorer is user code: whatever it returns is this row's result
                failure = raised
        if failure is not None:
            error, kind = _described(failure)
            scores = [Score(label=call.scorer.name, outcome="errored", error=error)]
    if not scores:
        return [_row(call, Score(label=call.scorer.name, outcome="skipped"), (0, 0), more, seconds, kind)]
    count = len(scores)
    return [_row(call, score, (i, count), more, seconds, kind) for i, score in enumerate(scores)]


def _is_ready(value: Any) -> bool:
    """Whether a scorer's result is what it would be completed to: most are, and a million of them are to be written."""
    return (
        type(value) is Score
        and type(value.passed) is bool
        and type(value.score) is float
        and value.score - value.score == 0.0  # finite
        and value.outcome == "scored"
        and not value.label
        and not value.details
        and not value.value
    )


def _row(
    call: Call, score: Score, part: tuple[int, int], more: dict[str, Any], seconds: float, kind: str | None
) -> Evaluation:
    response = call.case.responses[0]
    payoff, passed = score.score, score.passed
    if call.players is not None and payoff is not None:
        payoff = 1.0 - payoff if call.seat else payoff
        passed = payoff > 0.5
    model_name = response.model_name if call.players is None else " vs ".join(call.players)
    return Evaluation(
        item_id=response.item_id,
        sample_id=response.sample_id,
        sample_index=response.sample_index,
        label=score.label or call.scorer.name,
        model_name=model_name,
        passed=passed,
        score=payoff,
        detailed_results=score.details,
        evaluation_time=seconds,
        timestamp=time.time(),
        metadata={**response.metadata, "evaluation": more} if more else response.metadata,
        key=call.key.hex(),
        part=part,
        responses=[row.key for row in call.case.responses],
        scorer=call.scorer.name,
        outcome=score.outcome,
        error=score.error,
        error_kind=kind or ("permanent" if score.outcome == "errored" else None),  # type: ignore[arg-type]
        value=score.value,
        players=call.players,
        seat=call.seat,
    )


def _storable(scores: list[Score], more: dict[str, Any]) -> tuple[list[Score], dict[str, Any]]:
    """The same as JSON values; TypeError or UnicodeError for what can be none."""
    for score in scores:
        score.label.encode()
        score.details, score.value = _json_value(score.details), _json_value(score.value)
    return scores, _json_value(more)


def _json_value(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_from_numpy)) if value else value


def _from_numpy(value: Any) -> Any:
    import numpy as np

    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"the scorer returned {type(value).__name__}, which is no JSON value")


def _described(error: BaseException) -> tuple[str, str]:
    if isinstance(error, CallError):
        return error.what, error.kind
    if isinstance(error, TimeoutError):
        return f"the scorer {error}" if str(error) else "the scorer took too long", "transient"
    return f"{type(error).__name__}: {error}", "permanent"
