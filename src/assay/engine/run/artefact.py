"""An artefact while it is made: it begins with the manifest of its plan, and is closed in one place."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from assay.engine.calls.failures import FAILURES, failures_in
from assay.engine.calls.stop import Stop
from assay.engine.calls.usage import CALLS, USAGE, usage_of, usage_of_calls
from assay.engine.run.evidence import PARTIAL, partial_of
from assay.engine.run.existing import Existing
from assay.engine.run.plan import plan_digest
from assay.parameters import nearest
from assay.sdk import JsonObject, Kind, Manifest, Store, UserError
from assay.store.seal import seal
from assay.store.sync import GroupSync

if TYPE_CHECKING:
    from assay.engine.calls.executor import Executor


def new_manifest(
    old: Manifest | None,
    kind: Kind,
    id: str,
    plan: JsonObject,
    *,
    name: str = "",
    digest: str = "",
    inputs: Iterable[JsonObject] = (),
) -> Manifest:
    """Return the manifest of rows that are about to be made. It goes on with the name and the age
    of `old`, which is that of earlier ones."""
    now = time.time()
    return Manifest(
        kind=kind,
        id=id,
        name=name or (old.name if old else ""),
        created=old.created if old else now,
        started=now,
        digest=digest or plan_digest(plan),
        plan=plan,
        inputs=[*inputs],
    )


def input_of(store: Store, kind: Kind, id: str) -> JsonObject:
    """Return what another artefact's manifest says of this one, which it is made from."""
    manifest, segments = store.manifest(kind, id), store.log(kind, id).segments()
    if manifest is None and not segments:
        known = nearest(id, store.ids(kind)) or f"the store has no {kind} yet"
        raise UserError(f"there is no {kind} {id!r}", fix=known)
    stats = [(segment.name, segment.size, segment.mtime_ns) for segment in segments]
    digest = manifest.digest if manifest else ""
    entry: JsonObject = {"kind": kind, "id": id, "digest": digest, "rows": stats}
    if partial := partial_of([manifest]):
        entry[PARTIAL] = partial
    return entry


def close_artefact(
    store: Store, manifest: Manifest, owners: Iterable[str] | None = None
) -> Manifest:
    """Seal rows that are counted, and store their manifest: why some failed, and, where `owners`
    made them, what they and their calls used."""
    kind, log = manifest.kind, store.log(manifest.kind, manifest.id)
    if owners is not None:
        if kind == "run":
            manifest.metadata[USAGE] = usage_of(log)
        calls = store.log(kind, manifest.id, "calls")
        manifest.metadata[CALLS] = usage_of_calls(calls, owners)
    if kind in ("run", "evaluation"):
        manifest.metadata[FAILURES] = failures_in(log) if manifest.counts.get("errored") else []
    seal(manifest, log)
    manifest.ended = time.time()
    store.put_manifest(manifest)
    return manifest


class ArtefactJob:
    """One call of an executor."""

    def __init__(self, executor: "Executor", manifest: Manifest) -> None:
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
