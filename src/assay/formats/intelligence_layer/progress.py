"""A line in the terminal while a step runs, as the original shows; nothing where nobody looks."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from assay.engine.calls.progress import Progress
from assay.text.plain import plain

if TYPE_CHECKING:
    from rich.table import Table


@contextmanager
def shown(progress: Progress, title: str) -> Generator[None]:
    """Show these counters until the block ends. What is printed meanwhile appears above them."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(get_renderable=lambda: _bars(progress, title), console=console, refresh_per_second=4):
        yield


def _bars(progress: Progress, title: str) -> "Table":
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    for lane in list(progress.lanes.values()):
        rows = lane.present + lane.done
        count = f"{rows:,}" if lane.total is None else f"{rows:,}/{lane.total:,}"
        failed = f"{lane.errors:,} failed" if lane.errors else ""
        bar = ProgressBar(total=lane.total, completed=rows, width=40)
        table.add_row(Text(f"{title} {plain(lane.name)}"), bar, Text(count), Text(failed, style="yellow"))
    return table
