"""What a trace says about time and tokens."""

from collections.abc import Sequence
from datetime import timedelta

from assay.formats.intelligence_layer.core.tracer.tracer import ExportedSpan, SpanType, TaskSpanAttributes

COMPLETE = "_Complete"  # the original's task that calls a model


def extract_latency_from_trace(trace: Sequence[ExportedSpan]) -> int:
    """Microseconds from the beginning to the end of the trace's one root."""
    roots = [span for span in trace if span.parent_id is None]
    if len(roots) != 1:
        raise ValueError(f"a trace has exactly one root span, found {len(roots)}")
    return (roots[0].end_time - roots[0].start_time) // timedelta(microseconds=1)


def extract_token_count_from_trace(trace: Sequence[ExportedSpan]) -> int:
    """Tokens that models generated: the sum over all completions in the trace."""
    return sum(_tokens(span) for span in trace if _is_completion(span))


def _is_completion(span: ExportedSpan) -> bool:
    return span.attributes.type == SpanType.TASK_SPAN and span.name == COMPLETE


def _tokens(span: ExportedSpan) -> int:
    output = span.attributes.output if isinstance(span.attributes, TaskSpanAttributes) else None
    count = output.get("num_tokens_generated") if isinstance(output, dict) else None
    if count is None:
        count = getattr(output, "num_tokens_generated", None)
    if count is None:
        raise ValueError(f"the span {span.name!r} has no output with the number of generated tokens")
    return count
