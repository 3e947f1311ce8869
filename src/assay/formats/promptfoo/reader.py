"""Evaluations that promptfoo has written, streamed: one experiment for each JSON or JSONL file."""

import mmap
import re
from collections.abc import Iterator
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
    evaluation_of,
    files_below,
    head_of,
    json_row,
    json_value,
    key_of,
    seconds_of,
    unknown_version,
    without_secrets,
)
from assay.formats.promptfoo.numbers import PromptNumbers
from assay.formats.promptfoo.shapes import (
    KNOWN_OF_COMPONENT,
    KNOWN_OF_REPLY,
    KNOWN_OF_ROW,
    OWN,
    PLACED_OF_COMPONENT,
    PLACED_OF_REPLY,
    PLACED_OF_ROW,
    SCORE,
    VERDICT,
    Component,
    Grading,
    Named,
    PromptfooResult,
    PromptText,
    ProviderReply,
    TokenUsage,
    labels_of_results,
    planned_labels,
)
from assay.readers._results import JsonResults, response_of, without_empty
from assay.sdk import (
    Evaluation,
    JsonObject,
    Response,
    ResponseOutcome,
    as_object,
    count_of,
    first_text,
    list_of,
    number_of,
    reader,
    rows_of,
)

_NEWEST = 3
_VERSION = re.compile(rb'"results"\s*:\s*\{\s*"version"\s*:\s*(\d+)')
_RUNTIME = re.compile(rb'"runtimeOptions"\s*:\s*\{[^{}]*?"repeat"\s*:\s*(\d+)')
_MARKS = (b'"promptIdx"', b'"testIdx"', b'"testCase"', b'"failureReason"')
_LONGEST = 1 << 24  # bytes of a first line that is looked at
_KEPT = {
    "evalId": "eval_id",
    "metadata": "metadata",
    "runtimeOptions": "runtime_options",
    "results.stats": "stats",
}
_HEADER = {
    "shareableUrl",
    "vars",
    "author",
    "results.version",
    "results.prompts",
    "results.results",
    "results.table",
}
_TESTS = ("config.tests", "config.scenarios")
_MOST_ENTRIES = 1000


@reader
def promptfoo(path: Path) -> list[Foreign]:
    """Evaluations that promptfoo wrote with `-o out.json` or `-o out.jsonl`."""
    files = files_below(path, ".json", ".jsonl")
    whole = [file for file in files if _is_whole(file)]
    lines = [
        file
        for file in files
        if file not in whole and (first := _first_row(file)) and not _in(whole, file, first)
    ]
    return [PromptfooFile(file, lines=file in lines) for file in sorted((*whole, *lines))]


def _is_whole(file: Path) -> bool:
    head = head_of(file)
    version = _VERSION.search(head) if head[:1] in b"{\xef \t\r\n" else None
    if version is None or not any(
        mark in head for mark in (b'"evalId"', b'"prompts"', b'"promptfooVersion"')
    ):
        return False
    if int(version[1]) > _NEWEST:
        raise unknown_version("an evaluation of promptfoo", int(version[1]), file)
    return True


def _first_row(file: Path) -> JsonObject:
    """The first line, if it is a result of promptfoo; else empty."""
    head = head_of(file)
    if not head.startswith(b"{") or not any(mark in head for mark in (*_MARKS, b'"gradingResult"')):
        return {}
    line, end, _ = head.partition(b"\n")
    if not end and len(head) == HEAD:
        with reading.opened(file) as opened:
            line = opened.readline(_LONGEST)
    try:
        row = json_row(line)
    except (ValueError, RecursionError):
        return {}
    return row if {"promptIdx", "testCase", "success"} <= row.keys() else {}


def _in(whole: list[Path], file: Path, first: JsonObject) -> bool:
    """Return whether the rows of a JSONL file are in a JSON file beside it, which has more: promptfoo writes both at
    once."""
    id = first.get("id")
    if not isinstance(id, str) or not id:
        return False
    for other in whole:
        if other.parent == file.parent:
            with (
                reading.opened(other) as opened,
                mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text,
            ):
                if text.find(f'"{id}"'.encode()) >= 0:
                    return True
    return False


_ERROR = 2  # failureReason
_PLAIN = frozenset({"type", "value", "metric", "weight", "threshold", "transform", "rubricPrompt"})
_NO_REPLY = ProviderReply()


class PromptfooFile(JsonResults):
    """One file of promptfoo's."""

    format, rows = "promptfoo", ["results"]
    version = {"reader": 1}  # raised when rows come out otherwise
    said = {
        "rejected": "{:,} requests were rejected with an HTTP error that promptfoo took for the answer: they are "
        "refused",
        "empty": "{:,} answers have no text: promptfoo counts them as failed without asking the assertions, which "
        "are errors here",
        "ungraded": "{:,} assertions have no score because their grader failed (promptfoo counts 0): they are errors "
        "here",
        "human": "{:,} ratings by people decide over their answers, whatever the assertions say",
    }

    def __init__(self, path: Path, *, lines: bool) -> None:
        self._lines = lines
        super().__init__(path.stem, path)

    def begin(self) -> None:
        super().begin()
        self.planned = None
        self._facts: JsonObject = {}
        self._numbers = PromptNumbers()

    @property
    def facts(self) -> JsonObject:
        kind = "a JSONL file" if self._lines else "a JSON file"
        return {
            "read_from": [f"{kind} of promptfoo"],
            "agents": self._numbers.models(),
            **self._facts,
        }

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        repeat = 1 if self._lines else _repeat(self.files[0])
        rows = self._line_rows() if self._lines else self._rows()
        for row, raw in self._rows_of_shape(rows, PromptfooResult):
            yield self._case(row, raw, repeat)
        total = self._numbers.total(self._facts.get("stats"))
        if total is not None and total > self._numbers.rows:
            self.planned = total

    def _rows(self) -> Iterator[tuple[str, Any]]:
        for key, number, value in self._parts("results", "config"):
            if key == "results.results" and number is not None:
                yield f"{self.files[0]}: result {number}", value
            elif number is None:
                self._add_fact(key, value)
            else:
                self._add_entry(key, number, value)

    def _line_rows(self) -> Iterator[tuple[str, Any]]:
        with reading.opened(self.files[0]) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    yield f"{self.files[0]}:{number}", json_value(line)
                except ValueError as error:
                    self.unread.add(f"{self.files[0]}:{number}: {error}")

    def _add_fact(self, key: str, value: Any) -> None:
        if key in _KEPT:
            self._facts[_KEPT[key]] = without_secrets(value)
        elif key == "results.timestamp" and isinstance(value, str):
            self._numbers.timestamp = seconds_of(value) or 0.0
        elif key.startswith("config.") and value not in (None, "", [], {}):
            self._config[key.removeprefix("config.")] = without_secrets(value)
        elif key not in _HEADER and not key.startswith("config."):
            self.rest.unknown[key] += 1
            self._facts.setdefault(REST, {})[key] = without_secrets(value)

    def _add_entry(self, key: str, number: int, value: Any) -> None:
        """Take an entry of a list: of the prompts, or of the config, whose tests are those of the rows."""
        if key.startswith("config.") and key not in _TESTS and number < _MOST_ENTRIES:
            self._config.setdefault(key.removeprefix("config."), []).append(without_secrets(value))
        if key != "results.prompts":
            return
        try:
            prompt = msgspec.convert(value, PromptText)
        except (msgspec.ValidationError, RecursionError):
            self.unread.add(f"{self.files[0]}: prompt {number}")
            return
        self._numbers.add_prompt(number, prompt, value)
        names = ("id", "label", "provider")
        entry = {**{name: getattr(prompt, name) for name in names}, "template": prompt.raw}
        self._facts.setdefault("prompts", []).append(entry)

    @property
    def _config(self) -> JsonObject:
        return self._facts.setdefault("config", {})

    def headlines(self) -> list[Headline]:
        return self._numbers.headlines(self._facts.get("stats"))

    # ---- the rows of a result

    def _case(self, row: PromptfooResult, raw: JsonObject, repeat: int) -> ForeignCase:
        model, prompt, template = self._numbers.prompt_of(row)
        id = item_id(row, template)
        sample = self.repeats.count(id, model, prompt)
        provider = row.provider if isinstance(row.provider, str) else row.provider.id or ""
        reply = row.response or _NO_REPLY
        metadata: JsonObject = {"model_id": provider, "prompt_template": prompt}
        response = response_of(
            id,
            model,
            sample,
            reply.output,
            total_samples=max(repeat, sample + 1),
            prompt=row.prompt.raw,
            timestamp=self._numbers.timestamp,
            metadata=metadata | self._metadata(row, raw, reply),
            key=key_of("promptfoo", id, model, prompt, sample, raw.get("id")),
            task=f"{model}/{prompt}",
            messages=_messages(row.prompt.raw),
            logprobs=reply.log_probs,
        )
        self._add_reply(response, row, reply)
        evaluations = self._evaluations(row, raw, response)
        self._numbers.count(row)
        new = self.items.add(id)
        self.items.keep_others(response, row.test_case.metadata, new=new)
        return ForeignCase(item_of(row, raw, id, template) if new else None, response, evaluations)

    def _metadata(self, row: PromptfooResult, raw: JsonObject, reply: ProviderReply) -> JsonObject:
        metadata: JsonObject = {"finish_reason": reply.finish_reason, "response_id": None}
        if reply.cached:
            metadata["cached"] = True
        if rest := self._rest(row, raw):
            metadata[REST] = rest
        return metadata

    def _add_reply(self, response: Response, row: PromptfooResult, reply: ProviderReply) -> None:
        if calls := _calls(reply.output):
            response.tool_calls = calls
            response.response = first_text(as_object(reply.output), ["content"])
        usage = reply.token_usage or row.token_usage or TokenUsage()
        response.total_tokens = count_of(usage.total)
        if not reply.cached or usage.prompt or usage.completion:
            # of a stored answer often only the sum is known
            response.prompt_tokens = count_of(usage.prompt)
            response.completion_tokens = count_of(usage.completion)
        latency = row.latency_ms if reply.latency_ms is None else reply.latency_ms
        response.inference_time = (latency or 0.0) / 1000
        response.cost = (row.cost or None) if reply.cost is None else reply.cost  # 0: unknown
        response.outcome, response.error = self._outcome(row, reply)
        if response.outcome == "errored":
            response.error_kind = _error_kind(reply)

    def _outcome(
        self, row: PromptfooResult, reply: ProviderReply
    ) -> tuple[ResponseOutcome, str | None]:
        if row.failure_reason == _ERROR and (reply.error or reply.output is None):
            return "errored", str(reply.error or row.error or "promptfoo gives no reason")
        if reply.is_refusal:
            rejected = _status(reply) >= 400
            self.odd["rejected"] += rejected
            return "refused", str(reply.output) if rejected else None
        if row.failure_reason is None and reply.error and reply.output is None:  # before version 3
            return "errored", str(reply.error)
        if reply.output is None:
            self.odd["empty"] += 1
        return "ok", None

    def _rest(self, row: PromptfooResult, raw: JsonObject) -> JsonObject:
        """Return what has no place: the row's own metadata only where they say more than the test and the answer do."""
        rest = self.rest.of(raw, PLACED_OF_ROW, KNOWN_OF_ROW)
        own = rest.pop("metadata", None)
        reply = as_object(raw.get("response"))
        rest |= self.rest.of(reply, PLACED_OF_REPLY, KNOWN_OF_REPLY, "response.")
        shown = {**(row.test_case.metadata or {}), **as_object(reply.get("metadata"))}
        more = {
            name: value
            for name, value in as_object(own).items()
            if value and shown.get(name) != value
        }
        if more:
            rest["row_metadata"] = more
        if row.test_case.vars is not None and row.vars and row.vars != row.test_case.vars:
            rest["vars"] = row.vars
        return without_secrets(rest)

    # ---- labels

    def _evaluations(
        self, row: PromptfooResult, raw: JsonObject, response: Response
    ) -> list[Evaluation]:
        grading = row.grading_result
        said = {"explanation": grading.reason, "comment": grading.comment} if grading else {}
        own = [
            _label(
                response, Named(VERDICT, ""), row.success, float(row.success), without_empty(said)
            ),
            _label(response, Named(SCORE, ""), None, row.score, {}),
        ]
        reason = str(row.error or response.error or "there is no output")
        is_failed = row.failure_reason == _ERROR or response.outcome == "errored"
        if is_failed:
            own = [_fail(each, reason) for each in own]
        elif grading is not None:
            return own + self._graded_labels(row, grading, raw, response)
        if is_failed or not response.response:
            names = planned_labels(row.test_case.asserts, _variables(row))
            own += [_fail(_label(response, name, None, None, {}), reason) for name in names]
        return own

    def _graded_labels(
        self, row: PromptfooResult, grading: Grading, raw: JsonObject, response: Response
    ) -> list[Evaluation]:
        results = grading.component_results or []
        named = labels_of_results(results, _variables(row))
        raws = list_of(raw["gradingResult"].get("componentResults"))
        made = [
            self._assertion(response, name, result, given)
            for name, result, given in zip(named, results, raws, strict=True)
            if result is not None
        ]
        taken = {*OWN, *(row.label for row in made)}
        scores = row.named_scores or grading.named_scores or {}
        for metric in [metric for metric in scores if metric not in taken]:
            name = Named(metric, "named_score", metric)
            details: JsonObject = {"weight": row.weight(metric)}
            made.append(_label(response, name, None, scores[metric], details))
        return made

    def _assertion(
        self, response: Response, name: Named, result: Component, raw: JsonObject
    ) -> Evaluation:
        asserted = raw.get("assertion") or {}
        if not _PLAIN.issuperset(asserted):
            asserted = without_secrets(asserted)
        details = {"explanation": result.reason, "assertion": asserted}
        if result.metadata:
            details["grading"] = without_secrets(result.metadata)
        if rest := self.rest.of(raw, PLACED_OF_COMPONENT, KNOWN_OF_COMPONENT, "componentResults."):
            details[REST] = rest
        row = _label(response, name, result.passed, result.score, details)
        if result.grader_failed:
            self.odd["ungraded"] += 1
            return _fail(row, str(result.reason or "the grader failed"))
        if name.kind == "human":
            self.odd["human"] += 1
        return row


def _repeat(path: Path) -> int:
    """Return how often each test was meant to run: it stands at the end of the file."""
    with reading.opened(path) as file:
        file.seek(max(0, path.stat().st_size - HEAD))
        found = _RUNTIME.findall(file.read())
    return min(int(found[-1]), 10_000) if found else 1


_EXPECTED = (
    "ground_truth",
    "expected",
    "expected_answer",
    "expected_output",
    "answer",
    "target",
    "reference",
)
_QUESTIONS = frozenset({"question", "input", "prompt", "query", "text", "message"})
_NUMBERED = re.compile(r"Row #\d+")  # what promptfoo calls the rows of a file
_EQUAL = (
    "equals",
    "icontains",
    "contains",
    "starts-with",
    "similar",
    "factuality",
    "answer-relevance",
)


def item_id(row: PromptfooResult, template: str) -> str:
    """A test without variables is told apart by its prompt, which is all that was asked."""
    test = row.test_case
    variables = test.vars if test.vars is not None else row.vars
    return content_id(variables or {"prompt": template or row.prompt.raw}, _description(row))


def item_of(row: PromptfooResult, raw: JsonObject, id: str, template: str) -> JsonObject:
    test = row.test_case
    data = dict(test.vars if test.vars is not None else row.vars or {}) or {
        "prompt": template or row.prompt.raw
    }
    expected = next((name for name in _EXPECTED if name in data), None)
    truth = data[expected] if expected else _asserted_text(raw)
    if not _QUESTIONS & data.keys():  # others look for the question under a usual name
        texts = [
            value for name, value in data.items() if name != expected and isinstance(value, str)
        ]
        if len(texts) == 1:
            data["question"] = texts[0]
    metadata = dict(test.metadata or {})
    if description := _description(row):
        metadata["description"] = description
    return {"id": id, "data": data, "ground_truth": truth, "metadata": metadata}


def _description(row: PromptfooResult) -> str:
    said = row.test_case.description or ""
    return "" if _NUMBERED.fullmatch(said) else said


def _asserted_text(raw: JsonObject) -> Any:
    """The text that an assertion compares the answer with, if it is a plain one."""
    for entry in rows_of(as_object(raw.get("testCase")).get("assert")):
        value = entry.get("value") if entry.get("type") in _EQUAL else None
        if isinstance(value, str) and "{{" not in value and "://" not in value:
            return value
    return None


def _label(
    response: Response,
    name: Named,
    passed: bool | None,
    score: float | None,
    details: JsonObject,
) -> Evaluation:
    row = evaluation_of(
        response,
        name.label,
        passed=passed,
        score=number_of(score),
        detailed_results=details,
        metadata={name: response.metadata[name] for name in ("model_id", "prompt_template")},
        key=key_of("promptfoo", response.key, name.label),
        scorer=f"promptfoo.{name.kind}" if name.kind else "promptfoo",
    )
    if row.passed is None and row.score is None:
        return _fail(row, "promptfoo gives no score")
    return row


def _fail(row: Evaluation, reason: str) -> Evaluation:
    """Return an evaluation without a score; the 0 that promptfoo gives for it is kept beside the reason."""
    if row.score is not None:
        row.detailed_results = {**row.detailed_results, "counted_as": row.score}
    row.outcome, row.error, row.passed, row.score = "errored", reason, None, None
    return row


def _calls(output: Any) -> list[Any]:
    """Return the calls of tools that an answer consists of."""
    calls = list_of(output.get("tool_calls") if isinstance(output, dict) else output)
    return calls if all("function" in as_object(call) for call in calls) else []


def _messages(prompt: str) -> list[JsonObject] | None:
    """Return the messages of a prompt that is a chat in JSON."""
    if not prompt.startswith("["):
        return None
    try:
        found = msgspec.json.decode(prompt, type=list[JsonObject])
    except (ValueError, RecursionError):
        return None
    return found if found and all("role" in message for message in found) else None


def _variables(row: PromptfooResult) -> JsonObject:
    return row.test_case.vars or row.vars or {}


def _status(reply: ProviderReply) -> int:
    status = as_object((reply.metadata or {}).get("http")).get("status")
    return status if isinstance(status, int) else 0


def _error_kind(reply: ProviderReply) -> Any:
    status = _status(reply)
    if not status:
        return None
    return "transient" if status >= 500 or status in (408, 429) else "permanent"
