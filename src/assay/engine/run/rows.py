"""What a task answered as a row of `responses.jsonl`."""

import re
import time

import msgspec

from assay.engine.run.plan import Cell
from assay.errors import ErrorKind
from assay.interfaces import Answer, Log
from assay.records import Response
from assay.text.tool_calls import invalid_calls

_TOTAL_SAMPLES = re.compile(rb'"total_samples":\d+')
_encode = msgspec.json.Encoder().encode


def response_of(
    cell: Cell,
    answer: Answer,
    samples: int,
    seconds: float,
    error: str | None,
    kind: ErrorKind | None,
) -> Response:
    done = answer.completion
    metadata = {**answer.metadata, **cell.task.facets, "finish_reason": None, "response_id": None}
    row = Response(
        item_id=cell.item.id,
        sample_id=f"{cell.item.id}_sample_{cell.sample}",
        sample_index=cell.sample,
        total_samples=samples,
        model_name=cell.task.model_name,
        prompt=answer.prompt or cell.work.prompt,
        response=answer.text,
        inference_time=seconds,
        timestamp=time.time(),
        metadata=metadata,
        error=error,
        key=cell.key.hex(),
        task=cell.task.name,
        outcome=answer.outcome,
        error_kind=kind,
        output=answer.output,
        messages=answer.messages or cell.work.messages,
    )
    if done is not None:
        metadata["finish_reason"] = done.finish_reason
        metadata["response_id"] = done.response_id
        if done.masked:
            metadata["masked"] = True
        if done.stream:
            metadata["stream"] = done.stream
        row.total_tokens = done.total_tokens
        row.prompt_tokens = done.prompt_tokens
        row.completion_tokens = done.completion_tokens
        row.tokens_per_second = (
            done.total_tokens / seconds if done.total_tokens and seconds else None
        )
        row.reasoning = done.reasoning
        row.tool_calls = done.tool_calls
        if done.tool_calls and (invalid := invalid_calls(done.tool_calls)):
            metadata["invalid_tool_calls"] = invalid
        row.cost = done.cost
        row.served_model = done.served_model
        row.served_fingerprint = done.served_fingerprint
        row.logprobs = done.logprobs
    return row


def written(row: Response) -> tuple[Response, bytes]:
    """The row and its line; an answer that JSON cannot hold (a lone surrogate, a user's object) is an error."""
    try:
        return row, _encode(row) + b"\n"
    except (TypeError, ValueError, OverflowError, RecursionError) as failure:
        row.error = f"the answer cannot be written as JSON: {failure}"
        row.outcome, row.error_kind, row.prompt, row.response = "errored", "permanent", "", ""
        row.output = row.messages = row.reasoning = row.tool_calls = row.logprobs = None
        row.served_model = row.served_fingerprint = None
        row.metadata |= {"finish_reason": None, "response_id": None}
        return row, _encode(row) + b"\n"


def set_total_samples(log: Log, samples: int) -> None:
    """Existing rows of a plan that has more samples now, or fewer, say so."""
    # Inside of a JSON text a quote has a backslash before it: the first match is the field itself.
    now = b'"total_samples":%d' % samples
    log.replace(_TOTAL_SAMPLES.sub(now, line, count=1) + b"\n" for _, line in log.scan())
