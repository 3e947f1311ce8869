"""Mutated command lines, configs, datasets and result folders, handed to every command of the command line.

A child process runs the cases, each in a fresh copy of a tiny world; one that dies or hangs is a fault, too. An audit
hook keeps the cases from the network, from other programs and from files outside of their folder.
"""

from __future__ import annotations

import errno
import io
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from fuzz import Attack, _cli_lab, _hostile
from fuzz._cli_words import shown, words_of

SECONDS = 10.0  # a case may take
CASES_OF_A_CHILD = 400
CODES = {0, 1, 2, 3, 4, 5}
NEVER_SAID = re.compile(
    "internal error|Traceback|Exception ignored|never awaited|Warning:|Fatal Python"
)
NOT_HARMLESS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
# stay unimported
HEAVY = ("datasets", "torch", "transformers", "pyreqwest", "pandas", "polars", "pyarrow")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@contextmanager
def opened() -> Generator[Attack]:
    """Make the world, then attack it in one child after the other."""
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with TemporaryDirectory(prefix="assay-fuzz-", dir=place) as folder:
        cases = _Cases(Path(folder).resolve())
        try:
            yield cases.attack
        finally:
            cases.end()


class _Cases:
    """The parent's side: which child runs the next case."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._fork = multiprocessing.get_context("fork")
        self._child: Any = None
        self._pipe: Connection | None = None
        self._left = 0
        self._start(build=True)

    def attack(self, case: int) -> str | None:
        if self._left <= 0 or self._pipe is None:
            self.end()
            self._start()
        assert self._pipe is not None
        self._left -= 1
        self._pipe.send(case)
        try:
            if self._pipe.poll(SECONDS):
                return self._pipe.recv()
            what = f"not ended after {SECONDS:g} s"
        except (EOFError, OSError):
            self._child.join(SECONDS)
            what = f"the process died: {self._child.exitcode}"
        self.end()
        return f"{what}: {shown(words_of(case)[0])}"

    def end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.join()
        self._child = self._pipe = None

    def _start(self, build: bool = False) -> None:
        ours, theirs = self._fork.Pipe()
        self._child = self._fork.Process(
            target=_serve, args=(theirs, ours, self.folder, build), daemon=True
        )
        self._child.start()
        theirs.close()
        self._pipe, self._left = ours, CASES_OF_A_CHILD
        if build and not ours.poll(60):
            raise TimeoutError("the world for the cases was not made")


def _serve(pipe: Connection, parents: Connection, folder: Path, build: bool) -> None:
    """Run the cases whose numbers come through the pipe; before the first child's, make the world."""
    os.setsid()
    parents.close()  # so that the pipe ends with the parent
    for name in HEAVY:
        sys.modules[name] = None  # type: ignore[assignment]
    os.environ |= {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "COLUMNS": "100"}
    os.environ["ASSAY_STATE_DIR"] = str(folder / "state")
    (folder / "tmp").mkdir(exist_ok=True)
    tempfile.tempdir = None  # the parent's is outside
    sys.dont_write_bytecode = True
    sys.stdin = io.StringIO()
    guard = _Guard(folder)
    sys.addaudithook(guard.hook)
    world = folder / "world"
    if build:
        world.mkdir()
        os.chdir(world)
        clocks = mock.patch.multiple(time, time=lambda: 1.8e9, perf_counter=lambda: 0.0)
        with clocks:  # rows have the same bytes each time: a case depends on its number
            _cli_lab.build(world, lambda words: _run(words))
        pipe.send(None)
    place = _Place(folder)
    with suppress(EOFError):
        while True:
            case = pipe.recv()
            pipe.send(_fault(case, place, guard))


class _Place:
    """A copy of the world, mended before each case: what a case changed is copied again, what it made is removed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "case"
        os.chdir(folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(folder / "world", self.folder)
        self.files = {
            str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()
        }
        self._folders = {str(path) for path in self.folder.rglob("*") if path.is_dir()} | {
            str(self.folder)
        }
        self._states = {path: _state(path) for path in self.files}

    def mend(self) -> None:
        for name, folders, files in os.walk(self.folder):
            for path in (os.path.join(name, entry) for entry in (*folders, *files)):
                kept = (
                    self._folders
                    if os.path.isdir(path) and not os.path.islink(path)
                    else self.files
                )
                if path not in kept:
                    shutil.rmtree(path, ignore_errors=True) if kept is self._folders else os.unlink(
                        path
                    )
        for path, content in self.files.items():
            if _state(path) != self._states[path]:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with suppress(OSError):
                    os.unlink(path)
                Path(path).write_bytes(content)
                self._states[path] = _state(path)


def _state(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode


def _fault(case: int, place: _Place, guard: _Guard) -> str | None:
    place.mend()
    words, random = words_of(case)
    for path in _spoilt(place, words, random):
        _hostile.spoil(path, random)
    os.chdir(place.folder)
    guard.outside.clear()
    started = time.monotonic()
    code, out, err = _run(words)
    problems: list[str] = []
    if code not in CODES:
        problems.append(f"exit code {code}")
    if said := NEVER_SAID.search(out + err):
        problems.append((out + err)[max(0, said.start() - 400) :][:1500])
    if code in (1, 2) and not err.strip() and "--json" not in words and not out.strip():
        problems.append("nothing says why")
    if harm := NOT_HARMLESS.search(err):
        problems.append(
            f"{harm.group()!r} on standard error: {err[max(0, harm.start() - 60) : harm.end() + 60]!r}"
        )
    if guard.outside:
        problems.append(f"files outside of the folder: {sorted(guard.outside)[:3]}")
    if (seconds := time.monotonic() - started) > SECONDS:
        problems.append(f"{seconds:.1f} s")
    return f"{shown(words)}\n  " + "\n  ".join(problems) if problems else None


def _run(words: list[str]) -> tuple[Any, str, str]:
    """Exit code, standard output and standard error of `assay WORDS`."""
    from assay.cli import main

    out, err = io.BytesIO(), io.BytesIO()
    stdout = io.TextIOWrapper(out, "utf-8", write_through=True)
    stderr = io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)
    with redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            main(words)
            code: Any = 0
        except SystemExit as ended:
            code = ended.code
        except BaseException as error:
            import traceback

            traceback.print_exc(file=stderr)
            code = repr(error)
    return code, *(stream.getvalue().decode("utf-8", "replace") for stream in (out, err))


def _spoilt(place: _Place, words: list[str], random: Random) -> list[Path]:
    """The files that are changed, mostly among those that the words lead to: most often one, sometimes none."""
    begins = [
        os.path.join(place.folder, word.replace("tasks.", "tasks/"))
        for word in words
        if len(word) < 99
    ]
    files = sorted(path for path in place.files if not path.endswith((".py", ".lock")))
    named = [path for path in files if path.startswith(tuple(begins))]
    if any("config" in word for word in words):
        named += [path for path in files if path.endswith(("/case/items.jsonl", "prompt.txt"))]
    number = random.choice([0, 1, 1, 1, 1, 2, 3])
    chosen = (
        random.choice(named if named and random.random() < 0.85 else files) for _ in range(number)
    )
    return [Path(path) for path in dict.fromkeys(chosen)]


class _Guard:
    """Refuses what a case must not do, and remembers files outside of the folder that a case would write."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.outside: set[str] = set()

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITES:
                self._check(path)
        elif event in (
            "os.mkdir",
            "os.remove",
            "os.rmdir",
            "os.rename",
            "os.symlink",
            "os.link",
            "os.chmod",
        ):
            self._check(arguments[0])
            if event == "os.rename":
                self._check(arguments[1])
        elif event in ("socket.connect", "socket.bind", "socket.getaddrinfo"):
            if event != "socket.getaddrinfo" and isinstance(arguments[1], str):
                return
            raise OSError(errno.ECONNREFUSED, "no network in a case")
        elif event in ("os.system", "os.exec", "os.posix_spawn") or (
            event == "subprocess.Popen" and arguments[0] not in (None, sys.executable)
        ):
            raise OSError(errno.ENOENT, "no other programs in a case")

    def _check(self, path: Any) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        with suppress(ValueError, OSError):
            real = os.path.abspath(os.fsdecode(path))
            if not real.startswith((self.folder, "/dev/", "/proc/")):
                self.outside.add(real)
                raise PermissionError(errno.EACCES, "outside of the case's folder", real)
