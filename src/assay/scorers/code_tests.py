"""Tests, run on the code that an answer holds."""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from assay.errors import UserError
from assay.interfaces import Context, Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.text.answers import without_reasoning
from assay.text.expected import accepted, expectation
from assay.text.json_out import fenced

_CHILD = Path(__file__).with_name("_sandbox_child.py")
_MARGIN = 10.0  # seconds that the child gets beyond its own limit, to start and to clean up
_LARGEST_REPORT = 1 << 20


class Limits(NamedTuple):
    seconds: float
    memory: int
    files: int
    processes: int
    allow_unsafe: bool


class Verdict(NamedTuple):
    """How many tests passed, and what went wrong, in a few words each."""

    passed: int
    problems: list[str]


def run_tests(code: str, tests: list[str], entry_point: str | None, limits: Limits) -> Verdict:
    """Run the code, then each test, in a child process with limits (see `_sandbox_child.py`). UserError where the
    system cannot close network and disk off.

    The child is started without our environment and in a session of its own. It reports over a pipe that only its
    trusted part knows the word for: code that exits early, or prints, cannot pass by that.
    """
    word = secrets.token_hex(16)
    with TemporaryDirectory(prefix="assay-code-") as folder:
        job = {
            "code": code,
            "tests": tests,
            "entry_point": entry_point,
            "word": word,
            "folder": folder,
            **limits._asdict(),
        }
        report = _report_of(job, limits.seconds + _MARGIN)
    lines = [_line(line) for line in report.splitlines()]
    ours = [line for line in lines if line.get("word") == word]
    refused = next((str(line["refused"]) for line in ours if "refused" in line), None)
    if refused is not None:
        raise UserError(
            f"the code cannot be closed off here: {refused}",
            fix="run on Linux with user namespaces, or set `allow_unsafe: true` in a machine that may be harmed",
        )
    passed = {line["test"] for line in ours if line.get("ok") is True and "test" in line}
    problems = [str(line["problem"])[:300] for line in ours if line.get("problem")]
    if not any(line.get("done") for line in ours):
        ended = next((str(line["ended"]) for line in lines if "ended" in line), "the child process was lost")
        problems.append(ended)
    return Verdict(len(passed), problems[:20])


def _line(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _report_of(job: dict[str, Any], seconds: float) -> bytes:
    reading, writing = os.pipe()
    try:
        with subprocess.Popen(
            [sys.executable, "-I", str(_CHILD), str(writing)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd="/",
            pass_fds=[writing],
            start_new_session=True,
        ) as child:
            os.close(writing)
            writing = -1
            try:
                with suppress(subprocess.TimeoutExpired):
                    child.communicate(json.dumps(job).encode(), timeout=seconds)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
        return _all_of(reading)
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


def _all_of(fd: int) -> bytes:
    """What the pipe holds. It is not waited for: something that escaped could keep it open."""
    os.set_blocking(fd, False)
    found = b""
    while len(found) < _LARGEST_REPORT:
        try:
            block = os.read(fd, 1 << 16)
        except BlockingIOError:
            break
        if not block:
            break
        found += block
    return found


_FIELDS = ("tests", "test", "test_list", "test_code")


@scorer(reads="item", version=1)
async def code_tests(
    item: Item,
    response: Response,
    *,
    context: Context,
    allow_code: bool,
    allow_unsafe: bool = False,
    expected: str | None = None,
    entry_point: str | None = None,
    seconds: float = 10.0,
    memory_mb: int = 512,
    file_mb: int = 16,
    processes: int = 16,
) -> Score:
    """The Python code in the answer passes the item's tests, run in a child process that can do no harm.

    Score: the share of the tests that pass; passes if all do. A test is Python source that raises if something is
    wrong (`assert add(1, 2) == 3`); all tests see the names that the code defines, as in MBPP (Austin et al. 2021). A
    test that defines `check` is called with the function `entry_point`, as in HumanEval (Chen et al. 2021). The code
    is the last fenced block that compiles (and defines `entry_point`, if given), else the whole answer; without any
    the answer is unparsed.

    Code from a model is run only with `allow_code: true`. It gets a folder of its own in memory; the rest of the disk
    can be read only, there is no network, none of your environment variables, no other process to be seen. CPU time,
    memory, file size and number of processes are limited, and all that it started ends with it. Where the system offers
    no namespaces (Linux only) it is refused; `allow_unsafe: true` runs it with the limits alone.

    Parameters:
    allow_code: run code that a model wrote
    allow_unsafe: run it even where network and disk cannot be closed off
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
    limits = Limits(seconds, memory_mb << 20, file_mb << 20, processes, allow_unsafe)
    result = await context.thread(lambda: run_tests(code, tests, name, limits))
    problems = {"problems": result.problems} if result.problems else {}
    details: dict[str, Any] = {"passed_tests": result.passed, "tests": len(tests), **problems}
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
