"""Output files as projections of the engine's rows: one record for each item, in the order of the dataset.

Memory holds the places of an item and its row, and no records: a million of them are written in flat memory. A record
that failed keeps its id, has null in every mapped field, and says why in `error`. An image or another medium, a data
URL in a record, becomes a file beside the output; its path takes its place.
"""

import base64
import binascii
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from assay.interfaces import Log
from assay.store.files import write_file
from assay.store.keys import id_hash
from assay.store.names import safe_name
from assay.store.repair import read_rows

MARK = b";base64,"
_URL = re.compile(r"data:[\w.+-]+/([\w.+-]+)(?:;[\w=.+-]+)*;base64,([A-Za-z0-9+/=\s]+)")


def with_files(line: bytes, folder: Path) -> bytes:
    """A record's JSON with paths for its data URLs; equal content is one file."""
    return msgspec.json.encode(_replaced(msgspec.json.decode(line), folder, "value"))


def _replaced(value: Any, folder: Path, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(entry, folder, key) for key, entry in value.items()}
    if isinstance(value, list):
        return [_replaced(entry, folder, name) for entry in value]
    url = _URL.fullmatch(value) if isinstance(value, str) and value.startswith("data:") else None
    if url is None:
        return value
    try:
        content = base64.b64decode(url[2], validate=False)
    except binascii.Error:  # text that only looks like one
        return value
    kind = re.sub(r"\W.*", "", url[1]) or "bin"
    path = folder / f"{safe_name(name)}-{blake2b(content, digest_size=8).hexdigest()}.{kind}"
    if not path.exists():
        write_file(path, content)
    return str(path)


Format = Literal["json", "jsonl"]
LARGEST_JSON = 25_000  # more records than this are written as JSON lines unless a format is asked for
_ABSENT, _LEFT_OUT = -1, -2
_INDENT = 4
_MOST_ERRORS = 100


class _Item(msgspec.Struct, gc=False):
    id: str
    data: dict[str, Any] = {}


class _Row(msgspec.Struct, gc=False):
    outcome: str = "ok"
    error: str | None = None
    output: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct, gc=False):
    """What tells where an item's line or its response's is, and what became of it."""

    item_id: str = ""
    id: str = ""
    outcome: str = ""
    error: str | None = None


class Records(Sequence[dict[str, Any]]):
    """The output records in input order, read from disk each time they are asked for. Those that a generator left out
    are not among them; `fields` are those of the output map, for records that failed; media in records become files
    in the folder `media`. `failed` counts the responses that are errors, `errors` each text of them, the most frequent
    first."""

    def __init__(self, items: Log, responses: Log, fields: Sequence[str], media: Path | None = None) -> None:
        self._media = media
        self._items = items
        self._responses = responses
        self._fields = dict.fromkeys(field for field in fields if field != "id")
        self.failed = 0
        self._texts: Counter[str] = Counter()
        self._item_places, self._row_places = self._places()
        self.errors = dict(self._texts.most_common())
        self._decode_row = msgspec.json.Decoder(_Row).decode
        self._decode_item = msgspec.json.Decoder(_Item).decode

    def _places(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where each item and its row are, in the order of the items and without those that a generator left out."""
        item_places, ids = self._scanned(self._items)
        places, row_ids = self._scanned(self._responses)
        row_places = np.full(len(ids), _ABSENT, np.int64)
        if len(ids):
            order = np.argsort(ids, kind="stable")
            at = order[np.minimum(np.searchsorted(ids, row_ids, sorter=order), len(ids) - 1)]
            matched = ids[at] == row_ids
            row_places[at[matched]] = places[matched]
        kept = row_places != _LEFT_OUT
        return item_places[kept], row_places[kept]

    def _scanned(self, log: Log) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """The places of a log's lines, and hashes of the item ids in them."""
        places, hashes = array("q"), array("Q")
        for place, row in read_rows(log, _Line):
            places.append(_LEFT_OUT if row.outcome == "skipped" else place)
            hashes.append(id_hash(row.item_id or row.id))
            if row.error is not None and log is self._responses:
                self.failed += 1
                if row.error in self._texts or len(self._texts) < _MOST_ERRORS:
                    self._texts[row.error] += 1
        return np.array(places, np.int64), np.array(hashes, np.uint64)

    def __len__(self) -> int:
        return len(self._item_places)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        number = at + len(self) if at < 0 else at
        if not 0 <= number < len(self):
            raise IndexError(at)
        return msgspec.json.decode(self._line(number))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (msgspec.json.decode(line) for line in self.lines())

    def lines(self) -> Iterator[bytes]:
        """Each record as JSON, in order."""
        return (self._line(number) for number in range(len(self)))

    def _line(self, number: int) -> bytes:
        place = int(self._row_places[number])
        row = _Row(error="it was not run") if place == _ABSENT else self._decode_row(self._responses.read(place))
        if row.error is None:
            line = bytes(row.output)
            return line if self._media is None or MARK not in line else with_files(line, self._media)
        item = self._decode_item(self._items.read(int(self._item_places[number])))
        return msgspec.json.encode({"id": item.data.get("id", item.id), **self._fields, "error": row.error})


def write_records(path: Path, records: Iterable[bytes], format: Format) -> None:
    """The output file, complete or not at all."""
    write_file(path, _array(records) if format == "json" else (line + b"\n" for line in records))


def _array(records: Iterable[bytes]) -> Iterator[bytes]:
    margin = b"\n" + b" " * _INDENT
    start = b"["
    for line in records:
        yield start + margin + msgspec.json.format(line, indent=_INDENT).replace(b"\n", margin)
        start = b","
    yield b"[]" if start == b"[" else b"\n]"


def json_value(value: Any) -> Any:
    """What a post-processor returned as plain JSON: NaN and infinities are null, objects of classes their fields."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, Iterable):
        return list(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
