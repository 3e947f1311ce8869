"""An experiment's samples in a database: made of the rows, never the truth. `opening` makes it."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64

from assay.errors import StoreError
from assay.interfaces import IntArray
from assay.records import Kind
from assay.store.files import sweep, write_file
from assay.store.keys import short
from assay.store.log import FileLog
from assay.viewer.index.build import IndexState, item_hash, signed
from assay.viewer.index.columns import definitions
from assay.viewer.index.series import VERDICT_BITS, Label

KINDS: tuple[Kind, ...] = ("run", "evaluation", "dataset")
_MAGIC = b"assay index 5 "  # at the end, before the checksum of all that comes first
_TAIL = len(_MAGIC) + 16
_MOST_KEPT = 4 << 30  # bytes of all indexes
_CACHE = "PRAGMA cache_size = -16384"
_QUICK = "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF"  # what fails is made again
_OURS = """
CREATE TEMP TABLE line (kind TEXT, log INTEGER, position INTEGER);
CREATE TEMP TABLE cell (view INTEGER, hash INTEGER, mean REAL, won INTEGER);
CREATE TEMP TABLE kind (view INTEGER, hash INTEGER, disagreement REAL, judged INTEGER, won INTEGER,
    PRIMARY KEY (view, hash)) WITHOUT ROWID;
"""
_OF_LINES = """
SELECT id FROM response WHERE (log, position) IN (SELECT log, position FROM line WHERE kind = 'run')
    OR hash IN (SELECT hash FROM item WHERE (log, position) IN (SELECT log, position FROM line WHERE kind = 'dataset'))
    OR hash IN (SELECT position FROM line WHERE kind = 'id') ORDER BY id
"""
_numbers = count()


class IndexedFile(msgspec.Struct):
    """A file of rows as it was; `mark` is a digest of its beginning and of the end of what was
    read."""

    name: str
    size: int
    mtime_ns: int
    inode: int
    mark: str = ""


class IndexedLog(msgspec.Struct):
    """`hidden`: how many rows did not count."""

    kind: Kind
    path: str
    files: list[IndexedFile]
    hidden: int = 0


class Header(msgspec.Struct):
    """`columns`: those that responses have, which were others in another Assay."""

    logs: list[IndexedLog]
    state: IndexState
    labels: dict[str, Label]
    columns: list[str]


class Index:
    """`plan`: the scorers, and the facets of tasks."""

    def __init__(self, db: sqlite3.Connection, header: Header) -> None:
        self._db, self._guard = db, threading.RLock()
        db.executescript(_OURS)
        self.logs, self.state, self.labels = header.logs, header.state, header.labels
        self.judged = self.state.judged
        self.files: dict[Kind, list[FileLog]] = {kind: [] for kind in KINDS}
        for log in header.logs:
            file = FileLog(Path(log.path))
            file.numbered()
            self.files[log.kind].append(file)
        self.plan: tuple[list[str], dict[str, dict[str, str]]] = [], {}
        self.made = next(_numbers)
        self.searches: dict[Any, Any] = {}
        (self.rows,) = self.select("SELECT coalesce(max(id), 0) FROM response")[0]
        (self.items,) = self.select("SELECT count(*) FROM item")[0]

    def __len__(self) -> int:
        return self.rows

    def select(self, query: str, values: Any = ()) -> list[tuple[Any, ...]]:
        with self._guard:
            return self._db.execute(query, values).fetchall()

    def numbers(self, query: str, values: Any, kind: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return rows of numbers as an array; there may be many."""
        with self._guard:
            return np.fromiter(self._db.execute(query, values), kind)

    def store(self, query: str, rows: Iterable[Any]) -> None:
        """Change tables of this process alone, for each of some rows."""
        with self._guard:
            self._db.executemany(query, rows)

    def stream(self, query: str, values: Any = ()) -> Iterator[Any]:
        return self._db.execute(query, values)

    def copy(self, path: str | Path = "") -> sqlite3.Connection:
        """Return a database with the same content: a file, or one of this process alone."""
        db = new_database(path)
        with self._guard:
            self._db.backup(db)
        return db

    def save(self, path: Path) -> None:
        """Put a copy in its place, whole; without a place for it, it is made again by the next
        process."""
        with (
            suppress(OSError, StoreError, sqlite3.Error),
            TemporaryDirectory(prefix="assay-") as own,
        ):
            file = Path(own, "index")
            self.copy(file).close()
            write_file(path, _sealed(file))
            _sweep(path.parent)

    def read(self, kind: Kind, log: int, position: int) -> bytes:
        return self.files[kind][log].read(position)

    def item_ids(self) -> Iterator[str]:
        """Return the ids of the items that the dataset or responses have."""
        found = self.select("SELECT id FROM item UNION SELECT item FROM response")
        return (id for (id,) in found)

    def has(self, item: str) -> bool:
        return any(next(self.lines_of(kind, item), None) is not None for kind in KINDS)

    def labels_of_scorers(self) -> dict[str, set[str]]:
        """Return the labels that scorers gave."""
        own: dict[str, set[str]] = {}
        for name, label in self.labels.items():
            for scorer in label.scorers:
                own.setdefault(scorer, set()).add(name)
        return own

    def lines_of(self, kind: Kind, item_id: str) -> Iterator[bytes]:
        """Yield the rows of an item."""
        table = {"dataset": "item", "run": "response", "evaluation": "evaluation"}[kind]
        if kind == "run" and self.judged:
            return
        query = f"SELECT log, position FROM {table} WHERE hash = ? ORDER BY rowid"
        for place in self.select(query, (item_hash(item_id),)):
            yield self.read(kind, *place)

    def rows_at(self, item: str, sample: int, model: str, key: str = "") -> list[int]:
        """Return the rows of an answer: by its key, or, where it says none, by where it stands."""
        if key:
            where, values = "keyed AND key = ?", (signed(short(key)),)
        else:
            where, values = "sample = ? AND model = ?", (sample, model)
        query = f"SELECT id FROM response WHERE hash = ? AND {where} ORDER BY id"
        return [id for (id,) in self.select(query, (item_hash(item), *values))]

    def rows_of_lines(self, lines: Sequence[tuple[Kind, int, int]], ids: Sequence[str]) -> IntArray:
        """Return the rows whose own line, or whose item's, is one of these, and those of items
        with these ids."""
        with self._guard:
            self._db.executemany("INSERT INTO line VALUES (?, ?, ?)", lines)
            hashes = [("id", 0, item_hash(id)) for id in ids]
            self._db.executemany("INSERT INTO line VALUES (?, ?, ?)", hashes)
            found = np.fromiter(self._db.execute(_OF_LINES), [("id", "i8")])["id"]
            self._db.execute("DELETE FROM line")
        return found

    def judged_by(self, evaluation: Mapping[str, Any]) -> int:
        """Return the row that an evaluation is about, 0 if there is none."""
        keys, item = evaluation.get("responses"), str(evaluation["item_id"])
        place = int(evaluation.get("sample_index") or 0), str(evaluation.get("model_name") or "")
        found = self.rows_at(item, *place, str(keys[0])) if keys and not self.judged else []
        return next(iter(found or self.rows_at(item, *place)), 0)


def new_database(path: str | Path = "") -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.executescript(f"{_QUICK}; {_CACHE}")
    return db


def _sealed(path: Path) -> Iterator[bytes]:
    """Yield what a file has, and its checksum."""
    checksum = xxh3_64()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum.update(block)
            yield block
    yield _MAGIC + checksum.hexdigest().encode()


def _is_whole(path: Path) -> bool:
    checksum, end = xxh3_64(), path.stat().st_size - _TAIL
    with path.open("rb") as file:
        while end > 0 and (block := file.read(min(1 << 20, end))):
            checksum.update(block)
            end -= len(block)
        return file.read() == _MAGIC + checksum.hexdigest().encode()


def _sweep(folder: Path) -> None:
    """Forget the indexes that were made longest ago where all together are too large."""
    sweep(folder)
    with suppress(OSError):  # another process sweeps as well
        files = [
            (entry.stat().st_mtime, entry.stat().st_size, entry.path)
            for entry in os.scandir(folder)
        ]
        kept = 0
        for _, size, path in sorted(files, reverse=True):
            kept += size
            if kept > _MOST_KEPT:
                os.unlink(path)


def load(path: Path) -> Index | None:
    """Return the index in a file; None if there is none, or not a whole one."""
    try:
        if not _is_whole(path):
            return None
        address = f"file:{quote(str(path))}?mode=ro&immutable=1"
        db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        db.execute(_CACHE)
        ((json,),) = db.execute("SELECT json FROM header")
        header = msgspec.json.decode(json, type=Header)
        return Index(db, header) if header.columns == definitions() else None
    except (OSError, ValueError, sqlite3.Error):
        return None


def as_json(numbers: Sequence[int]) -> str:
    return msgspec.json.encode(numbers).decode()


class Part:
    """The samples of one experiment under a label."""

    def __init__(self, id: str, index: Index, label: str) -> None:
        self.id, self.index = id, index
        own = index.labels.get(label)
        # of a label that is not there, no verdict is found
        base = -1 << VERDICT_BITS if own is None else own.number << VERDICT_BITS
        passed = "passed" if own is None or own.bare else "coalesce(passed, score)"
        verdict = f"SELECT id, outcome, {passed} AS passed, score FROM verdict"
        self.samples = (
            f"response r LEFT JOIN ({verdict}) v ON v.id = {base} + r.id"
            " LEFT JOIN item i ON i.hash = r.hash"
        )

    def facet(self, name: str, values: list[Any]) -> str:
        """Return where a facet is found, first choice first; empty if it is not. `values` are
        those bound to it."""
        state = self.index.state
        if name in ("task", "model_name"):
            return "r.model" if name == "model_name" else "r.task"
        places = [f"r.{state.facets.columns[name]}"] if name in state.facets.values else []
        tasks = {task: own[name] for task, own in self.index.plan[1].items() if name in own}
        if tasks:
            values += chain.from_iterable(tasks.items())
            places.append(f"CASE r.task{' WHEN ? THEN ?' * len(tasks)} END")
        if name in state.items.values:
            places.append(f"i.{state.items.columns[name]}")
        return f"coalesce({', '.join([*places, 'NULL'])})" if places else ""

    def values(
        self,
        ids: Sequence[int],
        expressions: Sequence[str],
        kind: int = 0,
        bound: Sequence[Any] = (),
    ) -> dict[int, tuple[Any, ...]]:
        """Return the values of some rows."""
        found = self.index.select(
            f"SELECT {', '.join([*expressions, 'r.id'])} FROM {self._with(kind)}"
            " WHERE r.id IN (SELECT value FROM json_each(?))",
            [*bound, as_json(ids)],
        )
        return {row[-1]: row[:-1] for row in found}

    def numbers(
        self,
        expressions: Sequence[str],
        where: str = "1",
        bound: Sequence[Any] = (),
        kind: int = 0,
    ) -> npt.NDArray[Any]:
        """Return rows with their items, and with the values of expressions as `v0` and so on,
        infinity for none."""
        wanted = "".join(f", coalesce({sql}, 9e999)" for sql in expressions)
        fields = [(f"v{at}", "f8") for at in range(len(expressions))]
        query = f"SELECT r.id, r.hash{wanted} FROM {self._with(kind)} WHERE {where} ORDER BY r.id"
        return self.index.numbers(query, bound, [("row", "i8"), ("hash", "i8"), *fields])

    def _with(self, kind: int) -> str:
        return f"{self.samples} LEFT JOIN kind k ON k.view = {kind} AND k.hash = r.hash"

    def find_facet(self, name: str, values: list[Any]) -> str:
        return self.facet(name, values) or self.facet(name.removeprefix("metadata."), values)
