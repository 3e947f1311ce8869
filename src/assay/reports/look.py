"""What tables made by rich share: how they look, and whether one fits the terminal."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table


def plain_table(*headers: str, **more: Any) -> Table:
    return Table(*headers, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold", **more)


def fits(table: Table, console: Console, *, folded: bool = True) -> bool:
    """Whether a table fits the terminal, with its long cells folded where they may be, or as it is."""
    width = Measurement.get(console, console.options.update(max_width=10_000), table)
    return (width.minimum if folded else width.maximum) <= console.width
