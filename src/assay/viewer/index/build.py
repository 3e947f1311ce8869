"""The tables of an experiment's samples, made in one pass over its rows, or continued where they
were left off."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import compress
from operator import attrgetter
from typing import Any, cast, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from assay.interfaces import IntArray
from assay.records import EvaluationOutcome, Kind, ResponseOutcome, verdict_of
from assay.store.items import decode_item
from assay.store.keys import id_hash
from assay.store.log import OFFSET_BITS, FileLog
from assay.store.table.decode import Block, line_starts, read_blocks
from assay.store.table.facets import text_of
from assay.store.table.join import Lookup, response_keys
from assay.viewer.index.columns import Type, definitions, row_type, stored
from assay.viewer.index.facets import Facets, clean
from assay.viewer.index.series import VERDICT_BITS, Series

# of each log, by its path: the offset up to which each of its files is read
Ends = dict[str, dict[int, int]]
RESPONSE_OUTCOMES = get_args(ResponseOutcome)
_MOST_HASHES = 8192
_LONGEST_FACET = 100  # characters
_TABLES = """
CREATE TABLE header (json TEXT);
CREATE TABLE response (id INTEGER PRIMARY KEY, log INTEGER, position INTEGER, key INTEGER, keyed INTEGER,
    hash INTEGER, {columns});
CREATE TABLE item (hash INTEGER PRIMARY KEY, id TEXT, log INTEGER, position INTEGER);
CREATE TABLE evaluation (hash INTEGER, log INTEGER, position INTEGER);
CREATE TABLE verdict (id INTEGER PRIMARY KEY, outcome TEXT, passed INTEGER, score REAL);
CREATE TABLE loose (id INTEGER PRIMARY KEY, log INTEGER, position INTEGER, key INTEGER, place INTEGER, hash INTEGER,
    item TEXT, model TEXT, sample INTEGER, series INTEGER, outcome TEXT, passed INTEGER, score REAL);
"""
_INDEXES = """
CREATE INDEX IF NOT EXISTS response_item ON response (hash, task);
CREATE INDEX IF NOT EXISTS evaluation_item ON evaluation (hash);
"""
_PLACES = """
CREATE UNIQUE INDEX IF NOT EXISTS response_key ON response (key);
INSERT OR IGNORE INTO response (log, position, key, keyed, hash, item, task, model, sample, outcome)
    SELECT log, position, place, 0, hash, item, model, model, sample, '' FROM loose ORDER BY id;
"""
_ROW = np.dtype([("key", "i8"), ("hash", "i8"), ("keyed", "?")])
_ROWS = "SELECT key, hash, keyed FROM response ORDER BY id"
_place, _kind = (
    attrgetter("item_id", "sample_index", "model_name"),
    attrgetter("label", "scorer", "outcome", "passed"),
)


class IndexState(msgspec.Struct):
    """How far the logs are read, and what the tables' contents stand for. `judged`: there are
    labels, but no responses; then the rows are the places that were judged. `left_out` lines of
    responses are no rows, or do not count."""

    ends: Ends = {}
    left_out: int = 0
    judged: bool = False
    facets: Facets = msgspec.field(default_factory=lambda: Facets("f"))
    items: Facets = msgspec.field(default_factory=lambda: Facets("g"))
    tasks: dict[str, None] = {}
    models: dict[str, None] = {}
    series: dict[str, Series] = {}


class _Evaluation(msgspec.Struct, gc=False):
    """What is decoded of an evaluation."""

    item_id: str
    outcome: EvaluationOutcome
    sample_index: int = 0
    label: str | None = ""
    model_name: str | None = ""
    passed: bool | None = None
    score: float | None = None
    responses: list[str] | None = None
    scorer: str | None = ""
    players: list[Any] | None = None


class _Hashes(dict[str, int]):
    """Of item ids; only those that were met lately are kept."""

    def __missing__(self, id: str) -> int:
        if len(self) > _MOST_HASHES:
            self.clear()
        self[id] = number = item_hash(id)
        return number


def item_hash(id: str) -> int:
    return signed(id_hash(id))


def signed(number: int) -> int:
    """Return 64 bits as SQLite has integers."""
    return number - (1 << 64) if number >> 63 else number


class Builder:
    """Reads logs into a database: responses, then items and evaluations. `state` says how far it
    has come."""

    def __init__(self, db: sqlite3.Connection, state: IndexState | None) -> None:
        self.db = db
        self.state = state or IndexState()
        self._hashes = _Hashes()
        self._kinds: dict[Any, tuple[int, str, bool | None, float | None, bool]] = {}
        if state is None:
            self._execute(_TABLES.format(columns=", ".join(definitions())))
        self._rows = [np.fromiter(db.execute(_ROWS), _ROW)]
        self._before = Lookup(self._rows[0]["key"]) if len(self._rows[0]) else None

    def read(self, kind: Kind, number: int, log: FileLog, most: int | None = None) -> None:
        """Take the rows of a log, the one of this number among those of its kind, that were not
        read yet."""
        take = {"run": self._responses, "evaluation": self._evaluations, "dataset": self._items}
        self._log = log
        ends = self.state.ends.setdefault(str(log.path), {})
        before, files = dict(ends), dict(log.numbered())
        for position, block in log.placed_blocks(before, most):
            file, offset = position >> OFFSET_BITS, position & (1 << OFFSET_BITS) - 1
            ends[file] = min(offset + len(block), files[file].stat().st_size)
            places = line_starts(block) + position
            # the last line was read before if only its line feed was to come
            fresh = places >= (file << OFFSET_BITS) + before.get(file, 0)
            shown = fresh
            if log.hidden:
                shown = fresh & np.array([place not in log.hidden for place in places.tolist()])
            taken = take[kind](number, places[shown], _lines(block, shown))
            if kind == "run":
                self.state.left_out += int(fresh.sum()) - taken

    def _execute(self, script: str) -> None:
        for statement in script.split(";"):  # `executescript` would end the transaction
            self.db.execute(statement)

    def _decode(
        self, positions: IntArray, block: bytes, kind: type[Any], as_ours: Callable[[Any], Any]
    ) -> Block[Any]:
        return next(read_blocks(self._log, kind, as_ours, blocks=iter([(positions, block)])))

    def _insert(self, table: str, columns: Sequence[str], rows: Iterator[Any]) -> None:
        known = {name for _, name, *_ in self.db.execute(f"PRAGMA table_info({table})")}
        for name in columns:
            if name not in known:
                self.db.execute(f"ALTER TABLE {table} ADD COLUMN {name} TEXT")
        places = ", ".join("?" * len(columns))
        names = ", ".join(columns)
        self.db.executemany(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})", rows)

    # ---- responses

    def _responses(self, number: int, positions: IntArray, block: bytes) -> int:
        found = self._decode_responses(positions, block)
        rows = found.rows
        if not rows:
            return 0
        columns = {column.name: list(map(column.value, rows)) for column in stored()}
        self.state.tasks |= dict.fromkeys(columns["task"])
        self.state.models |= dict.fromkeys(columns["model"])
        keys = [row.key for row in rows]
        own = _numbers(keys, columns["item"], columns["sample"], columns["model"])
        hashes = [self._hashes[id] for id in columns["item"]]
        columns |= {"key": own.tolist(), "keyed": list(map(bool, keys)), "hash": hashes}
        columns |= {"log": [number] * len(rows), "position": found.positions.tolist()}
        none = self.state.facets.type()()
        columns |= self.state.facets.texts([row.metadata or none for row in rows])
        self._append(columns)
        return len(rows)

    def _append(self, columns: dict[str, list[Any]]) -> None:
        """Write responses. What is appended with the key of an earlier row does not count."""
        own = zip(columns["key"], columns["hash"], columns["keyed"], strict=True)
        taken = np.fromiter(own, _ROW)
        values = zip(*columns.values(), strict=True)
        if self._before is not None:
            fresh = ~(taken["keyed"] & (self._before.first(taken["key"]) >= 0))
            values, taken = compress(values, fresh), taken[fresh]
        self._insert("response", list(columns), values)
        self._rows.append(taken)

    def _decode_responses(self, positions: IntArray, block: bytes) -> Block[Any]:
        facets, changes = self.state.facets, [False]

        def as_ours(row: dict[str, Any]) -> dict[str, Any]:
            changes.append(facets.learn(row.get("metadata")))
            return _our_response(row, facets)

        found = self._decode(positions, block, self._response, as_ours)
        if any(changes):  # names that were not known: now they are
            del self._response
            found = self._decode(positions, block, self._response, as_ours)
        return found

    @cached_property
    def _response(self) -> type[msgspec.Struct]:
        return row_type(self.state.facets.type())

    # ---- items

    def _items(self, number: int, positions: IntArray, block: bytes) -> int:
        rows: list[tuple[Any, ...]] = []
        found: list[dict[str, Any]] = []
        facets = self.state.items
        for position, line in zip(positions.tolist(), block.split(b"\n"), strict=False):
            try:
                item = decode_item(line)
            except Exception:  # whatever is not an item is not one of these
                continue
            id = clean(item.id)
            rows.append((item_hash(id), id, number, position))
            # as the engine looks for them
            found.append({**item.metadata, **_short(item.data), **item.extra})
            facets.learn(found[-1])
        kind = facets.type()
        columns = facets.texts([facets.struct(kind, fields) for fields in found])
        own = zip(*zip(*rows, strict=True), *columns.values(), strict=True)
        self._insert("item", ["hash", "id", "log", "position", *columns], own)
        return len(rows)

    # ---- evaluations

    @cached_property
    def _known(self) -> tuple[Lookup, Any]:
        """The responses by their keys, once all of them are read."""
        self._rows = [np.concatenate(self._rows)]
        return Lookup(self._rows[0]["key"]), self._rows[0]

    def _evaluations(self, number: int, positions: IntArray, block: bytes) -> int:
        found = self._decode(positions, block, _Evaluation, _our_evaluation)
        places = found.positions.tolist()
        hashes = [self._hashes[row.item_id] for row in found.rows]
        lines = zip(hashes, [number] * len(hashes), places, strict=True)
        self.db.executemany("INSERT INTO evaluation VALUES (?, ?, ?)", lines)
        # a label of several answers is one of each, and a match is no answer
        labels = [
            (row, key, hash, position)
            for row, hash, position in zip(found.rows, hashes, places, strict=True)
            if not row.players
            for key in row.responses or ("",)
        ]
        if labels:
            self._judge(number, labels)
        return len(found.rows)

    def _judge(self, number: int, labels: list[tuple[Any, ...]]) -> None:
        """Take the labels of answers; those of answers that are not known wait until all rows
        are there."""
        rows, keys, hashes, positions = zip(*labels, strict=True)
        verdicts = self._verdicts(rows)
        ids, samples, models = zip(*map(_place, rows), strict=True)
        models = [model or "" for model in models]
        own = _numbers(keys, ids, samples, models)
        at = self._find(own, np.array(hashes))
        self._store(at, verdicts)
        lost = at == 0
        if lost.any():
            place = _numbers([""] * len(ids), ids, samples, models)
            columns = positions, own.tolist(), place.tolist(), hashes, ids, models, samples
            waiting = compress(zip(*columns, verdicts, strict=True), lost)
            self.db.executemany(
                f"INSERT INTO loose VALUES (NULL{', ?' * 12})",
                ((number, *values, *verdict) for *values, verdict in waiting),
            )

    def _verdicts(self, rows: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return series, outcome, passed and score of each label."""
        kinds = map(self._common, map(_kind, rows))
        return [
            (series, outcome, passed, row.score if scored and row.score is not None else score)
            for row, (series, outcome, passed, score, scored) in zip(rows, kinds, strict=True)
        ]

    def _common(self, kind: Any) -> tuple[int, str, bool | None, float | None, bool]:
        """Return what labels that differ in their score alone have in common: series, outcome,
        passed, the score where they have none, and whether they are no failures."""
        known = self._kinds.get(kind)
        if known is None:
            label, scorer, outcome, passed = kind
            scored = outcome == "scored"
            own = self.state.series.setdefault(
                f"{label or ''}\0{scorer or ''}", Series(label or "", scorer or "")
            )
            if own.number < 0:
                own.number = len(self.state.series)
            own.scored |= scored
            passed = passed if scored else None
            score = None if passed is None else float(passed)
            known = self._kinds[kind] = own.number, outcome, passed, score, scored
        return known

    def _store(self, at: IntArray, verdicts: Sequence[tuple[Any, ...]]) -> None:
        """Keep verdicts on responses, the first of each series; 0 is none."""
        pairs = zip(at.tolist(), verdicts, strict=True)
        self.db.executemany(
            "INSERT OR IGNORE INTO verdict VALUES (?, ?, ?, ?)",
            (((row[0] << VERDICT_BITS) + id, *row[1:]) for id, row in pairs if id),
        )

    def _find(self, keys: IntArray, hashes: IntArray) -> IntArray:
        """Return the first response of each key, 0 for none. Equal keys of two items are not
        taken for one."""
        lookup, rows = self._known
        if not len(rows):
            return np.zeros(len(keys), np.int64)
        at = lookup.first(keys)
        return np.where((at >= 0) & (rows["hash"][at] == hashes), at + 1, 0)

    # ---- what is made of all rows

    def finish(self) -> IndexState:
        """Join what was not found by keys, and make what labels have in common."""
        self.state.judged = not any(map(len, self._rows)) or self.state.judged
        if self.state.judged:
            self._execute(_PLACES)
            models = self.db.execute("SELECT model FROM response GROUP BY model ORDER BY min(id)")
            self.state.models = self.state.tasks = dict.fromkeys(model for (model,) in models)
            self._rows = [np.fromiter(self.db.execute(_ROWS), _ROW)]
            self.__dict__.pop("_known", None)
        self._execute(_INDEXES)
        self._join_loose()
        self._copy_to_twins()
        return self.state

    def _join_loose(self) -> None:
        joined: list[tuple[int]] = []
        waiting = self.db.execute(
            "SELECT id, key, place, hash, series, outcome, passed, score FROM loose"
        )
        while rows := waiting.fetchmany(_MOST_HASHES):
            ids, *columns = list(zip(*rows, strict=True))[:4]
            keys, places, hashes = map(np.array, columns)
            at = self._find(keys, hashes)
            at = np.where(at == 0, self._find(places, hashes), at)
            unkeyed = (at == 0) & (keys == places)
            if unkeyed.any():
                at[unkeyed] = self._places.first(places[unkeyed]) + 1
            self._store(at, [row[4:] for row in rows])
            joined += compress(zip(ids), at)
        self.db.executemany("DELETE FROM loose WHERE id = ?", joined)

    @cached_property
    def _places(self) -> Lookup:
        """Where responses stand, whatever their keys are."""
        rows = self.db.execute("SELECT item, sample, model FROM response ORDER BY id").fetchall()
        places = zip(*rows, strict=True) if rows else ((), (), ())
        return Lookup(_numbers([""] * len(rows), *places))

    def _copy_to_twins(self) -> None:
        """Rows of one key, or of one place, have the same verdicts."""
        lookup, rows = self._known
        if len(rows) < 2 or not (lookup.sorted[1:] == lookup.sorted[:-1]).any():
            return
        first = lookup.first(rows["key"])
        twins = np.flatnonzero(
            (first != np.arange(len(rows))) & (rows["hash"][first] == rows["hash"])
        )
        self.db.execute("CREATE TEMP TABLE twin (id INTEGER, first INTEGER)")
        pairs = zip((twins + 1).tolist(), (first[twins] + 1).tolist(), strict=True)
        self.db.executemany("INSERT INTO twin VALUES (?, ?)", pairs)
        for series in self.state.series.values():
            base = series.number << VERDICT_BITS
            self.db.execute(
                "INSERT OR IGNORE INTO verdict SELECT ? + t.id, outcome, passed, score"
                " FROM twin t JOIN verdict v ON v.id = ? + t.first",
                (base, base),
            )
        self.db.execute("DROP TABLE twin")


def _numbers(keys: Sequence[Any], *place: Sequence[Any]) -> IntArray:
    return response_keys(keys, place).view(np.int64)


def _lines(block: bytes, shown: npt.NDArray[np.bool_]) -> bytes:
    """Return a block with some of its lines alone."""
    if shown.all():
        return block
    return b"".join(line + b"\n" for line in compress(block.split(b"\n"), shown.tolist()))


def _short(data: Any) -> dict[str, Any]:
    """Return the fields of an item's data that may be facets; texts to be read are none."""
    fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return {
        name: value
        for name, value in fields.items()
        if not isinstance(value, str) or len(value) <= _LONGEST_FACET
    }


# ---- rows of others


def _our_response(row: dict[str, Any], facets: Facets) -> dict[str, Any]:
    """Return the fields that are read of a response."""
    answer, outcome = row.get("response"), row.get("outcome")
    metadata = row.get("metadata")
    known = {
        name: value
        for name, value in (metadata.items() if isinstance(metadata, dict) else ())
        if facets.kinds.get(name, "nested") != "nested"
    }
    fields = {
        column.field: _VALUES[column.type](row.get(column.field))
        for column in stored()
        if column.field
    }
    return fields | {
        "item_id": _text(row.get("item_id")),
        "key": _text(row.get("key")),
        "metadata": known,
        "error": str(row["error"]) if row.get("error") else None,
        "outcome": outcome if outcome in RESPONSE_OUTCOMES else None,
        "response": answer if isinstance(answer, str) else "",
        "output": row.get("output"),
    }


def _our_evaluation(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are read of an evaluation."""
    outcome, passed, score = verdict_of(row)
    label, keys, players = row.get("label"), row.get("responses"), row.get("players")
    name: Any = cast("dict[str, Any]", label).get("name") if isinstance(label, dict) else label
    return {
        "item_id": _text(row.get("item_id")),
        "outcome": outcome,
        "sample_index": _whole(row.get("sample_index")) or 0,
        "label": "" if name is None else clean(str(name)),
        "model_name": _text(row.get("model_name")),
        "passed": passed,
        "score": None if score != score else score,
        "responses": [text_of(key) for key in keys] if isinstance(keys, list) else None,
        "scorer": _text(row.get("scorer")),
        "players": players if isinstance(players, list) else None,
    }


def _text(value: Any) -> str | None:
    return None if value is None else clean(text_of(value))


def _whole(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and 0 <= number < 1 << 31 else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


_VALUES: dict[Type, Callable[[Any], Any]] = {
    "TEXT": _text,
    "INTEGER": _whole,
    "REAL": _number,
    "BOOLEAN": lambda value: value if isinstance(value, bool) else None,
}
