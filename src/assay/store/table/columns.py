"""Further fields of rows as columns: only what is asked for leaves the JSON text, and no row is kept.

A column costs 12 bytes a row: numbers stand as they are, other values once, with their code in each row.
"""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.interfaces import Codes, FloatArray, Hashes, IntArray, Log
from assay.store.keys import id_hash, short
from assay.store.table.decode import NoRow, decode_row, no_row, placed_lines, whole_rows
from assay.store.table.facets import find_in_item, find_in_row, narrow, typed
from assay.store.table.join import PLACE, Lookup, first_key, response_keys

ABSENT, FLOAT, INT = -1, -2, -3
_EXACT = 1 << 53  # whole numbers up to here are exact as floats


class Column:
    """The values of one field, row by row. With `numbers=False` numbers have codes too: for fields with few values."""

    def __init__(self, *, numbers: bool = True) -> None:
        self.values: list[Any] = []
        self._numbers = numbers
        self._codes, self._floats = array("i"), array("d")
        self._known: dict[bytes | str, int] = {}

    def extend(self, values: Iterable[Any]) -> None:
        """Take up the rows' values; UNSET where one has none."""
        values = list(values)
        known = [] if self._numbers else self._known_codes(values)
        if known:
            self._codes.extend(known)
            self._floats.extend([math.nan] * len(known))
            return
        for value in values:
            kind, code, number = type(value), ABSENT, math.nan
            if value is UNSET:
                pass
            elif self._numbers and kind is float:
                code, number = FLOAT, value
            elif self._numbers and kind is int and -_EXACT < value < _EXACT:
                code, number = INT, float(value)
            else:
                code = self._code(value)
            self._codes.append(code)
            self._floats.append(number)

    def _known_codes(self, values: list[Any]) -> list[int]:
        """Return the codes of values that are all known texts, else none."""
        try:
            codes = list(map(self._known.get, values))
        except TypeError:
            return []
        return [] if None in codes else cast("list[int]", codes)

    def join(self, parts: "Sequence[Column]") -> "Column":
        """Take up the values of further columns, one after the other."""
        for part in parts:
            own = [self._code(value) for value in part.values]
            codes = part.codes
            if own and own != list(range(len(own))):
                codes = np.where(codes < 0, codes, np.array(own, np.int32)[codes])
            self._codes.frombytes(codes.tobytes())
            self._floats.frombytes(part.floats.tobytes())
        return self

    def __getstate__(self) -> tuple[Any, ...]:
        return self.values, self._numbers, self.codes, self.floats

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(numbers=state[1])
        self.values = state[0]
        self._codes.frombytes(memoryview(state[2]).cast("B"))
        self._floats.frombytes(memoryview(state[3]).cast("B"))

    def _code(self, value: Any) -> int:
        key = value if type(value) is str else typed(value)  # a text is equal to texts alone
        code = self._known.setdefault(key, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        return code

    @property
    def codes(self) -> Codes:
        return np.frombuffer(self._codes, np.int32)

    @property
    def floats(self) -> FloatArray:
        return np.frombuffer(self._floats, np.float64)

    def take(self, rows: IntArray) -> list[Any]:
        """The values of these rows; None for those that have none, and for row -1."""
        return [None if row < 0 else self._value(row) for row in rows.tolist()]

    def _value(self, row: int) -> Any:
        code = self._codes[row]
        if code >= 0:
            return self.values[code]
        number = self._floats[row]
        return number if code == FLOAT else int(number) if code == INT else None


class Growing:
    """Numbers of one type that come one at a time, 8 bytes each."""

    def __init__(self, how: Literal["id", "float", "int"]) -> None:
        self._type = np.dtype(_EMPTY[how])
        self._numbers = array({"id": "Q", "int": "q", "float": "d"}[how])
        self.append = self._numbers.append

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def numbers(self) -> npt.NDArray[Any]:
        return np.frombuffer(self._numbers, self._type)


class FieldBlock(NamedTuple):
    """The fields of rows that stand together: `base` and `found` have a list of values for each field, `positions` and
    `log` say where the rows are. `unreadable` are lines that are none."""

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
    """Yield the top-level fields `base` (None where a row lacks one) and `names` (UNSET), which are found like facets
    in an evaluation or a response, or in an `item`; one block of rows after the other. If `strict`, a line that is not
    a row is a UserError."""
    found = narrow(names, dict.fromkeys(base, (Any, None)), lambda place: Any, item=item)
    decode = None if found is None else msgspec.json.Decoder(found.type).decode_lines
    places = [[attrgetter(place) for place in places] for places in found.places] if found else []
    look = find_in_item if item else find_in_row
    for number, log in enumerate(logs):
        for positions, block in placed_lines(log):
            try:
                rows = None if decode is None else cast("list[Any]", decode(block))
            except (ValueError, RecursionError):
                rows = None
            if rows is not None and len(rows) == len(positions):
                own = [list(map(attrgetter(name), rows)) for name in base]
                further = [_values(rows, each) for each in places]
                yield FieldBlock(own, further, number, positions)
                continue
            whole = whole_rows(positions, block)
            for line in whole.unreadable if strict else ():
                raise no_row(line.reason, place_of(log, what, line.position))
            yield FieldBlock(
                [[row.get(name) for row in whole.rows] for name in base],
                [[look(row, n) for row in whole.rows] for n in names],
                number,
                whole.positions,
                whole.unreadable,
            )


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

How = Literal["id", "key", "code", "float", "int"]
_EMPTY: dict[How, npt.DTypeLike] = {
    "id": np.uint64,
    "key": np.uint64,
    "code": np.int32,
    "float": np.float64,
    "int": np.int64,
}


class Table:
    """Fields of the rows of logs as columns, in the order of reading, and where each row is: `log` and `position`.

    A field is kept as the hash of an `id`, as 64 bits of a `key` (0: none), as a `code`, whose `values` are kept once
    (-1: the row lacks the field), as a `float` (NaN: not a number) or an `int` (0). `responses` are the rows' own
    `response_keys` where `key` names the field that has them: by these, labels and responses are joined.
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
    ) -> None:
        self.logs = logs
        self.unreadable: list[tuple[int, NoRow]] = []
        self.values: dict[str, list[Any]] = {}
        codes = {name: Column(numbers=False) for name, how in fields.items() if how == "code"}
        parts: dict[str, list[npt.NDArray[Any]]] = {
            name: [np.zeros(0, _EMPTY[how])] for name, how in fields.items() if how != "code"
        }
        log, position, keys = (
            [np.zeros(0, np.int32)],
            [np.zeros(0, np.int64)],
            [np.zeros(0, np.uint64)],
        )
        base = (key, *PLACE) if key else ()
        for block in read_columns(logs, what, base, list(fields), item=item, strict=strict):
            log.append(np.full(len(block.positions), block.log, np.int32))
            position.append(block.positions)
            self.unreadable += [(block.log, line) for line in block.unreadable]
            for (name, how), values in zip(fields.items(), block.found, strict=True):
                if how == "code":
                    codes[name].extend(values)
                else:
                    parts[name].append(_NUMBERS[how](values))
            if key:
                own, *places = block.base
                keys.append(response_keys([first_key(each) for each in own], places))
        self.columns: dict[str, npt.NDArray[Any]] = {
            name: np.concatenate(parts.pop(name)) if how != "code" else codes[name].codes
            for name, how in fields.items()
        }
        self.values = {name: column.values for name, column in codes.items()}
        self.log: Codes = np.concatenate(log)
        self.position: IntArray = np.concatenate(position)
        self.responses: Hashes = np.concatenate(keys)

    def __len__(self) -> int:
        return len(self.position)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def line(self, at: int) -> bytes:
        return self.logs[int(self.log[at])].read(int(self.position[at]))

    def row(self, at: int) -> dict[str, Any]:
        """Return a whole row."""
        return decode_row(self.line(at), "a row")


class ResponseRows:
    """The rows of responses, which labels find by their key, and by their place where a label names no key."""

    def __init__(self, logs: Sequence[Log], fields: Mapping[str, How]) -> None:
        self.table = Table(logs, fields, key="key")
        self._by_key = Lookup(self.table.responses)

    @cached_property
    def _by_place(self) -> Lookup:
        # a response has no such field, so these are the hashes of places
        return Lookup(Table(self.table.logs, {}, key="responses").responses)

    def find(self, keys: Sequence[Any], places: Sequence[Sequence[Any]]) -> list[int]:
        """Return the row of each response, -1 where there is none; `places` are the columns of PLACE."""
        wanted = response_keys(keys, places)
        found = self._by_key.first(wanted)
        if not all(keys):
            found = np.where([bool(key) for key in keys], found, self._by_place.first(wanted))
        return found.tolist()


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
