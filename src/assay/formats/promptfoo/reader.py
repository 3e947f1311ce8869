"""Evaluations that promptfoo has written, streamed: one experiment for each JSON or JSONL file."""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.engine.experiment.imports.foreign import (
    HEAD,
    REST,
    Foreign,
    ForeignCase,
    Headline,
    Row,
    content_id,
    fields_of,
    files_below,
    head_of,
    json_row,
    json_value,
    rows_of,
    seconds_of,
    unknown_version,
    without_secrets,
)
from assay.formats.promptfoo.numbers import Numbers
from assay.formats.promptfoo.rows import Place, Reading
from assay.formats.promptfoo.shapes import Prompt, PromptfooResult
from assay.registry import reader
from assay.store.keys import canonical, digest, short
from assay.store.keyset import Seen

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
    return [Evaluation(file, lines=file in lines) for file in sorted((*whole, *lines))]


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


def _first_row(file: Path) -> Row:
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


def _in(whole: list[Path], file: Path, first: Row) -> bool:
    """Whether the rows of a JSONL file are in a JSON file beside it, which has more: promptfoo writes both at once."""
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


class Evaluation(Reading):
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
        self._facts: Row = {}
        self._numbers, self._items = Numbers(), Seen()

    @property
    def facts(self) -> Row:
        kind = "a JSONL file" if self._lines else "a JSON file"
        return {
            "read_from": [f"{kind} of promptfoo"],
            "agents": self._numbers.models(),
            **self._facts,
        }

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        repeat = 1 if self._lines else _repeat(self.files[0])
        for row, raw in self._shaped(
            self._line_rows() if self._lines else self._rows(), PromptfooResult
        ):
            yield self._case(row, raw, repeat)
        told = self._numbers.total(self._facts.get("stats"))
        if told is not None and told > self._numbers.rows:
            self.planned = told

    def _case(self, row: PromptfooResult, raw: Row, repeat: int) -> ForeignCase:
        model, prompt, template = self._numbers.asked(row)
        id = item_id(row, template)
        sample = self.repeats.count(id, model, prompt)
        provider = row.provider if isinstance(row.provider, str) else row.provider.id or ""
        place = Place(id, model, provider, prompt, sample, repeat, self._numbers.timestamp)
        response = self.response(row, raw, place)
        evaluations = self.evaluations(row, raw, response)
        self._numbers.count(row)
        items, about = self._items, row.test_case.metadata
        new = items.add(short(digest("item", id.encode())))
        if about and items.add(short(digest("about", id.encode(), canonical(about)))) and not new:
            response.metadata["test_case"] = about  # the item has other ones
        return ForeignCase(item_of(row, raw, id, template) if new else None, response, evaluations)

    def _rows(self) -> Iterator[tuple[str, Any]]:
        for key, number, value in self._parts("results", "config"):
            if key == "results.results" and number is not None:
                yield f"{self.files[0]}: result {number}", value
            elif number is None:
                self._header(key, value)
            else:
                self._entry(key, number, value)

    def _line_rows(self) -> Iterator[tuple[str, Any]]:
        with reading.opened(self.files[0]) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    yield f"{self.files[0]}:{number}", json_value(line)
                except ValueError as error:
                    self.unread.add(f"{self.files[0]}:{number}: {error}")

    def _header(self, key: str, value: Any) -> None:
        if key in _KEPT:
            self._facts[_KEPT[key]] = without_secrets(value)
        elif key == "results.timestamp" and isinstance(value, str):
            self._numbers.timestamp = seconds_of(value) or 0.0
        elif key.startswith("config.") and value not in (None, "", [], {}):
            self._config[key.removeprefix("config.")] = without_secrets(value)
        elif key not in _HEADER and not key.startswith("config."):
            self.rest.unknown[key] += 1
            self._facts.setdefault(REST, {})[key] = without_secrets(value)

    def _entry(self, key: str, number: int, value: Any) -> None:
        """An entry of a list: of the prompts, or of the config, whose tests are those of the rows."""
        if key.startswith("config.") and key not in _TESTS and number < _MOST_ENTRIES:
            self._config.setdefault(key.removeprefix("config."), []).append(without_secrets(value))
        if key != "results.prompts":
            return
        try:
            prompt = msgspec.convert(value, Prompt)
        except (msgspec.ValidationError, RecursionError):
            self.unread.add(f"{self.files[0]}: prompt {number}")
            return
        self._numbers.add_prompt(number, prompt, value)
        entry = {
            "id": prompt.id,
            "label": prompt.label,
            "provider": prompt.provider,
            "template": prompt.raw,
        }
        self._facts.setdefault("prompts", []).append(entry)

    @property
    def _config(self) -> Row:
        return self._facts.setdefault("config", {})

    def headlines(self) -> list[Headline]:
        return self._numbers.headlines(self._facts.get("stats"))


def _repeat(path: Path) -> int:
    """How often each test was meant to run: it stands at the end of the file."""
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


def item_of(row: PromptfooResult, raw: Row, id: str, template: str) -> Row:
    test = row.test_case
    data = dict(test.vars if test.vars is not None else row.vars or {}) or {
        "prompt": template or row.prompt.raw
    }
    expected = next((name for name in _EXPECTED if name in data), None)
    truth = data[expected] if expected else _asserted(raw)
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


def _asserted(raw: Row) -> Any:
    """The text that an assertion compares the answer with, if it is a plain one."""
    for entry in rows_of(fields_of(raw.get("testCase")).get("assert")):
        value = entry.get("value") if entry.get("type") in _EQUAL else None
        if isinstance(value, str) and "{{" not in value and "://" not in value:
            return value
    return None
