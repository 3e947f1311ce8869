"""A completion as a row of `responses.jsonl`, and back: what `record` writes and `replay` reads."""

import time

from assay.interfaces import Completion, Request
from assay.records import Response
from assay.text.messages import messages_text


def row_of(request: Request, answer: Completion, model_name: str, seconds: float) -> Response:
    """The row of one call; it belongs to no item."""
    return Response(
        item_id="",
        sample_index=request.sample_index,
        total_samples=request.sample_index + 1,
        model_name=model_name,
        prompt=messages_text(request.messages),
        response=answer.text,
        inference_time=seconds,
        timestamp=time.time(),
        metadata={
            "model_id": model_name,
            "sampling": request.params,
            "finish_reason": answer.finish_reason,
            "response_id": answer.response_id,
        },
        total_tokens=answer.total_tokens,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        outcome="refused" if answer.refused else "ok",
        messages=request.messages,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls,
        cost=answer.cost,
        served_model=answer.served_model,
        served_fingerprint=answer.served_fingerprint,
        logprobs=answer.logprobs,
    )


def completion_of(row: Response) -> Completion:
    """What was answered. It costs nothing to hear it again, so the price is left out."""
    return Completion(
        text=row.response,
        finish_reason=row.metadata.get("finish_reason"),
        response_id=row.metadata.get("response_id"),
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        total_tokens=row.total_tokens,
        served_model=row.served_model,
        served_fingerprint=row.served_fingerprint,
        reasoning=row.reasoning,
        tool_calls=row.tool_calls,
        refused=row.outcome == "refused",
        logprobs=row.logprobs,
    )
