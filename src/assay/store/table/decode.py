"""Lines of a log become rows, or reasons why they are none: strictly, and where that fails as
others write JSON.

Blocks of rows that the engine wrote are decoded at once. A block with a line of another kind is
decoded line by line.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from assay.errors import UserError
from assay.interfaces import IntArray, Log
from assay.records import Damage, JsonObject, decode_json
from assay.store.log import FileLog
from assay.store.seal import describe, is_damaged

T = TypeVar("T")
_BATCH = 256


class NoRow(NamedTuple):
    """A line that is not a row: where it is in its log, and why."""

    position: int
    reason: str


class Block(NamedTuple, Generic[T]):
    """Rows that stand together, with the position of each."""

    positions: IntArray
    rows: list[T]
    unreadable: Sequence[NoRow] = ()


def row_decoder(
    kind: type[T],
    as_ours: Callable[[JsonObject], Any] | None = None,
    *,
    strict: bool = True,
) -> Callable[[bytes], T]:
    """Return a function that decodes a line to `kind`: strictly, else as others write JSON (NaN,
    Infinity). `as_ours` gives a row of another program the fields that ours have;
    unless `strict`, numbers may be texts there.

    A line that is neither, or is not UTF-8 throughout, raises a ValueError that says why.
    """
    decode_strictly = msgspec.json.Decoder(kind).decode

    def decode(line: bytes) -> T:
        if not line.isascii():
            line.decode()  # for fields that `kind` lacks, which are skipped unread
        try:
            return decode_strictly(line)
        except (ValueError, RecursionError):
            row = decode_json(line)
            if as_ours is not None and isinstance(row, dict):
                row = as_ours(cast("JsonObject", row))
            return msgspec.convert(row, kind, strict=strict)

    return decode


def read_blocks(
    log: Log,
    kind: type[T],
    as_ours: Callable[[JsonObject], Any] | None = None,
    *,
    blocks: Iterator[tuple[IntArray, bytes]] | None = None,
) -> Iterator[Block[T]]:
    """Yield the rows of a log, or of some of its `blocks`, as `row_decoder` decodes them, many
    at once."""
    decode_lines = msgspec.json.Decoder(kind).decode_lines
    decode = row_decoder(kind, as_ours)
    for positions, block in placed_lines(log) if blocks is None else blocks:
        try:
            if not block.isascii():
                block.decode()
            rows = decode_lines(block)
            if len(rows) == len(positions):  # none of the lines is blank
                yield Block(positions, rows)
                continue
        except (ValueError, RecursionError):
            pass
        yield _by_line(positions, block, decode)


def _by_line(positions: IntArray, block: bytes, decode: Callable[[bytes], T]) -> Block[T]:
    import numpy as np

    places: list[int] = []
    rows: list[T] = []
    unreadable: list[NoRow] = []
    for position, line in zip(positions.tolist(), block.split(b"\n"), strict=False):
        try:
            rows.append(decode(line))
            places.append(position)
        except (ValueError, RecursionError) as error:
            if line.strip():
                unreadable.append(NoRow(position, str(error)))
    return Block(np.array(places, np.int64), rows, unreadable)


def whole_rows(positions: IntArray, block: bytes) -> Block[JsonObject]:
    """Return the rows of a block with all of their fields."""
    return _by_line(positions, block, _any_row)


def _any_row(line: bytes) -> JsonObject:
    row = decode_json(line)
    if not isinstance(row, dict):
        raise ValueError("it is not an object")
    return cast("JsonObject", row)


def placed_lines(log: Log) -> Iterator[tuple[IntArray, bytes]]:
    """Yield blocks of a log with the position of each line, without those that are hidden."""
    if isinstance(log, FileLog) and log.raw and not log.hidden:
        for position, block in log.placed_blocks():
            yield line_starts(block) + position, block
        return
    import numpy as np

    scan = log.scan()
    while pairs := list(islice(scan, _BATCH)):
        positions = np.array([position for position, _ in pairs], np.int64)
        yield positions, b"".join(line + b"\n" for _, line in pairs)


def line_starts(block: bytes) -> IntArray:
    """Return where the lines of a block begin."""
    import numpy as np

    feeds = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
    return np.concatenate([[0], feeds + 1])[: len(feeds) + (not block.endswith(b"\n"))]


def read_rows(log: Log, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Yield (position, row) of every line that decodes to `kind`, a Struct of the fields that
    are needed; blank and garbage lines are skipped: the step that owns the log sets them aside."""
    for block in read_blocks(log, kind):
        yield from zip(block.positions.tolist(), block.rows, strict=True)


def decode_row(line: bytes, where: str | Callable[[], str] = "") -> JsonObject:
    """Return a whole row with all of its fields; what is none is a UserError."""
    try:
        return _any_row(line)
    except ValueError as error:
        raise no_row(str(error), where if isinstance(where, str) else where()) from None


def fitting(row: JsonObject, kind: type[msgspec.Struct]) -> JsonObject:
    """Return a row of any origin without fields of `kind` whose values are of another type than
    theirs; null may be."""
    if _fits(row, _with_nulls(kind)):  # at once, which is ten times as fast
        return row
    types = _field_types(kind)
    return {
        name: value
        for name, value in row.items()
        if value is None or _fits(value, types.get(name, Any))
    }


@cache
def _with_nulls(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a struct with the fields of `kind`, none of them required and each of them nullable."""
    fields = [
        (name, type | None, msgspec.field(name=name, default=None))
        for name, type in _field_types(kind).items()
    ]
    return msgspec.defstruct(kind.__name__, fields)


@cache
def _field_types(kind: type[msgspec.Struct]) -> JsonObject:
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


def _fits(value: Any, wanted: Any) -> bool:
    try:
        msgspec.convert(value, wanted)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


def no_row(reason: str, where: str) -> UserError:
    fix = "remove the line; the step that wrote it sets it aside when it runs again"
    return UserError(f"a line is not a row: {reason}", where=where, fix=fix)


def open_rows(
    log: Log,
    rejected: Log | None,
    decode: Callable[[bytes], T],
    *,
    damage: Sequence[Damage] = (),
    notice: Callable[[str], None] | None = None,
) -> Iterator[tuple[bytes, T]]:
    """Yield (raw line, row) of every line that `decode` accepts and that has no byte in a damaged
    block.

    At the end the others, if any, move to `rejected`, and `notice` is called with a sentence;
    positions taken before are void then. Without `rejected`, for readers that hold no lock,
    garbage is skipped and stays. Nothing is rewritten unless something was wrong, and then every
    good line keeps its bytes.
    """
    garbage: dict[int, tuple[int, str]] = {}
    for number, (position, line) in enumerate(log.scan(), 1):
        try:
            if damage and is_damaged(position, len(line), damage):
                raise ValueError(
                    describe(
                        next(each for each in damage if is_damaged(position, len(line), [each]))
                    )
                )
            row = decode(line)
        except (ValueError, RecursionError) as error:
            if line.strip():
                garbage[position] = number, str(error)
            continue
        yield line, row
    if garbage and rejected is not None:
        name = log.segments()[0].name
        _set_aside(log, rejected, garbage, name)
        if notice is not None:
            first, reason = next(iter(garbage.values()))
            notice(
                f"{len(garbage)} unreadable line{'s' if len(garbage) != 1 else ''} of {name} set aside "
                f"in rejected/ (the first: line {first}, {reason})"
            )


def _set_aside(log: Log, rejected: Log, garbage: dict[int, tuple[int, str]], name: str) -> None:
    # First the copy, then the removal: a crash between the two repeats lines of `rejected` and loses none.
    for position, (number, reason) in garbage.items():
        text = log.read(position).decode("utf-8", "backslashreplace")
        entry = {"file": name, "line": number, "text": text, "reason": reason}
        rejected.append(msgspec.json.encode(entry) + b"\n")
    rejected.sync()
    log.replace(line + b"\n" for position, line in log.scan() if position not in garbage)
