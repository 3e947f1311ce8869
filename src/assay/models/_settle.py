"""Lets pyreqwest's thread come to rest before the interpreter goes away.

That thread gives Python objects back a moment after the last answer. If the interpreter is being torn down just
then, CPython aborts the process (seen with pyreqwest 0.15 and Python 3.11: a third of short scripts died so).
"""

import atexit
import time
from functools import cache
from pathlib import Path

_TASKS = Path("/proc/self/task")
_PATIENCE = 1.0
_PAUSE = 0.002
_BLIND_PAUSE = 0.05


@cache
def settle_at_exit() -> None:
    """Arrange it, once for the process."""
    atexit.register(settle)


def settle() -> None:
    """Release the GIL until the thread slept through a whole pause, so that nothing of it waits for the GIL."""
    if not _TASKS.is_dir():
        time.sleep(_BLIND_PAUSE)
        return
    deadline = time.monotonic() + _PATIENCE
    before = None
    while time.monotonic() < deadline:
        now = _activity()
        if now == before and all(state == "S" for state, _ in now):
            return
        before = now
        time.sleep(_PAUSE)


def _activity() -> list[tuple[str, str]]:
    """State and number of context switches of each thread of pyreqwest."""
    threads: list[tuple[str, str]] = []
    for task in _TASKS.iterdir():
        try:
            fields = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        except OSError:  # the thread has just ended
            continue
        if fields["Name"] == "pyreqwest":
            switches = fields["voluntary_ctxt_switches"] + fields["nonvoluntary_ctxt_switches"]
            threads.append((fields["State"][:1], switches))
    return threads
