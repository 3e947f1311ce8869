"""`data_config` of a graph_config.yaml: where records come from, and what is done to them.

Only records may be here, nothing of graphs or metrics.
A source is a stream of records with ids: read, reduced to `fields`, transformed, cut. Everything
streams: a million records pass in flat memory, except where a transform of the user's wants a list.

If the first record has an id, ids are given. Else a record's id is its `id_column`, or the id that it has, or the
SHA-256 of its JSON: equal records have equal ids.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from functools import partial
from itertools import chain, count as numbers, islice
from pathlib import Path
from typing import Any

from assay.formats.sygra.data.sources import raw_records
from assay.formats.sygra.data.transforms import Load, Record, Records, as_text, plain_record, stages
from assay.formats.sygra.instead import not_offered
from assay.formats.sygra.types import Config, YamlPlace
from assay.sdk import UserError, as_list, id_hash, nearest
from assay.store.keyset import Seen

CONFIG = "data_config"
_NO_ID = (None, "")
_DIGEST = re.compile("[0-9a-f]{64}")
INDEX = "original_index"
_PICTURES = ".jpg .jpeg .png .gif .bmp .tiff .tif .webp .ico .apng"
_SUFFIXES = tuple(f"{_PICTURES} .wav .ogg .flac .aac .aiff .mp3 .m4a".split())
_FIRST_BYTES = (
    b"\x89PNG\r\n",
    b"\xff\xd8\xff",
    b"GIF8",
    b"BM",
    b"II*\0",
    b"MM\0*",
    b"\0\0\1\0",
    b"RIFF",
    b"ID3",
    b"\xff\xfb",
    b"\xff\xf1",
    b"OggS",
    b"fLaC",
    b"FORM",
)


def with_ids(records: Records, id_column: str = "", where: str = CONFIG) -> Records:
    """Every record with an `id`."""
    first = next(records, None)
    if first is None:
        return
    column = "id" if first.get("id") else id_column or "id"
    if column not in first and column == id_column:
        fix = f"correct `id_column`: {nearest(id_column, map(str, first))}"
        raise UserError(f"records have no field {id_column!r}", where=f"{where}.id_column", fix=fix)
    for record in chain([first], records):
        id = next((record[name] for name in (column, "id") if record.get(name) not in _NO_ID), None)
        yield {**record, "id": content_id(record) if id is None else id}


def content_id(record: Config) -> str:
    text = json.dumps(record, sort_keys=True, default=as_text)
    return hashlib.sha256(text.encode()).hexdigest()


def id_text(id: Any) -> str:
    """A record's id as the engine has it."""
    return id if isinstance(id, str) else json.dumps(id, sort_keys=True, default=as_text)


def item_ids(records: Iterable[Record], *, by_index: bool = False) -> Iterator[tuple[str, Record]]:
    """(id as text, record). Ids may repeat, as those of equal records do: the engine is then given
    `a`, `a-2`, `a-3`. Memory holds about ten bytes for each. `by_index`: where the first record's
    id is a digest, records are known by their `original_index`, which people can type."""
    seen = Seen()
    repeats: dict[str, int] = {}
    for number, record in enumerate(records):
        index = record.get(INDEX) if _DIGEST.fullmatch(str(record["id"])) else None
        by_index = by_index and (number > 0 or index not in _NO_ID)
        name = text = id_text(record["id"] if not by_index or index in _NO_ID else index)
        while not seen.add(id_hash(name)):
            repeats[text] = repeats.get(text, 1) + 1
            name = f"{text}-{repeats[text]}"
        yield name, record


class NoRecords(UserError):
    """There is nothing to run: no record, or none after those that were skipped."""


def open_records(
    data_config: Config | None,
    *,
    base: Path,
    load: Load,
    start: int = 0,
    count: int | None = None,
    where: str = CONFIG,
) -> Records:
    """Return `count` records (all, if it is None or 0) from number `start` on. What is wrong with
    the config, or with the first record as it stands in the source, is raised by the call itself,
    all else while records are read."""
    data_config = data_config or {}
    if start < 0 or (count or 0) < 0:
        what = f"start_index {start} and num_records {count or 0} must not be negative"
        raise UserError(what, fix="count records from 0")
    if data_config.get("sink"):
        raise not_offered("sink", f"{where}.sink")
    source = data_config.get("source")
    if source:
        records = open_source(source, base=base, load=load, where=f"{where}.source")
    elif count:
        records = ({} for _ in numbers())
    else:
        fix = "add `source:`, or say how many empty records to make: `--num_records 10`"
        raise UserError("there is no data source", where=where, fix=fix)
    records = with_ids(records, str(data_config.get("id_column") or ""), where)
    return _cut(records, start, count or None, f"{where}.source")


def _with_fields(names: AbstractSet[str], record: Record) -> Record:
    return {name: value for name, value in record.items() if name in names}


def open_source(source: Any, *, base: Path, load: Load, where: str = f"{CONFIG}.source") -> Records:
    """Return the records of a source, transformed, without new ids."""
    if isinstance(source, list):
        raise not_offered("a list of sources", where)
    at = YamlPlace(source, where)
    at.require(Mapping, f"a source must be a mapping, got {source!r}")
    fields = at("fields").require(
        list | None, f"fields must be a list, got {source.get('fields')!r}"
    )
    through = stages(at("transformations"), load)
    records = map(plain_record, raw_records(source, base, where))
    if fields:
        records = map(partial(_with_fields, {"id", *map(str, fields)}), records)
    first = list(islice(records, 1))
    for record in first:
        _check_media(record, source, base, where)
    records = chain(first, records)
    for stage in through:
        records = stage(records)
    return records


def _check_media(record: Record, source: Config, base: Path, where: str) -> None:
    """Refuse a record with an image or a sound, or the name of a file of one beside the data."""
    place = base / str(source.get("file_path") or source.get("repo_id") or "")
    folders = [base.resolve(), (place if place.is_dir() else place.parent).resolve()]
    for name, value in record.items():
        if any(_is_medium(entry) or _names_medium(entry, folders) for entry in as_list(value)):
            raise not_offered("an image or a sound", f"{where}: field {name!r} of the first record")


def _is_medium(value: Any) -> bool:
    if isinstance(value, Mapping):
        is_sound = "array" in value and value.get("sampling_rate")
        return bool(is_sound) or _is_medium(value.get("bytes"))
    if isinstance(value, bytes | bytearray):
        return value.startswith(_FIRST_BYTES)
    return hasattr(value, "save") and hasattr(value, "format")  # a picture of Pillow


def _names_medium(value: Any, folders: Sequence[Path]) -> bool:
    if isinstance(value, str) and value.lower().endswith(_SUFFIXES):
        for folder in folders:
            with suppress(OSError, ValueError, RuntimeError):
                path = (folder / value).resolve()
                if path.is_relative_to(folder) and path.is_file():
                    return True
    return False


def _cut(records: Records, start: int, count: int | None, where: str) -> Records:
    passed = sum(1 for _ in islice(records, start))
    first = next(records, None)
    if first is None and not passed:
        raise NoRecords(
            "the dataset is empty", where=where, fix="check its file, split and transformations"
        )
    if first is None:
        what = f"the dataset has {passed} records: none is left from start_index {start} on"
        raise NoRecords(what, where=where, fix="begin earlier")
    yield first
    yield from islice(records, None if count is None else count - 1)
