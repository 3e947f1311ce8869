"""Samples of evalscope as our rows."""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, cast

import msgspec

from assay.engine.experiment.imports.foreign import REST, Rest, content_id, evaluation_of, key_of
from assay.records import Evaluation, EvaluationOutcome, Response

Row = dict[str, Any]
_IDS = ("id", "question_id", "task_id", "qid")
_MESSAGE = ("role", "content", "tool_calls", "tool_call_id", "function")
_YES_OR_NO = {"accuracy", "acc"}  # scores that say whether an answer is right
_OUTCOMES: dict[str, EvaluationOutcome] = {"parse_error": "unparsed", "excluded": "skipped"}
_PREDICTION = {"index", "model", "model_output", "messages", "metadata"}
_OUTPUT = {"id", "model", "choices", "usage", "time", "error"}
_OUTPUT_KNOWN = {"metadata", "perf_metrics"}
_SCORE = {"value", "status", "explanation", "prediction"}
_SCORE_KNOWN = {"extracted_prediction", "metadata", "main_score_name", "judge_summary"}


class Sample(msgspec.Struct, kw_only=True):
    """Where a sample belongs, and what evalscope stored of it."""

    model: str
    dataset: str
    subset: str
    index: int
    repeats: int
    prediction: Row
    review: Row

    @property
    def number(self) -> int:
        """Which of the repeats it is."""
        given = self.scored.get("generation_index")
        return given if isinstance(given, int) else self.index % max(1, self.repeats)

    @property
    def scored(self) -> Row:
        return _dict(self.review.get("sample_score"))

    @property
    def messages(self) -> list[Row]:
        found = self.prediction.get("messages") or self.review.get("messages")
        return [cast("Row", entry) for entry in _list(found) if isinstance(entry, dict)]


def _dict(value: Any) -> Row:
    return cast("Row", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def item_of(sample: Sample) -> Row:
    """The question, from what was asked; random ids of messages are not part of it."""
    asked = _asked(sample.messages)
    target = sample.review.get("target")
    truth = (
        target[0] if isinstance(target, list) and len(cast("list[Any]", target)) == 1 else target
    )
    own = _dict(sample.scored.get("sample_metadata") or sample.prediction.get("metadata"))
    question = next(
        (
            content_text(entry.get("content"))
            for entry in reversed(asked)
            if entry.get("role") == "user"
        ),
        "",
    )
    data: Row = {"question": question}
    if len(asked) > 1 or (asked and not isinstance(asked[0].get("content"), str)):
        data["messages"] = asked
    given = next(
        (own[name] for name in _IDS if isinstance(own.get(name), (str, int)) and own[name] != ""),
        None,
    )
    id = (
        str(given) if given is not None else content_id(sample.dataset, sample.subset, asked, truth)
    )
    return {
        "id": id,
        "data": data,
        "ground_truth": truth,
        "metadata": {"dataset": sample.dataset, "subset": sample.subset, **own},
    }


def _asked(messages: Sequence[Row]) -> list[Row]:
    """The messages before the model's first own one."""
    asked: list[Row] = []
    for message in messages:
        if message.get("source") == "generate":
            break
        asked.append(_message(message))
    while asked and asked[-1].get("role") == "assistant" and len(asked) == len(messages):
        asked.pop()  # a log that does not tell whose messages they are
    return asked


def _message(message: Row) -> Row:
    return {name: message[name] for name in _MESSAGE if message.get(name) is not None}


def content_text(content: Any) -> str:
    """The text of a message: itself, or that of its parts."""
    if isinstance(content, str):
        return content
    parts = [_dict(part) for part in _list(content)]
    return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")


def _reasoning(content: Any) -> str | None:
    parts = [_dict(part) for part in _list(content)]
    return (
        "".join(
            str(part.get("reasoning") or "") for part in parts if part.get("type") == "reasoning"
        )
        or None
    )


def response_of(sample: Sample, item: Row, rest: Rest) -> Response:
    """The answer; of a sample that has only a review, what that says of it."""
    output = _dict(sample.prediction.get("model_output"))
    choice = _dict(next(iter(_list(output.get("choices"))), None))
    message, usage = _dict(choice.get("message")), _dict(output.get("usage"))
    content = message.get("content")
    said = (
        content_text(content)
        if message
        else str(_dict(sample.scored.get("score")).get("prediction") or "")
    )
    stop, error = choice.get("stop_reason"), output.get("error")
    refused = stop == "content_filter" or any(_dict(part).get("refusal") for part in _list(content))
    metadata: Row = {
        "model_id": sample.model,
        "dataset": sample.dataset,
        "subset": sample.subset,
        "finish_reason": stop,
        "response_id": output.get("id"),
    }
    kept = {
        **rest.of(sample.prediction, _PREDICTION, {"agent_trace"}),
        **rest.of(output, _OUTPUT, _OUTPUT_KNOWN, "output."),
    }
    kept |= rest.of(
        sample.review, {"index", "target", "messages", "sample_score", "agent_trace"}, (), "review."
    )
    if kept:
        metadata[REST] = kept
    calls = _list(message.get("tool_calls"))
    logprobs = _dict(choice.get("logprobs")).get("content")
    return Response(
        item_id=item["id"],
        sample_id=f"{item['id']}_sample_{sample.number}",
        sample_index=sample.number,
        total_samples=sample.repeats,
        model_name=sample.model,
        prompt=item["data"]["question"],
        response=said,
        inference_time=_number(output.get("time")) or 0.0,
        metadata=metadata,
        error=str(error) if error else None,
        error_kind="permanent" if error else None,
        outcome="errored" if error else "refused" if refused else "ok",
        prompt_tokens=_whole(usage.get("input_tokens")),
        completion_tokens=_whole(usage.get("output_tokens")),
        total_tokens=_whole(usage.get("total_tokens")),
        key=key_of(
            "evalscope",
            sample.model,
            sample.dataset,
            sample.subset,
            item["id"],
            sample.number,
            said,
        ),
        task=sample.dataset,
        messages=[_message(entry) for entry in sample.messages] or None,
        reasoning=_reasoning(content),
        tool_calls=calls or None,
        served_model=str(output["model"]) if output.get("model") else None,
        logprobs=_list(logprobs) or None,
    )


def missing_response(
    item: Row, model: str, dataset: str, subset: str, number: int, repeats: int
) -> Response:
    """A sample that the report counts and no file has."""
    return Response(
        item_id=item["id"],
        sample_id=f"{item['id']}_sample_{number}",
        sample_index=number,
        total_samples=repeats,
        model_name=model,
        prompt=item["data"].get("question", ""),
        metadata={"model_id": model, "dataset": dataset, "subset": subset},
        error="evalscope counts this sample as failed, and stores nothing else of it",
        error_kind="permanent",
        outcome="errored",
        key=key_of("evalscope", model, dataset, subset, item["id"], number, None),
        task=dataset,
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


# ---- evaluations


def evaluations_of(
    sample: Sample, response: Response, labels: Collection[str], rest: Rest
) -> Iterator[Evaluation]:
    """A row for each score; for each further label that this subset's samples have, one that says why it is missing."""
    score = _dict(sample.scored.get("score"))
    metadata = _dict(score.get("metadata"))
    failed = {
        name.lower(): str(what) for name, what in _dict(metadata.get("metric_errors")).items()
    }
    details = rest.of(score, _SCORE, _SCORE_KNOWN, "score.")
    if score.get("explanation"):
        details["explanation"] = score["explanation"]
    values = _dict(score.get("value"))
    for label, value in values.items():
        error = next(
            (what for name, what in failed.items() if label.lower().startswith(name)), None
        )
        number = _number(value)
        if error is None and number is None:
            error = f"{value!r} is not a number"
        yield _evaluation(response, label, number if error is None else None, error, details)
    status = str(score.get("status") or "")
    for label in labels if status or not sample.review else ():
        if label not in values:
            what = (
                f"evalscope has no score: {status}"
                if status
                else "evalscope has no review of this answer"
            )
            yield _evaluation(
                response, label, None, what, details, _OUTCOMES.get(status, "errored")
            )


def missing_evaluations(response: Response, labels: Collection[str]) -> list[Evaluation]:
    return [_evaluation(response, label, None, response.error, {}) for label in labels]


def _evaluation(
    response: Response,
    label: str,
    number: float | None,
    error: str | None,
    details: Row,
    outcome: EvaluationOutcome = "errored",
) -> Evaluation:
    return evaluation_of(
        response,
        label,
        passed=number == 1.0 if label in _YES_OR_NO and number in (0.0, 1.0) else None,
        score=number,
        detailed_results=details,
        metadata={name: response.metadata[name] for name in ("model_id", "dataset", "subset")},
        key=key_of("evalscope", response.key, label),
        outcome="scored" if error is None else outcome,
        error=error,
        error_kind="permanent" if error is not None and outcome == "errored" else None,
    )
