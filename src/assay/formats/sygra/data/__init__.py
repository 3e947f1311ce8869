"""`data_config` of a graph_config.yaml: where records come from, what is done to them, and where results go.

Only records may be here, nothing of graphs or metrics.
A source is a stream of records with ids: read, reduced to `fields`, transformed, joined, cut. Everything streams: a
million records pass in flat memory, except where a transform of the user's wants a list.

If the first record has an id, ids are given. Else a record's id is its `id_column`, or the id that it has, or the
SHA-256 of its JSON: equal records have equal ids.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from itertools import count as numbers
from pathlib import Path
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.data.joins import Part, check_parts, joined
from assay.formats.sygra.data.sinks import check_sinks
from assay.formats.sygra.data.sources import folders_of, raw_records
from assay.formats.sygra.data.transform import (
    Load,
    Record,
    Records,
    Stage,
    as_text,
    cleaned,
    stages,
)
from assay.formats.sygra.data.transforms import CreateAudioUrlTransform, CreateImageUrlTransform
from assay.registry import nearest
from assay.store.keys import id_hash
from assay.store.keyset import Seen

SOURCE = "data_config.source"
_NO_ID = (None, "")


def with_ids(records: Records, id_column: str = "") -> Records:
    """Every record with an `id`."""
    first = next(records, None)
    if first is None:
        return
    column = "id" if first.get("id") else id_column or "id"
    if column not in first and column == id_column:
        fix = f"correct `id_column`: {nearest(id_column, map(str, first))}"
        raise UserError(
            f"records have no field {id_column!r}", where="data_config.id_column", fix=fix
        )
    for record in chain([first], records):
        id = next((record[name] for name in (column, "id") if record.get(name) not in _NO_ID), None)
        yield {**record, "id": content_id(record) if id is None else id}


def content_id(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, default=as_text)
    return hashlib.sha256(text.encode()).hexdigest()


def id_text(id: Any) -> str:
    """A record's id as the engine has it."""
    return id if isinstance(id, str) else json.dumps(id, sort_keys=True, default=as_text)


def item_ids(records: Iterable[Record]) -> Iterator[tuple[str, Record]]:
    """(id as text, record). Ids may repeat, as those of equal records and of stacked datasets do: the engine is then
    given `a`, `a-2`, `a-3`. Memory holds about ten bytes for each."""
    seen = Seen()
    repeats: dict[str, int] = {}
    for record in records:
        name = text = id_text(record["id"])
        while not seen.add(id_hash(name)):
            repeats[text] = repeats.get(text, 1) + 1
            name = f"{text}-{repeats[text]}"
        yield name, record


class NoRecords(UserError):
    """There is nothing to run: no record, or none after those that were skipped."""


def open_records(
    data_config: Mapping[str, Any] | None,
    *,
    base: Path,
    load: Load,
    start: int = 0,
    count: int | None = None,
    seed: int = 0,
) -> Records:
    """`count` records (all, if it is None or 0) from number `start` on. Sinks are checked as well: what is wrong with
    the config is raised by the call itself, what is wrong with the data while it is read."""
    data_config = data_config or {}
    if start < 0 or (count or 0) < 0:
        what = f"start_index {start} and num_records {count or 0} must not be negative"
        raise UserError(what, fix="count records from 0")
    check_sinks(data_config)
    source = data_config.get("source")
    if source:
        records = open_source(source, base=base, load=load, seed=seed)
    elif count:
        records = ({} for _ in numbers())
    else:
        fix = "add `source:`, or say how many empty records to make: `--num_records 10`"
        raise UserError("there is no data source", where="data_config", fix=fix)
    return _cut(with_ids(records, str(data_config.get("id_column") or "")), start, count or None)


def open_source(
    source: Any, *, base: Path, load: Load, where: str = SOURCE, seed: int = 0
) -> Records:
    """The records of a source, or of a list of them, transformed and joined, without new ids."""
    if isinstance(source, Mapping):
        return _opener(source, base, load, where)()
    if not isinstance(source, list):
        raise UserError(f"a source must be a mapping or a list, got {source!r}", where=where)
    parts: list[Part] = []
    for number, entry in enumerate(source):
        place = f"{where}[{number}]"
        if not isinstance(entry, Mapping):
            raise UserError(f"a source must be a mapping, got {entry!r}", where=place)
        parts.append(Part(entry, place, _opener(entry, base, load, place)))
    check_parts(parts)
    return joined(parts, seed)


def _opener(source: Mapping[str, Any], base: Path, load: Load, where: str) -> partial[Records]:
    fields: Any = source.get("fields")
    if not isinstance(fields, list | None):
        raise UserError(f"fields must be a list, got {fields!r}", where=f"{where}.fields")
    chosen = None if not fields else {"id", *map(str, fields)}
    folders = folders_of(source, base)
    media = [CreateImageUrlTransform(folders), CreateAudioUrlTransform(folders)]
    through: list[Stage] = [partial(transform.stream, params={}) for transform in media]
    through += stages(source.get("transformations"), load, where)
    return partial(_passed, raw_records(source, base, where), chosen, through)


def _passed(records: Records, fields: set[str] | None, through: list[Stage]) -> Records:
    records = map(cleaned, records)
    if fields is not None:
        records = (
            {name: value for name, value in record.items() if name in fields} for record in records
        )
    for stage in through:
        records = stage(records)
    return records


def _cut(records: Records, start: int, count: int | None) -> Records:
    passed = sum(1 for _ in islice(records, start))
    first = next(records, None)
    if first is None and not passed:
        raise NoRecords(
            "the dataset is empty", where=SOURCE, fix="check its file, split and transformations"
        )
    if first is None:
        what = f"the dataset has {passed} records: none is left from start_index {start} on"
        raise NoRecords(what, where=SOURCE, fix="begin earlier")
    yield first
    yield from islice(records, None if count is None else count - 1)
