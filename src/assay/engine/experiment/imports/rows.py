"""Rows from elsewhere as an artefact of a store: written once, atomically, with a manifest that says what they were
made from, so that an unchanged source is not read again."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay.config import load
from assay.engine.calls.failures import FAILURES, failures_in
from assay.engine.experiment.trust import CONFIG, write_config
from assay.errors import shown
from assay.interfaces import Store
from assay.records import Evaluation, Manifest, Response
from assay.store.keys import canonical, digest
from assay.store.seal import is_unchanged, seal

_BATCH = 16  # rows that are written at once
_outcome = attrgetter("outcome")


def import_rows(
    store: Store,
    kind: Literal["run", "evaluation"],
    id: str,
    rows: Iterable[Response | Evaluation],
    *,
    source: Mapping[str, Any],
    inputs: list[dict[str, Any]],
    name: str = "",
    plan: Mapping[str, Any] | None = None,
) -> Manifest:
    """Store the rows as artefact `id`. `source` tells whether they are those of the last time, which stay; `inputs` is
    what they were made from, a run's dataset or an evaluation's runs. Call it under the store's lock."""
    log = store.log(kind, id)
    old = store.manifest(kind, id)
    if (
        old is not None
        and old.complete
        and old.digest == _digest(source, inputs)
        and is_unchanged(old, log)
    ):
        return old
    started = time.time()
    counts: Counter[str] = Counter()
    log.replace(_lines(rows, counts))
    return put_imported(
        store, kind, id, counts, source=source, inputs=inputs, name=name, plan=plan, started=started
    )


def put_imported(
    store: Store,
    kind: Literal["run", "evaluation"],
    id: str,
    counts: Counter[str],
    *,
    source: Mapping[str, Any],
    inputs: list[dict[str, Any]],
    name: str,
    started: float,
    plan: Mapping[str, Any] | None = None,
) -> Manifest:
    """The manifest of rows that are stored; `counts` has their outcomes."""
    old = store.manifest(kind, id)
    manifest = Manifest(
        kind=kind,
        id=id,
        name=name or (old.name if old else ""),
        created=old.created if old else started,
        started=started,
        ended=time.time(),
        complete=True,
        digest=_digest(source, inputs),
        planned=counts.total(),
        present=counts.total(),
        counts=dict(counts),
        inputs=inputs,
        plan={**(plan or {}), "adopted": dict(source)},
        metadata=old.metadata if old else {},
    )
    log = store.log(kind, id)
    manifest.metadata[FAILURES] = failures_in(log) if counts["errored"] else []
    seal(manifest, log)
    store.put_manifest(manifest)
    return manifest


def _digest(source: Mapping[str, Any], inputs: list[dict[str, Any]]) -> str:
    return digest("adopted", canonical((dict(source), inputs))).hex()


def _lines(rows: Iterable[Response | Evaluation], counts: Counter[str]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode_lines
    remaining = iter(rows)
    while batch := [*islice(remaining, _BATCH)]:
        counts.update(map(_outcome, batch))
        yield encode(batch)


def means_config(folder: Path, name: str) -> None:
    """A config for later steps, for a folder that has none: the mean of each label by model."""
    if not (folder / CONFIG).exists():
        metrics = [{"name": "mean", "facets": ["model_name"]}]
        data = {"name": name, "output_dir": shown(str(folder)), "metrics": metrics}
        config = load(data, need="aggregate", environ={})
        write_config(folder, config)
