"""JSON lines whose rows are the same with and without `datasets`, which takes a second to import.

Only where no rule of the library can show: a single block, the same keys in every row, columns of texts, whole numbers
or truth values, or of lists of texts. Texts that could be dates are left to the library, which makes dates of them.
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from assay.formats.lm_eval.tasks.definition import Definition
from assay.sdk import JsonObject

_BLOCK = 10_000_000  # bytes that the library looks at together
_LARGEST = 2**63
_DATE = re.compile(r"\d{4}-\d")


class SimpleLines(list[JsonObject]):
    """Rows that are new each time they are read, as the library's are: a task's functions may change them."""

    def __iter__(self) -> Iterator[JsonObject]:
        for row in super().__iter__():
            yield {
                name: value.copy() if type(value) is list else value for name, value in row.items()
            }


def simple_lines(definition: Definition) -> JsonObject | None:
    """Return the splits of a task, or None where the library has to read them."""
    options = definition.dataset_kwargs or {}
    processed = definition.process_docs or definition.fewshot_config.process_docs
    if definition.dataset_path != "json" or definition.dataset_name or processed:
        return None
    files = options.get("data_files")
    named = {"train": files} if isinstance(files, str) else files
    if options.keys() != {"data_files"} or not isinstance(named, dict):
        return None
    splits = {str(name): _lines_of(path) for name, path in named.items()}
    return splits if all(splits.values()) else None


def _lines_of(path: Any) -> SimpleLines | None:
    file = Path(path) if isinstance(path, str) else Path()
    if file.suffix != ".jsonl" or not file.is_file() or file.stat().st_size > _BLOCK:
        return None
    try:
        rows = msgspec.json.Decoder(JsonObject).decode_lines(file.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    names = list(rows[0]) if rows else []
    if any(list(row) != names for row in rows):
        return None
    columns = ([row[name] for row in rows] for name in names)
    return SimpleLines(rows) if all(map(_is_simple, columns)) else None


def _is_simple(column: list[Any]) -> bool:
    kinds = {*map(type, column)}
    if kinds == {list}:
        entries = [*chain.from_iterable(column)]
        return {*map(type, entries)} == {str} and _is_simple(entries)
    if kinds == {int}:
        return min(column) >= -_LARGEST and max(column) < _LARGEST
    return kinds == {bool} or (kinds == {str} and not any(map(_DATE.match, column)))
