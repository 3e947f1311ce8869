"""Samples of evalscope as our rows."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from assay.foreign import (
    REST,
    Rest,
    content_id,
    evaluation_of,
    failure,
    key_of,
)
from assay.readers._results import first_filled, response_of, tokens_of
from assay.sdk import (
    Evaluation,
    EvaluationOutcome,
    JsonObject,
    Response,
    as_object,
    list_of,
    number_of,
    rows_of,
)

_IDS = ("id", "question_id", "task_id", "qid")
_MESSAGE = ("role", "content", "tool_calls", "tool_call_id", "function")
_YES_OR_NO = {"accuracy", "acc"}  # scores that say whether an answer is right
_OUTCOMES: dict[str, EvaluationOutcome] = {"parse_error": "unparsed", "excluded": "skipped"}
_PREDICTION = {"index", "model", "model_output", "messages", "metadata"}
_OUTPUT = {"id", "model", "choices", "usage", "time", "error"}
_OUTPUT_KNOWN = {"metadata", "perf_metrics"}
_REVIEW = {"index", "target", "messages", "sample_score", "agent_trace"}
_TOKENS = ("input_tokens", "output_tokens", "total_tokens")
_SCORE = {"value", "status", "explanation", "prediction"}
_SCORE_KNOWN = {"extracted_prediction", "metadata", "main_score_name", "judge_summary"}


class EvaluatedSample(msgspec.Struct):
    """Where a sample belongs, and what evalscope stored of it."""

    model: str
    dataset: str
    subset: str
    index: int
    repeats: int
    prediction: JsonObject
    review: JsonObject

    @property
    def number(self) -> int:
        """Return the number of the repeat."""
        given = self.sample_score.get("generation_index")
        return given if isinstance(given, int) else self.index % max(1, self.repeats)

    @property
    def sample_score(self) -> JsonObject:
        return as_object(self.review.get("sample_score"))

    @property
    def messages(self) -> list[JsonObject]:
        return rows_of(self.prediction.get("messages") or self.review.get("messages"))

    @property
    def score(self) -> JsonObject:
        return as_object(self.sample_score.get("score"))

    @property
    def values(self) -> JsonObject:
        """Return the score of each label."""
        return as_object(self.score.get("value"))

    @property
    def place(self) -> JsonObject:
        return {"dataset": self.dataset, "subset": self.subset}


def item_of(sample: EvaluatedSample) -> JsonObject:
    """Return the question, from what was asked; random ids of messages are not part of it."""
    asked = _prompt_messages(sample.messages)
    target = sample.review.get("target")
    listed = list_of(target)
    truth = listed[0] if len(listed) == 1 else target
    own = as_object(sample.sample_score.get("sample_metadata") or sample.prediction.get("metadata"))
    users = [content_text(entry.get("content")) for entry in asked if entry.get("role") == "user"]
    data: JsonObject = {"question": "".join(users[-1:])}
    if len(asked) > 1 or (asked and not isinstance(asked[0].get("content"), str)):
        data["messages"] = asked
    given = [own[name] for name in _IDS if isinstance(own.get(name), (str, int))]
    id = next((str(value) for value in given if value != ""), None)
    if id is None:
        id = content_id(sample.dataset, sample.subset, asked, truth)
    return {"id": id, "data": data, "ground_truth": truth, "metadata": {**sample.place, **own}}


def _prompt_messages(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the messages before the model's first own one."""
    asked: list[JsonObject] = []
    for message in messages:
        if message.get("source") == "generate":
            break
        asked.append(_message(message))
    while asked and asked[-1].get("role") == "assistant" and len(asked) == len(messages):
        asked.pop()  # a log that does not tell whose messages they are
    return asked


def _message(message: JsonObject) -> JsonObject:
    return {name: message[name] for name in _MESSAGE if message.get(name) is not None}


def content_text(content: Any) -> str:
    """Return the text of a message: itself, or that of its parts."""
    return content if isinstance(content, str) else _parts(content, "text")


def _parts(content: Any, kind: str) -> str:
    """Return the texts of all parts of a kind."""
    parts = [part for part in rows_of(content) if part.get("type") == kind]
    return "".join(str(part.get(kind) or "") for part in parts)


def answer_of(sample: EvaluatedSample, item: JsonObject, rest: Rest) -> Response:
    """Return the answer; of a sample that has only a review, what that says of it."""
    output = as_object(sample.prediction.get("model_output"))
    choice = next(iter(rows_of(list_of(output.get("choices"))[:1])), {})
    message = as_object(choice.get("message"))
    content = message.get("content")
    said = content_text(content) if message else str(sample.score.get("prediction") or "")
    row = _response(sample, item, said)
    row.inference_time = number_of(output.get("time")) or 0.0
    row.messages = [_message(entry) for entry in sample.messages] or None
    row.reasoning = _parts(content, "reasoning") or None
    row.tool_calls = list_of(message.get("tool_calls")) or None
    row.served_model = first_filled(output, ["model"]) or None
    row.logprobs = list_of(as_object(choice.get("logprobs")).get("content")) or None
    stop, error = choice.get("stop_reason"), first_filled(output, ["error"])
    row.metadata |= {"finish_reason": stop, "response_id": output.get("id")}
    if kept := _rest_of(sample, output, rest):
        row.metadata[REST] = kept
    if stop == "content_filter" or any(part.get("refusal") for part in rows_of(content)):
        row.outcome = "refused"
    tokens = tokens_of(as_object(output.get("usage")), *_TOKENS)
    return msgspec.structs.replace(row, **tokens, **failure(error or None))


def _rest_of(sample: EvaluatedSample, output: JsonObject, rest: Rest) -> JsonObject:
    kept = rest.of(sample.prediction, _PREDICTION, {"agent_trace"})
    kept |= rest.of(output, _OUTPUT, _OUTPUT_KNOWN, "output.")
    return kept | rest.of(sample.review, _REVIEW, (), "review.")


def missing_response(item: JsonObject, sample: EvaluatedSample) -> Response:
    """Return the row of a sample that the report counts and no file has."""
    why = "evalscope counts this sample as failed, and stores nothing else of it"
    return _response(sample, item, None, **failure(why))


def _response(
    sample: EvaluatedSample, item: JsonObject, said: str | None, **fields: Any
) -> Response:
    id, place = item["id"], sample.place
    key = key_of("evalscope", sample.model, *place.values(), id, sample.number, said)
    return response_of(
        id,
        sample.model,
        sample.number,
        said,
        total_samples=sample.repeats,
        prompt=item["data"].get("question", ""),
        metadata={"model_id": sample.model, **place},
        key=key,
        task=sample.dataset,
        **fields,
    )


# ---- evaluations


def evaluations_of(
    sample: EvaluatedSample, response: Response, labels: Collection[str], rest: Rest
) -> Iterator[Evaluation]:
    """Yield a row for each score; for each further label that this subset's samples have, one that says why it is
    missing."""
    score, values = sample.score, sample.values
    errors = as_object(as_object(score.get("metadata")).get("metric_errors"))
    details = rest.of(score, _SCORE, _SCORE_KNOWN, "score.")
    if score.get("explanation"):
        details["explanation"] = score["explanation"]
    for label, value in values.items():
        own = [str(errors[name]) for name in errors if label.lower().startswith(name.lower())]
        number = number_of(value)
        error = f"{value!r} is not a number" if number is None else None
        yield _evaluation(response, label, number, next(iter(own), error), details)
    status = str(score.get("status") or "")
    if sample.review and not status:
        return
    what = f"score: {status}" if status else "review of this answer"
    for label in labels:
        if label not in values:
            row = _evaluation(response, label, None, f"evalscope has no {what}", details)
            if status in _OUTCOMES:
                row.outcome, row.error_kind = _OUTCOMES[status], None
            yield row


def missing_evaluations(response: Response, labels: Collection[str]) -> list[Evaluation]:
    return [_evaluation(response, label, None, response.error, {}) for label in labels]


def _evaluation(
    response: Response, label: str, number: float | None, error: str | None, details: JsonObject
) -> Evaluation:
    row = evaluation_of(
        response,
        label,
        detailed_results=details,
        metadata={name: response.metadata[name] for name in ("model_id", "dataset", "subset")},
        key=key_of("evalscope", response.key, label),
        **failure(error),
    )
    if error is None:
        row.score = number
        if label in _YES_OR_NO and number in (0.0, 1.0):
            row.passed = number == 1.0
    return row
