"""Runs that end with the process."""

from assay.formats.intelligence_layer.evaluation.run.stored_run_repository import StoredRunRepository
from assay.interfaces import Log
from assay.store.log import MemoryLog
from assay.store.stores import MemoryStore


class InMemoryRunRepository(StoredRunRepository):
    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self._unfinished: dict[str, MemoryLog] = {}

    def _recovery(self, tmp_hash: str) -> Log:
        return self._unfinished.setdefault(tmp_hash, MemoryLog())

    def _delete_temporary_run_data(self, tmp_hash: str) -> None:
        self._unfinished.pop(tmp_hash, None)
