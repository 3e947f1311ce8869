"""Fields of rows as columns: only what is asked for leaves the JSON text, and no row is kept.

Numbers stand as they are, in as few bytes as they need; other values once, with their code in
each row.
"""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.interfaces import Codes, FloatArray, Hashes, IntArray, Log, Mask
from assay.records import JsonObject
from assay.store.keys import id_hash, short
from assay.store.table.decode import NoRow, decode_row, no_row, placed_lines, whole_rows
from assay.store.table.facets import find_in_item, find_in_row, narrow, typed
from assay.store.table.join import PLACE, Lookup, first_key, response_keys, row_blocks
from assay.store.table.labels import in_fewer_bytes
from assay.store.table.processes import Processes

ABSENT, FLOAT, INT = -1, -2, -3
_EXACT = 1 << 53  # whole numbers up to here are exact as floats


class Column:
    """The values of one field, row by row. With `numbers=False` numbers have codes too: for
    fields with few values."""

    def __init__(self, *, numbers: bool = True) -> None:
        self.values: list[Any] = []
        self._numbers = numbers
        self._known: dict[bytes | str, int] = {}
        self._codes: list[npt.NDArray[Any]] = [np.zeros(0, np.int8)]
        self._floats: list[npt.NDArray[Any]] = [np.zeros(0, np.float16)]

    def extend(self, values: Iterable[Any]) -> None:
        """Take up the rows' values; UNSET where one has none."""
        values = list(values)
        codes = [] if self._numbers else self._known_codes(values)
        floats: list[float] = []
        for value in () if codes else values:
            kind, code, number = type(value), ABSENT, math.nan
            if value is UNSET:
                pass
            elif self._numbers and kind is float:
                code, number = FLOAT, value
            elif self._numbers and kind is int and -_EXACT < value < _EXACT:
                code, number = INT, float(value)
            else:
                code = self._code(value)
            codes.append(code)
            floats.append(number)
        self._codes.append(in_fewer_bytes(np.array(codes, np.int32)))
        if self._numbers:
            self._floats.append(in_fewer_bytes(np.array(floats, np.float64)))

    def _known_codes(self, values: list[Any]) -> list[int]:
        """Return the codes of values that are all known texts, else none."""
        try:
            codes = list(map(self._known.get, values))
        except TypeError:
            return []
        return [] if None in codes else cast("list[int]", codes)

    def join(self, parts: "Iterable[Column]") -> "Column":
        """Take up the values of further columns, one after the other."""
        for part in parts:
            codes = np.array([*map(self._code, part.values), INT, FLOAT, ABSENT], np.int32)
            self._codes.append(in_fewer_bytes(codes[part.codes]))
            self._floats.append(part.floats)
        return self

    def _code(self, value: Any) -> int:
        key = value if type(value) is str else typed(value)  # a text is equal to texts alone
        code = self._known.setdefault(key, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        return code

    @property
    def codes(self) -> Codes:
        return _whole(self._codes).astype(np.int32)

    def codes_of(self, rows: IntArray) -> Codes:
        """Return the codes of these rows; ABSENT for row -1."""
        codes = _whole(self._codes)
        found = codes[rows] if len(codes) else np.zeros(len(rows), np.int32)
        found[rows < 0] = ABSENT
        return found

    def forget(self, rows: IntArray | Mask) -> None:
        """Leave these rows without a value."""
        _whole(self._codes)[rows] = ABSENT

    @property
    def floats(self) -> FloatArray:
        """Return the numbers, NaN for other values; nothing with `numbers=False`."""
        return _whole(self._floats)

    def take(self, rows: IntArray) -> list[Any]:
        """Return the values of these rows; None for those that have none, and for row -1."""
        floats = self.floats
        values: list[Any] = []
        for block in row_blocks(len(rows)):
            own = self.codes_of(rows[block]).tolist()
            numbers = floats[rows[block]].tolist() if len(floats) else own
            values += map(self._value, own, numbers)
        return values

    def _value(self, code: int, number: float) -> Any:
        if code >= 0:
            return self.values[code]
        if code == INT:
            return int(number)
        return number if code == FLOAT else None


def _whole(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the parts of an array as one, which takes their place."""
    if len(parts) > 1:
        parts[:] = [np.concatenate(parts)]
    return parts[0]


class Growing:
    """Numbers of one type that come one at a time, 8 bytes each."""

    def __init__(self, how: Literal["id", "float", "int"]) -> None:
        self._numbers = array({"id": "Q", "int": "q", "float": "d"}[how])
        self.append = self._numbers.append

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def numbers(self) -> npt.NDArray[Any]:
        return np.frombuffer(self._numbers, self._numbers.typecode)


class FieldBlock(NamedTuple):
    """The fields of rows that stand together: `base` and `found` have a list of values for each
    field, `positions` and `log` say where the rows are. `unreadable` are lines that are none."""

    base: list[list[Any]]
    found: list[list[Any]]
    log: int
    positions: IntArray
    unreadable: Sequence[NoRow] = ()


def read_columns(
    logs: Iterable[Log],
    what: str,
    base: Sequence[str],
    names: Sequence[str] = (),
    *,
    item: bool = False,
    strict: bool = True,
) -> Iterator[FieldBlock]:
    """Yield the top-level fields `base` (None where a row lacks one) and `names` (UNSET), which
    are found like facets in an evaluation or a response, or in an `item`; one block of rows
    after the other. If `strict`, a line that is not a row is a UserError."""
    narrowly = _narrow_reader(base, names, item=item)
    look = find_in_item if item else find_in_row
    for number, log in enumerate(logs):
        for positions, block in placed_lines(log):
            values = narrowly(block, len(positions))
            if values is not None:
                yield FieldBlock(*values, number, positions)
                continue
            whole = whole_rows(positions, block)
            for line in whole.unreadable if strict else ():
                raise no_row(line.reason, place_of(log, what, line.position))
            own = [[row.get(name) for row in whole.rows] for name in base]
            further = [[look(row, name) for row in whole.rows] for name in names]
            yield FieldBlock(own, further, number, whole.positions, whole.unreadable)


_Values = tuple[list[list[Any]], list[list[Any]]]


def _narrow_reader(
    base: Sequence[str], names: Sequence[str], *, item: bool
) -> Callable[[bytes, int], _Values | None]:
    """Return a function that decodes nothing but these fields of a block of so many lines; it
    gives None where the rows have to be decoded whole."""
    found = narrow(names, dict.fromkeys(base, (Any, None)), lambda place: Any, item=item)
    if found is None:
        return lambda block, lines: None
    decode = msgspec.json.Decoder(found.type).decode_lines
    places = [list(map(attrgetter, paths)) for paths in found.places]

    def read(block: bytes, lines: int) -> _Values | None:
        try:
            rows = cast("list[Any]", decode(block))
        except (ValueError, RecursionError):
            return None
        if len(rows) != lines:
            return None
        own = [list(map(attrgetter(name), rows)) for name in base]
        return own, [_values(rows, each) for each in places]

    return read


def place_of(log: Log, what: str, position: int) -> str:
    """Return where a line is, for people."""
    number = next(at for at, (place, _) in enumerate(log.scan(), 1) if place == position)
    return f"{what}, line {number}"


def _values(rows: list[Any], places: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """Return what the first of some places has, row by row; UNSET where none has anything."""
    values: list[Any] = list(map(places[0], rows))
    for place in places[1:]:
        lacking = [at for at, value in enumerate(values) if value is UNSET]
        if not lacking:
            break
        if len(lacking) == len(rows):
            values = list(map(place, rows))
            continue
        for at in lacking:
            values[at] = place(rows[at])
    return values


# ---- tables

How = Literal["id", "key", "code", "value", "float", "int"]
_STATE = ("outcome", "error")
_OWN = {"log": np.int32, "position": np.int64, "responses": np.uint64, "failed": np.bool_}


class Numbers:
    """Arrays of numbers of one type, one after the other. They grow where they are: joined from
    parts they would need twice the memory."""

    def __init__(self, kind: npt.DTypeLike) -> None:
        self._kind = np.dtype(kind)
        self._bytes = bytearray()

    def extend(self, numbers: npt.NDArray[Any]) -> None:
        self._bytes += np.ascontiguousarray(numbers, self._kind).data.cast("B")

    def join(self, parts: "Iterable[Numbers]") -> "Numbers":
        for part in parts:
            self.extend(part.codes)
        return self

    @property
    def codes(self) -> npt.NDArray[Any]:
        return np.frombuffer(self._bytes, self._kind)


class Table:
    """Fields of the rows of logs as columns, in the order of reading, and where each row is: `log`
    and `position` (without `places`: nowhere).

    A field is kept as the hash of an `id`, as 64 bits of a `key` (0: none), as a `code`, whose
    `values` are kept once (-1: the row lacks the field), as a `value` of any kind in a Column
    (in `coded`), as a `float` (NaN: not a number), or an `int` (0). `responses` are the rows'
    own `response_keys` where `key` names the field that has them: by these, labels and responses
    are joined; of items they are the hashes of the ids. With `state`, `failed` says which
    responses are failures.
    """

    def __init__(
        self,
        logs: Sequence[Log],
        fields: Mapping[str, How],
        *,
        key: str = "",
        item: bool = False,
        what: str = "rows",
        strict: bool = False,
        places: bool = True,
        state: bool = False,
        processes: Processes | None = None,
    ) -> None:
        self.logs = logs
        self._fields, self._key, self._item = fields, key, item
        self._places, self._state = places, state
        parts = (processes or Processes()).over(logs, partial(self._read, what, strict))
        self._join(parts)

    def _join(self, parts: Sequence[tuple[Any, Any, list[tuple[int, NoRow]]]]) -> None:
        found, own, unreadable = zip(*parts, strict=True)
        self._found, placed = _joined(found), _joined(own)
        self.unreadable: list[tuple[int, NoRow]] = list(chain.from_iterable(unreadable))
        self.coded = {name: each for name, each in self._found.items() if isinstance(each, Column)}
        self.values = {name: column.values for name, column in self.coded.items()}
        self._columns: dict[str, npt.NDArray[Any]] = {}
        self.log: Codes = placed["log"].codes
        self.position: IntArray = placed["position"].codes
        self.responses: Hashes = placed["responses"].codes
        self.failed: Mask = placed["failed"].codes

    def _read(self, what: str, strict: bool) -> tuple[Any, Any, list[tuple[int, NoRow]]]:
        """Return the columns of fields, those that every table has, and what is no row."""
        columns = {name: _empty(how) for name, how in self._fields.items()}
        own = {name: Numbers(kind) for name, kind in _OWN.items()}
        unreadable: list[tuple[int, NoRow]] = []
        base = (*self._base(), *(_STATE if self._state else ()))
        for block in read_columns(
            self.logs, what, base, list(columns), item=self._item, strict=strict
        ):
            unreadable += [(block.log, line) for line in block.unreadable]
            for (name, how), values in zip(self._fields.items(), block.found, strict=True):
                columns[name].extend(_NUMBERS[how](values) if how in _NUMBERS else values)
            for name, values in self._own(block).items():
                own[name].extend(values)
        return columns, own, unreadable

    def _base(self) -> Sequence[str]:
        if not self._key:
            return ()
        return (self._key,) if self._item else (self._key, *PLACE)

    def _own(self, block: FieldBlock) -> dict[str, npt.NDArray[Any]]:
        own: dict[str, npt.NDArray[Any]] = {}
        if self._places:
            own["log"] = np.full(len(block.positions), block.log, np.int32)
            own["position"] = block.positions
        if self._key:
            keys, *places = block.base[: len(self._base())]
            if self._key == "responses":
                keys = list(map(first_key, keys))
            own["responses"] = _ids(keys) if self._item else response_keys(keys, places)
        if self._state:
            states = zip(*block.base[-2:], strict=True)
            failed = [outcome in ("errored", "skipped") or bool(error) for outcome, error in states]
            own["failed"] = np.array(failed, np.bool_)
        return own

    def __len__(self) -> int:
        return len(self.position)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._columns:
            self._columns[name] = self._found[name].codes
        return self._columns[name]

    def forget(self, *names: str) -> None:
        """Free the columns of these fields."""
        for name in names:
            del self._found[name]
            self._columns.pop(name, None)

    def line(self, at: int) -> bytes:
        return self.logs[int(self.log[at])].read(int(self.position[at]))

    def row(self, at: int) -> JsonObject:
        """Return a whole row."""
        return decode_row(self.line(at), "a row")


class ResponseRows:
    """The rows of responses, which labels find by their key, and by their place where a label
    names no key."""

    def __init__(self, logs: Sequence[Log], fields: Mapping[str, How]) -> None:
        self.table = Table(logs, fields, key="key")
        self._by_key = Lookup(self.table.responses)

    @cached_property
    def _by_place(self) -> Lookup:
        # a response has no such field, so these are the hashes of places
        return Lookup(Table(self.table.logs, {}, key="responses").responses)

    def find(self, keys: Sequence[Any], places: Sequence[Sequence[Any]]) -> list[int]:
        """Return the row of each response, -1 where there is none; `places` are the columns of
        PLACE."""
        wanted = response_keys(keys, places)
        found = self._by_key.first(wanted)
        if not all(keys):
            found = np.where([bool(key) for key in keys], found, self._by_place.first(wanted))
        return found.tolist()


def _empty(how: How) -> Any:
    return Numbers(_NUMBERS[how](()).dtype) if how in _NUMBERS else Column(numbers=how == "value")


def _joined(parts: Sequence[JsonObject]) -> JsonObject:
    """Return the columns of all rows from those of parts of them."""
    first, *rest = parts
    for name, column in first.items():
        column.join([part[name] for part in rest])
    return first


def _floats(values: Sequence[Any]) -> FloatArray:
    return np.array([v if isinstance(v, (int, float)) else math.nan for v in values], np.float64)


def _ints(values: Sequence[Any]) -> IntArray:
    whole = [int(v) if isinstance(v, (int, float)) and abs(v) < _EXACT else 0 for v in values]
    return np.array(whole, np.int64)


def _ids(values: Sequence[Any]) -> Hashes:
    return np.array([id_hash(str(value)) for value in values], np.uint64)


def _keys(values: Sequence[Any]) -> Hashes:
    return np.array([short(str(key)) if key else 0 for key in values], np.uint64)


_NUMBERS: dict[str, Callable[[Sequence[Any]], npt.NDArray[Any]]] = {
    "id": _ids,
    "key": _keys,
    "float": _floats,
    "int": _ints,
}
