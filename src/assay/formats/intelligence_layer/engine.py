"""What the steps share with the engine: one store over several repositories, and a line in the terminal."""

import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from assay.engine.calls.progress import Progress
from assay.interfaces import Log, Store
from assay.records import Kind, Manifest
from assay.text.plain import plain

if TYPE_CHECKING:
    from rich.table import Table


class StoreByKind:
    """Hands everything to the store of the artefact's kind."""

    def __init__(self, stores: Mapping[Kind, Store]) -> None:
        self._stores = stores

    def ids(self, kind: Kind) -> list[str]:
        return self._stores[kind].ids(kind)

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        return self._stores[kind].manifest(kind, id)

    def put_manifest(self, manifest: Manifest) -> None:
        self._stores[manifest.kind].put_manifest(manifest)

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        return self._stores[kind].log(kind, id, name)

    def delete(self, kind: Kind, id: str) -> None:
        self._stores[kind].delete(kind, id)

    def lock(self, kind: Kind, id: str) -> AbstractContextManager[None]:
        return self._stores[kind].lock(kind, id)


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
