"""An answer's code and its tests, each in a closed process; only the process of the tests is listened to."""

import json
import os
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Generator, Iterator
from compileall import compile_dir
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from assay import children
from assay.sdk import JsonObject, UserError

Level = Literal["bubblewrap", "namespaces", "weak"]
_HERE = Path(__file__).parent
_START = "import sys; sys.path.insert(0, sys.argv[2]); from _sandbox.child import main; main()"
_SYSTEM = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/localtime",
]
_DEVICES = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"]
_TO_START = 30.0
_LARGEST_REPORT = 1 << 20


class SandboxLimits(NamedTuple):
    seconds: float
    memory: int
    files: int
    processes: int


class Verdict(NamedTuple):
    """How many tests passed, and what went wrong, in a few words each."""

    passed: int
    problems: list[str]


class NotStartedError(Exception):
    """The sandbox could not be made."""


@cache
def level_here(weak: bool) -> Level:
    """The strongest level that works on this machine: each is tried. `weak` is taken only if that is allowed."""
    if sys.platform != "linux":
        raise UserError(
            "code of answers can be run on Linux only",
            fix="run in a Linux container or virtual machine",
        )
    compile_dir(_HERE, quiet=2)  # inside, nothing can be written
    reasons: list[str] = []
    levels: list[Level] = ["bubblewrap", "namespaces", "weak"]
    for level in levels if weak else levels[:2]:
        try:
            try_out(level)
        except NotStartedError as error:
            reasons.append(f"{level}: {error}")
        else:
            return level
    raise UserError(
        f"the code of answers cannot be closed off here ({'; '.join(reasons)})",
        fix="install bubblewrap (`apt install bubblewrap`) on a Linux that lets users make namespaces "
        "(`sysctl kernel.unprivileged_userns_clone=1`; `docker run --privileged`), or set `sandbox: weak` on a machine "
        "that may be harmed",
    )


def try_out(level: Level) -> None:
    """Raise NotStartedError if this level does not work."""
    limits = SandboxLimits(10, 256 << 20, 1 << 20, 8)
    if run_tests("def f(): return 1", ["assert f() == 1"], None, limits, level) != Verdict(1, []):
        raise NotStartedError("a first test failed")


def run_tests(
    code: str, tests: list[str], entry_point: str | None, limits: SandboxLimits, level: Level
) -> Verdict:
    """Run the code in one process and its tests in another (see `child.py`)."""
    with ExitStack() as stack:
        ours, theirs, for_tests, for_answer = (*socket.socketpair(), *socket.socketpair())
        for end in (ours, theirs, for_tests, for_answer):
            stack.enter_context(end)
        errors = stack.enter_context(open(os.memfd_create("errors"), "r+b", 0))
        if level == "weak":
            hide_ourselves()
        answer = stack.enter_context(
            started("answer", level, limits, for_answer, children.DEVNULL, errors)
        )
        stack.enter_context(started("tests", level, limits, for_tests, theirs, errors))
        for end in (theirs, for_tests, for_answer):
            end.close()
        lines = list(
            said(ours, {"code": code, "tests": tests, "entry_point": entry_point}, limits.seconds)
        )
        if not any("ready" in line for line in lines):
            errors.seek(0)
            reason = errors.read(4000).decode(errors="replace").strip().rpartition("\n")[2]
            raise NotStartedError(reason or "no reason")
        problems = [
            str(line["problem"])[:300]
            for line in lines
            if "problem" in line and not line.get("lost")
        ]
        if not any(line.get("done") for line in lines):
            lost, late = (any(line.get(word) for line in lines) for word in ("lost", "late"))
            late_or_ended = (
                f"the code took longer than {limits.seconds:g} s"
                if late
                else "a test ended its process"
            )
            problems.append(ending(answer) if lost else late_or_ended)
    return Verdict(len({line["passed"] for line in lines if "passed" in line}), problems[:20])


def said(tests: socket.socket, job: JsonObject, seconds: float) -> Iterator[JsonObject]:
    """Yield what the process of the tests reports, until it ends or its time does. The time begins
    when it is ready."""
    deadline = time.monotonic() + _TO_START
    text, size = b"", 0
    with suppress(ConnectionError, ValueError):
        tests.settimeout(_TO_START)
        tests.sendall(json.dumps(job).encode() + b"\n")
        while size < _LARGEST_REPORT:
            tests.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                block = tests.recv(1 << 16)
            except TimeoutError:
                yield {"late": True}
                return
            if not block:
                return
            size += len(block)
            *whole, text = (text + block).split(b"\n")
            for line in map(json.loads, whole):
                if "ready" in line:
                    deadline = time.monotonic() + seconds
                yield line
                if "done" in line or "lost" in line:
                    return


def ending(answer: children.Process) -> str:
    if not children.is_ended(answer, 2):
        return "the code does not keep to the protocol"
    code = answer.returncode
    if code in (137, 152):
        return "the code used up its CPU time or its memory"
    return f"the code ended its process early (exit code {code})"


@contextmanager
def started(
    role: str, level: Level, limits: SandboxLimits, channel: socket.socket, out: Any, errors: Any
) -> Generator[children.Process]:
    """One of the two processes; when this is left, it has ended with all that it started."""
    with ExitStack() as stack:
        life, hold = os.pipe()
        stack.callback(os.close, life)
        uid = os.getuid() or 1_000_000_000 + secrets.randbelow(1_000_000_000)
        folder = "/tmp"
        if level == "weak":
            folder = stack.enter_context(
                TemporaryDirectory(prefix="assay-code-", ignore_cleanup_errors=True)
            )
            os.chown(folder, uid, -1)
        settings: JsonObject = {
            **limits._asdict(),
            "role": role,
            "level": level,
            "uid": uid,
            "life": life,
            "folder": folder,
            "readable": readable(),
            "packages": packages(),
            "hidden": not os.getuid() and hidden(),
        }
        python = [
            os.path.realpath(sys.executable),
            "-IS",
            "-c",
            _START,
            json.dumps(settings),
            str(_HERE.parent),
        ]
        try:
            process = children.start(
                [*(bubblewrap(limits) if level == "bubblewrap" else []), *python],
                stdin=channel.fileno(),
                stdout=out,
                stderr=errors,
                env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
                cwd="/",
                pass_fds=[life] if level != "bubblewrap" else [],
            )
        except OSError as error:
            os.close(hold)
            raise NotStartedError(str(error)) from None
        try:
            yield process
        finally:
            os.close(hold)
            children.end(process, 0 if level == "bubblewrap" else 10)


def bubblewrap(limits: SandboxLimits) -> list[str]:
    """The command line of a sandbox that has nothing but what Python needs. Root keeps what it needs to become a user
    of its own."""
    command = shutil.which("bwrap")
    if command is None:
        raise NotStartedError("bwrap is not installed")
    words = [command, "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.getuid():
        words += ["--unshare-all"]
    else:
        words += [
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-uts",
            "--unshare-cgroup-try",
        ]
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    words += ["--perms", "1777", "--size", str(limits.files), "--tmpfs", "/tmp"]
    above = {str(folder) for path in readable() for folder in Path(path).parents} - {"/", "/tmp"}
    for folder in sorted(above):
        words += ["--perms", "0755", "--dir", folder]
    for path in readable():
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        else:
            words += ["--dev-bind" if path in _DEVICES else "--ro-bind", path, path]
    return [*words, "--proc", "/proc", "--remount-ro", "/", "--chdir", "/tmp"]


@cache
def readable() -> list[str]:
    """Return what of the disk the code can read: the system's programs, Python and the installed
    packages."""
    python = [f"{sys.base_prefix}/{part}" for part in ("bin", "lib", "lib64")]
    paths = [*_SYSTEM, *_DEVICES, *python, *packages(), str(_HERE)]
    return [
        path
        for number, path in enumerate(paths)
        if os.path.lexists(path)
        and not any(path == f or path.startswith(f"{f}/") for f in paths[:number])
    ]


def packages() -> list[str]:
    return [
        os.path.realpath(path)
        for path in sys.path
        if path.endswith("-packages") and os.path.isdir(path)
    ]


def hidden() -> bool:
    """Return whether other users cannot enter the folder that Python is in."""
    places = [Path(sys.base_prefix), *map(Path, packages()), _HERE]
    return any(
        not folder.stat().st_mode & 1 for place in places for folder in (place, *place.parents)
    )


@cache
def hide_ourselves() -> None:
    """Other processes of the same user can no longer trace Assay, or look into its memory and its environment."""
    import ctypes

    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
