"""JSON lines whose rows are the same with and without `datasets`, which takes a second to import.

Only where no rule of the library can show: a single block, the same keys in every row, columns of texts, whole numbers
or truth values, or of lists of texts. Texts that could be dates are left to the library, which makes dates of them.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay.formats.lm_eval.tasks.definition import Definition, Fields

_BLOCK = 10_000_000  # bytes that the library looks at together
_LARGEST = 2**63
_DATE = re.compile(r"\d{4}-\d")


class Lines(list[Fields]):
    """Rows that are new each time they are read, as the library's are: a task's functions may change them."""

    def __iter__(self) -> Iterator[Fields]:
        for row in super().__iter__():
            yield {
                name: value.copy() if type(value) is list else value for name, value in row.items()
            }


def simple_lines(definition: Definition) -> Fields | None:
    """The splits of a task, or None where the library has to read them."""
    options = definition.dataset_kwargs or {}
    files = options.get("data_files")
    processed = definition.process_docs or definition.fewshot_config.process_docs
    if (
        definition.dataset_path != "json"
        or definition.dataset_name
        or processed
        or options.keys() != {"data_files"}
    ):
        return None
    named = {"train": files} if isinstance(files, str) else files
    if not isinstance(named, dict):
        return None
    splits = {str(name): _read(path) for name, path in named.items()}
    return {name: rows for name, rows in splits.items() if rows} if all(splits.values()) else None


def _read(path: Any) -> Lines | None:
    file = Path(path) if isinstance(path, str) else None
    if (
        file is None
        or file.suffix != ".jsonl"
        or not file.is_file()
        or file.stat().st_size > _BLOCK
    ):
        return None
    try:
        rows = msgspec.json.Decoder(Fields).decode_lines(file.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    names = list(rows[0]) if rows else []
    if any(list(row) != names for row in rows):
        return None
    return Lines(rows) if all(_is_simple([row[name] for row in rows]) for name in names) else None


def _is_simple(column: list[Any]) -> bool:
    kinds = {type(value) for value in column}
    if kinds == {list}:
        column = [value for values in column for value in values]
        return bool(column) and all(type(value) is str for value in column) and _is_simple(column)
    if kinds == {int}:
        return all(-_LARGEST <= value < _LARGEST for value in column)
    return kinds == {bool} or (kinds == {str} and not any(_DATE.match(value) for value in column))
