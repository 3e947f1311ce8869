"""The tables of an experiment's samples, made in one pass over its rows, or continued where they
were left off."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, compress
from operator import attrgetter
from typing import Any, cast, get_args

import msgspec
import numpy as np

from assay.sdk import (
    OUTCOMES,
    EvaluationOutcome,
    IntArray,
    Item,
    JsonObject,
    Kind,
    Mask,
    ResponseOutcome,
    as_object,
    id_hash,
    is_number,
    verdict_of,
)
from assay.store.items import decode_item
from assay.store.log import OFFSET_BITS, FileLog
from assay.store.table.decode import Block, line_starts, read_blocks
from assay.store.table.facets import text_of
from assay.store.table.join import Lookup, distinct, response_keys
from assay.viewer.index import packed
from assay.viewer.index.columns import Column, Type, definitions, row_type, stored
from assay.viewer.index.facets import Facets, clean
from assay.viewer.index.packed import Numbers, codes_of
from assay.viewer.index.series import Label, Series, make_labels

# of each log, by its path: the offset up to which each of its files is read
Ends = dict[str, dict[int, int]]
RESPONSE_OUTCOMES = get_args(ResponseOutcome)
_MOST_HASHES = 50_000
_LONGEST_FACET = 100  # characters
_BLOCK = 1 << 19  # bytes of lines that are decoded at once
_TABLES = """
CREATE TABLE header (json TEXT);
CREATE TABLE response (id INTEGER PRIMARY KEY, {columns});
CREATE TABLE item (hash INTEGER PRIMARY KEY, id TEXT);
"""
_KINDS: dict[Type, Any] = {"REAL": np.float64, "INTEGER": np.int32, "BOOLEAN": np.int8}
_OF_PLACES = "item", "model", "sample", "log", "position"
_VERDICTS: JsonObject = {
    "series": np.int32,
    "outcome": np.int8,
    "passed": np.int8,
    "score": np.float64,
}
_PLACE = [attrgetter(name) for name in ("item_id", "sample_index", "model_name")]
_kind, _score = attrgetter("label", "scorer", "outcome", "passed"), attrgetter("score")


class IndexState(msgspec.Struct):
    """How far the logs are read, and what the tables' contents stand for. `judged`: there are
    labels, but no responses; then the rows are the places that were judged. `left_out` lines of
    responses are no rows, or do not count. `rows` there are of each table of packed columns,
    `texts` of each column that has few."""

    ends: Ends = {}
    left_out: int = 0
    judged: bool = False
    rows: dict[str, int] = {}
    texts: dict[str, dict[str, int]] = {}
    facets: Facets = msgspec.field(default_factory=Facets)
    items: Facets = msgspec.field(default_factory=Facets)
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

    def __init__(self) -> None:
        self._fresh: list[tuple[int, str]] = []

    def __missing__(self, id: str) -> int:
        if len(self) > _MOST_HASHES:
            self.clear()
        self[id] = number = item_hash(id)
        self._fresh.append((number, id))
        return number

    def write(self, db: sqlite3.Connection) -> None:
        db.executemany("INSERT OR IGNORE INTO item VALUES (?, ?)", self._fresh)
        self._fresh.clear()


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
        self._kinds: dict[Any, int] = {}
        self._verdicts: list[tuple[Any, ...]] = []
        if state is None:
            for statement in (_TABLES + packed.TABLE).split(
                ";"
            ):  # a script would end the transaction
                db.execute(statement.format(columns=", ".join(definitions())))
        self._keys, self._item_hashes = (
            [self._column("response", name)] for name in ("key", "item")
        )
        self._before = Lookup(self._keys[0]) if len(self._keys[0]) else None

    def _column(self, table: str, name: str) -> IntArray:
        return packed.read_column(self.db, f"{table}.{name}", self.state.rows.get(table, 0))

    def _pack(self, table: str, columns: Mapping[str, Numbers]) -> None:
        start = self.state.rows.get(table, 0)
        named = {f"{table}.{name}": values for name, values in columns.items()}
        packed.write_piece(self.db, start, named)
        self.state.rows[table] = start + len(next(iter(columns.values())))

    def read(self, kind: Kind, number: int, log: FileLog, most: int | None = None) -> None:
        """Take the rows of a log, the one of this number among those of its kind, that were not
        read yet."""
        take = {"run": self._responses, "evaluation": self._evaluations, "dataset": self._items}
        self._log = log
        ends = self.state.ends.setdefault(str(log.path), {})
        before, files, hidden = dict(ends), dict(log.numbered()), [*log.hidden]
        for position, block in _larger(log.placed_blocks(before, most)):
            file, offset = position >> OFFSET_BITS, position & (1 << OFFSET_BITS) - 1
            ends[file] = min(offset + len(block), files[file].stat().st_size)
            places = line_starts(block) + position
            # the last line was read before if only its line feed was to come
            is_new = places >= (file << OFFSET_BITS) + before.get(file, 0)
            shown = is_new & ~np.isin(places, hidden)
            taken = take[kind](number, places[shown], _lines(block, shown))
            self._hashes.write(self.db)
            if kind == "run":
                self.state.left_out += int(is_new.sum()) - taken

    def _decode(
        self, positions: IntArray, block: bytes, kind: type[Any], as_ours: Callable[[Any], Any]
    ) -> Block[Any]:
        return next(read_blocks(self._log, kind, as_ours, blocks=iter([(positions, block)])))

    # ---- responses

    def _responses(self, number: int, positions: IntArray, block: bytes) -> int:
        found = self._decode_responses(positions, block)
        rows = found.rows
        if not rows:
            return 0
        values = {column.name: column.values(rows) for column in stored()}
        keys = [row.key for row in rows]
        none = self._no_metadata
        facets = self.state.facets.codes([row.metadata or none for row in rows])
        columns: dict[str, Numbers] = {
            "log": np.full(len(rows), number, np.int16),
            "position": found.positions,
            "key": _numbers(keys, values["item"], values["sample"], values["model"]),
            "keyed": np.array(list(map(bool, keys)), np.int8),
            **{f"facet {name}": codes for name, codes in facets.items()},
        }
        self._append(values, columns)
        return len(rows)

    def _hashed(self, ids: Iterable[str]) -> IntArray:
        return np.array([self._hashes[id] for id in ids], np.int64)

    def _append(self, values: Mapping[str, list[Any]], columns: Mapping[str, Numbers]) -> None:
        """Write responses. What is appended with the key of an earlier row does not count."""
        if self._before is not None:
            is_new = (columns["keyed"] == 0) | (self._before.first(columns["key"]) < 0)
            values = {name: list(compress(own, is_new)) for name, own in values.items()}
            columns = {name: own[is_new] for name, own in columns.items()}
        places = ", ".join("?" * len(values))
        query = f"INSERT INTO response ({', '.join(values)}) VALUES ({places})"
        self.db.executemany(query, zip(*values.values(), strict=True))
        declared = {
            column.name: self._numbered(column, values[column.name])
            for column in stored()
            if column.texts or column.type != "TEXT"
        }
        self._pack("response", {**columns, **declared})
        self._keys.append(columns["key"])
        self._item_hashes.append(declared["item"])

    def _numbered(self, column: Column, values: list[Any]) -> Numbers:
        if column.texts == "hashed":
            return self._hashed(values)
        if column.texts:
            return codes_of(values, self.state.texts.setdefault(column.name, {}))
        numbers = np.array(values, np.float64)
        kind = _KINDS[column.type]
        return numbers if kind is np.float64 else np.nan_to_num(numbers, nan=-1).astype(kind)

    def _decode_responses(self, positions: IntArray, block: bytes) -> Block[Any]:
        facets, changes = self.state.facets, [False]

        def as_ours(row: JsonObject) -> JsonObject:
            changes.append(facets.learn(row.get("metadata")))
            return _our_response(row, facets)

        found = self._decode(positions, block, self._response, as_ours)
        if any(changes):  # names that were not known: now they are
            del self._response, self._no_metadata
            found = self._decode(positions, block, self._response, as_ours)
        return found

    @cached_property
    def _no_metadata(self) -> msgspec.Struct:
        return self.state.facets.type()()

    @cached_property
    def _response(self) -> type[msgspec.Struct]:
        return row_type(type(self._no_metadata))

    # ---- items

    def _items(self, number: int, positions: IntArray, block: bytes) -> int:
        places: list[int] = []
        found: list[Item] = []
        for position, line in zip(positions.tolist(), block.split(b"\n"), strict=False):
            with suppress(Exception):  # whatever is not an item is not one of these
                found.append(decode_item(line))
                places.append(position)
        # as the engine looks for them
        fields = [{**item.metadata, **_short(item.data), **item.extra} for item in found]
        facets = self.state.items
        for own in fields:
            facets.learn(own)
        kind = facets.type()
        codes = facets.codes([facets.struct(kind, own) for own in fields])
        columns: dict[str, Numbers] = {f"facet {name}": own for name, own in codes.items()}
        columns["item"] = self._hashed(clean(item.id) for item in found)
        columns["log"] = np.full(len(found), number, np.int16)
        columns["position"] = np.array(places, np.int64)
        self._pack("item", columns)
        return len(found)

    # ---- evaluations

    @cached_property
    def _known(self) -> tuple[Lookup, IntArray]:
        """The responses by their keys, and their items, once all of them are read."""
        self._keys, self._item_hashes = (
            [np.concatenate(self._keys)],
            [np.concatenate(self._item_hashes)],
        )
        return Lookup(self._keys[0]), self._item_hashes[0]

    def _evaluations(self, number: int, positions: IntArray, block: bytes) -> int:
        found = self._decode(positions, block, _Evaluation, _our_evaluation)
        rows = found.rows
        logs = np.full(len(rows), number, np.int16)
        lines: dict[str, Numbers] = {"log": logs, "position": found.positions}
        lines["item"] = self._hashed(row.item_id for row in rows)
        self._pack("evaluation", lines)
        # a label of several answers is one of each, and a match is no answer
        answers = [() if row.players else row.responses or ("",) for row in rows]
        times = list(map(len, answers))
        if times.count(1) < len(rows):
            rows = [row for row, count in zip(rows, times, strict=True) for _ in range(count)]
            lines = {name: np.repeat(values, times) for name, values in lines.items()}
        if rows:
            self._judge(rows, list(chain.from_iterable(answers)), lines)
        return len(found.rows)

    def _judge(
        self, rows: Sequence[Any], keys: Sequence[str], lines: Mapping[str, Numbers]
    ) -> None:
        """Take the labels of answers. Where some are of answers that are not known, what tells of
        these is kept until all rows are there."""
        own = _numbers(keys, *(map(field, rows) for field in _PLACE))
        at = self._find(own, lines["item"])
        columns = {"row": at.astype(np.int32), **self._verdicts_of(rows)}
        if (at < 0).any():
            ids, samples, models = ([*map(field, rows)] for field in _PLACE)
            models = [model or "" for model in models]
            codes = codes_of(models, self.state.texts.setdefault("label model", {}))
            place = _numbers([""] * len(ids), ids, samples, models)
            columns |= {**lines, "key": own, "place": place, "model": codes}
            columns["sample"] = np.array(samples, np.int32)
        self._pack("label", columns)

    def _verdicts_of(self, rows: Sequence[Any]) -> dict[str, Numbers]:
        """Return series, outcome, passed and score of labels."""
        codes = [self._kinds.get(kind, -1) for kind in map(_kind, rows)]
        if -1 in codes:
            codes = [self._common(kind) for kind in map(_kind, rows)]
        series, outcome, passed, usual = np.array(self._verdicts)[codes].T
        score = np.array(list(map(_score, rows)), np.float64)
        score[outcome != 0] = np.nan
        own = series, outcome, passed, np.where(np.isnan(score), usual, score)
        named = zip(_VERDICTS.items(), own, strict=True)
        return {name: values.astype(kind) for (name, kind), values in named}

    def _common(self, kind: Any) -> int:
        """Return the number of what labels that differ in their score alone have in common:
        series, outcome, passed (-1: not said), and the score where they have none."""
        if kind not in self._kinds:
            label, scorer, outcome, passed = kind
            scored = outcome == "scored"
            own = self.state.series.setdefault(
                f"{label or ''}\0{scorer or ''}", Series(label or "", scorer or "")
            )
            if own.number < 0:
                own.number = len(self.state.series)
            own.scored |= scored
            said = (-1, np.nan) if passed is None or not scored else (passed, float(passed))
            self._kinds[kind] = len(self._verdicts)
            self._verdicts.append((own.number, OUTCOMES.index(outcome), *said))
        return self._kinds[kind]

    def _find(self, keys: IntArray, hashes: IntArray) -> IntArray:
        """Return the first response of each key, -1 for none. Equal keys of two items are not
        taken for one."""
        lookup, items = self._known
        at = lookup.first(keys)
        return np.where(items[at] == hashes, at, -1) if len(items) else at

    # ---- what is made of all rows

    def finish(self) -> IndexState:
        """Join what was not found by keys."""
        self.state.judged = not any(map(len, self._keys)) or self.state.judged
        rows = self._column("label", "row")
        lost = np.flatnonzero(rows < 0)
        if self.state.judged:
            self._append_places(lost)
        if len(lost):
            rows[lost] = self._find_lost(lost)
            self.db.execute("DELETE FROM packed WHERE name = 'label.row'")
            packed.write_piece(self.db, 0, {"label.row": rows})
        self._note_twins()
        return self.state

    def labels(self) -> dict[str, Label]:
        return make_labels(
            self.state.series, self._column("label", "row"), self._column("label", "series")
        )

    def _append_places(self, lost: IntArray) -> None:
        """Make the places that were judged responses."""
        place = self._column("label", "place")[lost]
        _, first, _ = distinct(place)
        first.sort()
        if self._before is not None:
            first = first[self._before.first(place[first]) < 0]
        label = {name: self._column("label", name)[lost[first]] for name in _OF_PLACES}
        columns = {"log": label["log"], "position": label["position"], "key": place[first]}
        keyed = np.zeros(len(first), np.int8)
        self._append(self._place_values(label), {**columns, "keyed": keyed})
        self.__dict__.pop("_known", None)

    def _place_values(self, label: Mapping[str, Numbers]) -> dict[str, list[Any]]:
        """Return the columns of places: those of labels' answers."""
        ids = dict(self.db.execute("SELECT hash, id FROM item"))
        names = list(self.state.texts.get("label model", ()))
        item = [ids[hash] for hash in label["item"].tolist()]
        model = [names[code] for code in label["model"].tolist()]
        own = {"item": item, "model": model, "task": model, "sample": label["sample"].tolist()}
        own["outcome"] = [""] * len(item)
        return {column.name: own.get(column.name, [None] * len(item)) for column in stored()}

    def _find_lost(self, lost: IntArray) -> IntArray:
        """Return the responses of labels that were not found when they were read."""
        columns = (self._column("label", name)[lost] for name in ("key", "place", "item"))
        keys, places, items = columns
        at = self._find(keys, items)
        at = np.where(at < 0, self._find(places, items), at)
        unkeyed = (at < 0) & (keys == places)
        if unkeyed.any():
            at[unkeyed] = self._places.first(places[unkeyed])
        return at

    @cached_property
    def _places(self) -> Lookup:
        """Where responses stand, whatever their keys are."""
        rows = self.db.execute("SELECT item, sample, model FROM response ORDER BY id").fetchall()
        places = zip(*rows, strict=True) if rows else ((), (), ())
        return Lookup(_numbers([""] * len(rows), *places))

    def _note_twins(self) -> None:
        """Note the first row of each key, or of each place: its verdicts are those of the others."""
        lookup, items = self._known
        if len(items) < 2 or not (lookup.sorted[1:] == lookup.sorted[:-1]).any():
            return
        first = lookup.first(self._keys[0])
        is_twin = (first != np.arange(len(items))) & (items[first] == items)
        packed.write_piece(self.db, 0, {"response.same": np.where(is_twin, first, -1)})


def _larger(blocks: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Join blocks that follow one another, which are decoded more quickly."""
    begin, size, parts = 0, 0, list[bytes]()
    for position, block in blocks:
        if parts and (position != begin + size or size >= _BLOCK):
            yield begin, b"".join(parts)
            parts = []
        if not parts:
            begin, size = position, 0
        parts.append(block)
        size += len(block)
    if parts:
        yield begin, b"".join(parts)


def _numbers(keys: Sequence[Any], *place: Any) -> IntArray:
    return response_keys(keys, place).view(np.int64)


def _lines(block: bytes, shown: Mask) -> bytes:
    """Return a block with some of its lines alone."""
    if shown.all():
        return block
    return b"".join(line + b"\n" for line in compress(block.split(b"\n"), shown.tolist()))


def _short(data: Any) -> JsonObject:
    """Return the fields of an item's data that may be facets; texts to be read are none."""
    return {
        name: value
        for name, value in as_object(data).items()
        if not isinstance(value, str) or len(value) <= _LONGEST_FACET
    }


# ---- rows of others


def _our_response(row: JsonObject, facets: Facets) -> JsonObject:
    """Return the fields that are read of a response."""
    answer, outcome = row.get("response"), row.get("outcome")
    metadata = row.get("metadata")
    known = {
        name: value
        for name, value in as_object(metadata).items()
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


def _our_evaluation(row: JsonObject) -> JsonObject:
    """Return the fields that are read of an evaluation."""
    outcome, passed, score = verdict_of(row)
    label, keys, players = row.get("label"), row.get("responses"), row.get("players")
    name: Any = cast("JsonObject", label).get("name") if isinstance(label, dict) else label
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
    return float(value) if is_number(value) else None


_VALUES: dict[Type, Callable[[Any], Any]] = {
    "TEXT": _text,
    "INTEGER": _whole,
    "REAL": _number,
    "BOOLEAN": lambda value: value if isinstance(value, bool) else None,
}
