"""Making an experiment's index: kept where this user's Assay keeps its state, under a digest of the
folder's path.

An index knows the files that it was made of. A file that grew continues it, any other change
makes it anew. It is made in the background; a page that cannot wait has the rows at the
beginning of each file instead.
"""

import os
import sqlite3
import threading
from copy import deepcopy
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.engine.experiment.sources import Source
from assay.store.files import state_folder, store_error
from assay.store.log import FileLog
from assay.store.table.facets import text_of
from assay.viewer.experiments import Experiments
from assay.viewer.index.build import Builder, IndexState
from assay.viewer.index.columns import definitions
from assay.viewer.index.index import (
    KINDS,
    Header,
    Index,
    IndexedFile,
    IndexedLog,
    load,
    new_database,
)
from assay.viewer.index.series import Label

_FOLDER = "index"
_PREVIEW = 2 << 20  # bytes of each file
# bytes at both ends of what was read, which tell whether a longer file is the same one
_MARK = 4096
_LEAST_SAVED = 1 << 20  # bytes: less is read again as quickly as a file is made safe
_MOST_OPEN = 10_000  # indexes
_LITTLE = 32 << 20  # bytes, which a page can wait for


def _logs_of(source: Source) -> list[IndexedLog]:
    logs: list[IndexedLog] = []
    for kind in KINDS:
        first = [source.files[kind]] if kind in source.files else []
        for path in (*first, *source.more.get(kind, ())):
            files: list[IndexedFile] = []
            for _, file in FileLog(path).numbered():
                try:
                    stat = os.stat(file)
                except OSError:  # a log may have segments alone
                    files.append(IndexedFile(str(file), -1, 0, 0))
                else:
                    files.append(
                        IndexedFile(str(file), stat.st_size, stat.st_mtime_ns, stat.st_ino)
                    )
            logs.append(IndexedLog(kind, str(path), files))
    return logs


def _is_same(old: list[IndexedLog], new: list[IndexedLog]) -> bool:
    return [_unmarked(log) for log in old] == [_unmarked(log) for log in new]


def _unmarked(log: IndexedLog) -> Any:
    return (
        log.kind,
        log.path,
        [(file.name, file.size, file.mtime_ns, file.inode) for file in log.files],
    )


def _continues(index: Index, new: list[IndexedLog]) -> bool:
    """Whether files have only grown since: the same ones, with the same beginning and the same
    end of what was read. A row that did not count may count now, where the rest of its call has
    come."""
    if [(log.kind, log.path) for log in index.logs] != [(log.kind, log.path) for log in new]:
        return False
    return all(_has_grown(index, *logs) for logs in zip(index.logs, new, strict=True))


def _has_grown(index: Index, old: IndexedLog, new: IndexedLog) -> bool:
    """Return whether a log only has more than before. Datasets may not, nor responses where labels
    are the rows."""
    stays = new.kind == "dataset" or (new.kind == "run" and index.judged)
    if (
        old.hidden
        or len(old.files) > len(new.files)
        or (stays and _unmarked(old) != _unmarked(new))
    ):
        return False
    ends = index.state.ends.get(new.path, {})
    files = enumerate(zip(old.files, new.files, strict=False))
    return all(_begins(before, now, ends.get(number, 0)) for number, (before, now) in files)


def _begins(before: IndexedFile, now: IndexedFile, end: int) -> bool:
    """Return whether a file still begins with what was read of it."""
    if (before.name, before.inode) != (now.name, now.inode):
        return False
    is_unchanged = (before.size, before.mtime_ns) == (now.size, now.mtime_ns)
    return is_unchanged or (now.size > before.size and before.mark == _mark(now.name, end))


def _mark(name: str, end: int) -> str:
    if not end:
        return ""
    with reading.opened(name) as file:
        beginning = file.read(min(_MARK, end))
        file.seek(max(0, end - _MARK))
        return blake2b(beginning + file.read(min(_MARK, end)), digest_size=8).hexdigest()


def make(
    source: Source, before: Index | None, logs: list[IndexedLog], most: int | None = None
) -> Index:
    """Return the index of a source, continued where `before` is given; with `most`, of the
    beginnings of its files."""
    db = new_database() if before is None else before.copy()
    db.execute("BEGIN")
    builder = Builder(db, deepcopy(before.state) if before else None)
    for kind in KINDS:
        own = [log for log in logs if log.kind == kind]
        # Rows that are appended while a run goes on were written by this run: only what was closed is examined.
        examined = (
            source.logs(kind)
            if before is None and most is None
            else [FileLog(Path(log.path)) for log in own]
        )
        for number, (log, rows) in enumerate(zip(own, examined, strict=True)):
            log.hidden = len(rows.hidden)
            if kind != "dataset" or before is None:
                builder.read(kind, number, rows, most)
    return _complete(db, logs, builder.finish(), builder.labels())


def _complete(
    db: sqlite3.Connection, logs: list[IndexedLog], state: IndexState, labels: dict[str, Label]
) -> Index:
    """Return the index of rows that are read, with marks of the files."""
    for log in logs:
        for number, file in enumerate(log.files):
            file.mark = _mark(file.name, state.ends.get(log.path, {}).get(number, 0))
    header = Header(logs, state, labels, definitions())
    db.execute("DELETE FROM header")
    db.execute("INSERT INTO header VALUES (?)", (msgspec.json.encode(header).decode(),))
    db.execute("COMMIT")
    return Index(db, header)


# ---- opening


class Indexing:
    """The index of one experiment as it is asked for: `ready` as it was made last, `preview`
    until it is there."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.ready: Index | None = None
        self.preview: Index | None = None
        self.thread: threading.Thread | None = None
        self.error: Exception | None = None
        self.unsaved = 0  # bytes that were read since it was saved

    def check(self) -> None:
        """Raise what went wrong, once."""
        error = self.error
        if error is not None:
            self.error = None
            raise error


def open_index(
    experiments: Experiments, id: str, *, wait: bool = False
) -> tuple[Index, float | None]:
    """The index of an experiment as its files are now, and the share of them that it covers:
    None for all. With `wait`, always all."""
    source = experiments.source(id)
    indexing = experiments.cached(("index", id), (), Indexing, _MOST_OPEN)
    while True:
        logs = _logs_of(source)
        with indexing.guard:
            indexing.check()
            thread = indexing.thread
            if thread is None:
                indexing.ready = indexing.ready or load(_path(source))
                if indexing.ready is None or not _is_same(indexing.ready.logs, logs):
                    thread = _begin(indexing, source, logs)
            if thread is None and indexing.ready is not None:
                return _planned(indexing.ready, source), None
            shown = indexing.ready or indexing.preview
        if thread is not None and not wait and shown is not None:
            return _planned(shown, source), _share(shown, logs)
        if thread is not None:
            thread.join()


def _begin(indexing: Indexing, source: Source, logs: list[IndexedLog]) -> threading.Thread | None:
    """Make the index: here if there is little to read, else in a thread of its own, with a
    preview."""
    if indexing.ready is not None and not _continues(indexing.ready, logs):
        indexing.ready = None
    if _size(logs) - (_read(indexing.ready) if indexing.ready else 0) < _LITTLE:
        _work(indexing, source, logs)
        indexing.check()
        return None
    if indexing.ready is None:
        indexing.preview = make(source, None, logs, _PREVIEW)
    indexing.thread = threading.Thread(target=_work, args=(indexing, source, logs), daemon=True)
    indexing.thread.start()
    return indexing.thread


def _size(logs: list[IndexedLog]) -> int:
    return sum(max(0, file.size) for log in logs for file in log.files)


def _read(index: Index) -> int:
    return sum(end for ends in index.state.ends.values() for end in ends.values())


def _share(index: Index, logs: list[IndexedLog]) -> float:
    return min(1.0, _read(index) / max(1, _size(logs)))


def _path(source: Source) -> Path:
    folder = os.path.realpath(source.folder or source.path)
    return state_folder() / _FOLDER / blake2b(os.fsencode(folder), digest_size=16).hexdigest()


def _work(indexing: Indexing, source: Source, logs: list[IndexedLog]) -> None:
    try:
        before = indexing.ready
        index = make(source, before, logs)
        indexing.unsaved += _read(index) - (_read(before) if before else 0)
        if indexing.unsaved > (_LEAST_SAVED if before is None else _LITTLE):
            index.save(_path(source))
            indexing.unsaved = 0
            stored = load(_path(source))
            # else it could not be saved, or another process was last
            if stored is not None and stored.logs == index.logs:
                index = stored  # a file that is mapped is nobody's memory
        indexing.ready, indexing.preview = index, None
    except OSError as error:
        indexing.error = store_error(error, source.path)
    except Exception as error:  # it is raised where the index is asked for
        indexing.error = error
    finally:
        indexing.thread = None


def _planned(index: Index, source: Source) -> Index:
    """With what the manifests say: the order of the scorers, and the facets of tasks."""
    evaluation, run = source.manifest("evaluation"), source.manifest("run")
    scorers = [
        str(entry.get("name"))
        for entry in (evaluation.plan.get("scorers") or [] if evaluation else [])
    ]
    tasks = run.plan.get("tasks") or [] if run else []
    facets: dict[str, dict[str, str]] = {}
    for task in tasks:
        facets[str(task.get("name"))] = {
            name: text_of(value)
            for name, value in (task.get("facets") or {}).items()
            if isinstance(value, (str, int, float, bool))
        }
    index.plan = scorers, facets
    return index
