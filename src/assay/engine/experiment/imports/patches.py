"""What a row that was read from another format lacks of the row that was written there, and the way back.

A field that the format could not hold is put back only as long as the file still has there what was read when it was
written: whoever edits the file wins.
"""

from collections.abc import Iterator, Sequence
from itertools import compress, repeat
from operator import attrgetter, is_not
from typing import Any, Literal, TypeAlias, Union, cast, get_type_hints

import msgspec
import xxhash
from msgspec import UNSET, UnsetType
from msgspec.structs import astuple

from assay.errors import UserError
from assay.records import Evaluation, Response

RowKind = Literal["item", "response", "evaluation"]
Row: TypeAlias = Response | Evaluation | dict[str, Any]
_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines
_EMPTY = msgspec.Raw(b"{}")
_DEEPEST = 4  # levels of objects that are compared key by key
_MOST_KNOWN, _LONGEST_KNOWN = (
    1024,
    4096,
)  # differences that are held, and the bytes of what they are between


class Fix(msgspec.Struct, gc=False):
    """The value at a path, and the digest of what was read there (empty: nothing). Without `value` there is none."""

    path: list[str]
    was: str = ""
    value: Any | UnsetType = UNSET


class RowLine(msgspec.Struct, omit_defaults=True, gc=False):
    """A row of the file as its reader gives it: where it stands, its digest, what it lacks, what differs. One without a
    digest is a whole row that the file could not hold; `extra` is a row of the file that the source did not have."""

    of: RowKind
    at: tuple[Any, ...]
    was: str = ""
    adds: msgspec.Raw = _EMPTY
    fixes: list[Fix] = []
    extra: bool = False


class WrittenLine(msgspec.Struct, omit_defaults=True, gc=False):
    """A line as it is written: the same fields, whose values need no encoding of their own."""

    of: RowKind
    at: tuple[Any, ...]
    was: str = ""
    adds: Any = {}
    fixes: list[Fix] = []
    extra: bool = False


def digest_of_value(value: Any) -> str:
    return xxhash.xxh3_64_hexdigest(_encode(value))


def _digests(rows: Sequence[Any]) -> Iterator[str]:
    return map(xxhash.xxh3_64_hexdigest, _encode_lines(rows).split(b"\n"))


_RESPONSE = "item_id", "sample_index", "model_name", "task"
_EVALUATION = "item_id", "sample_index", "model_name", "label", "scorer"
_response, _evaluation = attrgetter(*_RESPONSE), attrgetter(*_EVALUATION)


def address(row: Row) -> tuple[Any, ...]:
    """What identifies a row in whatever order rows stand; several may have the same."""
    kind = type(row)
    if kind is Response:
        return _response(row)
    return _evaluation(row) if kind is Evaluation else (cast("dict[str, Any]", row).get("id"),)


class Shape:
    """How rows of one kind are compared and completed."""

    def __init__(
        self, of: RowKind, kind: type[Response] | type[Evaluation], address: Sequence[str]
    ) -> None:
        self.kind = kind
        self._of: RowKind = of
        self.names = kind.__struct_fields__
        self._address = [self.names.index(name) for name in address]
        self._defaults = astuple(kind(item_id=""))
        self._types: dict[str, Any] = get_type_hints(kind)
        self._untyped = {
            at for at, name in enumerate(self.names) if "Any" in str(self._types[name])
        }
        lacking = [(name, Union[self._types[name], UnsetType], UNSET) for name in self.names]  # noqa: UP007
        self._lacking = msgspec.json.Decoder(
            msgspec.defstruct(f"{kind.__name__}Lacking", lacking, kw_only=True)
        )
        self._numbers = range(len(self.names))
        self._known: dict[tuple[int, bytes, bytes], list[Fix]] = {}

    def lines(self, read: Sequence[Any], true: Sequence[Any]) -> list[WrittenLine]:
        """What rows that were read lack of the true ones, for many at once: fields that are alike cost little."""
        there, wanted = tuple(zip(*map(astuple, read))), tuple(zip(*map(astuple, true)))  # noqa: B905
        at, was = zip(*map(there.__getitem__, self._address)), _digests(read)  # noqa: B905
        lines = [WrittenLine(self._of, *each) for each in zip(at, was)]  # noqa: B905
        for number, name in enumerate(self.names):
            had, has, default = there[number], wanted[number], self._defaults[number]
            untyped = number in self._untyped  # 1, 1.0 and True are equal, not the same
            if had == has and not (untyped and _encode(had) != _encode(has)):
                continue
            if had.count(default) == len(had):  # the format has no place for it
                for line, new in zip(lines, has, strict=True):
                    if new != default:
                        line.adds[name] = new
                continue
            for line, old, new in zip(lines, had, has, strict=True):
                if old != new and old == default:
                    line.adds[name] = new
                elif old != new or untyped:
                    line.fixes += self._fixes(number, old, new)
        return lines

    def _fixes(self, at: int, read: Any, true: Any) -> list[Fix]:
        """What differs in one field. Most rows have the settings of others, and differ in them as those do."""
        key = at, _encode(read), _encode(true)
        if key[1] == key[2]:
            return []
        known = self._known.get(key)
        if known is None:
            known = []
            _differ([self.names[at]], read, true, known)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            if len(key[1]) + len(key[2]) < _LONGEST_KNOWN:
                self._known[key] = known
        return known

    def complete(self, row: Any, line: RowLine, same: bool) -> Any:
        """The row with what the file could not hold; `same` says that it is as it was written. Objects that it shares
        with other rows stay as they are."""
        if line.adds is not _EMPTY:
            lacking = astuple(self._lacking.decode(line.adds))
            for at in compress(self._numbers, map(is_not, lacking, repeat(UNSET))):
                if same or getattr(row, self.names[at]) == self._defaults[at]:
                    setattr(row, self.names[at], lacking[at])
        for fix in line.fixes:
            name = fix.path[0]
            if len(fix.path) > 1:
                setattr(row, name, _put(getattr(row, name), fix.path[1:], fix, same))
            elif name in self._types and (same or digest_of_value(getattr(row, name)) == fix.was):
                setattr(row, name, msgspec.convert(fix.value, self._types[name]))
        return row

    def row(self, line: RowLine) -> Any:
        """The row of a line that has all of it."""
        return msgspec.json.decode(line.adds, type=self.kind)


class ItemShape:
    """The same for items, which are objects of any fields."""

    def lines(self, read: Sequence[Any], true: Sequence[Any]) -> list[WrittenLine]:
        lines = [
            WrittenLine("item", address(row), was)
            for row, was in zip(read, _digests(read), strict=False)
        ]
        for line, old, new in zip(lines, read, true, strict=True):
            line.adds = {name: value for name, value in new.items() if name not in old}
            for name, value in old.items():
                _differ([name], value, new.get(name, UNSET), line.fixes)
        return lines

    def complete(self, row: dict[str, Any], line: RowLine, same: bool) -> dict[str, Any]:
        if line.adds is not _EMPTY:
            for name, value in self.row(line).items():
                row.setdefault(name, value)
        for fix in line.fixes:
            row = _put(row, fix.path, fix, same)
        return row

    def row(self, line: RowLine) -> dict[str, Any]:
        return msgspec.json.decode(line.adds, type=dict[str, Any])


def completed_row(row: Row, line: RowLine, digest: str) -> Row:
    """The row with what its line puts back."""
    try:
        return SHAPES[line.of].complete(cast("Any", row), line, digest == line.was)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise damaged(error) from None


def whole_row(line: RowLine) -> Row:
    try:
        return SHAPES[line.of].row(line)
    except ValueError as error:
        raise damaged(error) from None


def damaged(error: Exception) -> UserError:
    fix = "restore the sidecar, or remove it: then only what the file itself holds is read"
    return UserError(f"the sidecar does not fit its rows: {error}", fix=fix)


def _differ(path: list[str], read: Any, true: Any, fixes: list[Fix]) -> None:
    """The differences below a path, key by key where both are objects."""
    if true is not UNSET and read == true and (type(read) is str or _encode(read) == _encode(true)):
        return
    if type(read) is dict and type(true) is dict and read and true and len(path) < _DEEPEST:
        there, wanted = cast("dict[str, Any]", read), cast("dict[str, Any]", true)
        for name, value in there.items():
            _differ([*path, name], value, wanted.get(name, UNSET), fixes)
        fixes.extend(
            Fix([*path, name], "", value) for name, value in wanted.items() if name not in there
        )
    else:
        fixes.append(Fix(path, digest_of_value(read), true))


def _put(holder: Any, path: Sequence[str], fix: Fix, same: bool) -> Any:
    """The object with a value set or removed at a path, if nobody has changed it: a copy, since rows that a reader
    gives may share their parts."""
    if not isinstance(holder, dict):
        return holder
    fields, name = cast("dict[str, Any]", holder), path[0]
    if len(path) > 1:
        inner = fields.get(name)
        changed = _put(inner, path[1:], fix, same)
        return fields if changed is inner else {**fields, name: changed}
    was = digest_of_value(fields[name]) if not same and name in fields else ""
    if not (same or was == fix.was):
        return fields
    if fix.value is UNSET:
        return {other: value for other, value in fields.items() if other != name}
    return {**fields, name: fix.value}


SHAPES: dict[RowKind, Shape | ItemShape] = {
    "item": ItemShape(),
    "response": Shape("response", Response, _RESPONSE),
    "evaluation": Shape("evaluation", Evaluation, _EVALUATION),
}
