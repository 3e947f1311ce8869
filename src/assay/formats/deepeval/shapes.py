"""The fields of deepeval's test runs that have a place in our rows; all may be missing, none may be of another type."""

from typing import Any

import msgspec

from assay.engine.experiment.imports.values import encoded_names


class Metric(msgspec.Struct, gc=False, rename="camel"):
    """What a metric said about a test case. One with an `error` has no score, and its `success` is false all the same;
    a `flaky` one does not decide whether the case passes."""

    name: str = "metric"
    score: float | None = None
    success: bool | None = None
    reason: Any = None
    error: Any = None


class Turn(msgspec.Struct, gc=False, rename="camel"):
    role: str = "user"
    content: str = ""
    retrieval_context: list[Any] | None = None
    tools_called: list[Any] | None = None


class TestCase(msgspec.Struct, gc=False, rename="camel"):
    """A single answer, or a conversation if it has turns."""

    name: str = ""
    input: Any = None
    actual_output: Any = None
    expected_output: Any = None
    context: list[Any] | None = None
    retrieval_context: list[Any] | None = None
    tools_called: list[Any] | None = None
    expected_tools: list[Any] | None = None
    token_cost: float | None = None
    input_token_count: float | None = None
    output_token_count: float | None = None
    completion_time: float | None = None
    tags: list[Any] | None = None
    success: bool | None = None
    metrics_data: list[Metric] | None = None
    metadata: dict[str, Any] | None = None
    turns: list[Turn] | None = None
    scenario: str | None = None
    expected_outcome: str | None = None
    user_description: str | None = None


# What is kept under `metadata.source`, without being news: everything else that is not in the shapes is counted.
KNOWN = frozenset(
    {
        "order",
        "runDuration",
        "evaluationCost",
        "comments",
        "imagesMapping",
        "flaky",
        "trace",
        "expectationsData",
    }
)
PLACED = encoded_names(TestCase)
KNOWN_OF_METRIC = frozenset(
    {
        "threshold",
        "strictMode",
        "flaky",
        "evaluationModel",
        "evaluationCost",
        "inputTokenCount",
        "outputTokenCount",
        "verboseLogs",
        "expectationsData",
    }
)
PLACED_OF_METRIC = encoded_names(Metric)
