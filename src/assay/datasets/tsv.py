"""Tab-separated values with a header row. Every field is text."""

from collections.abc import Iterator
from pathlib import Path

from assay.datasets.csv import table
from assay.sdk import JsonObject, dataset


@dataset
def tsv(path: Path, *, quotes: bool = True) -> Iterator[tuple[str, JsonObject]]:
    """Rows of a `.tsv` file, streamed. Without `quotes`, a quotation mark is a character like any other."""
    return table(path, "\t", quotes)
