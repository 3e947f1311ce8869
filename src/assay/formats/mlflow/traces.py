"""Traces with assessments, as `mlflow.genai.evaluate` leaves them: a trace is an answer, feedback is a label,
expectations are what was expected."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from assay.engine.experiment.imports.foreign import (
    REST,
    ForeignCase,
    Repeats,
    Row,
    content_id,
    failure,
    fields_of,
    first_text,
    key_of,
    list_of,
    rows_of,
)
from assay.formats.mlflow.metrics import Scores, decoded, evaluation, text_of
from assay.records import Evaluation, Response

_OWN = "mlflow."
_IDS = ("id", "item_id", "question_id", "example_id")
_SOURCE_RUN = "mlflow.assessment.sourceRunId"


class Assessment(msgspec.Struct, kw_only=True):
    """One feedback or expectation; `value` is decoded."""

    id: str
    name: str
    kind: str
    value: Any = None
    error: Any = None
    source_type: str = ""
    source_id: str = ""
    rationale: str | None = None
    valid: bool = True
    metadata: Row = {}


class Trace(msgspec.Struct, kw_only=True):
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
    spans: list[Row] = []
    tokens: dict[str, int | None] = {}
    cost: float | None = None
    model: str | None = None


def case_of(
    trace: Trace, run_id: str, model: str, task: str, scores: Scores, seen: Repeats
) -> ForeignCase:
    """The item, the answer, its labels by this run, and the spans; `seen` counts the answers to an item."""
    root = next((span for span in trace.spans if not span.get("parent_span_id")), {})
    attributes = fields_of(root.get("attributes"))
    inputs = decoded(attributes.get("mlflow.spanInputs", trace.request))
    outputs = decoded(attributes.get("mlflow.spanOutputs", trace.response))
    expected = {
        entry.name: entry.value for entry in trace.assessments if entry.kind == "expectation"
    }
    named = "question" if isinstance(inputs, str) else "input"
    data = inputs if isinstance(inputs, dict) else {named: inputs}
    tags = {name: value for name, value in trace.tags.items() if not name.startswith(_OWN)}
    id = next((tags[name] for name in _IDS if tags.get(name)), "") or content_id(data, expected)
    truth = next(iter(expected.values())) if len(expected) == 1 else expected or None
    item = {"id": id, "data": data, "ground_truth": truth, "metadata": tags}
    response = _response(trace, id, data, outputs, model, task)
    number = seen.count(id)
    response.sample_index, response.total_samples = number, number + 1
    response.sample_id = f"{id}_sample_{number}"
    evaluations = list(_evaluations(trace, response, run_id, scores))
    return ForeignCase(item, response, evaluations, _spans(trace.spans))


def _response(trace: Trace, id: str, data: Row, outputs: Any, model: str, task: str) -> Response:
    became: Row = {"outcome": "skipped"} if trace.status == "IN_PROGRESS" else {}
    if trace.status == "ERROR":
        became = failure(_exception(trace.spans))
    messages = data.get("messages")
    is_chat = isinstance(messages, list) and rows_of(messages) == messages
    rest = {
        name: value for name, value in trace.metadata.items() if value and not name.startswith(_OWN)
    }
    return Response(
        item_id=id,
        model_name=model,
        prompt=first_text(data, ("question", "input", "prompt", "query")),
        response=text_of(outputs),
        output=None if isinstance(outputs, str) else outputs,
        inference_time=trace.seconds,
        timestamp=trace.timestamp,
        metadata={"model_id": model, REST: {"trace_id": trace.id, **rest}},
        prompt_tokens=trace.tokens.get("input_tokens"),
        completion_tokens=trace.tokens.get("output_tokens"),
        total_tokens=trace.tokens.get("total_tokens"),
        cost=trace.cost,
        served_model=trace.model,
        messages=list_of(messages) if is_chat else None,
        key=key_of("mlflow", trace.id),
        task=task,
        **became,
    )


def _exception(spans: Sequence[Row]) -> str:
    for span in reversed(spans):
        for event in rows_of(span.get("events")):
            attributes = fields_of(event.get("attributes"))
            if attributes.get("exception.message"):
                return f"{attributes.get('exception.type') or 'Error'}: {attributes['exception.message']}"
    return "the trace ended with an error"


def _evaluations(
    trace: Trace, response: Response, run_id: str, scores: Scores
) -> Iterator[Evaluation]:
    """The feedback of this run, and what people said; what was corrected later is not valid any more."""
    given: dict[str, str] = {}
    own_first = sorted(
        trace.assessments, key=lambda entry: entry.metadata.get(_SOURCE_RUN) != run_id
    )
    for entry in own_first:
        owner = entry.metadata.get(_SOURCE_RUN) or run_id
        if entry.kind != "feedback" or not entry.valid or owner != run_id:
            continue
        source = entry.source_type.lower()
        label = (
            entry.name
            if given.setdefault(entry.name, source) == source
            else f"{entry.name}/{source}"
        )
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
    fields = fields_of(error)
    return str(fields.get("error_message") or fields.get("error_code") or error)


def _spans(spans: Sequence[Row]) -> list[Row]:
    """MLflow's spans as `assay trace` shows them, parents by their places."""
    places = {span.get("span_id"): at for at, span in enumerate(spans)}
    return [
        {
            "name": str(span.get("name") or ""),
            "parent": places.get(span.get("parent_span_id")),
            "start": _time(span.get("start_time_unix_nano")),
            "end": _time(span.get("end_time_unix_nano")),
            "error": _exception([span]) if "ERROR" in str(span.get("status")) else None,
            "data": {
                name: decoded(value) for name, value in fields_of(span.get("attributes")).items()
            },
        }
        for span in spans
    ]


def _time(nanoseconds: Any) -> float | None:
    return nanoseconds / 1e9 if isinstance(nanoseconds, (int, float)) else None
