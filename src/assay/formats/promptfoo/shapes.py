"""The fields of promptfoo's results that have a place in our rows; all may be missing, none may be of another type."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from assay.foreign import encoded_names, free_name
from assay.sdk import JsonObject


class ProviderName(msgspec.Struct, gc=False):
    id: str | None = None
    label: str | None = None


class PromptText(msgspec.Struct, gc=False):
    """`raw` is what was sent, in a row; in the list of prompts it is the template."""

    id: str | None = None
    raw: str = ""
    label: str | None = None
    provider: str | None = None


class TokenUsage(msgspec.Struct, gc=False):
    prompt: float | None = None
    completion: float | None = None
    total: float | None = None
    cached: float | None = None


class ProviderReply(msgspec.Struct, gc=False, rename="camel"):
    output: Any = None
    error: Any = None
    token_usage: TokenUsage | None = None
    cached: bool | None = None
    cost: float | None = None
    is_refusal: bool | None = None
    finish_reason: str | None = None
    log_probs: list[Any] | None = None
    latency_ms: float | None = None
    metadata: JsonObject | None = None


class Assertion(msgspec.Struct, gc=False):
    type: str = ""
    metric: str | None = None
    asserts: list["Assertion"] | None = msgspec.field(default=None, name="assert")


class Component(msgspec.Struct, gc=False):
    """The result of one assertion, or of a set of them, whose results follow it."""

    passed: bool | None = msgspec.field(default=None, name="pass")
    score: float | None = None
    reason: Any = None
    assertion: Assertion | None = None
    metadata: JsonObject | None = None

    @property
    def grader_failed(self) -> bool:
        """Return whether a model should have graded, and could not."""
        return (self.metadata or {}).get("graderError") is True


class Grading(msgspec.Struct, gc=False, rename="camel"):
    reason: Any = None
    component_results: list[Component | None] | None = None
    named_scores: dict[str, float | None] | None = None
    named_score_weights: dict[str, float | None] | None = None
    comment: Any = None


class Test(msgspec.Struct, gc=False):
    description: str | None = None
    vars: JsonObject | None = None
    metadata: JsonObject | None = None
    asserts: list[Assertion] | None = msgspec.field(default=None, name="assert")


class PromptfooResult(msgspec.Struct, gc=False, rename="camel"):
    """An entry of `results.results`, or a line of a JSONL file."""

    prompt_idx: int
    provider: ProviderName | str
    prompt: PromptText
    success: bool
    test_case: Test = msgspec.field(default_factory=Test)
    vars: JsonObject | None = None
    response: ProviderReply | None = None
    score: float | None = None
    failure_reason: int | None = None
    error: Any = None
    grading_result: Grading | None = None
    named_scores: dict[str, float | None] | None = None
    latency_ms: float | None = None
    token_usage: TokenUsage | None = None
    cost: float | None = None
    metadata: JsonObject | None = None

    def weight(self, metric: str) -> float:
        """Return how much a named score counts in promptfoo's mean."""
        weights = self.grading_result.named_score_weights if self.grading_result else None
        weight = (weights or {}).get(metric)
        return 1.0 if weight is None else weight


# What is kept under `metadata.source`, without being news: everything else that is not in the shapes is counted.
KNOWN_OF_ROW = frozenset({"id", "testIdx", "description", "metadata", "evaluationId", "traceId"})
KNOWN_OF_REPLY = frozenset(
    {"raw", "guardrails", "metadata", "sessionId", "conversationEnded", "format", "audio"}
)
KNOWN_OF_COMPONENT = frozenset(
    {"tokensUsed", "namedScores", "namedScoreWeights", "suggestions", "comment"}
)
PLACED_OF_ROW = encoded_names(PromptfooResult) - {"metadata"} | {"promptId"}
PLACED_OF_REPLY = encoded_names(ProviderReply) - {"metadata"}
PLACED_OF_COMPONENT = encoded_names(Component) | {"componentResults"}


VERDICT, SCORE = "pass", "score"
OWN = frozenset({VERDICT, SCORE})
_VARIABLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")


class Named(NamedTuple):
    """A label, what made it, and the metric that it stands for, if any."""

    label: str
    kind: str
    metric: str = ""


def planned_labels(asserts: Sequence[Assertion] | None, variables: JsonObject) -> list[Named]:
    """Return the labels of a test's assertions, in the order of their results, and of metrics that several of them share."""
    flat: list[tuple[str, str]] = []
    for entry in asserts or ():
        flat.append((entry.type, metric_name(entry.metric, variables)))
        flat += [
            (inner.type, metric_name(inner.metric, variables)) for inner in entry.asserts or ()
        ]
    named = _names(flat)
    taken = {entry.label for entry in named}
    shared = {metric for _, metric in flat if metric} - taken - OWN
    return [*named, *(Named(metric, "named_score", metric) for metric in sorted(shared))]


def labels_of_results(results: Sequence[Component | None], variables: JsonObject) -> list[Named]:
    """Return the label of each result of an assertion."""
    return _names([_kind(result, variables) for result in results])


def _kind(result: Component | None, variables: JsonObject) -> tuple[str, str]:
    if result is None:
        return "assertion", ""
    if result.assertion is not None and result.assertion.type:
        return result.assertion.type, metric_name(result.assertion.metric, variables)
    group = (result.metadata or {}).get("assertionSet")
    if isinstance(group, dict):
        return "assert-set", metric_name(group.get("metric"), variables)
    return "assertion", ""


def _names(flat: list[tuple[str, str]]) -> list[Named]:
    alone = Counter(metric for _, metric in flat if metric)
    taken = {*OWN, *alone}
    named: list[Named] = []
    for kind, metric in flat:
        kind = kind or "assertion"
        is_own = alone[metric] == 1 and metric not in OWN
        label = metric if is_own else free_name(kind, taken)
        taken.add(label)
        named.append(Named(label, kind, metric))
    return named


def metric_name(metric: Any, variables: JsonObject) -> str:
    """Return the name of a metric, which may hold variables of the test."""
    if not isinstance(metric, str):
        return ""
    if "{{" not in metric:
        return metric
    return _VARIABLE.sub(lambda match: str(variables.get(match[1], match[0])), metric)
