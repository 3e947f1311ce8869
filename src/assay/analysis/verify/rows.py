"""Stored labels against those that were computed again, row by row.

Rows are compared by a fingerprint of their bytes without their times, wherever they stand. Only those that no row
equals are decoded, paired and looked at.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import compress
from typing import Any, TypeVar

import msgspec
import numpy as np
from xxhash import xxh3_64_intdigest

from assay.analysis.verify.replay import NOT_LOGGED
from assay.analysis.verify.values import Difference, Differing, differing
from assay.sdk import Evaluation, Hashes, Log, Mask
from assay.store.memory_log import MemoryLog
from assay.store.table.decode import row_decoder
from assay.store.table.join import Lookup

_TIMES = re.compile(rb',"evaluation_time":[^,]*,"timestamp":[^,]*,')
_TIMES_AND_KEY = re.compile(rb',"evaluation_time":[^,]*,"timestamp":[^,]*,|"key":"[0-9a-f]{32}",')
_FIELDS = (
    "label",
    "passed",
    "score",
    "outcome",
    "value",
    "model_name",
    "detailed_results",
    "metadata",
    "part",
)


T = TypeVar("T")


class RowVerdict(msgspec.Struct):
    """What came of the rows of one scorer or metric; `reasons` counts why some cannot be
    verified."""

    stored: int = 0
    differ: int = 0
    unverified: int = 0
    reasons: Counter[str] = msgspec.field(default_factory=Counter)
    differences: list[Difference] = []

    def excuse(self, reason: str, rows: int = 1) -> None:
        """Count rows that cannot be verified."""
        self.unverified += rows
        self.reasons[reason] += rows

    def add(self, where: str, name: str, place: str, differences: Iterable[Differing]) -> None:
        """Count a row that differs."""
        self.differ += 1
        self.differences += [Difference(where, name, place, *each) for each in differences]


def pair_rows(
    stored: Iterable[T], computed: Iterable[T], place: Callable[[T], Hashable]
) -> Iterator[tuple[T, T | None, T | None]]:
    """Yield each row that is stored with the computed one of its place, and then those that are
    computed alone; the first is one that there is."""
    again = {place(row): row for row in computed}
    for row in stored:
        yield row, row, again.pop(place(row), None)
    for row in again.values():
        yield row, None, row


def row_differences(
    row: T | None,
    other: T | None,
    absent: str,
    differences: Callable[[T, T], Iterable[Differing]],
) -> list[Differing]:
    """Return how a stored row differs from the computed one; `absent` says what a stored row
    without one means."""
    if row is None:
        return [("row", "missing", "computed")]
    return [("row", "stored", absent)] if other is None else [*differences(row, other)]


class StoredRows:
    """The fingerprints of a log's rows, in the order of the file."""

    def __init__(self, log: Log, scorers: list[str], *, keys: bool) -> None:
        self.log = log
        self.times = _TIMES if keys else _TIMES_AND_KEY
        self.counts: Counter[str] = Counter()
        marks = {name: b'"scorer":' + msgspec.json.encode(name) + b"," for name in scorers}
        found = [np.zeros(0, np.uint64)]
        for block in log.blocks():
            found.append(fingerprints(block, self.times))
            for name, mark in marks.items():
                self.counts[name] += block.count(mark)
        self.hashes: Hashes = np.concatenate(found)
        self.rows = Lookup(self.hashes)

    def lines(self, wanted: Mask) -> Iterator[bytes]:
        rows = (
            line
            for block in self.log.blocks()
            for line in block.split(b"\n")
            if line and not line.isspace()
        )
        return compress(rows, wanted)


def fingerprints(block: bytes, times: re.Pattern[bytes]) -> Hashes:
    lines = times.sub(b",", block).split(b"\n")
    rows = (xxh3_64_intdigest(line) for line in lines if line and not line.isspace())
    return np.fromiter(rows, np.uint64)


class Computed(MemoryLog):
    """Takes the rows that an evaluation writes, and keeps those that are not stored."""

    def __init__(self, stored: StoredRows) -> None:
        super().__init__("evaluation_results.jsonl")
        self._stored = stored
        self._found = [np.zeros(0, np.uint64)]
        self.odd: list[bytes] = []

    def append(self, lines: bytes) -> None:
        now = fingerprints(lines, self._stored.times)
        self._found.append(now)
        is_odd = self._stored.rows.first(now) < 0
        if is_odd.any():
            self.odd += compress(filter(None, lines.split(b"\n")), is_odd)

    def missing(self) -> list[bytes]:
        """The stored rows that no computed row equals."""
        alone = Lookup(np.concatenate(self._found)).first(self._stored.hashes) < 0
        return list(self._stored.lines(alone)) if alone.any() else []

    def repeats(self) -> int:
        """Rows that are stored more than once."""
        rows = self._stored.rows.sorted
        return int((rows[1:] == rows[:-1]).sum())


def compare_rows(
    computed: Computed,
    verdicts: Mapping[str, RowVerdict],
    failed: Mapping[str, str],
    *,
    whole: bool,
    lost: str,
) -> None:
    """Pair the rows that are not equal. `failed` says of scorers why they gave nothing; `whole`: every label should be
    stored; `lost`: why responses may be missing."""
    decode = row_decoder(Evaluation)
    alone = _decode_lines(decode, computed.missing())
    for one, row, other in pair_rows(alone, map(decode, computed.odd), _place):
        verdict = verdicts.get(one.scorer)
        if verdict is None or (row is None and not (whole and _is_logged(one))):
            continue
        verdict.stored += row is None
        reason = ""
        if row is not None:
            reason = _excuse(row, other) if other else failed.get(row.scorer) or lost
        found = row_differences(row, other, "no response gives it", _differences)
        if reason:
            verdict.excuse(reason)
        elif found:
            verdict.add("labels", one.label or one.scorer, _place_text(one), found)


def _place_text(row: Evaluation) -> str:
    of = f" of {row.model_name}" if row.model_name else ""
    return f"{row.item_id} sample {row.sample_index}{of}"


def _decode_lines(
    decode: Callable[[bytes], Evaluation], lines: Iterable[bytes]
) -> Iterator[Evaluation]:
    for line in lines:
        with suppress(ValueError, RecursionError):  # the seal tells
            yield decode(line)


def _is_logged(row: Evaluation) -> bool:
    return NOT_LOGGED not in (row.error or "")


def _excuse(stored: Evaluation, computed: Evaluation) -> str:
    """Why a row cannot be verified: it takes a call or a model that is not here, or an accident made it."""
    if not _is_logged(computed):
        return NOT_LOGGED
    if computed.outcome == "errored" and stored.outcome != "errored":
        return f"the scorer fails here: {computed.error}"
    if stored.outcome == "errored" and stored.error_kind == "transient":
        return "it is a failure that another try may not have"
    return ""


def _differences(stored: Evaluation, computed: Evaluation) -> Iterator[Differing]:
    if stored.outcome == computed.outcome == "errored":
        return  # texts of errors name lines and places
    if computed.passed is None and stored.passed == ((computed.score or 0) > 0):
        computed.passed = stored.passed  # earlier versions gave every score a verdict
    for field in _FIELDS:
        yield from differing(getattr(stored, field), getattr(computed, field), field)


def _place(row: Evaluation) -> tuple[Any, ...]:
    """Return which label of which responses a row is."""
    about = row.scorer, row.item_id, row.sample_index, tuple(row.responses)
    return *about, row.players, row.seat, row.part[0]
