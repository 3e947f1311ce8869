"""How tables look that change while they are shown, or that a library lays out."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table


def plain_table(*headers: str, **more: Any) -> Table:
    return Table(*headers, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold", **more)
