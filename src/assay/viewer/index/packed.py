"""Columns of numbers in a database, packed: a piece for each block of rows that was read, so that
a filter or a sort of all rows takes what it needs at once."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from assay.interfaces import Codes, IntArray

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
    column: Numbers = np.zeros(0)
    for start, kind, content in db.execute(_READ, (name,)):
        piece = np.frombuffer(content, kind)
        if not len(column):
            column = np.full(rows, np.nan if piece.dtype.kind == "f" else -1, piece.dtype)
        column[start : start + len(piece)] = piece
    return column if len(column) else np.full(rows, -1, np.int8)


def distinct(values: Numbers) -> tuple[Numbers, IntArray, Codes]:
    """Return the values that there are, the first row of each, and which one every row has.
    Equal values mostly follow one another."""
    begins = np.flatnonzero(np.append(True, values[1:] != values[:-1]))[: len(values)]
    found, first, codes = np.unique(values[begins], return_index=True, return_inverse=True)
    return (
        found,
        begins[first],
        np.repeat(codes.astype(np.int32), np.diff(begins, append=len(values))),
    )


def codes_of(texts: Iterable[str | None], known: dict[str, int]) -> Codes:
    """Return the numbers of texts, -1 for none; those that are not known yet are numbered on."""
    codes = (-1 if text is None else known.setdefault(text, len(known)) for text in texts)
    return np.fromiter(codes, np.int32)
