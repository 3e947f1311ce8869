"""One test case of deepeval as an item, a response and its evaluations. No model was asked by deepeval: the answer came
with the case."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from assay.engine.experiment.imports.foreign import (
    REST,
    ForeignCase,
    answer_text,
    content_id,
    count_of,
    encoded_names,
    evaluation_of,
    fields_of,
    free_name,
    key_of,
    list_of,
    number_of,
    without_secrets,
)
from assay.readers._results import JsonResults
from assay.records import Evaluation, Response
from assay.store.keys import canonical, digest, short
from assay.store.keyset import Seen


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


VERDICT = "pass"
# what deepeval calls a case without a name
_NUMBERED = re.compile(r"(conversational_)?test_case_\d+")


class Total:
    """What deepeval counts of a metric: all metrics of one name together, of which a case may have several."""

    def __init__(self) -> None:
        self.labels: set[str] = set()
        self.sum = 0.0
        self.scored = self.passed = self.rows = 0

    def add(self, row: Evaluation) -> None:
        self.labels.add(row.label)
        self.rows += 1
        self.passed += bool(row.passed)
        if row.score is not None:
            self.scored += 1
            self.sum += row.score


class Reading(JsonResults):
    """Test cases become cases of ours; what is odd about them is counted."""

    def __init__(self, model: str, *named: Any) -> None:
        self._model = model
        super().__init__(*named)

    def begin(self) -> None:
        super().begin()
        self.totals: dict[str, Total] = {}  # by the name of the metric
        self._names, self._owners, self._items = Seen(), Seen(), Seen()

    def case(self, test: TestCase, raw: Mapping[str, Any]) -> ForeignCase:
        item = _conversation(test) if test.turns is not None else _question(test)
        id, new = self._id(test.name, item)
        response = self._response(test, raw, id, self.repeats.count(id))
        about = item["metadata"]
        if (
            about
            and self._items.add(short(digest("about", id.encode(), canonical(about))))
            and not new
        ):
            response.metadata["test_case"] = about  # the item has other ones
        return ForeignCase(
            {"id": id, **item} if new else None, response, self._evaluations(test, raw, response)
        )

    def _id(self, name: str, item: dict[str, Any]) -> tuple[str, bool]:
        """The name of a case if a person gave it, and no other case has it; else an id from the content. Whether it is
        new comes with it."""
        content = content_id(item["data"], item["ground_truth"])
        if not name or _NUMBERED.fullmatch(name):
            return content, self._items.add(short(digest("item", content.encode())))
        pair = short(digest("item", name.encode(), content.encode()))
        new = self._items.add(pair)
        if self._names.add(short(digest("name", name.encode()))):
            self._owners.add(pair)
        return (name if pair in self._owners else f"{name}~{content[:8]}"), new

    def _response(self, test: TestCase, raw: Mapping[str, Any], id: str, sample: int) -> Response:
        (text, calls, passages), error = _answer(test), None
        read, written = test.input_token_count, test.output_token_count
        metadata: dict[str, Any] = {
            "model_id": self._model,
            "finish_reason": None,
            "response_id": None,
        }
        if text is None and not calls:
            self.odd["unanswered"] += 1
            error = "the test case has no answer"
        if passages is not None:
            metadata["retrieved_docs"] = passages
        if rest := self.rest.of(raw, PLACED, KNOWN):
            metadata[REST] = without_secrets(rest)
        return Response(
            item_id=id,
            sample_id=f"{id}_sample_{sample}",
            sample_index=sample,
            total_samples=sample + 1,
            model_name=self._model,
            response=answer_text(text),
            inference_time=test.completion_time or 0.0,
            metadata=metadata,
            error=error,
            prompt_tokens=count_of(read),
            completion_tokens=count_of(written),
            total_tokens=None if read is None or written is None else count_of(read + written),
            key=key_of("deepeval", id, self._model, sample, test.actual_output),
            task=self._model,
            outcome="ok" if error is None else "errored",
            output=None if text is None or isinstance(text, str) else text,
            messages=_messages(test),
            tool_calls=calls,
            cost=test.token_cost,
        )

    def _evaluations(
        self, test: TestCase, raw: Mapping[str, Any], response: Response
    ) -> list[Evaluation]:
        passed = test.success
        verdict = _label(response, VERDICT, "deepeval", passed, passed, {})
        if passed is None:
            verdict.outcome = "skipped"
            verdict.error = "no metric decides whether the test case passes"
        found, taken = [verdict], {VERDICT}
        raws = list_of(raw.get("metricsData"))
        for metric, own in zip(test.metrics_data or (), raws, strict=True):
            label = free_name(metric.name, taken)
            taken.add(label)
            found.append(self._metric(response, label, metric, own))
            self.totals.setdefault(metric.name, Total()).add(found[-1])
        return found

    def _metric(
        self, response: Response, label: str, metric: Metric, raw: dict[str, Any]
    ) -> Evaluation:
        details = {} if metric.reason is None else {"explanation": metric.reason}
        details |= self.rest.of(raw, PLACED_OF_METRIC, KNOWN_OF_METRIC, "metricsData.")
        row = _label(
            response, label, f"deepeval.{metric.name}", metric.success, metric.score, details
        )
        if metric.error is not None or row.score is None:
            self.odd["unscored"] += 1
            row.outcome, row.error = "skipped", "the metric gave no score"
            if metric.error is not None:
                row.outcome, row.error = "errored", str(metric.error)
            row.passed = row.score = None
            details["counted_as_passed"] = metric.success
        return row


def _label(
    response: Response,
    label: str,
    scorer: str,
    passed: bool | None,
    score: float | None,
    details: dict[str, Any],
) -> Evaluation:
    return evaluation_of(
        response,
        label,
        passed=passed,
        score=number_of(score),
        detailed_results=details,
        key=key_of("deepeval", response.key, label),
        scorer=scorer,
    )


def _question(test: TestCase) -> dict[str, Any]:
    data = {"input": test.input}
    if test.context:
        data["context"] = test.context
    return _item(test, data, test.expected_output)


def _conversation(test: TestCase) -> dict[str, Any]:
    """A conversation is told by what it is about; without a scenario, by what the user said."""
    said = [turn.content for turn in test.turns or () if turn.role == "user"]
    data: dict[str, Any] = {"input": test.scenario or (said[0] if said else "")}
    if test.scenario is None and len(said) > 1:
        data["user_turns"] = said
    if test.user_description:
        data["user_description"] = test.user_description
    if test.context:
        data["context"] = test.context
    return _item(test, data, test.expected_outcome)


def _item(test: TestCase, data: dict[str, Any], truth: Any) -> dict[str, Any]:
    metadata = dict(test.metadata or {})
    if test.tags:
        metadata["tags"] = test.tags
    if test.expected_tools:
        metadata["expected_tools"] = test.expected_tools
    return {"data": data, "ground_truth": truth, "metadata": metadata}


def _answer(test: TestCase) -> tuple[Any, list[Any] | None, list[Any] | None]:
    """Return the answer, the calls of tools and the passages; those of a whole conversation."""
    if test.turns is None:
        return test.actual_output, _calls(test.tools_called), test.retrieval_context
    answers = [turn for turn in test.turns if turn.role == "assistant"]
    calls = _calls(_together(turn.tools_called for turn in answers))
    passages = _together(turn.retrieval_context for turn in answers)
    return answers[-1].content if answers else None, calls, passages


def _together(lists: Iterable[list[Any] | None]) -> list[Any] | None:
    """Return what is in any of the lists; None if nothing is."""
    return [entry for each in lists for entry in each or ()] or None


def _messages(test: TestCase) -> list[dict[str, Any]] | None:
    """The turns of a conversation up to its last answer, which is the response."""
    if test.turns is None:
        return None
    last = max(
        (number for number, turn in enumerate(test.turns) if turn.role == "assistant"),
        default=len(test.turns),
    )
    messages: list[dict[str, Any]] = []
    for turn in test.turns[:last]:
        message: dict[str, Any] = {"role": turn.role, "content": turn.content}
        if calls := _calls(turn.tools_called):
            message["tool_calls"] = calls
        messages.append(message)
    return messages


def _calls(tools: list[Any] | None) -> list[Any] | None:
    """Calls of tools as other answers have them, with what deepeval knows beyond that beside it."""
    if tools is None:
        return None
    calls: list[Any] = []
    for tool in tools:
        if not isinstance(tool, dict):
            calls.append(tool)
            continue
        fields = {**fields_of(tool)}
        function = {
            "name": fields.pop("name", ""),
            "arguments": fields.pop("inputParameters", None) or {},
        }
        fields.pop("type", None)
        calls.append({"type": "function", "function": function, **fields})
    return calls
