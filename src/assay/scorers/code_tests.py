"""Tests, run on the code that an answer holds."""

import re
from typing import Any, Literal

from msgspec import Struct

from assay.scorers._parameters import field_of
from assay.scorers._sandbox.run import SandboxLimits, level_here, run_tests
from assay.sdk import Context, Item, JsonObject, Response, Score, UserError, scorer
from assay.text.answers import without_reasoning
from assay.text.expected import accepted, expectation
from assay.text.json_out import fenced

_AFTER = re.compile(r"\n(?=\S)")  # what follows a function's body
_LONGEST = 100_000  # letters of a continuation
_MOST_BLOCKS = 20  # that are looked at
_FIELDS = ("tests", "test", "test_list", "test_code")


class Bounds(Struct, frozen=True):
    """What code may use up.

    Parameters:
    seconds: time for the code with all its tests
    memory_mb: memory of each process
    file_mb: size of all files that it writes
    processes: how many processes it may have
    """

    seconds: float = 10.0
    memory_mb: int = 512
    file_mb: int = 16
    processes: int = 16

    def limits(self) -> SandboxLimits:
        return SandboxLimits(self.seconds, self.memory_mb << 20, self.file_mb << 20, self.processes)


@scorer(reads="item", params=Bounds, version=2)
async def code_tests(
    item: Item,
    response: Response,
    *,
    context: Context,
    allow_code: bool,
    sandbox: Literal["closed", "weak"] = "closed",
    expected: str | None = None,
    entry_point: str | None = None,
    prompt: str | None = None,
    setup: str | None = None,
    **bounds: Any,
) -> Score:
    """The Python code in the answer passes the item's tests, run where it can neither do harm nor see the tests.

    Score: the share of the tests that pass; passes if all do. A test is Python source that raises if something is
    wrong (`assert add(1, 2) == 3`) and sees the names that the code defines, as in MBPP (Austin et al. 2021); `check`
    in a test is called with the function `entry_point`, as in HumanEval (Chen et al. 2021). The code is the last fenced
    block that compiles (and defines `entry_point`, if given), else the whole answer; without any it is unparsed.
    With `prompt` the answer may continue the code of that field: `prompt: prompt` is HumanEval.

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
    prompt: the field of the item with code that the answer continues or writes again, whose imports and functions it
      may use; what follows the continued function is cut off if it does not compile
    setup: the field of the item with code that every test needs: `test_setup_code` of MBPP
    """
    if not allow_code:
        raise UserError(
            "code_tests runs code that a model wrote", fix="set `allow_code: true` if you want that"
        )
    before = "" if setup is None else _code_in_field(item, setup) + "\n"
    tests = [before + test for test in accepted(expectation(item, expected, *_FIELDS))]
    name, text = entry_point or field_of(item, "entry_point", str), response.response
    code = (
        code_of(text, name)
        if prompt is None
        else continuation(_code_in_field(item, prompt), text, name)
    )
    if code is None:
        return Score(outcome="unparsed", error="the answer holds no Python code that compiles")
    limits = Bounds(**bounds).limits()
    level = await context.thread(lambda: level_here(sandbox == "weak"))
    result = await context.thread(lambda: run_tests(code, tests, name, limits, level))
    details: JsonObject = {
        "passed_tests": result.passed,
        "tests": len(tests),
        "sandbox": level,
    }
    if result.problems:
        details["problems"] = result.problems
    return Score(
        passed=result.passed == len(tests), score=result.passed / len(tests), details=details
    )


def code_of(text: str, name: str | None = None) -> str | None:
    """The Python code of an answer, or None."""
    answer = without_reasoning(text)
    blocks = [
        content
        for language, content in fenced(answer)
        if language in ("", "python", "py", "python3")
    ]
    compiling = [block for block in blocks if block.strip() and _compiles(block)]
    defining = [
        block for block in compiling if name and re.search(rf"\b{re.escape(name)}\b", block)
    ]
    if compiling:
        return (defining or compiling)[-1]
    return answer if not blocks and answer.strip() and _compiles(answer) else None


def continuation(prompt: str, text: str, name: str | None = None) -> str | None:
    """The prompt's code with what an answer adds to it: blocks or whole code that defines the function again, or the
    rest of its body, whose first indentation servers like to drop. None if nothing compiles."""
    answer = without_reasoning(text)
    blocks = [content for _, content in fenced(answer)] or [answer]
    defines = re.compile(rf"^(?:async )?def {re.escape(name or '')}\b", re.M)
    for whole in filter(defines.search, blocks[:-_MOST_BLOCKS:-1] if name else ()):
        for code in (f"{prompt}\n\n{whole}", whole):
            if _compiles(code):
                return code
    rest = blocks[-1].rstrip()[:_LONGEST]
    rests = [rest]
    if not rest.lstrip("\n")[:1].isspace():
        rests = [f"    {rest}", "\n".join(f"    {line}" for line in rest.split("\n")), rest]
    rests.append(_AFTER.split(rests[0], maxsplit=1)[0])
    codes = (prompt + between + each for each in rests if each.strip() for between in ("", "\n"))
    return next(filter(_compiles, codes), None)


def _compiles(code: str) -> bool:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "answer.py", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _code_in_field(item: Item, name: str) -> str:
    code = field_of(item, name, str)
    if code is None:
        raise LookupError(f"the item has no field {name!r} with code")
    return code
