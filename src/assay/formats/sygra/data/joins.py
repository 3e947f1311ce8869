"""Several sources as one dataset: stacked (`vstack`), or joined to the `primary` one, whose records set the order.

Joined records have every column of every source, as `alias->column`; what a record lacks is null. Sources wait on disk,
so the joined records stream, however many they become.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import msgspec

from assay.errors import UserError
from assay.formats.sygra.data.transform import Record, Records, as_text
from assay.registry import nearest
from assay.store.keys import canonical, digest, short

JOINER = "->"
JOIN_TYPES = ("primary", "column", "sequential", "cross", "random", "vstack")


class Part(NamedTuple):
    """One source of a list: its mapping, its place in the config, and its records when they are asked for."""

    config: Mapping[str, Any]
    where: str
    open: Callable[[], Records]

    @property
    def alias(self) -> str:
        return str(self.config.get("alias") or "")

    @property
    def join_type(self) -> str:
        return str(self.config.get("join_type") or "")


def check_parts(parts: Sequence[Part]) -> None:
    """Refuse what cannot be joined, before anything is read."""
    for part in parts:
        by_column = ("primary_key", "join_key") if part.join_type == "column" else ()
        for key in ("alias", "join_type", *by_column):
            if not part.config.get(key):
                raise UserError(
                    f"this source needs {key!r}, as one of several",
                    where=part.where,
                    fix=f"add `{key}:`",
                )
        if part.join_type not in JOIN_TYPES:
            what = f"unknown join_type {part.join_type!r}"
            raise UserError(what, where=part.where, fix=nearest(part.join_type, JOIN_TYPES))
    aliases = [part.alias for part in parts]
    repeated = next((part for part in parts if aliases.count(part.alias) > 1), None)
    if repeated is not None:
        raise UserError(
            f"two sources have the alias {repeated.alias!r}", where=repeated.where, fix="rename one"
        )
    kinds = [part.join_type for part in parts]
    where = "data_config.source"
    if "vstack" in kinds:
        if set(kinds) != {"vstack"}:
            raise UserError(
                "vstack goes with no other join_type", where=where, fix="stack all sources, or none"
            )
    elif kinds.count("primary") != 1:
        what = f"{kinds.count('primary') or 'none'} of the sources are primary"
        raise UserError(what, where=where, fix="give exactly one of them `join_type: primary`")


def joined(parts: Sequence[Part], seed: int) -> Records:
    """The records of all sources together."""
    with ExitStack() as stack:
        sides = [_Side(part, stack.enter_context(TemporaryFile(prefix="assay-"))) for part in parts]
        for side in sides:
            if not len(side):
                part = side.part
                raise UserError(
                    f"the source {part.alias!r} is empty",
                    where=part.where,
                    fix="check its file and split",
                )
        if (
            parts[0].join_type == "vstack"
        ):  # one after the other, with the columns that all of them have
            shared = [name for name in sides[0].names if all(name in side.names for side in sides)]
            for side in sides:
                yield from ({name: record[side.names[name]] for name in shared} for record in side)
            return
        primary = next(side for side in sides if side.part.join_type == "primary")
        records = iter(primary)
        for side in sides:
            if side is not primary:
                records = _JOINS[side.part.join_type](records, side, primary, seed)
        yield from records


class _Side:
    """All records of one source, in a file. `names` are the fields of any of them, in the order of their first
    appearance, with their names in a join: they carry the alias, unless one of them does so already."""

    def __init__(self, part: Part, file: IO[bytes]) -> None:
        self.part = part
        self._file = file
        self._starts = array("Q")
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode
        columns: dict[str, None] = {}
        encode = msgspec.json.Encoder(enc_hook=as_text).encode
        at = 0
        for record in part.open():
            if not record.keys() <= columns.keys():
                columns.update(dict.fromkeys(record))
            try:
                line = encode(record)
            except (TypeError, ValueError, RecursionError) as error:
                raise UserError(
                    f"a record cannot be written as JSON: {error}", where=part.where
                ) from None
            self._starts.append(at)
            at += file.write(line + b"\n")
        prefix = part.alias + JOINER
        done = any(name.startswith(prefix) for name in columns)
        self.names = {name: name if done else prefix + name for name in columns}

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> Record:
        self._file.seek(self._starts[number])
        record = self._decode(self._file.readline())
        return {new: record.get(name) for name, new in self.names.items()}

    def __iter__(self) -> Iterator[Record]:
        return (self[number] for number in range(len(self)))

    def column(self, name: str, where: str) -> str:
        """The full name of a column."""
        if name in self.names:
            return self.names[name]
        if name in self.names.values():
            return name
        what = f"the source {self.part.alias!r} has no column {name!r}"
        raise UserError(what, where=where, fix=nearest(name, self.names))


def _by_column(records: Records, side: _Side, primary: _Side, seed: int) -> Records:
    """Every record with each record of `side` that has the same key, else with nulls. Null is a key like others."""
    config, where = side.part.config, side.part.where
    primary_key = primary.column(str(config["primary_key"]), f"{where}.primary_key")
    theirs = side.column(str(config["join_key"]), f"{where}.join_key")
    index = _Index(side, theirs)
    nothing: Record = dict.fromkeys(side.names.values())
    for record in records:
        key = record[primary_key]
        if key is not None and index.kinds and _kind(key) not in index.kinds:
            what = f"no {theirs!r} can equal {primary_key!r} {key!r}: one is text, the other is not"
            raise UserError(what, where=where, fix="write both columns alike")
        yield from ({**record, **match} for match in index.find(key) or [nothing])


class _Index:
    """Records by the key in one column, as hashes and numbers: 16 bytes for each."""

    def __init__(self, side: _Side, column: str) -> None:
        import numpy as np

        self._side, self._column = side, column
        self.kinds: set[str] = set()
        hashes = array("Q")
        for record in side:
            key = record[column]
            hashes.append(short(digest("join", canonical(key))))
            if key is not None:
                self.kinds.add(_kind(key))
        numbers = np.frombuffer(hashes, np.uint64)
        self._order = np.argsort(numbers, kind="stable")
        self._sorted = array("Q", numbers[self._order].tobytes())

    def find(self, key: Any) -> list[Record]:
        wanted = canonical(key)
        number = short(digest("join", wanted))
        left = bisect_left(self._sorted, number)
        right = bisect_right(self._sorted, number, left)
        records = [self._side[at] for at in self._order[left:right].tolist()]
        return [record for record in records if canonical(record[self._column]) == wanted]


def _kind(key: Any) -> str:
    return "text" if isinstance(key, str) else "other"


def _in_turn(records: Records, side: _Side, primary: _Side, seed: int) -> Records:
    """The records of `side` one after the other, again from the first when they are used up."""
    for number, record in enumerate(records):
        yield {**record, **side[number % len(side)]}


def _with_each(records: Records, side: _Side, primary: _Side, seed: int) -> Records:
    return ({**record, **other} for record in records for other in side)


def _at_random(records: Records, side: _Side, primary: _Side, seed: int) -> Records:
    """A shuffled record of `side` for each; each is used once before any is drawn again."""
    import numpy as np

    def draw(number: int) -> int:
        return short(digest("random join", b"%d" % seed, side.part.alias.encode(), b"%d" % number))

    shuffled = np.argsort(
        np.fromiter(map(draw, range(len(side))), np.uint64, len(side)), kind="stable"
    )
    for number, record in enumerate(records):
        at = int(shuffled[number]) if number < len(side) else draw(number) % len(side)
        yield {**record, **side[at]}


_JOINS: dict[str, Callable[[Records, _Side, _Side, int], Records]] = {
    "column": _by_column,
    "sequential": _in_turn,
    "cross": _with_each,
    "random": _at_random,
}
