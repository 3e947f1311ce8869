"""Samples of evalscope as our rows."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from assay.engine.experiment.imports.foreign import (
    REST,
    Rest,
    Row,
    content_id,
    count_of,
    evaluation_of,
    failure,
    fields_of,
    key_of,
    list_of,
    number_of,
    rows_of,
)
from assay.records import Evaluation, EvaluationOutcome, Response

_IDS = ("id", "question_id", "task_id", "qid")
_MESSAGE = ("role", "content", "tool_calls", "tool_call_id", "function")
_YES_OR_NO = {"accuracy", "acc"}  # scores that say whether an answer is right
_OUTCOMES: dict[str, EvaluationOutcome] = {"parse_error": "unparsed", "excluded": "skipped"}
_PREDICTION = {"index", "model", "model_output", "messages", "metadata"}
_OUTPUT = {"id", "model", "choices", "usage", "time", "error"}
_OUTPUT_KNOWN = {"metadata", "perf_metrics"}
_SCORE = {"value", "status", "explanation", "prediction"}
_SCORE_KNOWN = {"extracted_prediction", "metadata", "main_score_name", "judge_summary"}


class Sample(msgspec.Struct):
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
        return fields_of(self.review.get("sample_score"))

    @property
    def messages(self) -> list[Row]:
        return rows_of(self.prediction.get("messages") or self.review.get("messages"))

    @property
    def score(self) -> Row:
        return fields_of(self.scored.get("score"))

    @property
    def values(self) -> Row:
        """The score of each label."""
        return fields_of(self.score.get("value"))

    @property
    def subset_facts(self) -> Row:
        return {"dataset": self.dataset, "subset": self.subset}


def item_of(sample: Sample) -> Row:
    """The question, from what was asked; random ids of messages are not part of it."""
    asked = _asked(sample.messages)
    target = sample.review.get("target")
    listed = list_of(target)
    truth = listed[0] if len(listed) == 1 else target
    own = fields_of(sample.scored.get("sample_metadata") or sample.prediction.get("metadata"))
    users = [entry for entry in asked if entry.get("role") == "user"]
    data: Row = {"question": content_text(users[-1].get("content")) if users else ""}
    if len(asked) > 1 or (asked and not isinstance(asked[0].get("content"), str)):
        data["messages"] = asked
    given = next(
        (own[name] for name in _IDS if isinstance(own.get(name), (str, int)) and own[name] != ""),
        None,
    )
    if given is None:
        given = content_id(sample.dataset, sample.subset, asked, truth)
    metadata = {**sample.subset_facts, **own}
    return {"id": str(given), "data": data, "ground_truth": truth, "metadata": metadata}


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
    return content if isinstance(content, str) else _parts(content, "text")


def _parts(content: Any, kind: str) -> str:
    """The texts of all parts of a kind."""
    parts = [part for part in rows_of(content) if part.get("type") == kind]
    return "".join(str(part.get(kind) or "") for part in parts)


def response_of(sample: Sample, item: Row, rest: Rest) -> Response:
    """The answer; of a sample that has only a review, what that says of it."""
    output = fields_of(sample.prediction.get("model_output"))
    choice = fields_of(next(iter(list_of(output.get("choices"))), None))
    message, usage = fields_of(choice.get("message")), fields_of(output.get("usage"))
    content = message.get("content")
    said = content_text(content) if message else str(sample.score.get("prediction") or "")
    stop, error = choice.get("stop_reason"), output.get("error")
    refused = stop == "content_filter" or any(part.get("refusal") for part in rows_of(content))
    metadata: Row = {"model_id": sample.model, **sample.subset_facts}
    metadata |= {"finish_reason": stop, "response_id": output.get("id")}
    kept = {
        **rest.of(sample.prediction, _PREDICTION, {"agent_trace"}),
        **rest.of(output, _OUTPUT, _OUTPUT_KNOWN, "output."),
    }
    kept |= rest.of(
        sample.review, {"index", "target", "messages", "sample_score", "agent_trace"}, (), "review."
    )
    if kept:
        metadata[REST] = kept
    outcome: Row = failure(str(error) if error else None)
    return _response(
        sample,
        item,
        said,
        response=said,
        inference_time=number_of(output.get("time")) or 0.0,
        metadata=metadata,
        prompt_tokens=count_of(usage.get("input_tokens")),
        completion_tokens=count_of(usage.get("output_tokens")),
        total_tokens=count_of(usage.get("total_tokens")),
        messages=[_message(entry) for entry in sample.messages] or None,
        reasoning=_parts(content, "reasoning") or None,
        tool_calls=list_of(message.get("tool_calls")) or None,
        served_model=str(output["model"]) if output.get("model") else None,
        logprobs=list_of(fields_of(choice.get("logprobs")).get("content")) or None,
        **(outcome or {"outcome": "refused" if refused else "ok"}),
    )


def missing_response(item: Row, sample: Sample) -> Response:
    """A sample that the report counts and no file has."""
    why = "evalscope counts this sample as failed, and stores nothing else of it"
    metadata = {"model_id": sample.model, **sample.subset_facts}
    return _response(sample, item, None, metadata=metadata, **failure(why))


def _response(sample: Sample, item: Row, said: str | None, **fields: Any) -> Response:
    id, number, place = item["id"], sample.number, (sample.model, *sample.subset_facts.values())
    return Response(
        item_id=id,
        sample_id=f"{id}_sample_{number}",
        sample_index=number,
        total_samples=sample.repeats,
        model_name=sample.model,
        prompt=item["data"].get("question", ""),
        key=key_of("evalscope", *place, id, number, said),
        task=sample.dataset,
        **fields,
    )


# ---- evaluations


def evaluations_of(
    sample: Sample, response: Response, labels: Collection[str], rest: Rest
) -> Iterator[Evaluation]:
    """A row for each score; for each further label that this subset's samples have, one that says why it is missing."""
    score, values = sample.score, sample.values
    errors = fields_of(fields_of(score.get("metadata")).get("metric_errors"))
    details = rest.of(score, _SCORE, _SCORE_KNOWN, "score.")
    if score.get("explanation"):
        details["explanation"] = score["explanation"]
    for label, value in values.items():
        number = number_of(value)
        error = f"{value!r} is not a number" if number is None else None
        error = next((str(errors[name]) for name in errors if _is_of(label, name)), error)
        yield _evaluation(response, label, number if error is None else None, error, details)
    status = str(score.get("status") or "")
    for label in labels if status or not sample.review else ():
        if label not in values:
            what = f"score: {status}" if status else "review of this answer"
            outcome = _OUTCOMES.get(status, "errored")
            yield _evaluation(response, label, None, f"evalscope has no {what}", details, outcome)


def _is_of(label: str, metric: str) -> bool:
    return label.lower().startswith(metric.lower())


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
