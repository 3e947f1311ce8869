"""Cases of a report as our rows."""

import re
from collections.abc import Iterator
from typing import Any

from assay.engine.experiment.imports.foreign import (
    REST,
    Rest,
    Row,
    answer_text,
    count_of,
    evaluation_of,
    failure,
    fields_of,
    first_text,
    key_of,
    number_of,
)
from assay.records import Evaluation, Response

_RUN = re.compile(r" \[(\d+)/(\d+)\]$")
_TEXTS = ("question", "input", "prompt", "text", "query")
_KINDS = ("scores", "labels", "assertions")
_CONTENT = {
    "name",
    "inputs",
    "expected_output",
    "metadata",
    "output",
    "task_duration",
    "error_message",
}
_PLACED = {*_CONTENT, "metrics", "attributes", "evaluator_failures", *_KINDS}
_KEPT = {"total_duration", "source_case_name", "trace_id", "span_id", "error_stacktrace"}
_RESULT = {"name", "value", "reason", "source", "evaluator_version"}


def item_of(row: Row, id: str) -> Row:
    """The case as a dataset row; inputs that are not an object are the question."""
    inputs, metadata = row.get("inputs"), row.get("metadata")
    named = "question" if isinstance(inputs, str) else "input"
    data = inputs if isinstance(inputs, dict) else {named: inputs}
    own = metadata if isinstance(metadata, dict) else {"metadata": metadata}
    return {
        "id": id,
        "data": data,
        "ground_truth": row.get("expected_output"),
        "metadata": {} if metadata is None else own,
    }


def response_of(
    row: Row, item: Row, model: str, task: str, rest: Rest, *, failed: bool
) -> Response:
    """What the task returned, or the error that it raised."""
    output = row.get("output")
    number, count = _run_of(row)
    metrics = fields_of(row.get("metrics"))
    cost = metrics.get("cost")
    metadata: Row = {"model_id": model}
    metadata |= {name: row[name] for name in ("metrics", "attributes") if row.get(name)}
    kept = rest.of(row, _PLACED, _KEPT, "case.")
    if kept:
        metadata[REST] = kept
    read, written = (count_of(metrics.get(f"{way}_tokens")) for way in ("input", "output"))
    return Response(
        item_id=item["id"],
        sample_id=f"{item['id']}_sample_{number}",
        sample_index=number,
        total_samples=count,
        model_name=model,
        prompt=first_text(item["data"], _TEXTS),
        response="" if failed else answer_text(output),
        inference_time=number_of(row.get("task_duration")) or 0.0,
        metadata=metadata,
        prompt_tokens=read,
        completion_tokens=written,
        total_tokens=(read or 0) + (written or 0) or None,
        cost=None if number_of(cost) is None else cost,
        key=key_of("pydantic_evals", model, task, item["id"], number, failed, output),
        task=task,
        output=None if isinstance(output, str) else output,
        **failure(str(row.get("error_message") or "the task has failed") if failed else None),
    )


def _run_of(row: Row) -> tuple[int, int]:
    """Number and count of a case that is run several times, which its name ends with."""
    found = _RUN.search(str(row.get("name") or "")) if row.get("source_case_name") else None
    return (int(found[1]) - 1, int(found[2])) if found else (0, 1)


# ---- evaluations


def evaluations_of(row: Row, response: Response, rest: Rest) -> Iterator[Evaluation]:
    """One row for each score, label and assertion."""
    for kind in _KINDS:
        for label, result in fields_of(row.get(kind)).items():
            fields = result if isinstance(result, dict) else {"value": result}
            yield _evaluation(label, kind[:-1], fields, response, rest)


def _evaluation(label: str, kind: str, result: Row, response: Response, rest: Rest) -> Evaluation:
    value = result.get("value")
    number = number_of(value)
    said = {name: result.get(name) for name in ("source", "evaluator_version")}
    details = {"kind": kind, **{name: text for name, text in said.items() if text is not None}}
    details |= rest.of(result, _RESULT, (), "result.")
    if result.get("reason") is not None:
        details["explanation"] = result["reason"]
    unfit = number is None if kind != "label" else value is None
    return labelled(
        response,
        label,
        str(fields_of(result.get("source")).get("name") or label),
        passed=bool(value) if kind == "assertion" and not unfit else None,
        score=number if kind != "label" else None,
        detailed_results=details,
        value=value if kind == "label" else None,
        **failure(f"{value!r} is not a number" if unfit else None),
    )


def labelled(response: Response, label: str, scorer: str, **fields: Any) -> Evaluation:
    """A label of a response."""
    key = key_of("pydantic_evals", response.key, label)
    return evaluation_of(response, label, scorer=scorer, key=key, **fields)
