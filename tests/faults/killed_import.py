"""Imports that are killed: after every system call that changes the disk, and at random times; then the same command.

`python -m tests.faults.killed_import FOLDER` works in FOLDER and prints, as JSON, how many imports were killed and what
was wrong afterwards. It is a process of its own because it forks.
"""

import gc
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay import api
from fuzz.imports import SOURCES, read, sources

EVENTS = ("open", "os.mkdir", "os.remove", "os.rename", "os.truncate", "fcntl.flock")
CALLS = ("write", "pwrite", "fsync", "replace", "ftruncate")
# the last is the checksum of a text with times
CLOCKS = ("created", "started", "ended", "mtime_ns", "manifest")
AT_RANDOM = 10


def main(here: Path) -> dict[str, Any]:
    os.chdir(here)
    gc.freeze()  # forks share it
    kills, wrong = 0, list[str]()
    # one each: kills take time
    logs = {name: sources()[name][:1] for name in ("inspect_ai", "promptfoo", "csv")}
    for name, writes in {**SOURCES, **logs}.items():
        for number, write in enumerate(writes):
            shutil.rmtree("source", ignore_errors=True)
            write(Path("source"))
            whole, seconds = _import(name)
            shutil.rmtree("out", ignore_errors=True)
            for point in points(lambda name=name: _import(name, fresh=False)):
                when = f"{name} {number}, killed at {point}"
                status = ended(
                    lambda name=name, point=point: die_at(point, lambda: _import(name, fresh=False))
                )
                kills += 1
                wrong += [] if os.WIFSIGNALED(status) else [f"{when}: it was not"]
                wrong += _difference(name, whole, when)
            chance = random.Random(number)
            for _ in range(AT_RANDOM):
                moment = chance.uniform(0, seconds)
                kills += os.WIFSIGNALED(ended(lambda name=name: _import(name, fresh=False), moment))
                wrong += _difference(name, whole, f"{name} {number}, killed after {moment:.4f} s")
    return {"kills": kills, "wrong": wrong}


def _import(name: str, *, fresh: bool = True) -> tuple[dict[str, Any], float]:
    """What an import leaves in `out`, and how long it took."""
    if fresh:
        shutil.rmtree("out", ignore_errors=True)
    start = time.monotonic()
    api.import_("source", "out", format_name=name)
    return _left(), time.monotonic() - start


def _left() -> dict[str, Any]:
    """The files without times, and without what a killed process could not remove."""
    files = {
        place: content
        for place, content in read(Path("out")).items()
        if not place.endswith((".tmp", ".lock"))
    }
    return {
        place: _without_times(json.loads(content)) if place.endswith("manifest.json") else content
        for place, content in files.items()
    }


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(part) for key, part in value.items() if key not in CLOCKS}
    return [_without_times(part) for part in value] if isinstance(value, list) else value


def _difference(name: str, whole: dict[str, Any], when: str) -> list[str]:
    """What the same command makes of what was left."""
    try:
        again, _ = _import(name, fresh=False)
    except Exception as error:
        return [f"{when}: {error}"]
    finally:
        shutil.rmtree("out", ignore_errors=True)
    return [] if again == whole else [f"{when}: {sorted({*again, *whole})} differ"]


def ended(work: Callable[[], Any], after: float | None = None) -> int:
    """How a child ended that does the work; it is killed after some seconds."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def points(work: Callable[[], Any]) -> list[int]:
    """The calls at which `out` is not as it was at the call before: a kill leaves nothing else."""
    points, seen, count, looking = list[int](), Path("points.json"), 0, False
    last: Any = None

    def tick() -> None:
        nonlocal count, last, looking
        if looking:
            return
        count, looking = count + 1, True
        found = {str(path): path.is_dir() or path.read_bytes() for path in Path("out").rglob("*")}
        if found != last:
            points.append(count)
        last, looking = found, False

    def look() -> None:
        nonlocal looking
        _at_each_call(tick, work)
        looking = True
        seen.write_text(json.dumps(points))

    assert ended(look) == 0
    shutil.rmtree("out")
    return json.loads(seen.read_text())


def die_at(point: int, work: Callable[[], Any]) -> None:
    left = point

    def tick() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _at_each_call(tick, work)


def _at_each_call(tick: Callable[[], None], work: Callable[[], Any]) -> None:
    """Do the work; before and after each call that may change the disk there is a tick."""

    def around(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            tick()
            result = call(*arguments, **options)
            tick()
            return result

        return counted

    for name in CALLS:
        setattr(os, name, around(getattr(os, name)))
    sys.addaudithook(lambda event, _: tick() if event in EVENTS else None)
    work()


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
