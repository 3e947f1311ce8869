"""JSON: one list of all rows."""

from collections.abc import Iterator

import msgspec

from assay.analysis.look.export import Export
from assay.registry import writer


@writer
def json(export: Export) -> None:
    """One JSON list of objects; NaN and Infinity of foreign rows become null."""

    def chunks() -> Iterator[bytes]:
        before = b"[\n"
        for row in export.rows():
            yield before + msgspec.json.encode(row)
            before = b",\n"
        yield b"\n]\n"

    export.write(chunks())
