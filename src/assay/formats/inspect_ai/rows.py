"""A sample as an item, a response and its evaluations."""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import UNSET

from assay.foreign import (
    REST,
    ForeignCase,
    evaluation_of,
    key_of,
    seconds_of,
)
from assay.formats.inspect_ai.numbers import ScoreVerdict, parts_of
from assay.formats.inspect_ai.shapes import (
    GivenScore,
    LogSample,
    ModelUsage,
    OutputChoice,
    is_filled,
    kept_of_item,
    kept_of_output,
    kept_of_response,
)
from assay.formats.inspect_ai.spans import (
    Look,
    Packed,
    calls_row,
    input_text,
    lookup,
    message_rows,
    part_row,
    refuses,
    resolve,
    settle,
    thoughts,
)
from assay.readers._results import without_empty
from assay.sdk import Evaluation, JsonObject, Response, ResponseOutcome

_FINISH = {"max_tokens": "length", "model_length": "length"}
_PLACEHOLDER = "88F74D2C"  # the name of a score in old logs, whose header has the scorer's name
_REFUSED = "content_filter"


class Around(NamedTuple):
    """What the rows of a log share. `labels` are (scorer, label) of what every sample should have, `facets` the fields
    of a sample's metadata that the log's numbers are grouped by."""

    log: str
    model: str
    epochs: int
    scorer: str
    labels: list[tuple[str, str]]
    facets: list[str]
    add: Callable[[str, ScoreVerdict], None]


def case_of(sample: LogSample, unknown: JsonObject, around: Around) -> ForeignCase:
    """Return all rows of a sample; ValueError if its parts are not what they should be."""
    look = lookup(sample.attachments)
    if look is not None:
        sample.input = resolve(sample.input, look)
        sample.messages = resolve(sample.messages, look)
    choice = sample.output.choices[0] if sample.output.choices else None
    response = _response(sample, choice, around)
    response.metadata = _metadata(sample, choice, around, {**unknown, **_unshown(sample)}, look)
    if choice is not None:
        _add_choice(response, choice, look)
    evaluations = _evaluations(sample, response, around)
    spans: list[Packed] = []
    if is_filled(events := sample.events):
        attachments = UNSET if look is None else sample.attachments
        spans = [Packed("inspect_ai", events, sample.events_data, attachments)]
    return ForeignCase(_item(sample, response.item_id), response, evaluations, spans)


def _item(sample: LogSample, id: str) -> JsonObject:
    data: JsonObject = {"input": sample.input}
    if not isinstance(sample.input, str):
        messages = [_input_message(row) for row in sample.input]
        data = {"input": input_text(sample.input), "messages": messages}
    if sample.choices:
        data["choices"] = sample.choices
    rest = kept_of_item(sample)
    metadata = {**sample.metadata, REST: rest} if rest else sample.metadata
    return {"id": id, "data": data, "ground_truth": sample.target, "metadata": metadata}


def _input_message(row: Any) -> Any:
    """A message of an item, without the id that every run makes anew."""
    if not isinstance(row, dict):
        return row
    plain: JsonObject = {name: value for name, value in row.items() if name != "id"}
    if isinstance(plain.get("content"), list):
        plain["content"] = [part_row(part) for part in plain["content"]]
    return plain


def _response(sample: LogSample, choice: OutputChoice | None, around: Around) -> Response:
    output, id, index = sample.output, str(sample.id), sample.epoch - 1
    several_turns = (sample.turn_count or 0) > 1
    seconds = sample.working_time if several_turns or output.time is None else output.time
    row = Response(
        item_id=id,
        sample_id=f"{id}_sample_{index}",
        sample_index=index,
        total_samples=around.epochs,
        model_name=around.model,
        prompt=input_text(sample.input),
        response=output.completion or "",
        inference_time=seconds or 0.0,
        timestamp=seconds_of(sample.completed_at) or 0.0,
        key=key_of("inspect_ai", around.log, sample.id, sample.epoch),
        task=around.model,
        outcome=_outcome(sample, choice),
        messages=message_rows(_messages_before(sample, choice)),
        served_model=output.model if choice is not None else None,
    )
    if usage := sample.model_usage.get(around.model) or output.usage:
        _add_usage(row, usage)
    if row.outcome == "errored":
        row.error = output.error if sample.error is None else sample.error.message
        row.error_kind = "permanent"
    return row


def _messages_before(sample: LogSample, choice: OutputChoice | None) -> list[JsonObject]:
    """Return the messages without the answer, which is the last one."""
    messages = sample.messages
    is_answered = choice is not None and messages and messages[-1].get("role") == "assistant"
    return messages[:-1] if is_answered else messages


def _add_usage(row: Response, usage: ModelUsage) -> None:
    row.prompt_tokens, row.completion_tokens = usage.input_tokens, usage.output_tokens
    row.total_tokens = usage.total_tokens
    row.cost = usage.total_cost
    if row.inference_time:
        row.tokens_per_second = usage.total_tokens / row.inference_time


def _add_choice(row: Response, choice: OutputChoice, look: Look | None) -> None:
    content = choice.message.content
    if not isinstance(content, str):
        content = resolve(content, look) if look is not None else content
        row.reasoning = thoughts(content)
    if choice.message.tool_calls:
        row.tool_calls = calls_row(choice.message.tool_calls)
    if choice.logprobs is not None:
        row.logprobs = choice.logprobs.get("content")


def _outcome(sample: LogSample, choice: OutputChoice | None) -> ResponseOutcome:
    if sample.error is not None:
        return "errored"
    if choice is None:
        return "errored" if sample.output.error else "ok"
    if choice.stop_reason == _REFUSED or refuses(choice.message.content):
        return "refused"
    details = choice.stop_details
    return "refused" if details is not None and details.get("type") == "refusal" else "ok"


def _metadata(
    sample: LogSample,
    choice: OutputChoice | None,
    around: Around,
    rest: JsonObject,
    look: Look | None,
) -> JsonObject:
    metadata: JsonObject = {"model_id": around.model, "finish_reason": None}
    metadata["response_id"] = sample.output.response_id
    if choice is not None:
        metadata["finish_reason"] = _FINISH.get(choice.stop_reason, choice.stop_reason)
    parts = kept_of_response(sample)
    if look is not None:
        parts = {name: settle(raw, look) for name, raw in parts.items()}
    for name in ("started_at", "total_time", "working_time", "turn_count"):
        if (value := getattr(sample, name)) is not None:
            parts[name] = value
    if sample.model_usage.keys() - {around.model}:
        parts["model_usage"] = sample.model_usage
    if sample.error is not None and sample.error.traceback:
        parts["traceback"] = sample.error.traceback
    metadata[REST] = {**parts, **rest}
    return metadata


def _unshown(sample: LogSample) -> JsonObject:
    """Return what the model said that has no place in a response."""
    output = sample.output
    rest: JsonObject = {}
    if output.choices and output.choices[0].stop_details:
        rest["stop_details"] = output.choices[0].stop_details
    if len(output.choices) > 1:
        rest["further_choices"] = output.choices[1:]
    return {**rest, **kept_of_output(output)}


def _evaluations(sample: LogSample, response: Response, around: Around) -> list[Evaluation]:
    rows: list[Evaluation] = []
    scores = sample.scores or ({_PLACEHOLDER: sample.score} if sample.score is not None else {})
    metadata = {"model_id": around.model}
    if around.facets:
        metadata |= {name: sample.metadata.get(name) for name in around.facets}
    for name, mark in scores.items():
        scorer = around.scorer if name == _PLACEHOLDER else name
        verdicts = parts_of(scorer, mark)
        for number, verdict in enumerate(verdicts):
            around.add(response.item_id, verdict)
            row = _evaluation(response, scorer, verdict, metadata)
            row.part, row.detailed_results = (number, len(verdicts)), _details(mark)
            rows.append(row)
    if not scores and response.outcome == "errored":
        why = f"no answer to score: {response.error}"
        for scorer, label in around.labels:
            failed = ScoreVerdict(label, "errored", error=why)
            rows.append(_evaluation(response, scorer, failed, metadata))
    return rows


def _evaluation(
    response: Response, scorer: str, verdict: ScoreVerdict, metadata: JsonObject
) -> Evaluation:
    return evaluation_of(
        response,
        verdict.label,
        passed=verdict.passed,
        score=verdict.score,
        metadata=metadata,
        key=key_of("inspect_ai", response.key, scorer),
        scorer=scorer,
        outcome=verdict.outcome,
        error=verdict.error,
        error_kind="permanent" if verdict.outcome == "errored" else None,
        value=verdict.value,
    )


def _details(mark: GivenScore) -> JsonObject:
    said = {"answer": mark.answer, "explanation": mark.explanation, "reason": mark.reason}
    details = {name: value for name, value in said.items() if value is not None}
    return details | without_empty({"metadata": mark.metadata, "history": mark.history})
