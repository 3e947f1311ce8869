"""Traces with assessments, as `mlflow.genai.evaluate` leaves them: a trace is an answer, feedback is a label,
expectations are what was expected."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from assay.foreign import (
    REST,
    ForeignCase,
    Repeats,
    content_id,
    failure,
    key_of,
)
from assay.formats.mlflow.metrics import MetricScores, MlflowRun, decoded_json, evaluation, text_of
from assay.readers._results import first_filled, response_of, without_empty
from assay.sdk import Evaluation, JsonObject, Response, as_object, first_text, list_of, rows_of

_OWN = "mlflow."
_IDS = ("id", "item_id", "question_id", "example_id")
_TOKENS = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "total_tokens": "total_tokens",
}
_SOURCE_RUN = "mlflow.assessment.sourceRunId"


class Assessment(msgspec.Struct, kw_only=True):
    """One feedback or expectation; `value` is decoded_json."""

    id: str
    name: str
    kind: str
    value: Any = None
    error: Any = None
    source_type: str = ""
    source_id: str = ""
    rationale: str | None = None
    valid: bool = True
    metadata: JsonObject = {}


class MlflowTrace(msgspec.Struct, kw_only=True):
    """A trace as it is stored in either place. `spans` are MLflow's, the root among them has no parent."""

    id: str
    status: str = "OK"
    seconds: float = 0.0
    timestamp: float = 0.0
    request: Any = None
    response: Any = None
    tags: dict[str, str] = {}
    metadata: dict[str, str] = {}
    assessments: list[Assessment] = []
    spans: list[JsonObject] = []
    tokens: dict[str, int | None] = {}
    cost: float | None = None
    model: str | None = None


def case_of(trace: MlflowTrace, run: MlflowRun, scores: MetricScores, seen: Repeats) -> ForeignCase:
    """Return the item, the answer, its labels by this run, and the spans; `seen` counts the answers to an item."""
    root = next((span for span in trace.spans if not span.get("parent_span_id")), {})
    attributes = as_object(root.get("attributes"))
    inputs = decoded_json(attributes.get("mlflow.spanInputs", trace.request))
    outputs = decoded_json(attributes.get("mlflow.spanOutputs", trace.response))
    named = "question" if isinstance(inputs, str) else "input"
    data: JsonObject = inputs if isinstance(inputs, dict) else {named: inputs}
    item = _item(trace, data)
    response = _response(trace, item, outputs, run, seen.count(item["id"]))
    evaluations = list(_evaluations(trace, response, run.id, scores))
    return ForeignCase(item, response, evaluations, _spans(trace.spans))


def _item(trace: MlflowTrace, data: JsonObject) -> JsonObject:
    expectations = [entry for entry in trace.assessments if entry.kind == "expectation"]
    expected = {entry.name: entry.value for entry in expectations}
    truth = next(iter(expected.values())) if len(expected) == 1 else expected or None
    tags = _others(trace.tags)
    id = first_filled(tags, _IDS) or content_id(data, expected)
    return {"id": id, "data": data, "ground_truth": truth, "metadata": tags}


def _others(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that are not MLflow's own."""
    return {name: value for name, value in fields.items() if not name.startswith(_OWN)}


def _response(
    trace: MlflowTrace, item: JsonObject, outputs: Any, run: MlflowRun, sample: int
) -> Response:
    messages = item["data"].get("messages")
    is_chat = isinstance(messages, list) and rows_of(messages) == messages
    row = response_of(
        item["id"],
        run.model,
        sample,
        outputs,
        response=text_of(outputs),
        prompt=first_text(item["data"], ("question", "input", "prompt", "query")),
        inference_time=trace.seconds,
        timestamp=trace.timestamp,
        metadata={
            "model_id": run.model,
            REST: {"trace_id": trace.id, **without_empty(_others(trace.metadata))},
        },
        cost=trace.cost,
        served_model=trace.model,
        messages=list_of(messages) if is_chat else None,
        key=key_of("mlflow", trace.id),
        task=run.name,
        **{ours: trace.tokens.get(theirs) for ours, theirs in _TOKENS.items()},
    )
    if trace.status == "IN_PROGRESS":
        row.outcome = "skipped"
    elif trace.status == "ERROR":
        return msgspec.structs.replace(row, **failure(_exception(trace.spans)))
    return row


def _exception(spans: Sequence[JsonObject]) -> str:
    for span in reversed(spans):
        for event in rows_of(span.get("events")):
            attributes = as_object(event.get("attributes"))
            if attributes.get("exception.message"):
                return f"{attributes.get('exception.type') or 'Error'}: {attributes['exception.message']}"
    return "the trace ended with an error"


def _evaluations(
    trace: MlflowTrace, response: Response, run_id: str, scores: MetricScores
) -> Iterator[Evaluation]:
    """Yield the feedback of this run, and what people said; what was corrected later is not valid any more."""
    given: dict[str, str] = {}
    own_first = sorted(
        trace.assessments, key=lambda entry: entry.metadata.get(_SOURCE_RUN) != run_id
    )
    for entry in own_first:
        owner = entry.metadata.get(_SOURCE_RUN) or run_id
        if entry.kind != "feedback" or not entry.valid or owner != run_id:
            continue
        label, source = entry.name, entry.source_type.lower()
        if given.setdefault(label, source) != source:
            label = f"{label}/{source}"
        error = _message(entry.error) if entry.error else None
        made = evaluation(
            response, label, entry.value, scorer=entry.source_id, error=error, part=entry.id
        )
        details = {"explanation": entry.rationale, "source_type": source, "error": entry.error}
        made.detailed_results = {name: value for name, value in details.items() if value}
        if made.score is not None and label == entry.name:
            scores.add(entry.name, made.score, label)
        yield made


def _message(error: Any) -> str:
    fields = as_object(error)
    return str(fields.get("error_message") or fields.get("error_code") or error)


def _spans(spans: Sequence[JsonObject]) -> list[JsonObject]:
    """Return MLflow's spans as `assay trace` shows them, parents by their places."""
    places = {span.get("span_id"): at for at, span in enumerate(spans)}
    return [{**_span(span), "parent": places.get(span.get("parent_span_id"))} for span in spans]


def _span(span: JsonObject) -> JsonObject:
    attributes = as_object(span.get("attributes"))
    return {
        "name": str(span.get("name") or ""),
        "parent": None,
        "start": _time(span.get("start_time_unix_nano")),
        "end": _time(span.get("end_time_unix_nano")),
        "error": _exception([span]) if "ERROR" in str(span.get("status")) else None,
        "data": {name: decoded_json(value) for name, value in attributes.items()},
    }


def _time(nanoseconds: Any) -> float | None:
    return nanoseconds / 1e9 if isinstance(nanoseconds, (int, float)) else None
