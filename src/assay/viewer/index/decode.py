"""Rows as columns: blocks of lines decoded narrowly, with where each line stands. Nothing of a row is kept but numbers.

Rows as the engine writes them take the fast way. Rows of others, and blocks with a line that is torn or not JSON, are
decoded line by line; what is not a row is left out.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

import msgspec
import numpy as np

from assay import reading
from assay.records import EvaluationOutcome, ResponseOutcome, decode_json, verdict_of
from assay.store.files import store_error
from assay.store.keys import id_hash, short
from assay.store.log import OFFSET_BITS as OFFSET_BITS
from assay.store.log import FileLog
from assay.store.table.facets import text_of

MOST_VALUES = 1000  # of a facet
RESPONSE_OUTCOMES: tuple[ResponseOutcome, ...] = ("ok", "refused", "errored", "skipped")
_MOST_FACETS = 64
_MOST_HASHES = 8192
_BLOCK = 1 << 18
_SCALARS = (str, int, float, bool)
_NULL = msgspec.Raw(b"null")


def lines_from(
    log: FileLog, ends: Mapping[int, int], most: int | None = None
) -> Iterator[tuple[int, bytes]]:
    """(position, block of whole lines) from where each file was left off, `most` bytes of each."""
    for number, path in log.numbered():
        offset = ends.get(number, 0)
        last = None if most is None else offset + most
        try:
            with reading.opened(path, 0) as file:
                file.seek(offset)
                rest = b""
                while (last is None or offset < last) and (
                    block := file.read(max(_BLOCK, len(rest)))
                ):
                    rest += block
                    end = rest.rfind(b"\n") + 1
                    if end:
                        yield (number << OFFSET_BITS) + offset, rest[:end]
                        offset, rest = offset + end, rest[end:]
                if (
                    rest
                    and (last is None or offset + len(rest) <= last)
                    and row_of(rest) is not None
                ):
                    yield (number << OFFSET_BITS) + offset, rest
        except FileNotFoundError:
            continue
        except OSError as error:
            raise store_error(error, path) from error


def starts_of(block: bytes) -> "np.typing.NDArray[np.int64]":
    """Where the lines of a block begin."""
    feeds = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
    return np.concatenate([[0], feeds + 1])[: len(feeds) + (not block.endswith(b"\n"))]


def row_of(line: bytes) -> dict[str, Any] | None:
    """A row of any origin; None for what is not one."""
    try:
        row = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        try:
            row = decode_json(line)
        except ValueError:
            return None
    return cast("dict[str, Any]", row) if isinstance(row, dict) else None


class Texts:
    """Values by their texts: a code for each, -1 for null. `full`: there are too many to be a facet."""

    def __init__(self, texts: Iterable[str] = (), most: int | None = None) -> None:
        self.texts = list(texts)
        self.full = False
        self._most = most
        self._codes: dict[Any, int] = {None: -1} | {
            text: code for code, text in enumerate(self.texts)
        }

    def codes(self, values: Sequence[Any]) -> list[int]:
        if {*map(type, values)} <= {str, type(None)}:
            try:
                return [self._codes[value] for value in values]
            except KeyError:
                pass
        return [self._code(value) for value in values]

    def _code(self, value: Any) -> int:
        if value is None or not isinstance(value, _SCALARS):
            return -1
        text = text_of(value)
        code = self._codes.get(text)
        if code is None and not self.full:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
            self.full = self._most is not None and len(self.texts) > self._most
        return -1 if code is None else code


class Facets:
    """Scalars of a mapping that every row has (`metadata`), as columns of codes. The struct that decodes it knows the
    names so far, and refuses others, which are then learnt."""

    def __init__(
        self, known: Mapping[str, Sequence[str]] | None = None, skipped: Iterable[str] = ()
    ) -> None:
        self.names: dict[str, tuple[Texts, array[int]]] = {}
        self.skipped = set(skipped)  # nested, or of too many values
        self._full: set[str] = {*skipped}
        self._mixed: set[str] = set()
        self._open = False  # names that are not known are left out
        for name, texts in (known or {}).items():
            self.names[name] = Texts(texts, MOST_VALUES), array("i")
        self.type = self._type()

    def _type(self) -> type[msgspec.Struct]:
        scalar: Any = str | int | float | bool | None
        self._order = list(self.names)
        kinds = [(name, Any if name in self._mixed else scalar) for name in self._order]
        kinds += [(name, msgspec.Raw) for name in sorted(self.skipped)]
        fields: list[Any] = [
            (
                f"f{number}",
                kind,
                msgspec.field(name=name, default=_NULL if kind is msgspec.Raw else None),
            )
            for number, (name, kind) in enumerate(kinds)
        ]
        return msgspec.defstruct("Metadata", fields, forbid_unknown_fields=not self._open, gc=False)

    def learn(self, mappings: Iterable[Any], rows: int) -> list[Any]:
        """The mappings as structs, after their names became known; `rows` came before them."""
        plain: list[dict[str, Any]] = [
            mapping if isinstance(mapping, dict) else {} for mapping in mappings
        ]
        for mapping in plain:
            for name, value in mapping.items():
                scalar = value is None or isinstance(value, _SCALARS)
                if name in self.names:
                    if not scalar:
                        self._mixed.add(name)
                elif (
                    name.isprintable()
                    and '"' not in name
                    and "\\" not in name
                    and len(self.names) < _MOST_FACETS
                ):
                    if not scalar:
                        self.skipped.add(name)
                    elif name not in self._full and (value is not None or name not in self.skipped):
                        self.skipped.discard(name)
                        self.names[name] = Texts((), MOST_VALUES), array("i", [-1]) * rows
                else:
                    self._open = True
        self.type = self._type()
        places = {name: f"f{number}" for number, name in enumerate(self._order)}
        return [
            self.type(**{places[name]: mapping.get(name) for name in self._order})
            for mapping in plain
        ]

    def take(self, structs: Sequence[Any]) -> None:
        dropped: list[str] = []
        for number, name in enumerate(self._order):
            texts, codes = self.names[name]
            codes.extend(texts.codes(list(map(attrgetter(f"f{number}"), structs))))
            if texts.full:
                dropped.append(name)
        if dropped:
            for name in dropped:
                del self.names[name]
                self.skipped.add(name)
                self._full.add(name)
            self.type = self._type()


class Ids(dict[str, int]):
    """Hashes of item ids. Those that were not met lately are kept as text: `texts`, with `hashes` and `ends`."""

    def __init__(self) -> None:
        self.texts, self.hashes, self.ends = bytearray(), array("Q"), array("q")

    def __missing__(self, id: str) -> int:
        if len(self) > _MOST_HASHES:
            self.clear()
        self[id] = number = id_hash(id)
        self.texts += id.encode("utf-8", "surrogatepass")
        self.hashes.append(number)
        self.ends.append(len(self.texts))
        return number


def keys_of(keys: Sequence[str]) -> Sequence[int] | bytes:
    """The first 64 bits of each key, 0 for none; as bytes where all are usual ones."""
    if {*map(len, keys)} == {32}:
        try:
            whole = bytes.fromhex("".join(keys))
        except ValueError:
            pass
        else:
            if len(whole) == 16 * len(keys):
                return np.frombuffer(whole, ">u8")[::2].astype(np.uint64).tobytes()
    return [short(key) if key else 0 for key in keys]


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and 0 <= value < 1 << 31 else 0


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


class ResponseRow(msgspec.Struct, gc=False):
    """What is decoded of a response; `metadata` is a struct of the facets."""

    item_id: str
    sample_index: int = 0
    model_name: str | None = ""
    response: str | None = ""
    inference_time: float | None = 0.0
    metadata: Any = None
    error: str | None = None
    total_tokens: int | None = None
    key: str | None = ""
    task: str | None = ""
    outcome: ResponseOutcome | None = None
    output: msgspec.Raw = _NULL
    cost: float | None = None


def response_type(metadata: type[msgspec.Struct]) -> Any:
    """`ResponseRow` with this type of metadata."""
    fields: list[Any] = [
        (field.name, metadata | None if field.name == "metadata" else field.type)
        if field.required
        else (
            field.name,
            metadata | None if field.name == "metadata" else field.type,
            field.default,
        )
        for field in msgspec.structs.fields(ResponseRow)
    ]
    return msgspec.defstruct("Narrow", fields, gc=False)


def response_rows(lines: Sequence[bytes]) -> tuple[list[int], list[ResponseRow]]:
    """Which lines hold responses, and these; their metadata are whole."""
    places: list[int] = []
    rows: list[ResponseRow] = []
    for place, line in enumerate(lines):
        row = row_of(line) if line.strip() else None
        if row is None or row.get("item_id") is None:
            continue
        outcome, output, answer = row.get("outcome"), row.get("output"), row.get("response")
        places.append(place)
        rows.append(
            ResponseRow(
                item_id=text_of(row["item_id"]),
                sample_index=_whole(row.get("sample_index")),
                model_name=text_of(row.get("model_name") or ""),
                response=answer if isinstance(answer, str) else "",
                inference_time=_number(row.get("inference_time")),
                metadata=row.get("metadata"),
                error=str(row["error"]) if row.get("error") else None,
                total_tokens=_whole(row["total_tokens"])
                if _number(row.get("total_tokens")) is not None
                else None,
                key=text_of(row.get("key") or ""),
                task=text_of(row.get("task") or ""),
                outcome=outcome if outcome in RESPONSE_OUTCOMES else None,
                output=_NULL if output is None else msgspec.Raw(msgspec.json.encode(output)),
                cost=_number(row.get("cost")),
            )
        )
    return places, rows


class EvaluationRow(msgspec.Struct, gc=False):
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


def evaluation_rows(lines: Sequence[bytes]) -> tuple[list[int], list[EvaluationRow]]:
    """Which lines hold evaluations, and these."""
    places: list[int] = []
    rows: list[EvaluationRow] = []
    for place, line in enumerate(lines):
        row = row_of(line) if line.strip() else None
        if row is None or row.get("item_id") is None:
            continue
        outcome, passed, score = verdict_of(row)
        label, keys, players = row.get("label"), row.get("responses"), row.get("players")
        name: Any = cast("dict[str, Any]", label).get("name") if isinstance(label, dict) else label
        places.append(place)
        rows.append(
            EvaluationRow(
                item_id=text_of(row["item_id"]),
                outcome=outcome,
                sample_index=_whole(row.get("sample_index")),
                label="" if name is None else str(name),
                model_name=text_of(row.get("model_name") or ""),
                passed=passed,
                score=None if score != score else score,
                responses=[text_of(key) for key in cast("list[Any]", keys)]
                if isinstance(keys, list)
                else None,
                scorer=text_of(row.get("scorer") or ""),
                players=cast("list[Any]", players)
                if isinstance(players, list) and players
                else None,
            )
        )
    return places, rows
