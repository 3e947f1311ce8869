"""Results from elsewhere become an experiment folder: what `assay import` does, whatever the format.

Rows are streamed, written once, atomically, and the manifest says what they were made from: importing an unchanged
source again does nothing, so that what was scored stays scored. Rows that Assay made itself are never replaced.
"""

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal, Protocol

import msgspec

from assay import registry
from assay.config import load
from assay.engine.experiment.dataset import ingest
from assay.engine.experiment.trust import CONFIG, write_config
from assay.errors import UserError, shown
from assay.interfaces import Store
from assay.records import ROWS_FILE, Evaluation, Kind, Manifest, Response
from assay.shown import Shown
from assay.store.files import safe_name
from assay.store.keys import canonical, digest
from assay.store.seal import is_unchanged, seal
from assay.store.shared.mirror import local, push
from assay.store.stores import FlatStore
from assay.usercode import failing


class Foreign(Protocol):
    """What a reader found: the results on one dataset. `source` tells whether they have changed, `facts` goes into the
    manifest, `notes()` is what is odd about what was read last. A reader that can leave something out counts these rows
    and files in `rejected`."""

    dataset: str

    @property
    def source(self) -> Mapping[str, Any]: ...

    @property
    def facts(self) -> Mapping[str, Any]: ...

    def notes(self) -> list[str]: ...

    def items(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(place, dataset row) of each item."""
        ...

    def cases(self) -> Iterator[tuple[Response, list[Evaluation]]]:
        """Each response with the evaluations that came with it."""
        ...


class Imported(Shown, kw_only=True):
    """What one import left behind."""

    folder: str
    format: str
    dataset: str
    read_from: list[str] = []
    agents: list[str] = []
    items: int = 0
    responses: dict[str, int] = {}
    evaluations: dict[str, int] = {}
    rejected: int = 0
    notes: list[str] = []


def import_results(
    path: str | Path, folder: str | Path, *, format_name: str = "", params: Mapping[str, Any] | None = None
) -> list[Imported]:
    """Import what is at `path` into `folder`; several datasets get a folder each below it."""
    name, datasets = _read(local(path), format_name, params or {})
    single = len(datasets) == 1
    folders = [local(folder if single else f"{folder}/{safe_name(foreign.dataset)}") for foreign in datasets]
    return [_import_dataset(name, foreign, target) for foreign, target in zip(datasets, folders, strict=True)]


def _read(path: Path, format_name: str, params: Mapping[str, Any]) -> tuple[str, list[Foreign]]:
    if not os.path.exists(path):
        from assay.config.source import similar_files

        raise UserError(f"there is no file or folder {str(path)!r}", fix=similar_files(path))
    names = [format_name] if format_name else registry.reader.names()
    for name in names:
        read = registry.reader.get(name, base=Path.cwd(), where="--from")
        chosen = registry.check_params(read, params, where="--set")
        with failing(read, f"the format {name!r}", "--from"):
            datasets: list[Foreign] = read(path, **chosen)
        if datasets:
            return name, datasets
    raise UserError(
        f"{str(path)!r} holds nothing that can be imported",
        fix=f"name a file or folder with results of {' or '.join(names)}; a file of rows needs no import",
    )


def _import_dataset(name: str, foreign: Foreign, folder: Path) -> Imported:
    store = FlatStore(folder)
    id = next(iter(store.ids("run")), store.id)
    with store.lock("run", id):
        for kind in ("dataset", "run"):
            _check_free(store, kind)
        source = dict(foreign.source)
        _claim(store, "dataset", id, foreign.dataset, {"imported": source})
        _claim(store, "run", id, foreign.dataset, {"adopted": source})
        dataset = ingest(store, id, foreign.items, stamp={"imported": source}, name=foreign.dataset)
        made_from = [{"kind": "dataset", "id": id, "digest": dataset.digest}]
        with TemporaryFile(prefix=".assay-", dir=folder) as spool:
            cases = _Cases(foreign, spool)
            run = import_rows(
                store, "run", id, cases.responses(), source=source, inputs=made_from, name=foreign.dataset
            )
            notes = foreign.notes() or run.metadata.get("odd", [])
            run.metadata = {**run.metadata, name: dict(foreign.facts), "odd": notes}
            rejected = getattr(foreign, "rejected", 0)
            _close(store, run, rejected)
            counts = _import_evaluations(store, id, cases.evaluations(), source, run, notes, rejected)
        means_config(folder, foreign.dataset)
        push(folder)
    facts = foreign.facts
    return Imported(
        folder=shown(str(folder)),
        format=name,
        dataset=foreign.dataset,
        read_from=list(facts.get("read_from", [])),
        agents=list(facts.get("agents", [])),
        items=dataset.counts.get("items", 0),
        responses=run.counts,
        evaluations=counts,
        rejected=rejected,
        notes=list(notes),
    )


class _Cases:
    """A reader's cases, read once: the evaluations wait in a file until the responses are stored."""

    def __init__(self, foreign: Foreign, spool: IO[bytes]) -> None:
        self._foreign = foreign
        self._spool = spool
        self._read = False

    def responses(self) -> Iterator[Response]:
        encode = msgspec.json.Encoder().encode
        for response, evaluations in self._foreign.cases():
            self._read = True
            self._spool.writelines([encode(evaluation) + b"\n" for evaluation in evaluations])
            yield response
        if not self._read:
            where = self._foreign.dataset
            raise UserError("there is no response to import", where=where, fix="name a source that has answers")

    def evaluations(self) -> Iterator[Evaluation]:
        if not self._read:  # the responses were there already
            yield from (evaluation for _, several in self._foreign.cases() for evaluation in several)
            return
        self._spool.seek(0)
        yield from map(msgspec.json.Decoder(Evaluation).decode, self._spool)


def _import_evaluations(
    store: FlatStore,
    id: str,
    rows: Iterator[Evaluation],
    source: Mapping[str, Any],
    run: Manifest,
    notes: list[str],
    rejected: int,
) -> dict[str, int]:
    old = store.manifest("evaluation", id)
    if old is not None and "adopted" not in old.plan:
        notes.append("the folder's evaluations were made by Assay and stay as they are")
        return old.counts
    _check_free(store, "evaluation")
    if old is None:  # no evaluations, no artefact
        first = next(rows, None)
        if first is None:
            return {}
        rows = chain([first], rows)
    _claim(store, "evaluation", id, run.name, {"adopted": dict(source)})
    made_from = [{"kind": "run", "id": id, "digest": run.digest}, *run.inputs]
    evaluation = import_rows(store, "evaluation", id, rows, source=source, inputs=made_from, name=run.name)
    _close(store, evaluation, rejected)
    return evaluation.counts


def _claim(store: FlatStore, kind: Kind, id: str, name: str, plan: dict[str, Any]) -> None:
    """Say whose rows will come, before they do: an import that is killed between the two can resume."""
    if store.manifest(kind, id) is None:
        store.put_manifest(Manifest(kind=kind, id=id, name=name, created=time.time(), plan=plan))


def _close(store: FlatStore, manifest: Manifest, rejected: int) -> None:
    """What could not be read was planned and is missing: such an artefact is not complete."""
    manifest.complete = not rejected
    manifest.planned = sum(manifest.counts.values()) + rejected
    store.put_manifest(manifest)


def _check_free(store: FlatStore, kind: Kind) -> None:
    """Rows that an import may replace were made by one."""
    manifest = next((store.manifest(kind, id) for id in store.ids(kind)), None)
    there = (store.folder / ROWS_FILE[kind]).exists()
    ours = manifest is not None and ("adopted" in manifest.plan or "imported" in manifest.plan)
    if there and not ours:
        raise UserError(
            f"the folder has {ROWS_FILE[kind]} that no import has made",
            where=str(store.folder),
            fix="choose another folder with -o",
        )


def means_config(folder: Path, name: str) -> None:
    """A config for later steps, for a folder that has none: the mean of each label by model."""
    if not (folder / CONFIG).exists():
        metrics = [{"name": "mean", "facets": ["model_name"]}]
        data = {"name": name, "output_dir": shown(str(folder)), "metrics": metrics}
        config = load(data, need="aggregate", environ={})
        write_config(folder, config)


# ---- rows as an artefact


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
    """Store the rows as artefact `id`. `source` tells whether they are those of the last time; `inputs` is what they
    were made from, a run's dataset or an evaluation's runs. Call it under the store's lock."""
    log = store.log(kind, id)
    old = store.manifest(kind, id)
    wanted = digest("adopted", canonical((dict(source), inputs))).hex()
    if old is not None and old.complete and old.digest == wanted and is_unchanged(old, log):
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


def _lines(rows: Iterable[Response | Evaluation], counts: Counter[str]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    for row in rows:
        counts[row.outcome] += 1
        yield encode(row) + b"\n"
