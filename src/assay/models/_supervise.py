"""A process between us and a server that we start: when we are gone, for whatever reason, so is the server.

Run as a script with one argument, JSON: {"command", "cleanup", "grace"}. It ends the server and all that the server
started when its stdin closes or its parent changes, then runs the cleanup command. It imports nothing of Assay.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_LOOK = 0.2


def main() -> int:
    job: dict[str, Any] = json.loads(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    _prctl(_SET_CHILD_SUBREAPER, 1)  # what a dying server leaves behind becomes our child
    try:
        server = subprocess.Popen(
            job["command"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_us,
        )
    except OSError as error:
        print(f"{job['command'][0]}: {error.strerror}", flush=True)
        return 127
    try:
        _wait(server, os.getppid())
    except KeyboardInterrupt:
        pass
    finally:
        _stop(server, job["grace"])
        if job["cleanup"]:
            subprocess.run(job["cleanup"], stdin=subprocess.DEVNULL, check=False)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _end(*_: Any) -> None:
    raise KeyboardInterrupt


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_us() -> None:
    """In the server, before it is one: a supervisor that is killed takes it along."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)


def _wait(server: "subprocess.Popen[bytes]", parent: int) -> None:
    """Until the server ends, or nobody needs it any more."""
    while server.poll() is None and os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], _LOOK)
        if readable and not os.read(0, 4096):
            return


def _stop(server: "subprocess.Popen[bytes]", grace: float) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _signal_group(server.pid, signal.SIGTERM)
    end = time.monotonic() + grace
    while server.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    _signal_group(server.pid, signal.SIGKILL)
    server.wait()
    while orphans := _children():
        for orphan in orphans:
            _kill(orphan)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # all of it is gone already
        pass


def _children() -> list[int]:
    """The processes that became ours, where the system tells: on Linux."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listed:
            return [int(number) for number in listed.read().split()]
    except OSError:
        return []


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


if __name__ == "__main__":
    sys.exit(main())
