"""Test runs of deepeval, streamed: one experiment for each `test_run_….json`, or the last one in `.deepeval/`.

No model was asked by deepeval: the answers came with the test cases.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.foreign import (
    HEAD,
    REST,
    Foreign,
    ForeignCase,
    Headline,
    content_id,
    encoded_names,
    evaluation_of,
    files_below,
    free_name,
    head_of,
    json_row,
    key_of,
    without_secrets,
)
from assay.readers._results import JsonResults, first_filled, pass_rate, response_of
from assay.sdk import (
    Evaluation,
    JsonMapping,
    JsonObject,
    Response,
    as_object,
    count_of,
    list_of,
    number_of,
    reader,
    rows_of,
)

_BEGINS = re.compile(
    rb'\s*(?:\xef\xbb\xbf)?\s*\{\s*(?:"testRunData"\s*:\s*\{\s*)?"(?:testFile|testCases|[a-zA-Z]+)"\s*:'
)
_CASES = re.compile(rb'"testCases"\s*:\s*\[\s*(?:\{\s*"name"\s*:|\])')
_MARKS = (b'"metricsData"', b'"metricsScores"', b'"conversationalTestCases"', b'"actualOutput"')
_LATEST = (".deepeval/.latest_run_full.json", ".latest_run_full.json")
_WRAPPER = "testRunData"
_KEPT = {
    "identifier",
    "hyperparameters",
    "testFile",
    "testPassed",
    "testFailed",
    "runDuration",
    "evaluationCost",
    "datasetAlias",
    "datasetId",
    "datasetVersion",
    "official",
    "prompts",
    "traceMetricsScores",
    "testRunLink",
}
_MODEL = ("model", "model_name", "llm", "model_id")


@reader
def deepeval(path: Path) -> list[Foreign]:
    """Test runs that deepeval wrote into its results folder, or `.deepeval/.latest_run_full.json`."""
    files = [file for file in files_below(path, ".json") if _is_run(file)]
    if not files and path.is_dir():  # the results folder was not set
        latest = [path / name for name in _LATEST]
        files = [file for file in latest if file.is_file() and _is_run(file)][:1]
    return [TestRun(file) for file in files]


def _is_run(file: Path) -> bool:
    head = head_of(file)
    if not (_BEGINS.match(head) and _CASES.search(head)):
        return False
    return any(mark in head for mark in _MARKS)


class MetricData(msgspec.Struct, gc=False, rename="camel"):
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
    metrics_data: list[MetricData] | None = None
    metadata: JsonObject | None = None
    turns: list[Turn] | None = None
    scenario: str | None = None
    expected_outcome: str | None = None
    user_description: str | None = None


# What is kept under `metadata.source`, without being news: everything else that is not in the shapes is counted.
_KNOWN = {
    "order",
    "runDuration",
    "evaluationCost",
    "comments",
    "imagesMapping",
    "flaky",
    "trace",
    "expectationsData",
}
_PLACED = encoded_names(TestCase)
_KNOWN_OF_METRIC = {
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
_PLACED_OF_METRIC = encoded_names(MetricData)
_VERDICT = "pass"
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
        self.scored += row.score is not None
        self.sum += row.score or 0.0


class TestRun(JsonResults):
    """One test run. deepeval gives its files no version: unknown fields are kept and counted."""

    format, rows = "deepeval", ("testCases", "conversationalTestCases")
    version = {"reader": 1}  # raised when rows come out otherwise
    said = {
        "unanswered": "{:,} test cases have no answer: they are errors here",
        "unscored": "{:,} metrics gave no score: deepeval's mean leaves them out, its pass rate counts them as failed",
        "unnamed": "the run does not name a model in its hyperparameters: it is called 'unnamed'",
    }

    def __init__(self, path: Path) -> None:
        self._model = _model_name(path)
        super().__init__(path.stem.lstrip("."), path)

    def begin(self) -> None:
        super().begin()
        self._totals: dict[str, Total] = {}  # by the name of the metric
        self._owners: dict[
            str, str
        ] = {}  # by the name of a case: the content of the first that has it
        self._facts: JsonObject = {}
        self._scores: list[JsonObject] = []
        self.odd["unnamed"] = self._model == "unnamed"

    @property
    def facts(self) -> JsonObject:
        return {"read_from": ["a test run of deepeval"], "agents": [self._model], **self._facts}

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        read = 0
        for test, raw in self._rows_of_shape(self._tests(), TestCase):
            read += 1
            yield self._case(test, raw)
        total = int(sum(self._counts))
        self.planned = total if total > read else None

    def _tests(self) -> Iterator[tuple[str, Any]]:
        for name, number, value in self._parts(_WRAPPER):
            key = name.removeprefix(f"{_WRAPPER}.")
            if key in self.rows:
                if number is not None:
                    yield f"{self.files[0]}: {key}[{number}]", value
            elif key == "metricsScores":
                self._scores += rows_of([value])
            else:
                self._add_fact(key, number, value)

    def _add_fact(self, key: str, number: int | None, value: Any) -> None:
        fields = self._facts if key in _KEPT else self._facts.setdefault(REST, {})
        if number is not None:
            fields[key].append(without_secrets(value))
        elif value is not None:
            fields[key] = without_secrets(value)
            if key not in _KEPT:
                self.rest.unknown[key] += 1

    # ---- the rows of a test case

    def _case(self, test: TestCase, raw: JsonMapping) -> ForeignCase:
        item = _question(test) if test.turns is None else _conversation(test)
        id, new = self._item_id(test.name, item)
        response = self._response(test, raw, id)
        self.items.keep_others(response, item["metadata"], new=new)
        labels = self._labels(test, raw, response)
        return ForeignCase({"id": id, **item} if new else None, response, labels)

    def _item_id(self, name: str, item: JsonObject) -> tuple[str, bool]:
        """Return the name of a case if a person gave it, and no other case has it; else an id from the content. Whether
        it is new comes with it."""
        content = content_id(item["data"], item["ground_truth"])
        if not name or _NUMBERED.fullmatch(name):
            return content, self.items.add(content)
        is_owner = self._owners.setdefault(name, content) == content
        new = self.items.add(name, content)
        return (name if is_owner else f"{name}~{content[:8]}"), new

    def _response(self, test: TestCase, raw: JsonMapping, id: str) -> Response:
        answer, calls, passages = _answer_of(test)
        sample = self.repeats.count(id)
        read, written = test.input_token_count, test.output_token_count
        metadata: JsonObject = {"model_id": self._model, "finish_reason": None, "response_id": None}
        if passages is not None:
            metadata["retrieved_docs"] = passages
        if rest := self.rest.of(raw, _PLACED, _KNOWN):
            metadata[REST] = without_secrets(rest)
        row = response_of(
            id,
            self._model,
            sample,
            answer,
            inference_time=test.completion_time or 0.0,
            metadata=metadata,
            prompt_tokens=count_of(read),
            completion_tokens=count_of(written),
            total_tokens=None if read is None or written is None else count_of(read + written),
            key=key_of("deepeval", id, self._model, sample, test.actual_output),
            task=self._model,
            messages=_messages(test),
            tool_calls=calls,
            cost=test.token_cost,
        )
        if answer is None and not calls:
            self.odd["unanswered"] += 1
            row.outcome, row.error = "errored", "the test case has no answer"
        return row

    def _labels(self, test: TestCase, raw: JsonMapping, response: Response) -> list[Evaluation]:
        passed = test.success
        verdict = _label(response, _VERDICT, "deepeval", passed, passed)
        if passed is None:
            verdict.outcome = "skipped"
            verdict.error = "no metric decides whether the test case passes"
        labels, taken = [verdict], {_VERDICT}
        raws = list_of(raw.get("metricsData"))
        for metric, own in zip(test.metrics_data or (), raws, strict=True):
            label = free_name(metric.name, taken)
            taken.add(label)
            row = self._label_of_metric(response, label, metric, own)
            self._totals.setdefault(metric.name, Total()).add(row)
            labels.append(row)
        return labels

    def _label_of_metric(
        self, response: Response, label: str, metric: MetricData, raw: JsonObject
    ) -> Evaluation:
        details: JsonObject = {} if metric.reason is None else {"explanation": metric.reason}
        details |= self.rest.of(raw, _PLACED_OF_METRIC, _KNOWN_OF_METRIC, "metricsData.")
        scorer = f"deepeval.{metric.name}"
        row = _label(response, label, scorer, metric.success, metric.score)
        row.detailed_results = details
        if metric.error is not None or row.score is None:
            self.odd["unscored"] += 1
            row.outcome, row.error = "skipped", "the metric gave no score"
            if metric.error is not None:
                row.outcome, row.error = "errored", str(metric.error)
            row.passed = row.score = None
            details["counted_as_passed"] = metric.success
        return row

    # ---- what deepeval reports

    def headlines(self) -> list[Headline]:
        made = pass_rate(_VERDICT, self._counts)
        for entry in self._scores:
            made += self._of_metric(entry)
        return made

    @property
    def _counts(self) -> list[float]:
        """Return how many test cases have passed, and failed; none where the run does not say both."""
        return _numbers(self._facts, "testPassed", "testFailed")

    def _of_metric(self, entry: JsonObject) -> list[Headline]:
        """Return the mean of the scores that there are, and the passes of all, failures among them."""
        label = str(entry.get("metric"))
        total = self._totals.get(label)
        several = total if total is not None and len(total.labels) > 1 else None
        made: list[Headline] = []
        values = [
            value for value in map(number_of, list_of(entry.get("scores"))) if value is not None
        ]
        if values:
            mean = Headline(label=label, metric="mean", value=sum(values) / len(values))
            mean.reduce = "none"
            if several and several.scored:
                mean.ours = several.sum / several.scored
            made.append(mean)
        ours = several.passed / several.rows if several else None
        counts = _numbers(entry, "passes", "fails", "errors")
        return made + pass_rate(label, counts, failed_as=0.0, ours=ours)


def _numbers(fields: JsonObject, *names: str) -> list[float]:
    """Return these fields, if all of them are numbers; else none."""
    values = [number_of(fields.get(name)) for name in names]
    return [value for value in values if value is not None] if None not in values else []


def _model_name(path: Path) -> str:
    """Return what the hyperparameters, which stand after the test cases, call the model."""
    with reading.opened(path) as file:
        file.seek(max(0, path.stat().st_size - 16 * HEAD))
        tail = file.read()
    begin = tail.rfind(b'"hyperparameters"')
    found = re.match(rb'"hyperparameters"\s*:\s*(\{[^{}]*\})', tail[begin:]) if begin >= 0 else None
    try:
        settings = json_row(found[1]) if found else {}
    except (ValueError, RecursionError):
        settings = {}
    names = {name.lower().replace(" ", "_"): value for name, value in settings.items()}
    return first_filled(names, _MODEL) or "unnamed"


def _label(
    response: Response, label: str, scorer: str, passed: bool | None, score: float | None
) -> Evaluation:
    key = key_of("deepeval", response.key, label)
    return evaluation_of(
        response, label, passed=passed, score=number_of(score), key=key, scorer=scorer
    )


# ---- the parts of a test case


def _question(test: TestCase) -> JsonObject:
    return _item(test, {"input": test.input}, test.expected_output)


def _conversation(test: TestCase) -> JsonObject:
    """Return the item of a conversation: what it is about; without a scenario, what the user said."""
    said = [turn.content for turn in test.turns or () if turn.role == "user"]
    data: JsonObject = {"input": test.scenario or "".join(said[:1])}
    if test.scenario is None and len(said) > 1:
        data["user_turns"] = said
    if test.user_description:
        data["user_description"] = test.user_description
    return _item(test, data, test.expected_outcome)


def _item(test: TestCase, data: JsonObject, truth: Any) -> JsonObject:
    if test.context:
        data["context"] = test.context
    metadata = dict(test.metadata or {})
    if test.tags:
        metadata["tags"] = test.tags
    if test.expected_tools:
        metadata["expected_tools"] = test.expected_tools
    return {"data": data, "ground_truth": truth, "metadata": metadata}


def _answer_of(test: TestCase) -> tuple[Any, list[Any] | None, list[Any] | None]:
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


def _messages(test: TestCase) -> list[JsonObject] | None:
    """Return the turns of a conversation up to its last answer, which is the response."""
    if test.turns is None:
        return None
    answers = [number for number, turn in enumerate(test.turns) if turn.role == "assistant"]
    before = test.turns[: answers[-1]] if answers else test.turns
    messages: list[JsonObject] = []
    for turn in before:
        message: JsonObject = {"role": turn.role, "content": turn.content}
        if calls := _calls(turn.tools_called):
            message["tool_calls"] = calls
        messages.append(message)
    return messages


def _calls(tools: list[Any] | None) -> list[Any] | None:
    """Return calls of tools as other answers have them, with what deepeval knows beyond that beside it."""
    return None if tools is None else [_call(tool) for tool in tools]


def _call(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    fields = {**as_object(tool)}
    function = {
        "name": fields.pop("name", ""),
        "arguments": fields.pop("inputParameters", None) or {},
    }
    fields.pop("type", None)
    return {"type": "function", "function": function, **fields}
