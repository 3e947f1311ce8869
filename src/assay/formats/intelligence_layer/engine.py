"""What the steps share with the engine: one store over several repositories, and a line in the terminal."""

import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from assay.engine.calls.progress import Progress
from assay.formats.intelligence_layer.datasets import DatasetRepository, StoredDatasetRepository, sorted_items
from assay.formats.intelligence_layer.domain import Example, RunOverview
from assay.formats.intelligence_layer.evaluation_rows import rows_of
from assay.formats.intelligence_layer.evaluations import EvaluationRepository, StoredEvaluationRepository
from assay.formats.intelligence_layer.run_rows import manifest_with, row_of
from assay.formats.intelligence_layer.runs import RunRepository, StoredRunRepository
from assay.interfaces import Log, Store
from assay.records import Kind, Manifest
from assay.store.repositories import DatasetRepository as Datasets
from assay.store.stores import MemoryStore
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


def dataset_store(
    repository: DatasetRepository, dataset_id: str, examples: Iterable[Example[Any, Any]], *, copied: bool = False
) -> Store:
    """Where the engine finds the examples: the repository's own store if its rows are what `examples` has, in the same
    order; else, and if they are to be `copied`, memory."""
    if isinstance(repository, StoredDatasetRepository) and not copied:
        store = repository.store_in_order(dataset_id)
        if store is not None:
            return store
    memory = MemoryStore()
    Datasets(memory).create(sorted_items(examples), name=dataset_id, id=dataset_id)
    return memory


def run_store(repository: RunRepository, runs: Sequence[RunOverview], output_type: Any) -> Store:
    """Where the engine finds the outputs of runs: the repository's own store, or a copy in memory."""
    if isinstance(repository, StoredRunRepository):
        store = repository.store_with(run.id for run in runs)
        if store is not None:
            return store
    memory = MemoryStore()
    for run in runs:
        memory.put_manifest(manifest_with(run, None))
        log = memory.log("run", run.id)
        for output in repository.example_outputs(run.id, output_type):
            log.append(msgspec.json.encode(row_of(output)) + b"\n")
    return memory


def evaluation_store(repository: EvaluationRepository, evaluation_ids: Sequence[str], evaluation_type: Any) -> Store:
    """Where the engine finds the results of evaluations: the repository's own store, or a copy in memory."""
    if isinstance(repository, StoredEvaluationRepository) and all(map(repository.has_own_rows, evaluation_ids)):
        return repository.store
    memory = MemoryStore()
    for evaluation_id in evaluation_ids:
        memory.put_manifest(Manifest(kind="evaluation", id=evaluation_id))
        log = memory.log("evaluation", evaluation_id)
        for result in repository.example_evaluations(evaluation_id, evaluation_type):
            log.append(msgspec.json.Encoder().encode_lines(rows_of(result)))
    return memory


@contextmanager
def shown(progress: Progress, title: str, name: str = "") -> Generator[None]:
    """Show these counters until the block ends, under this name instead of their own. What is printed meanwhile
    appears above them."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(get_renderable=lambda: _bars(progress, title, name), console=console, refresh_per_second=4):
        yield


def _bars(progress: Progress, title: str, name: str) -> "Table":
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    for lane in list(progress.lanes.values()):
        rows = lane.present + lane.done
        count = f"{rows:,}" if lane.total is None else f"{rows:,}/{lane.total:,}"
        failed = f"{lane.errors:,} failed" if lane.errors else ""
        bar = ProgressBar(total=lane.total, completed=rows, width=40)
        table.add_row(Text(f"{title} {plain(name or lane.name)}"), bar, Text(count), Text(failed, style="yellow"))
    return table
