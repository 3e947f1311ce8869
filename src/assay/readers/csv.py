"""CSV with the table `samples`, as `assay convert` writes it and people edit it in a spreadsheet."""

import csv as library
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from assay import reading
from assay.foreign import Foreign, head_of
from assay.readers._samples import samples_below
from assay.sdk import reader

_LONGEST = 1 << 30  # of a cell; the library's own bound is 128 kB
_FORMULA = ("=", "+", "-", "@")


@reader
def csv(path: Path) -> list[Foreign]:
    """Files with a row for each response, as `assay convert` writes them; they have a header."""
    return samples_below(path, "csv", _columns, _rows)


def _columns(file: Path) -> Sequence[str]:
    head = head_of(file).decode("utf-8-sig", "replace")
    if "item_id" not in head:
        return []
    try:
        return next(library.reader(io.StringIO(head, newline="")), [])
    except library.Error:
        return []


def _rows(file: Path) -> Iterator[Sequence[str]]:
    library.field_size_limit(_LONGEST)
    with io.TextIOWrapper(
        reading.opened(file, 1 << 20), "utf-8-sig", "replace", newline=""
    ) as text:
        rows = library.reader(text)
        next(rows, None)
        for row in filter(None, rows):
            guarded = "\0'" in "\0".join(("", *row))  # a cell begins with an apostrophe
            yield list(map(_plain, row)) if guarded else row


def _plain(cell: str) -> str:
    """Without the apostrophe that keeps a spreadsheet from taking a text for a formula."""
    is_guarded = cell[:1] == "'" and cell[1:].lstrip()[:1] in _FORMULA
    return cell[1:] if is_guarded else cell
