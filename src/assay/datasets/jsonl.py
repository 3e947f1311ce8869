"""JSON Lines: one object a line; blank lines are skipped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay.datasets._rows import bad_row, checked
from assay.registry import dataset


@dataset
def jsonl(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a `.jsonl` file, streamed."""
    decode = msgspec.json.Decoder().decode
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            place = f"{path}:{number}"
            try:
                row = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise bad_row(f"not JSON: {error}", place) from None
            yield place, checked(row, place)
