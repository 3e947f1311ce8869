"""The rows of one scorer call: whatever the scorer returned as labels of one shape, or why there are none."""

import math
import time
from copy import copy
from typing import Any

import msgspec
import numpy as np

from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.cases import Call, has_reasoning
from assay.sdk import CallError, Evaluation, JsonObject, Score
from assay.usercode import raised

Result = tuple[Any, BaseException | None]
"""What a scorer returned, and what it raised."""


def rows_of(call: Call, result: Result | None, seconds: float) -> list[Evaluation]:
    """Return the rows of one call; a call without labels still leaves one, so that it is not made again."""
    scorer, kind = call.scorer, None
    more: JsonObject = scorer.shown_params
    if scorer.strips_reasoning and has_reasoning(call.case.responses[0]):
        more = {**more, "reasoning_stripped": True}
    if call.settled is not None:
        return [_row(call, call.settled, (0, 1), more, 0.0, kind)]
    assert result is not None
    value, failure = result
    # a scorer is user code: whatever it returns is this row's result
    try:
        if _is_ready(value, scorer):
            row = _row(call, value, (0, 1), more, seconds, kind)
            row.detailed_results = _json_value(value.details)
            return [row]
        scores, further = ([], {}) if failure is not None else _storable(*labels_of(value, scorer))
        more = {**more, **further}
    except Exception as raised:
        scores, failure = [], raised
    if failure is not None:
        error, kind = _error_of(failure)
        scores = [Score(label=scorer.name, outcome="errored", error=error)]
    if not scores:
        nothing = Score(label=scorer.name, outcome="skipped")
        return [_row(call, nothing, (0, 0), more, seconds, kind)]
    return [
        _row(call, score, (i, len(scores)), more, seconds, kind) for i, score in enumerate(scores)
    ]


def _is_ready(value: Any, scorer: BoundScorer) -> bool:
    """Return whether a scorer's result is what it would be completed to: most are, and a million of
    them are to be written."""
    return (
        type(value) is Score
        and type(value.passed) is bool
        and type(value.score) is float
        and value.score - value.score == 0.0  # finite
        and value.outcome == "scored"
        and not value.label
        and not value.value
        and value.players is None
        and scorer.verdicts
    )


def _row(
    call: Call,
    score: Score,
    part: tuple[int, int],
    more: JsonObject,
    seconds: float,
    kind: str | None,
) -> Evaluation:
    response, responses = call.case.responses[0], call.case.responses
    payoff, passed, players, names = score.score, score.passed, call.players, call.sides
    if players is not None and payoff is not None:
        payoff = 1.0 - payoff if call.seat else payoff
        passed = payoff > 0.5
    elif score.players is not None:  # a match among those that were scored together
        players, payoff = _in_order(score)
        passed = None if payoff is None else payoff > 0.5
        responses = [responses[names.index(player)] for player in players if player in names]
    if players is not None:
        names = players
    model_name = response.model_name if len(names) < 2 else " vs ".join(names)
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
        responses=[row.key for row in responses],
        scorer=call.scorer.name,
        outcome=score.outcome,
        error=score.error,
        error_kind=kind or ("permanent" if score.outcome == "errored" else None),  # type: ignore[arg-type]
        value=score.value,
        players=players,
        seat=call.seat,
    )


def _in_order(score: Score) -> tuple[tuple[str, str], float | None]:
    """The players of a match in canonical order, and the payoff of the first of them."""
    assert score.players is not None
    first, second = score.players
    if first <= second:
        return score.players, score.score
    return (second, first), None if score.score is None else 1.0 - score.score


def _storable(scores: list[Score], more: JsonObject) -> tuple[list[Score], JsonObject]:
    """The labels as JSON values; TypeError or UnicodeError for what cannot be one."""
    for score in scores:
        score.label.encode()
        score.details, score.value = _json_value(score.details), _json_value(score.value)
    return scores, _json_value(more)


def _json_value(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_from_numpy)) if value else value


def _from_numpy(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"the scorer returned {type(value).__name__}, which is not a JSON value")


def _error_of(error: BaseException) -> tuple[str, str]:
    if isinstance(error, CallError):
        return error.what, error.kind
    if isinstance(error, TimeoutError):
        return f"the scorer {error}" if str(error) else "the scorer took too long", "transient"
    return raised(error), "permanent"


# ---- what scorers return


def labels_of(result: Any, scorer: BoundScorer) -> tuple[list[Score], JsonObject]:
    """The labels in whatever a scorer returned, and its further fields; ValueError says what was wrong with it."""
    entries, more = [result], {}
    if isinstance(result, (list, tuple)):
        entries = list(result)
    elif isinstance(result, dict) and "labels" in result:
        entries, more = result["labels"], _further(result, "labels")
        if not isinstance(entries, list):
            raise ValueError(f"`labels` must be a list, found {type(entries).__name__}")
    elif isinstance(result, dict) and "result" in result:
        more = _further(result, "label", "result")
    labels = [_complete(_entry(entry, scorer.name), scorer) for entry in entries]
    if len(labels) > 1:
        _refuse_repeated(labels)
    return labels, more


def _refuse_repeated(labels: list[Score]) -> None:
    """Two verdicts under one label would count as two samples."""
    seen: set[tuple[str, tuple[str, str] | None]] = set()
    for score in labels:
        if (score.label, score.players) in seen:
            raise ValueError(
                f"the scorer gave the label {score.label!r} twice for one response: name them differently"
            )
        seen.add((score.label, score.players))


def _further(result: JsonObject, *own: str) -> JsonObject:
    custom = result.get("custom_fields") or {}
    return {
        **{key: value for key, value in result.items() if key not in (*own, "custom_fields")},
        **custom,
    }


def _entry(entry: Any, name: str) -> Score:
    if isinstance(entry, Score):
        return copy(entry)  # the scorer may return the same one again
    if isinstance(entry, (bool, np.bool_)):
        return Score(passed=bool(entry))
    if isinstance(entry, (int, float, np.number)):
        return Score(score=float(entry))
    if not isinstance(entry, dict):
        raise ValueError(
            f"a scorer must return a Score, a bool, a number or a dict, found {type(entry).__name__}"
        )
    if "result" not in entry:
        return _score(entry, _label(entry.get("label"), name))
    if not isinstance(entry["result"], dict):
        raise ValueError(f"`result` must be an object, found {type(entry['result']).__name__}")
    label = entry.get("label")
    score = _score(entry["result"], _label(label, name))
    if isinstance(label, dict) and label.get("description"):
        score.details.setdefault("label_description", label["description"])
    return score


def _label(label: Any, name: str) -> str:
    if isinstance(label, dict):
        label = label.get("name")
    return name if label is None or label == "" else str(label)


def _score(fields: JsonObject, label: str) -> Score:
    custom = fields.get("custom_fields")
    details = {
        key: value
        for key, value in fields.items()
        if key not in ("passed", "score", "custom_fields", "label")
    }
    if isinstance(custom, dict):
        details.update(custom)
    return Score(
        label=label, passed=fields.get("passed"), score=fields.get("score"), details=details
    )


def _complete(score: Score, scorer: BoundScorer) -> Score:
    """Fill in what follows from what is there; refuse what cannot be a score."""
    if not score.label or score.label[0] == ".":
        score.label = scorer.name + score.label
    if score.outcome != "scored":
        return score
    passed: Any = score.passed
    number: Any = score.score
    if passed is not None and not isinstance(passed, (bool, int, np.bool_)):
        raise ValueError(f"`passed` must be true or false, found {passed!r}")
    if number is not None and not isinstance(number, (bool, int, float, np.number)):
        raise ValueError(f"`score` must be a number, found {number!r}")
    if number is not None and not math.isfinite(number):
        raise ValueError(f"the score is {number}, which is not a number to compute with")
    if passed is None and number is None:
        if score.value is None:
            raise ValueError("the scorer gave neither `passed` nor `score`")
        return score
    score.score = float(bool(passed) if number is None else number)
    score.passed = _verdict(passed, score.score, scorer)
    return score


def _verdict(passed: Any, score: float, scorer: BoundScorer) -> bool | None:
    if passed is None and scorer.form == "een":
        passed = score > 0
    return bool(passed) if passed is not None and scorer.verdicts else None
