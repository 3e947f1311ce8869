"""A log of paid calls that cannot be written or read: the step stops with the disk's error, and writes no row of it."""

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import StoreError
from assay.interfaces import Completion, Limits, Request
from assay.models.python import python

ITEMS = 12


class Disk:
    """Operations on `calls.jsonl` fail from the n-th on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.code, self.left, self.broken = 0, 0, False
        for name in ("write", "pread", "open"):
            monkeypatch.setattr(os, name, self.refusing(getattr(os, name)))

    def refusing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def maybe(target: Any, *rest: Any, **more: Any) -> Any:
            path = (
                os.readlink(f"/proc/self/fd/{target}")
                if isinstance(target, int)
                else os.fspath(target)
            )
            if self.broken and str(path).endswith("calls.jsonl"):
                self.left -= 1
                if self.left < 0:
                    raise OSError(self.code, os.strerror(self.code))
            return call(target, *rest, **more)

        return maybe

    @contextmanager
    def breaks(self, code: int, after: int) -> Iterator[None]:
        self.code, self.left, self.broken = code, after, True
        try:
            yield
        finally:
            self.broken = False


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


class Counting:
    def __init__(self) -> None:
        self.calls = 0
        self.model = python("m", function=self.answer)

    async def answer(self, request: Request) -> Completion:
        self.calls += 1
        await asyncio.sleep(0)
        return Completion(text="yes", total_tokens=2)


async def awaited(item: Any, *, context: Any) -> str:
    return (await context.complete([{"role": "user", "content": "x"}])).text


def in_a_thread(item: Any, *, context: Any) -> str:
    return context.complete_sync([{"role": "user", "content": "x"}]).text


async def swallowing(item: Any, *, context: Any) -> str:
    try:
        return (await context.complete([{"role": "user", "content": "x"}])).text
    except Exception:
        return "no answer"


async def twice(item: Any, *, context: Any) -> str:
    first = await context.complete([{"role": "user", "content": "x"}])
    return first.text + (await context.complete([{"role": "user", "content": first.text}])).text


async def judging(item: Any, response: Any, *, context: Any) -> bool:
    return (await context.complete([{"role": "user", "content": "x"}])).text == "yes"


async def judging_on(item: Any, response: Any, *, context: Any) -> bool:
    try:
        return (await context.complete([{"role": "user", "content": "x"}])).text == "yes"
    except Exception:
        return False


def judging_in_a_thread(item: Any, response: Any, *, context: Any) -> bool:
    return context.complete_sync([{"role": "user", "content": "x"}]).text == "yes"


CODES = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)


def opened(folder: Path) -> Any:
    store = assay.FolderStore(folder)
    assay.DatasetRepository(store).create(
        [{"id": f"q{i}", "data": f"{i}"} for i in range(ITEMS)], name="d", id="d"
    )
    return store


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("after", [0, 1, 4])
@pytest.mark.parametrize("task", [awaited, in_a_thread, swallowing, twice])
def test_tasks(tmp_path: Path, disk: Disk, code: int, after: int, task: Any) -> None:
    store, asked = opened(tmp_path), Counting()
    options: Any = {"models": {"m": asked.model}, "default_limits": Limits(max_concurrency=2)}

    def run() -> Any:
        return assay.Runner(store, **options).run("d", [assay.function_task(task)], id="r")

    with disk.breaks(code, after), pytest.raises(StoreError):
        run()
    before = asked.calls
    assert before <= after + 8, "what cannot be kept is not paid"
    rows = list(assay.RunRepository(store).responses("r"))
    assert {row.outcome for row in rows} <= {"ok"}
    assert {row.response for row in rows} <= {"yes", "yesyes"}
    assert run().counts == {"ok": ITEMS}
    assert {row.response for row in assay.RunRepository(store).responses("r")} <= {"yes", "yesyes"}


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("after", [0, 1, 4])
@pytest.mark.parametrize("scorer", [judging, judging_on, judging_in_a_thread])
def test_scorers(tmp_path: Path, disk: Disk, code: int, after: int, scorer: Any) -> None:
    store, asked = opened(tmp_path), Counting()
    options: Any = {"models": {"m": asked.model}, "default_limits": Limits(max_concurrency=2)}
    assay.Runner(store).run("d", [assay.function_task(lambda data: data, name="same")], id="r")

    def evaluate() -> Any:
        return assay.Evaluator(store, **options).evaluate(
            ["r"], [assay.bind_scorer(scorer)], id="e"
        )

    with disk.breaks(code, after), pytest.raises(StoreError):
        evaluate()
    rows = list(assay.EvaluationRepository(store).evaluations("e"))
    assert {(row.outcome, row.passed) for row in rows} <= {("scored", True)}
    evaluate()
    rows = list(assay.EvaluationRepository(store).evaluations("e"))
    assert [(row.outcome, row.passed) for row in rows] == [("scored", True)] * ITEMS
