"""JSON: a list of objects, an object of such by id, objects one after the other, or a list under `items`."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from assay.datasets._files import bad_row, open_file, row_of
from assay.sdk import JsonObject, dataset
from assay.text.json_stream import BrokenJson, json_entries


@dataset
def json(path: Path) -> Iterator[tuple[str, JsonObject]]:
    """Rows of a `.json` file, streamed (a list under `items` is read whole). Keys of an object of objects are ids."""
    with open_file(path) as file:
        try:
            shape, entries = json_entries(file)
            if shape == "lines":
                entries = _rows(path, entries)
            for number, (key, value) in enumerate(entries):
                place = f"{path} [{key or number}]"
                row = row_of(value, place)
                yield place, {"id": key, **row} if key else row
        except BrokenJson as error:
            raise bad_row(f"not JSON: {error}", str(path)) from None


def _rows(path: Path, entries: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """A lone value is not a row: it holds them under `items`."""
    begin = [entry for entry in (next(entries, None), next(entries, None)) if entry is not None]
    if len(begin) != 1:
        return chain(begin, entries)
    alone = begin[0][1]
    held: Any = alone.get("items") if isinstance(alone, dict) else None
    if not isinstance(held, list):
        raise bad_row('expected a list of objects or {"items": [...]}', str(path))
    return iter([("", row) for row in held])
