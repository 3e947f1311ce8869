"""promptfoo's test cases as dataset rows: the same variables and description are the same item, wherever they stand."""

import re
from collections.abc import Mapping
from typing import Any

from assay.engine.experiment.imports.foreign import content_id
from assay.formats.promptfoo.shapes import Row

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


def item_id(row: Row, template: str) -> str:
    """A test without variables is told apart by its prompt, which is all that was asked."""
    test = row.test_case
    variables = test.vars if test.vars is not None else row.vars
    return content_id(variables or {"prompt": template or row.prompt.raw}, _description(row))


def item_of(row: Row, raw: Mapping[str, Any], id: str, template: str) -> dict[str, Any]:
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


def _description(row: Row) -> str:
    said = row.test_case.description or ""
    return "" if _NUMBERED.fullmatch(said) else said


def _asserted(raw: Mapping[str, Any]) -> Any:
    """The text that an assertion compares the answer with, if it is a plain one."""
    test = raw.get("testCase")
    entries: Any = test.get("assert") if isinstance(test, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        value: Any = (
            entry.get("value") if isinstance(entry, dict) and entry.get("type") in _EQUAL else None
        )
        if isinstance(value, str) and "{{" not in value and "://" not in value:
            return value
    return None
