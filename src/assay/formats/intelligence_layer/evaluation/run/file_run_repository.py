"""Runs in a folder, `runs/<id>/` of a repository root; runs that the original wrote are read.

As long as a run is not finished, `runs/<hash>.tmp` names it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from assay.formats.intelligence_layer.core.task import Output
from assay.formats.intelligence_layer.core.tracer.tracer import Tracer
from assay.formats.intelligence_layer.evaluation.run.domain import ExampleOutput, RunOverview
from assay.formats.intelligence_layer.evaluation.run.original_runs import OriginalRuns
from assay.formats.intelligence_layer.evaluation.run.stored_run_repository import StoredRunRepository
from assay.interfaces import Log
from assay.store.log import FileLog
from assay.store.names import safe_name
from assay.store.stores import FolderStore


class FileRunRepository(StoredRunRepository):
    def __init__(self, root_directory: Path) -> None:
        root = Path(root_directory)
        root.mkdir(parents=True, exist_ok=True)
        super().__init__(FolderStore(root))
        self._folder = root / "runs"
        self._original = OriginalRuns(self._folder)

    def run_overview(self, run_id: str) -> RunOverview | None:
        return super().run_overview(run_id) or self._original.overview(run_id)

    def run_overview_ids(self) -> Sequence[str]:
        return sorted({*self._original.ids(), *super().run_overview_ids()})

    def example_output(self, run_id: str, example_id: str, output_type: type[Output]) -> ExampleOutput[Output] | None:
        if self._is_original(run_id):
            return self._original.output(run_id, example_id, output_type)
        return super().example_output(run_id, example_id, output_type)

    def example_outputs(self, run_id: str, output_type: type[Output]) -> Iterable[ExampleOutput[Output]]:
        if self._is_original(run_id):
            return self._original.outputs(run_id, output_type)
        return super().example_outputs(run_id, output_type)

    def example_output_ids(self, run_id: str) -> Sequence[str]:
        return self._original.output_ids(run_id) if self._is_original(run_id) else super().example_output_ids(run_id)

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        return super().example_tracer(run_id, example_id) or self._original.tracer(run_id, example_id)

    def _is_original(self, run_id: str) -> bool:
        return not self._rows_in(run_id).log.segments() and self._original.has(run_id)

    def _recovery(self, tmp_hash: str) -> Log:
        return FileLog(self._recovery_file(tmp_hash))

    def _delete_temporary_run_data(self, tmp_hash: str) -> None:
        self._recovery_file(tmp_hash).unlink(missing_ok=True)

    def _recovery_file(self, tmp_hash: str) -> Path:
        return self._folder / f"{safe_name(tmp_hash)}.tmp"
