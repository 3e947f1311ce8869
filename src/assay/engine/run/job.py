"""A step at work: the rows that it has already, the commit of new ones, and its manifest."""

from collections.abc import Iterable

from assay.engine.calls.executor import Executor, close_artefact
from assay.engine.calls.stop import Stop
from assay.engine.run.existing import Existing
from assay.records import Manifest
from assay.store.seal import seal
from assay.store.sync import GroupSync


class Job:
    """One call of an executor."""

    def __init__(self, executor: Executor, manifest: Manifest) -> None:
        self.store, self.manifest = executor.store, manifest
        self.stop = executor.stop or Stop()
        self.log = self.store.log(manifest.kind, manifest.id)
        self.existing = Existing(self.store, manifest.kind, manifest.id)
        self.sync = GroupSync()

    def begin(self, planned: int | None) -> None:
        """Store the manifest with the rows that there are."""
        self.manifest.planned = planned
        self.manifest.present, self.manifest.complete = self.existing.total, False
        seal(self.manifest, self.log)
        self.store.put_manifest(self.manifest)

    def end(self, complete: bool, owners: Iterable[str]) -> None:
        """Store the manifest with the rows that there are now; `owners` are tasks or scorers."""
        self.manifest.counts = self.existing.counts()
        self.manifest.present, self.manifest.complete = self.existing.total, complete
        close_artefact(self.store, self.manifest, owners)
