"""Rows from elsewhere as an artefact of a store: written once, atomically, with a manifest that says what they were
made from, so that an unchanged source is not read again."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import msgspec

from assay.config import load
from assay.engine.experiment.trust import CONFIG, write_config
from assay.errors import shown
from assay.interfaces import Store
from assay.records import Evaluation, Manifest, Response
from assay.store.keys import canonical, digest
from assay.store.seal import is_unchanged, seal

_BATCH = 16  # rows that are written at once
_outcome = attrgetter("outcome")


class Written(NamedTuple):
    """Rows that are encoded already, as whole lines; the first block of them has the outcomes of all."""

    outcomes: Mapping[str, int]
    lines: bytes


def import_rows(
    store: Store,
    kind: Literal["run", "evaluation"],
    id: str,
    rows: Iterable[Response | Evaluation | Written],
    *,
    source: Mapping[str, Any],
    inputs: list[dict[str, Any]],
    name: str = "",
    plan: Mapping[str, Any] | None = None,
    anew: bool = False,
) -> Manifest:
    """Store the rows as artefact `id`. `source` tells whether they are those of the last time, which stay unless they
    are wanted `anew`; `inputs` is what they were made from, a run's dataset or an evaluation's runs. Call it under the
    store's lock."""
    log = store.log(kind, id)
    old = store.manifest(kind, id)
    wanted = digest("adopted", canonical((dict(source), inputs))).hex()
    if not anew and old is not None and old.complete and old.digest == wanted and is_unchanged(old, log):
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
        present=counts.total(),
        counts=dict(counts),
        inputs=inputs,
        plan={**(plan or {}), "adopted": dict(source)},
        metadata=old.metadata if old else {},
    )
    seal(manifest, log)
    store.put_manifest(manifest)
    return manifest


def _lines(rows: Iterable[Response | Evaluation | Written], counts: Counter[str]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode_lines
    batch: list[Response | Evaluation] = []
    for row in rows:
        if type(row) is Written:
            counts.update(row.outcomes)
            yield row.lines
            continue
        batch.append(cast("Response | Evaluation", row))
        if len(batch) == _BATCH:
            counts.update(map(_outcome, batch))
            yield encode(batch)
            batch = []
    if batch:
        counts.update(map(_outcome, batch))
        yield encode(batch)


def means_config(folder: Path, name: str) -> None:
    """A config for later steps, for a folder that has none: the mean of each label by model."""
    if not (folder / CONFIG).exists():
        metrics = [{"name": "mean", "facets": ["model_name"]}]
        data = {"name": name, "output_dir": shown(str(folder)), "metrics": metrics}
        config = load(data, need="aggregate", environ={})
        write_config(folder, config)
