"""A bar on standard error for what takes some seconds; it appears with the first step."""

from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def bar(text: str) -> Generator[Callable[[int, int], None]]:
    """A function that is told how much of how much is done."""
    display = None
    task = None

    def step(done: int, total: int) -> None:
        nonlocal display, task
        if display is None:
            from rich.console import Console
            from rich.progress import Progress

            display = Progress(console=Console(stderr=True), transient=True)
            task = display.add_task(text, total=total)
            display.start()
        assert task is not None
        display.update(task, completed=done, total=total)

    try:
        yield step
    finally:
        if display is not None:
            display.stop()
