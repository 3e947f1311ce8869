"""JSON: a list of objects, or an object with the list under `items`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.datasets._files import opened
from assay.datasets._rows import bad_row, checked, decoded
from assay.registry import dataset


@dataset
def json(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a `.json` file. The file is read whole: use jsonl for data that does not fit into memory."""
    with opened(path) as file:
        content = decoded(file.read().removeprefix(b"\xef\xbb\xbf"), str(path))
    rows = content.get("items") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise bad_row('expected a list of objects or {"items": [...]}', str(path))
    for number, row in enumerate(rows):
        place = f"{path} [{number}]"
        yield place, checked(row, place)
