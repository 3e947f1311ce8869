"""Rows from elsewhere become artefacts of ours: a run or an evaluation that all steps can go on from.

The rows are written once, atomically, and the manifest says what they were made from: adopting an unchanged source
again does nothing, so that what was scored stays scored.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from assay.interfaces import Store
from assay.records import Evaluation, Manifest, Response
from assay.store.keys import canonical, digest

Adopted = Literal["run", "evaluation"]


def adopt(
    store: Store,
    kind: Adopted,
    id: str,
    rows: Iterable[Response | Evaluation],
    *,
    source: Mapping[str, Any],
    inputs: list[dict[str, Any]],
    name: str = "",
    plan: Mapping[str, Any] | None = None,
) -> Manifest:
    """Store the rows as artefact `id`. `source` tells whether they are those of the last time; `inputs` is what they
    were made from, a run's dataset or an evaluation's runs. Call it under the store's lock."""
    log = store.log(kind, id)
    old = store.manifest(kind, id)
    wanted = digest("adopted", canonical((dict(source), inputs))).hex()
    if old is not None and old.complete and old.digest == wanted and old.segments == log.segments():
        return old
    started = time.time()
    counts: Counter[str] = Counter()
    log.replace(_lines(rows, counts))
    manifest = Manifest(
        kind=kind,
        id=id,
        name=name or (old.name if old else ""),
        created=old.created if old else started,
        started=started,
        ended=time.time(),
        complete=True,
        digest=wanted,
        planned=counts.total(),
        counts=dict(counts),
        inputs=inputs,
        plan={**(plan or {}), "adopted": dict(source)},
        metadata=old.metadata if old else {},
        segments=log.segments(),
    )
    store.put_manifest(manifest)
    return manifest


def _lines(rows: Iterable[Response | Evaluation], counts: Counter[str]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    for row in rows:
        counts[row.outcome] += 1
        yield encode(row) + b"\n"
