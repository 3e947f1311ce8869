"""Code from strangers, in a child process with limits; see `_sandbox_child.py` for what the child does.

The child is started without our environment and in a session of its own. It reports over a pipe that only its trusted
part knows the word for: code that exits early, or prints, cannot pass by that.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from assay.errors import UserError

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
    """Run the code, then each test. UserError where the system cannot close network and disk off."""
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
