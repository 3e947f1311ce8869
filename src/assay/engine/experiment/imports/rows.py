"""Rows from elsewhere as an artefact of a store: written once, atomically, with a manifest that says what they were
made from, so that an unchanged source is not read again."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay.config import load
from assay.engine.experiment.trust import CONFIG, write_config
from assay.engine.run.artefact import close_artefact, new_manifest
from assay.sdk import (
    Evaluation,
    JsonMapping,
    JsonObject,
    Kind,
    Manifest,
    Response,
    Store,
    canonical,
    digest,
    shown,
)
from assay.store.seal import is_unchanged

_BATCH = 16  # rows that are written at once
_outcome = attrgetter("outcome")


def import_rows(
    store: Store,
    kind: Literal["run", "evaluation"],
    id: str,
    rows: Iterable[Response | Evaluation],
    *,
    source: JsonMapping,
    inputs: list[JsonObject],
    name: str = "",
    plan: JsonMapping | None = None,
) -> Manifest:
    """Store the rows as artefact `id`. `source` tells whether they are those of the last time, which stay; `inputs` is
    what they were made from, a run's dataset or an evaluation's runs. Call it under the store's lock."""
    log, old = store.log(kind, id), store.manifest(kind, id)
    manifest = imported_manifest(store, kind, id, source, inputs, name=name, plan=plan or {})
    if old and old.complete and old.digest == manifest.digest and is_unchanged(old, log):
        return old
    counts: Counter[str] = Counter()
    log.replace(_lines(rows, counts))
    return close_import(store, manifest, counts)


def imported_manifest(
    store: Store,
    kind: Kind,
    id: str,
    source: JsonMapping,
    inputs: list[JsonObject],
    *,
    name: str = "",
    plan: Mapping[str, Any] = {},
) -> Manifest:
    """Return the manifest of rows from elsewhere, before they come."""
    adopted, old = dict(source), store.manifest(kind, id)
    wanted = digest("adopted", canonical((adopted, inputs))).hex()
    whole = {**plan, "adopted": adopted}
    manifest = new_manifest(old, kind, id, whole, name=name, digest=wanted, inputs=inputs)
    manifest.metadata = old.metadata if old else {}
    return manifest


def close_import(
    store: Store, manifest: Manifest, counts: Counter[str], missing: int = 0
) -> Manifest:
    """Store the manifest of rows that have come; `counts` has their outcomes, and so many more
    were planned."""
    rows = counts.total()
    manifest.counts, manifest.present = dict(counts), rows
    manifest.planned, manifest.complete = rows + missing, not missing
    return close_artefact(store, manifest)


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
