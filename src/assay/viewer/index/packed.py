"""Columns of numbers in a database, packed: a piece for each block of rows that was read, so that
a filter or a sort of all rows takes what it needs at once."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from assay.interfaces import Codes

Numbers = npt.NDArray[Any]
TABLE = """
CREATE TABLE packed (name TEXT, start INTEGER, kind TEXT, content BLOB, PRIMARY KEY (name, start));
"""
_WRITE = "INSERT OR REPLACE INTO packed VALUES (?, ?, ?, ?)"
_READ = "SELECT start, kind, content FROM packed WHERE name = ? ORDER BY start"


def write_piece(db: sqlite3.Connection, start: int, columns: Mapping[str, Numbers]) -> None:
    """Write the values of rows that are numbered from `start` on."""
    named = columns.items()
    db.executemany(_WRITE, [(name, start, own.dtype.str, own.tobytes()) for name, own in named])


def read_column(db: sqlite3.Connection, name: str, rows: int) -> Numbers:
    """Return a column of so many rows; those that no piece has are missing."""
    column: Numbers = np.empty(rows, np.int8)
    end, missing = 0, -1.0
    for start, kind, content in db.execute(_READ, (name,)):
        piece: Numbers = np.frombuffer(content, kind)
        if not end:
            column = np.empty(rows, kind)
            missing = np.nan if column.dtype.kind == "f" else -1
        column[end:start] = missing
        end = start + len(piece)
        column[start:end] = piece
    column[end:] = missing
    return column


def known_codes(texts: Sequence[Any], known: Mapping[str, int]) -> Codes:
    """Return the numbers of texts, -1 for none."""
    numbers: dict[str | None, int] = {**known, None: -1}
    return np.array([numbers[text] for text in texts], np.int32)


def codes_of(texts: Sequence[str | None], known: dict[str, int]) -> Codes:
    """Return the numbers of texts; those that are not known yet are numbered on."""
    for text in dict.fromkeys(texts):
        if text is not None:
            known.setdefault(text, len(known))
    return known_codes(texts, known)
