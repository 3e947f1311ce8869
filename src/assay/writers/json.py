"""JSON: one list of all rows."""

from collections.abc import Iterator

import msgspec

from assay.analysis.look.export import Export
from assay.sdk import writer
from assay.text.plain import plain_json


@writer
def json(export: Export) -> None:
    """One JSON list of objects; NaN and Infinity of foreign rows become null."""

    def chunks() -> Iterator[bytes]:
        before = b"[\n"
        for row in export.rows():
            yield before + plain_json(msgspec.json.encode(row).decode()).encode()
            before = b",\n"
        yield b"\n]\n"

    export.write(chunks())
