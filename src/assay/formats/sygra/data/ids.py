"""The `id` of every record, by the original's rule, and the distinct text that the engine needs for it.

If the first record has an id, ids are given. Else a record's id is its `id_column`, or the id that it has, or the
SHA-256 of its JSON: equal records have equal ids.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.data.transform import Record, Records
from assay.formats.sygra.data.values import as_text
from assay.registry import nearest

_NO_ID = (None, "")


def with_ids(records: Records, id_column: str = "") -> Records:
    """Every record with an `id`."""
    first = next(records, None)
    if first is None:
        return
    column = "id" if first.get("id") else id_column or "id"
    if column not in first and column == id_column:
        fix = f"correct `id_column`: {nearest(id_column, map(str, first))}"
        raise UserError(f"records have no field {id_column!r}", where="data_config.id_column", fix=fix)
    for record in chain([first], records):
        id = next((record[name] for name in (column, "id") if record.get(name) not in _NO_ID), None)
        yield {**record, "id": content_id(record) if id is None else id}


def content_id(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, default=as_text)
    return hashlib.sha256(text.encode()).hexdigest()


def item_ids(records: Iterable[Record]) -> Iterator[tuple[str, Record]]:
    """(id as text, record). Ids may repeat, as those of equal records and of stacked datasets do: the engine then sees
    `a`, `a-2`, `a-3`. Memory holds about ten bytes for each."""
    from assay.store.keyset import Seen

    seen = Seen()
    repeats: dict[str, int] = {}
    for record in records:
        id = record["id"]
        text = id if isinstance(id, str) else json.dumps(id, sort_keys=True, default=as_text)
        name = text
        while not seen.add(_hash(name)):
            repeats[text] = repeats.get(text, 1) + 1
            name = f"{text}-{repeats[text]}"
        yield name, record


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
