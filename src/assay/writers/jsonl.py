"""JSON lines: the rows as they stand on disk, byte for byte."""

from assay.analysis.look.export import Export
from assay.sdk import writer


@writer
def jsonl(export: Export) -> None:
    """One JSON object a line."""
    export.write(line + b"\n" for line in export.lines())
