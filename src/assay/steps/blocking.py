"""Async code for callers that are not; in a notebook, whose loop already runs, it gets a thread and its own loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_blocking(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    results: list[T] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(asyncio.run(make()))
        except BaseException as error:  # handed over to the caller, who raises it
            failures.append(error)

    thread = threading.Thread(target=work, name="assay-run")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]
