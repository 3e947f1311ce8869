"""Child processes that end with us: one that answers questions within a deadline, and one that is supervised.

A child ends when its stdin closes, which it also does when this process is gone. A program that knows nothing of that
is run by a supervisor between us and it: this file as a script, with one argument, JSON {"command", "cleanup",
"grace"}. It ends the program and all that it started when its stdin closes or its parent changes, then runs the
cleanup command. So nothing of Assay is imported here.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

Process = subprocess.Popen[bytes]
DEVNULL = subprocess.DEVNULL
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_LOOK = 0.2
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GONE = (ProcessLookupError, PermissionError, ChildProcessError)


def start(
    command: Sequence[str],
    stdin: Any = subprocess.PIPE,
    stdout: Any = subprocess.PIPE,
    **settings: Any,
) -> Process:
    """Start a child with pipes; Ctrl-C is for us: calls in flight need the child for a moment longer."""
    return Process(command, stdin=stdin, stdout=stdout, start_new_session=True, **settings)


def end(child: Process, seconds: float) -> None:
    """Close the stdin of a child, and kill it if it takes longer to end."""
    with child:
        if child.stdin is not None:
            with suppress(BrokenPipeError):
                child.stdin.close()
        is_ended(child, seconds)
        child.kill()


def is_ended(child: Process, seconds: float) -> bool:
    """Wait for a child to end, at most so long."""
    with suppress(subprocess.TimeoutExpired):
        child.wait(seconds)
    return child.returncode is not None


class Answerer:
    """A Python process that answers questions, a line each. It is started by the first; one that does not answer in
    time is killed, and the next question starts another."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None) -> None:
        self._arguments, self._env = arguments, env
        self.running: list[Process] = []
        atexit.register(self.stop)

    def ask(self, question: str, seconds: float) -> bytes | None:
        """Return the answer; nothing if the child was lost, None if it takes longer."""
        child = self.running[0] if self.running else self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(f"{question}\n".encode())
            child.stdin.flush()
            ready, _, _ = select.select([child.stdout], [], [], seconds)
            answer = child.stdout.readline() if ready else None
        except BrokenPipeError:
            answer = b""
        except BaseException:  # half a conversation is of no use to the next answer
            self.stop()
            raise
        if not answer:
            self.stop()
        return answer

    def _start(self) -> Process:
        command = [sys.executable, "-I", *self._arguments]
        self.running.append(start(command, stderr=DEVNULL, env=self._env))
        return self.running[-1]

    def stop(self) -> None:
        for child in self.running:
            child.kill()
            end(child, 0)
        self.running.clear()


class Launch(NamedTuple):
    """How a program is started: its command line, and what removes what ending the command may leave behind."""

    command: Sequence[str]
    cleanup: Sequence[str] = ()


def start_supervised(
    launch: Launch, output: Any, grace: float, env: Mapping[str, str] | None = None
) -> Process:
    """Start a program that ends when its supervisor's stdin is closed, or with us."""
    job = json.dumps({**launch._asdict(), "grace": grace})
    command = [sys.executable, "-I", __file__, job]
    return start(command, stdout=output, stderr=output, env=env)


# ---- in the supervisor


def supervise(command: list[str], cleanup: list[str], grace: float) -> int:
    """Run a command until it ends or nobody needs it any more, and return its exit code."""
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    parent = os.getppid()
    prctl = _prctl()
    prctl(_SET_CHILD_SUBREAPER, 1)  # what a dying program leaves behind becomes our child
    try:
        program = start(
            command,
            stdin=DEVNULL,
            stdout=None,
            # a supervisor that is killed takes it along
            preexec_fn=lambda: prctl(_SET_PDEATHSIG, signal.SIGKILL),
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", flush=True)
        return 127
    try:
        _wait(program, parent)
    except KeyboardInterrupt:
        pass
    finally:
        _stop(program, grace)
        if cleanup:
            subprocess.run(cleanup, stdin=DEVNULL, check=False)
    code = program.returncode
    return code if code >= 0 else 128 - code


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _prctl() -> Callable[[int, int], object]:
    if sys.platform != "linux":
        return lambda option, value: None
    import ctypes

    call = ctypes.CDLL(None).prctl
    return lambda option, value: call(option, value, 0, 0, 0)


def _wait(program: Process, parent: int) -> None:
    """Wait until the program ends, or nobody needs it any more."""
    while program.poll() is None and os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], _LOOK)
        if readable and not os.read(0, 4096):
            return


def _stop(program: Process, grace: float) -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    with suppress(*_GONE):
        os.killpg(program.pid, signal.SIGTERM)
    is_ended(program, grace)
    with suppress(*_GONE):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    while orphans := _children():
        for orphan in orphans:
            with suppress(*_GONE):
                os.kill(orphan, signal.SIGKILL)
                os.waitpid(orphan, 0)


def _children() -> list[int]:
    """Return the processes that became ours, where the system tells: on Linux."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listed:
            return [int(number) for number in listed.read().split()]
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(supervise(**json.loads(sys.argv[1])))
