"""An experiment's samples in a database: made of the rows, never the truth. `opening` makes it."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np
from xxhash import xxh3_64

from assay.sdk import Codes, IntArray, JsonMapping, Kind, Mask, StoreError, short, sweep, write_file
from assay.store.log import FileLog
from assay.store.table.join import Lookup, distinct
from assay.viewer.index.build import IndexState, item_hash, signed
from assay.viewer.index.columns import Column, definitions
from assay.viewer.index.packed import Numbers, codes_of, read_column
from assay.viewer.index.series import Label, Verdicts, verdicts_of

_TABLES: dict[Kind, str] = {"run": "response", "evaluation": "evaluation", "dataset": "item"}
KINDS = tuple(_TABLES)
_MAGIC = b"assay index 6 "  # at the end, before the checksum of all that comes first
_TAIL = len(_MAGIC) + 16
_MOST_KEPT = 4 << 30  # bytes of all indexes
_MOST_COLUMNS = 8  # that stay in memory
_CACHE = "PRAGMA cache_size = -8192"
_QUICK = "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF"  # what fails is made again
_VERDICTS = "row", "series", "outcome", "passed", "score"
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
        self._columns: dict[str, Numbers] = {}
        self.items = len(self.column("item", "item"))

    def __len__(self) -> int:
        return self.state.rows.get("response", 0)

    def select(self, query: str, values: Any = ()) -> list[tuple[Any, ...]]:
        with self._guard:
            return self._db.execute(query, values).fetchall()

    def column(self, table: str, name: str) -> Numbers:
        """Return what is packed of a table's rows; the latest few columns are kept."""
        place = f"{table}.{name}"
        with self._guard:
            values = self._columns.pop(place, None)
            if values is None:
                values = read_column(self._db, place, self.state.rows.get(table, 0))
            self._columns[place] = values
            for oldest in list(self._columns)[:-_MOST_COLUMNS]:
                del self._columns[oldest]
        return values

    def verdicts(self, label: str) -> Verdicts:
        """Return the verdicts of all rows under a label."""
        with self._guard:
            rows = self.state.rows.get("label", 0)
            columns = {name: read_column(self._db, f"label.{name}", rows) for name in _VERDICTS}
        return verdicts_of(self.labels.get(label), columns, self.column("response", "same"))

    def values(self, sql: str) -> Numbers:
        """Return the numbers that an expression has in all rows."""
        query = f"SELECT coalesce({sql}, 9e999) FROM response r ORDER BY r.id"
        with self._guard:
            return np.fromiter(self._db.execute(query), [("value", "f8")])["value"]

    def texts(self, column: Column) -> tuple[Codes, list[str]]:
        """Return the numbers of the texts of a column in all rows, and the texts."""
        if column.texts == "numbered":
            known = self.state.texts.get(column.name, {})
            return self.column("response", column.name), list(known)
        if column.texts:
            hashes, _, codes = distinct(self.column("response", column.name))
            ids = dict(self.select("SELECT hash, id FROM item"))
            return codes, [ids[hash] for hash in hashes.tolist()]
        query = f"SELECT {column.expression} FROM response r ORDER BY r.id"
        known = dict[str, int]()
        return codes_of([text for (text,) in self.select(query)], known), list(known)

    def responses(self, rows: Sequence[int], sql: str) -> list[Any]:
        """Return the values of an expression of some rows."""
        query = f"SELECT r.id - 1, {sql} FROM response r WHERE r.id IN (SELECT value + 1 FROM json_each(?))"
        found = dict(self.select(query, [msgspec.json.encode(rows).decode()]))
        return [found[row] for row in rows]

    @cached_property
    def item_rows(self) -> IntArray:
        """The row in the dataset of every response's item, -1 for none."""
        items, _, codes = distinct(self.column("response", "item"))
        return Lookup(self.column("item", "item")).first(items)[codes]

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

    def read_rows(self, kind: Kind, rows: Iterable[int]) -> Iterator[bytes]:
        """Yield the lines of some rows of a table; of responses that are places, of what was
        judged there."""
        log, position = (self.column(_TABLES[kind], name) for name in ("log", "position"))
        file: Kind = "evaluation" if kind == "run" and self.judged else kind
        return (self.read(file, int(log[row]), int(position[row])) for row in rows)

    def item_ids(self) -> Iterator[str]:
        """Return the ids of all items."""
        found = self.select("SELECT id FROM item")
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
        if kind == "run" and self.judged:
            return
        own = self.column(_TABLES[kind], "item") == item_hash(item_id)
        most = 1 if kind == "dataset" else None
        yield from self.read_rows(kind, np.flatnonzero(own)[:most].tolist())

    def rows_at(self, item: str, sample: int, model: str, key: str = "") -> list[int]:
        """Return the rows of an answer: by its key, or, where it says none, by where it is."""
        rows = np.flatnonzero(self.column("response", "item") == item_hash(item))
        if key:
            own = self.column("response", "key")[rows] == signed(short(key))
            return rows[own & (self.column("response", "keyed")[rows] == 1)].tolist()
        code = self.state.texts.get("model", {}).get(model, -1)
        own = self.column("response", "model")[rows] == code
        return rows[own & (self.column("response", "sample")[rows] == sample)].tolist()

    def rows_of_lines(self, lines: Sequence[tuple[Kind, int, int]], ids: Sequence[str]) -> IntArray:
        """Return the rows whose own line, or whose item's, is one of these, and those of items
        with these ids."""
        hashes = [item_hash(id) for id in ids]
        items = self.column("item", "item")[self._have("dataset", lines)]
        of_items = np.isin(self.column("response", "item"), [*hashes, *items.tolist()])
        return np.flatnonzero(of_items if self.judged else of_items | self._have("run", lines))

    def _have(self, kind: Kind, lines: Sequence[tuple[Kind, int, int]]) -> Mask:
        """Return which rows of a table have one of these lines."""
        log, position = (self.column(_TABLES[kind], name) for name in ("log", "position"))
        found = np.zeros(len(log), np.bool_)
        for number in range(len(self.files[kind])):
            own = [place for at, log, place in lines if (at, log) == (kind, number)]
            found |= (log == number) & np.isin(position, np.array(own, np.int64))
        return found

    def judged_by(self, evaluation: JsonMapping) -> int:
        """Return the row that an evaluation is about, -1 if there is none."""
        keys, item = evaluation.get("responses"), str(evaluation["item_id"])
        place = int(evaluation.get("sample_index") or 0), str(evaluation.get("model_name") or "")
        found = self.rows_at(item, *place, str(keys[0])) if keys and not self.judged else []
        return next(iter(found or self.rows_at(item, *place)), -1)


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
