"""Results of other programs become experiment folders: what `assay import` does, whatever the format.

A source is read once and streamed: its rows go to new files, which take the places of the folder's at the end. The
manifest says what the rows were made from: importing an unchanged source again does nothing, so that what was scored
stays scored. Rows that Assay made itself are never replaced.
"""

import os
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from itertools import chain
from operator import attrgetter
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec
from xxhash import xxh3_64_intdigest

from assay.engine.experiment.dataset import put_dataset, source_mark
from assay.engine.experiment.imports.headlines import HeadlineCheck, check_headlines
from assay.engine.experiment.imports.rows import close_import, imported_manifest, means_config
from assay.foreign import (
    Foreign,
    ForeignCase,
    Read,
    check_no_sidecar,
    read_foreign,
)
from assay.reading import Paths, each_of
from assay.sdk import (
    ROWS_FILE,
    Evaluation,
    JsonMapping,
    JsonObject,
    Kind,
    Manifest,
    Response,
    UserError,
    canonical,
    digest,
    id_hash,
    list_of,
    safe_name,
    shown,
    store_error,
)
from assay.shown import Shown
from assay.store.items import stored_item
from assay.store.keyset import Seen
from assay.store.lock import patient
from assay.store.new_rows import NewRows
from assay.store.seal import is_unchanged
from assay.store.sealed import MANIFEST, seal_files
from assay.store.shared.mirror import local, push
from assay.store.stores import FlatStore, read_manifests

_BATCH = 16  # rows that are encoded at once
_outcome = attrgetter("outcome")
_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines


class _RowWriter:
    """Answers or labels, encoded many at once."""

    def __init__(self, new: NewRows) -> None:
        self.new = new
        self.counts: Counter[str] = Counter()
        self._batch: list[Response | Evaluation] = []

    def add(self, rows: Sequence[Response | Evaluation]) -> None:
        self._batch += rows
        if len(self._batch) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        self.counts.update(map(_outcome, self._batch))
        self.new.write(_encode_lines(self._batch))
        self._batch = []


class Cases:
    """A reader's cases. `read` writes their rows; `commit` of each kind puts them in the folder. An item whose id
    another item has gets an id of its own, and so have its rows."""

    def __init__(
        self, foreign: Foreign, store: FlatStore, id: str, stack: ExitStack, where: str
    ) -> None:
        self._foreign, self._where = foreign, where
        self._ids, self._contents = Seen(), Seen()
        self._apart: dict[int, str] = {}
        self._hash = blake2b(digest_size=16)
        self.items = stack.enter_context(store.new_rows("dataset", id, read=self._hash.update))
        self.spans = stack.enter_context(store.new_rows("run", id, "traces"))
        self.responses = _RowWriter(stack.enter_context(store.new_rows("run", id)))
        self.evaluations = _RowWriter(stack.enter_context(store.new_rows("evaluation", id)))
        self.item_count = 0

    def read_all(self) -> None:
        """The one pass over the source."""
        responses, evaluations = self.responses, self.evaluations
        for case in self._foreign.cases():
            if case.item is not None:
                case = self._with_item(case, case.item)
            if case.evaluations:
                evaluations.add(case.evaluations)
            if case.response is not None:
                if case.spans:
                    self.spans.write(_trace(case.response, case.spans))
                responses.add((case.response,))
        responses.flush()
        evaluations.flush()
        counts = {"item": self.item_count, "response": responses.counts.total()}
        if missing := next((name for name, count in counts.items() if not count), ""):
            what = f"there is no {missing} to import"
            raise UserError(what, where=self._where, fix="name a source that has answers")

    def _with_item(self, case: ForeignCase, item: Any) -> ForeignCase:
        where, given = self._foreign.dataset, str(item["id"])
        id, line = stored_item(item, where)
        content = xxh3_64_intdigest(line)
        if self._contents.add(content):
            if not self._ids.add(id_hash(given)):
                number = int.from_bytes(digest("item", _encode(item))[:8], "big")
                id = f"{given}~{number:016x}"
                while not self._ids.add(id_hash(id)):
                    id += "~"
                self._apart[content] = id
                _, line = stored_item({**item, "id": id}, where)
            self.item_count += 1
            self.items.write(line + b"\n")
        return _with_id(case, self._apart[content]) if content in self._apart else case

    @property
    def content(self) -> str:
        """The hash of the items, once they are committed."""
        return self._hash.hexdigest()

    def notes(self) -> list[str]:
        if not self._apart:
            return []
        first = next(iter(self._apart.values()))
        what = "items have an id that another item has: they got ids of their own"
        return [f"{len(self._apart):,} {what}, the first is {first!r}"]


def _trace(response: Response, spans: Sequence[Any]) -> bytes:
    owner = {"key": response.key, "item_id": response.item_id, "owner": response.task}
    return _encode({**owner, "sample_index": response.sample_index, "spans": spans}) + b"\n"


def _with_id(case: ForeignCase, id: str) -> ForeignCase:
    rows: list[Response | Evaluation] = [
        *case.evaluations,
        *([case.response] if case.response else []),
    ]
    for row in rows:
        row.item_id, row.sample_id = id, f"{id}_sample_{row.sample_index}"
        row.key = digest("apart", id.encode(), row.key.encode()).hex()
    for row in case.evaluations:
        row.responses = [case.response.key] if case.response and row.responses else row.responses
    return case


_KINDS: tuple[Kind, ...] = ("dataset", "run", "evaluation")
_STAY = "the folder's evaluations were made by Assay and stay as they are"
# the key of a run's metadata that has the other program's own numbers beside ours
HEADLINES = "headlines"
REPORTED = "reported"  # and of how they come from the rows


class Imported(Shown, kw_only=True):
    """What one import left behind. `planned` is how many answers the program meant to get. An experiment that cannot be
    imported, one of several, has no folder."""

    folder: str
    format: str
    dataset: str
    files: list[str] = []
    read_from: list[str] = []
    agents: list[str] = []
    items: int = 0
    planned: int | None = None
    responses: dict[str, int] = {}
    evaluations: dict[str, int] = {}
    headlines: list[HeadlineCheck] = []
    rejected: int = 0
    notes: list[str] = []


def import_results(
    sources: Paths,
    folder: str | Path,
    *,
    format_name: str = "",
    params: JsonMapping | None = None,
    without_sidecar: bool = False,
) -> list[Imported]:
    """Import what is at the sources into `folder`; several experiments get a folder each below it, and one of them that
    cannot be imported is no reason to leave out the others. `without_sidecar` leaves sidecars of an earlier `convert`
    unread, where their presence would be an error."""
    paths = [*map(local, each_of(sources))]
    read = [each for path in paths for each in read_foreign(path, format_name, params or {})]
    for path in paths if not without_sidecar else ():
        check_no_sidecar(path)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise UserError(
            f"{str(folder)!r} is a file, not a folder", fix="choose another folder with -o"
        )
    if len(read) == 1:
        return [import_one(read[0], local(folder), into_other=False)]
    return _import_several(read, [f"{folder}/{name}" for name in folder_names(read)])


def _import_several(read: Sequence[Read], folders: Sequence[str]) -> list[Imported]:
    """Import each into its folder; what fails is a result with a note, unless everything does."""
    results: list[Imported] = []
    for each, target in zip(read, folders, strict=True):
        try:
            results.append(import_one(each, local(target)))
        except UserError as error:
            if each is read[-1] and not any(result.folder for result in results):
                raise
            failed = Imported(folder="", format=each.format, dataset=each.foreign.dataset)
            failed.rejected, failed.notes = 1, [f"{error.where}: {error.what}"]
            results.append(failed)
    return results


def folder_names(read: Sequence[Read]) -> list[str]:
    """A folder's name for each experiment, no two alike."""
    names: list[str] = []
    for each in read:
        name = safe_name(each.foreign.dataset)
        numbered = (f"{name}-{number}" for number in range(2, len(read) + 2))
        names.append(next(free for free in chain([name], numbered) if free not in names))
    return names


def import_one(
    read: Read, folder: Path, *, into_other: bool = True, waits: bool = False
) -> Imported:
    """Import one experiment into its folder; the import of other files there is replaced only if that is meant."""
    name, foreign = read
    store = FlatStore(folder)
    id = next(iter(store.ids("run")), store.id)
    existed = folder.exists()
    lock = store.lock("run", id)
    with patient(lock) if waits else lock, _none_left(folder, existed):
        with _readable(name, foreign.dataset):
            source = dict(foreign.source)
        before = _unchanged_run(store, id, source)
        if before is not None:
            return _keep(read, store, before)
        for kind in ("dataset", "run"):
            _check_free(store, kind)
        if not into_other:
            _check_same(store, id, source)
        _claim(store, "dataset", id, foreign.dataset, {"imported": source})
        _claim(store, "run", id, foreign.dataset, {"adopted": source})
        where = next(iter(_files(source)), foreign.dataset)
        with _readable(name, where):
            run = _import(name, foreign, store, id, source, where)
        means_config(folder, foreign.dataset)
        seal_files(folder)
        push(folder)
        return _result_of(name, foreign, folder, run, store)


def _keep(read: Read, store: FlatStore, before: Manifest) -> Imported:
    """Return an earlier import of what has not changed; it may have been stopped before its end."""
    imported = _result_of(read.format, read.foreign, store.folder, before, store)
    if _has_own_labels(store, before.id) and _STAY not in imported.notes:
        imported.notes.append(_STAY)
    means_config(store.folder, read.foreign.dataset)
    seal_files(store.folder, anew=False)
    return imported


@contextmanager
def _none_left(folder: Path, existed: bool) -> Generator[None]:
    """A folder that was made for what turns out not to be results is removed again. Under its lock nobody else's work
    is in it, unless they were there first."""
    made = not existed and not (folder / MANIFEST).exists()
    try:
        yield
    except UserError:
        if made:
            rmtree(folder, ignore_errors=True)
        raise
    except OSError as error:  # of files that have no name, for one
        raise store_error(error, Path(error.filename or folder)) from error


@contextmanager
def _readable(name: str, where: str) -> Generator[None]:
    """Values of types that no version of a program writes, somewhere in its files, are the files' fault."""
    try:
        yield
    except (TypeError, AttributeError, LookupError, ValueError, RecursionError) as error:
        raise UserError(
            f"this is not as {name} writes it: {type(error).__name__}: {error}",
            where=where,
            fix="restore the file; if the program really wrote it so, this is a gap of Assay's reader",
        ) from error


def _files(source: JsonMapping) -> list[str]:
    """The files that an experiment was read from."""
    return [str(stamp["path"]) for stamp in list_of(source.get("files"))]


def _import(
    name: str, foreign: Foreign, store: FlatStore, id: str, source: JsonObject, where: str
) -> Manifest:
    has_own_labels = _has_own_labels(store, id)
    run = imported_manifest(store, "run", id, source, [], name=foreign.dataset)
    run.metadata.pop(HEADLINES, None)  # until it is finished
    with ExitStack() as stack:
        cases = Cases(foreign, store, id, stack, where)
        cases.read_all()
        cases.responses.new.commit()
        run.inputs = [_put_items(store, id, cases, source)]
        answers = cases.responses.counts
        unanswered = (foreign.planned or 0) - answers.total()
        close_import(store, run, answers, max(foreign.rejected, unanswered))
        if not cases.spans.is_empty:
            cases.spans.commit()
        notes = [*cases.notes(), *foreign.notes()] + ([_STAY] if has_own_labels else [])
        run.metadata |= {name: dict(foreign.facts), "odd": notes, "rejected": foreign.rejected}
        if not has_own_labels:
            _put_labels(store, run, cases, foreign)
    if restore := getattr(foreign, "restore", None):  # of a folder of ours
        restore(store.folder)
    run.metadata |= _number_checks(foreign, store, id)
    store.put_manifest(run)
    return run


def _put_labels(store: FlatStore, run: Manifest, cases: Cases, foreign: Foreign) -> None:
    """Store the labels of a run; no labels are no artefact."""
    id, labels, source = run.id, cases.evaluations, run.plan["adopted"]
    if not labels.counts and store.manifest("evaluation", id) is None:
        return
    _claim(store, "evaluation", id, run.name, {"adopted": source})
    labels.new.commit()
    made_from = [{"kind": "run", "id": id, "digest": run.digest}, *run.inputs]
    manifest = imported_manifest(store, "evaluation", id, source, made_from, name=run.name)
    close_import(store, manifest, labels.counts, foreign.rejected)


def _number_checks(foreign: Foreign, store: FlatStore, id: str) -> JsonObject:
    """Return the program's own numbers, and whether they follow from the rows."""
    headlines = foreign.headlines()
    log = store.log("evaluation", id)
    checked = check_headlines(headlines, log, str(store.folder))
    return {
        HEADLINES: msgspec.to_builtins(checked),
        REPORTED: msgspec.to_builtins(headlines),
    }


def _put_items(store: FlatStore, id: str, cases: Cases, source: JsonObject) -> JsonObject:
    """Store the items; return them as what a run was made from."""
    cases.items.commit()
    stamp = {"imported": source}
    plan = {"source": source_mark({**stamp, "limit": None, "prompts": []}), **stamp}
    dataset = put_dataset(store, id, cases.content, cases.item_count, plan=plan)
    return {"kind": "dataset", "id": id, "digest": dataset.digest}


def _has_own_labels(store: FlatStore, id: str) -> bool:
    """Return whether the folder's evaluations were made by Assay."""
    old = store.manifest("evaluation", id)
    if old is None or "adopted" in old.plan:
        _check_free(store, "evaluation")
        return False
    return True


# ---- whose rows are there


def _unchanged_run(store: FlatStore, id: str, source: JsonMapping) -> Manifest | None:
    """The run, if this source was imported here and none of its rows has changed since."""
    run = store.manifest("run", id)
    if (
        run is None
        or run.ended is None
        or canonical(run.plan.get("adopted")) != canonical(dict(source))
        or HEADLINES not in run.metadata  # the import that wrote it was stopped before its end
    ):
        return None
    ours = filter(None, (store.manifest(kind, id) for kind in _KINDS))
    return run if all(is_unchanged(each, store.log(each.kind, id)) for each in ours) else None


def _claim(store: FlatStore, kind: Kind, id: str, name: str, plan: JsonObject) -> None:
    """Say whose rows will come, before they do: an import that is killed between the two can resume."""
    if store.manifest(kind, id) is None:
        store.put_manifest(Manifest(kind=kind, id=id, name=name, created=time.time(), plan=plan))


def _check_free(store: FlatStore, kind: Kind) -> None:
    """Rows that an import may replace were made by one."""
    manifest = read_manifests(store.folder, kind).get(kind)
    there = (store.folder / ROWS_FILE[kind]).exists()
    ours = manifest is not None and ("adopted" in manifest.plan or "imported" in manifest.plan)
    if there and not ours:
        raise UserError(
            f"the folder has {ROWS_FILE[kind]} that no import has made",
            where=str(store.folder),
            fix="choose another folder with -o",
        )


def _check_same(store: FlatStore, id: str, source: JsonMapping) -> None:
    """Files that an import may replace are the same ones, changed or moved."""
    run = store.manifest("run", id)
    old: Any = run.plan.get("adopted", {}) if run is not None else {}
    before, now = (
        {value for stamp in each.get("files", ()) for value in stamp.values()}
        for each in (old, source)
    )
    if before and now and before.isdisjoint(now):
        raise UserError(
            f"the folder has an import of {_files(old)[0]!r}",
            where=str(store.folder),
            fix="choose another folder with -o, or remove this one",
        )


def _result_of(
    name: str, foreign: Foreign, folder: Path, run: Manifest, store: FlatStore
) -> Imported:
    facts = run.metadata.get(name, {})
    dataset, evaluation = store.manifest("dataset", run.id), store.manifest("evaluation", run.id)
    return Imported(
        folder=shown(str(folder)),
        format=name,
        dataset=foreign.dataset,
        files=_files(run.plan.get("adopted", {})),
        read_from=list(facts.get("read_from", [])),
        agents=list(facts.get("agents") or facts.get("models") or []),
        items=dataset.counts.get("items", 0) if dataset else 0,
        planned=run.planned,
        responses=run.counts,
        evaluations=evaluation.counts if evaluation else {},
        headlines=msgspec.convert(run.metadata.get(HEADLINES, []), list[HeadlineCheck]),
        rejected=run.metadata.get("rejected", 0),
        notes=list(run.metadata.get("odd", [])),
    )
