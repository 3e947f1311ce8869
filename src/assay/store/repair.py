"""Opening a log of rows: one pass that decodes them and sets garbage lines aside.

Nothing is rewritten unless something was wrong, and then every good line keeps its bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from assay.interfaces import Log
from assay.records import Damage, tolerant_json
from assay.store.seal import describe, is_damaged

T = TypeVar("T")


def row_decoder(kind: type[T]) -> Callable[[bytes], T]:
    """Decodes lines to `kind`: strictly, and where that fails as others write JSON (NaN, Infinity).

    A line that is neither, or is not UTF-8 throughout, raises a ValueError that says why.
    """
    strict = msgspec.json.Decoder(kind).decode

    def decode(line: bytes) -> T:
        if not line.isascii():
            line.decode()  # for fields that `kind` lacks, which are skipped unread
        try:
            return strict(line)
        except (ValueError, RecursionError) as error:
            try:
                value = tolerant_json(line)
            except ValueError:
                raise ValueError(str(error)) from None
            return msgspec.convert(value, kind)

    return decode


def read_rows(log: Log, kind: type[T]) -> Iterator[tuple[int, T]]:
    """(position, row) of every line that decodes to `kind`, a Struct of the fields that are needed, as `row_decoder`
    does; blank and garbage lines are skipped: the step that owns the log sets them aside."""
    strict, tolerant = msgspec.json.Decoder(kind).decode, row_decoder(kind)
    for position, line in log.scan():
        try:
            if not line.isascii():
                line.decode()
            row = strict(line)
        except (ValueError, RecursionError):
            try:
                row = tolerant(line)
            except (ValueError, RecursionError):
                continue
        yield position, row


def open_rows(
    log: Log,
    rejected: Log | None,
    decode: Callable[[bytes], T],
    *,
    damage: Sequence[Damage] = (),
    notice: Callable[[str], None] | None = None,
) -> Iterator[tuple[bytes, T]]:
    """Yield (raw line, row) of every line that `decode` accepts and that has no byte in a damaged block.

    At the end the others, if any, move to `rejected`, and `notice` is called with a sentence; positions taken
    before are void then. Without `rejected`, for readers that hold no lock, garbage is skipped and stays.
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
