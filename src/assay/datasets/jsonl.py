"""JSON Lines: one object a line; blank lines are skipped."""

from collections.abc import Iterator
from pathlib import Path

from assay.datasets._files import json_value, open_file, row_of
from assay.sdk import JsonObject, dataset


@dataset
def jsonl(path: Path) -> Iterator[tuple[str, JsonObject]]:
    """Rows of a `.jsonl` file, streamed."""
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                place = f"{path}:{number}"
                yield place, row_of(json_value(line, place), place)
