"""Cases of a report as our rows."""

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec

from assay.engine.experiment.imports.foreign import REST, Rest, key_of
from assay.records import Evaluation, Response

Row = dict[str, Any]
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


class Names(NamedTuple):
    """What evaluations have of their response."""

    item_id: str
    sample_id: str
    sample_index: int
    model_name: str
    key: str

    @classmethod
    def of(cls, response: Response) -> "Names":
        return cls(
            response.item_id,
            response.sample_id,
            response.sample_index,
            response.model_name,
            response.key,
        )


def item_of(row: Row, id: str) -> Row:
    """The case as a dataset row; inputs that are not an object are the question."""
    inputs, metadata = row.get("inputs"), row.get("metadata")
    if isinstance(inputs, dict):
        data = cast("Row", inputs)
    else:
        data = {"question" if isinstance(inputs, str) else "input": inputs}
    own = (
        cast("Row", metadata)
        if isinstance(metadata, dict)
        else {}
        if metadata is None
        else {"metadata": metadata}
    )
    return {"id": id, "data": data, "ground_truth": row.get("expected_output"), "metadata": own}


def response_of(
    row: Row, item: Row, model: str, task: str, rest: Rest, *, failed: bool
) -> Response:
    """What the task returned, or the error that it raised."""
    output = row.get("output")
    number, count = _run_of(row)
    metrics = _numbers(row.get("metrics"))
    metadata: Row = {"model_id": model}
    metadata |= {name: row[name] for name in ("metrics", "attributes") if row.get(name)}
    kept = rest.of(row, _PLACED, _KEPT, "case.")
    if kept:
        metadata[REST] = kept
    tokens = {name: _whole(metrics.get(name)) for name in ("input_tokens", "output_tokens")}
    total = sum(known for known in tokens.values() if known is not None)
    return Response(
        item_id=item["id"],
        sample_id=f"{item['id']}_sample_{number}",
        sample_index=number,
        total_samples=count,
        model_name=model,
        prompt=_question(item["data"]),
        response="" if failed else text_of(output),
        inference_time=_seconds(row.get("task_duration")),
        metadata=metadata,
        error=str(row.get("error_message") or "the task has failed") if failed else None,
        error_kind="permanent" if failed else None,
        prompt_tokens=tokens["input_tokens"],
        completion_tokens=tokens["output_tokens"],
        total_tokens=total or None,
        cost=metrics.get("cost"),
        key=key_of("pydantic_evals", model, task, item["id"], number, failed, output),
        task=task,
        outcome="errored" if failed else "ok",
        output=None if isinstance(output, str) else output,
    )


def _run_of(row: Row) -> tuple[int, int]:
    """Number and count of a case that is run several times, which its name ends with."""
    found = _RUN.search(str(row.get("name") or "")) if row.get("source_case_name") else None
    return (int(found[1]) - 1, int(found[2])) if found else (0, 1)


def _question(data: Row) -> str:
    return next((data[name] for name in _TEXTS if isinstance(data.get(name), str)), "")


def text_of(value: Any) -> str:
    """An output as text: JSON, unless it is text."""
    return (
        value
        if isinstance(value, str)
        else ""
        if value is None
        else msgspec.json.encode(value).decode()
    )


def _numbers(value: Any) -> dict[str, float]:
    fields = cast("Row", value) if isinstance(value, dict) else {}
    return {name: entry for name, entry in fields.items() if number_of(entry) is not None}


def number_of(value: Any) -> float | None:
    """A finite number; None for what is not one."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _seconds(value: Any) -> float:
    return number_of(value) or 0.0


# ---- evaluations


def evaluations_of(row: Row, names: Names, rest: Rest) -> Iterator[Evaluation]:
    """One row for each score, label and assertion."""
    for kind in _KINDS:
        results = row.get(kind)
        for label, result in cast("Row", results).items() if isinstance(results, dict) else ():
            fields = cast("Row", result) if isinstance(result, dict) else {"value": result}
            yield _evaluation(label, kind[:-1], fields, names, rest)


def _evaluation(label: str, kind: str, result: Row, names: Names, rest: Rest) -> Evaluation:
    value = result.get("value")
    number = number_of(value)
    unfit = number is None if kind != "label" else value is None
    details = {
        "kind": kind,
        **{
            name: result[name]
            for name in ("reason", "source", "evaluator_version")
            if result.get(name) is not None
        },
        **rest.of(result, _RESULT, (), "result."),
    }
    if "reason" in details:
        details["explanation"] = details.pop("reason")
    error = f"{value!r} is not a number" if unfit else None
    return Evaluation(
        item_id=names.item_id,
        sample_id=names.sample_id,
        sample_index=names.sample_index,
        label=label,
        model_name=names.model_name,
        passed=bool(value) if kind == "assertion" and not unfit else None,
        score=number if kind != "label" else None,
        detailed_results=details,
        metadata={"model_id": names.model_name},
        key=key_of("pydantic_evals", names.key, label),
        responses=[names.key],
        scorer=_scorer(result, label),
        outcome="errored" if unfit else "scored",
        error=error,
        error_kind="permanent" if unfit else None,
        value=value if kind == "label" else None,
    )


def _scorer(result: Row, label: str) -> str:
    source = result.get("source")
    return str(cast("Row", source).get("name") or label) if isinstance(source, dict) else label


def errored(
    names: Names, label: str, scorer: str, error: str, *, details: Row | None = None
) -> Evaluation:
    """The label that an evaluator, or the task before it, could not give."""
    return Evaluation(
        item_id=names.item_id,
        sample_id=names.sample_id,
        sample_index=names.sample_index,
        label=label,
        model_name=names.model_name,
        detailed_results=details or {},
        metadata={"model_id": names.model_name},
        key=key_of("pydantic_evals", names.key, label),
        responses=[names.key],
        scorer=scorer,
        outcome="errored",
        error=error or "the evaluator has failed",
        error_kind="permanent",
    )
