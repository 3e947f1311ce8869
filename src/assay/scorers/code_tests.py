"""Tests, run on the code that an answer holds."""

import re
from typing import Any, Literal

from assay.errors import UserError
from assay.interfaces import Context, Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.scorers._sandbox.run import Limits, level_here, run_tests
from assay.text.answers import without_reasoning
from assay.text.expected import accepted, expectation
from assay.text.json_out import fenced

_FIELDS = ("tests", "test", "test_list", "test_code")


@scorer(reads="item", version=2)
async def code_tests(
    item: Item,
    response: Response,
    *,
    context: Context,
    allow_code: bool,
    sandbox: Literal["closed", "weak"] = "closed",
    expected: str | None = None,
    entry_point: str | None = None,
    seconds: float = 10.0,
    memory_mb: int = 512,
    file_mb: int = 16,
    processes: int = 16,
) -> Score:
    """The Python code in the answer passes the item's tests, run where it can neither do harm nor see the tests.

    Score: the share of the tests that pass; passes if all do. A test is Python source that raises if something is
    wrong (`assert add(1, 2) == 3`) and sees the names that the code defines, as in MBPP (Austin et al. 2021); `check`
    in a test is called with the function `entry_point`, as in HumanEval (Chen et al. 2021). The code is the last fenced
    block that compiles (and defines `entry_point`, if given), else the whole answer; without any it is unparsed.

    Code from a model is run only with `allow_code: true`. The tests run in a second process, which asks that of the
    code for results and compares copies of them. Both see Python, the installed packages and an empty folder in memory,
    but no file of yours, no socket, no environment variables, no other process. CPU time, memory, files and processes
    are limited. Where Linux cannot do that, code is refused unless `sandbox: weak` lets it run with less.

    Parameters:
    allow_code: run code that a model wrote
    sandbox: `weak` runs it even where network and disk cannot be closed off
    expected: the field of the ground truth that has the tests (a text or a list of texts); without it `tests`,
      `test`, `test_list` or `test_code`
    entry_point: the function that a `check` test is called with; by default the item's field `entry_point`
    seconds: time for the code with all its tests
    memory_mb: memory of each process
    file_mb: size of all files that it writes
    processes: how many processes it may have
    """
    if not allow_code:
        raise UserError("code_tests runs code that a model wrote", fix="set `allow_code: true` if you want that")
    tests = accepted(expectation(item, expected, *_FIELDS))
    name = entry_point or _field(item, "entry_point")
    code = code_of(response.response, name)
    if code is None:
        return Score(outcome="unparsed", error="the answer holds no Python code that compiles")
    limits = Limits(seconds, memory_mb << 20, file_mb << 20, processes)
    level = await context.thread(lambda: level_here(sandbox == "weak"))
    result = await context.thread(lambda: run_tests(code, tests, name, limits, level))
    problems = {"problems": result.problems} if result.problems else {}
    details: dict[str, Any] = {"passed_tests": result.passed, "tests": len(tests), "sandbox": level, **problems}
    return Score(passed=result.passed == len(tests), score=result.passed / len(tests), details=details)


def code_of(text: str, name: str | None = None) -> str | None:
    """The Python code of an answer, or None."""
    answer = without_reasoning(text)
    blocks = [content for language, content in fenced(answer) if language in ("", "python", "py", "python3")]
    compiling = [block for block in blocks if block.strip() and _compiles(block)]
    defining = [block for block in compiling if name and re.search(rf"\b{re.escape(name)}\b", block)]
    if compiling:
        return (defining or compiling)[-1]
    return answer if not blocks and answer.strip() and _compiles(answer) else None


def _compiles(code: str) -> bool:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "answer.py", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _field(item: Item, name: str) -> str | None:
    for place in (item.data, item.ground_truth, item.extra, item.metadata):
        if isinstance(place, dict) and isinstance(place.get(name), str):
            return place[name]
    return None
