"""Comma-separated values with a header row. Every field is text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.datasets._table import table
from assay.registry import dataset


@dataset
def csv(path: Path, *, delimiter: str = ",", quotes: bool = True) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a `.csv` file, streamed; quoted fields may hold line feeds."""
    return table(path, delimiter, quotes)
