"""The row of one cell: what its task answered, or why it did not."""

import time

from assay.errors import ErrorKind
from assay.interfaces import Answer
from assay.records import Response
from assay.steps.plan import Cell


def response_of(
    cell: Cell, answer: Answer, samples: int, seconds: float, error: str | None, kind: ErrorKind | None
) -> Response:
    done = answer.completion
    metadata = {**cell.task.facets, "finish_reason": None, "response_id": None}
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
        row.total_tokens = done.total_tokens
        row.prompt_tokens = done.prompt_tokens
        row.completion_tokens = done.completion_tokens
        row.tokens_per_second = done.total_tokens / seconds if done.total_tokens and seconds else None
        row.reasoning = done.reasoning
        row.tool_calls = done.tool_calls
        row.cost = done.cost
        row.served_model = done.served_model
        row.served_fingerprint = done.served_fingerprint
        row.logprobs = done.logprobs
    return row
