"""Evaluation rows as columns: one streaming pass that decodes only what the metrics need.

A row costs 24 bytes: item, sample, score, and the code of its combination of label, outcome, verdict and facet values,
of which there are few. Rows of foreign files and unusual types of facet values take slower ways to the same numbers.
"""

import json
import math
from array import array
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.errors import UserError
from assay.interfaces import FloatArray, Log
from assay.records import EvaluationOutcome
from assay.steps.facets import Narrow, find_in_row, first_of, narrow, typed
from assay.store.keys import id_hash

Ints = npt.NDArray[np.int64]
OUTCOMES: tuple[EvaluationOutcome, ...] = ("scored", "unparsed", "refused", "errored", "skipped")
_BATCH = 256
_MOST_HASHES = 1 << 16
_BASE: dict[str, tuple[Any, Any]] = {
    "item_id": (str, ...),
    "outcome": (EvaluationOutcome, ...),
    "label": (str, ""),
    "scorer": (str, ""),
    "sample_index": (int, 0),
    "passed": (bool | None, None),
    "score": (float | None, None),
}


class Combination(NamedTuple):
    """What a row is apart from its item, sample and score. A facet that the row lacks is UNSET."""

    label: str
    scorer: str
    outcome: EvaluationOutcome
    passed: bool | None
    values: tuple[Any, ...]


class Columns(msgspec.Struct):
    """Rows in the order of reading. `item` is a place in `ids`, the sorted hashes of the item ids, so that it does not
    depend on the order of rows; `starts` has the first row of each log; `row` is the number of each among all rows
    read, where a row that counts under several labels stands there several times."""

    item: npt.NDArray[np.int32]
    sample: npt.NDArray[np.int32]
    score: FloatArray
    combination: npt.NDArray[np.int32]
    combinations: list[Combination]
    ids: npt.NDArray[np.uint64]
    starts: list[int]
    positions: Ints
    row: Ints | None = None


class _Layout:
    """One way to decode rows narrowly. `leaf` is what a facet's value may be: text only is the fastest."""

    def __init__(self, found: Narrow, raw: bool) -> None:
        self.decode_lines = msgspec.json.Decoder(found.type).decode_lines
        self.places = [[attrgetter(place) for place in places] for places in found.places]
        top = ["label", "scorer", "outcome", "passed", *found.fields]
        base = {place for places in found.places for place in places if place in _BASE}
        self.key = self._raw_key if raw else attrgetter(*top, *sorted(base - set(top)))
        self.known: dict[Any, int] = {}

    def _raw_key(self, row: Any) -> tuple[Any, ...]:
        values = (place(row) for places in self.places for place in places)
        return (
            row.label,
            row.scorer,
            row.outcome,
            row.passed,
            *(bytes(v) if isinstance(v, msgspec.Raw) else v for v in values),
        )

    def values(self, row: Any) -> tuple[Any, ...]:
        found = (first_of(place(row) for place in places) for places in self.places)
        return tuple(msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value for value in found)


class Reader:
    """Reads logs of evaluation rows, one after another; `positions` keeps where each row stands."""

    def __init__(self, facets: Sequence[str], *, positions: bool = False) -> None:
        self.facets = list(facets)
        self._keep_positions = positions
        self._layouts: list[_Layout] = []
        for leaf, raw in ((str | None, False), (msgspec.Raw, True)):
            if (found := narrow(self.facets, _BASE, leaf)) is not None:
                self._layouts.append(_Layout(found, raw))
        self._codes: dict[Any, int] = {}
        self._combinations: list[Combination] = []
        self._item, self._sample, self._score = array("Q"), array("i"), array("d")
        self._combination, self._positions = array("i"), array("q")
        self._starts: list[int] = []
        self._hashes: dict[str, int] = {}

    def read(self, log: Log, where: str) -> None:
        self._starts.append(len(self._item))
        if not self._keep_positions:
            number = 0
            for block in log.blocks():
                if not any(self._read_narrow(layout, block) for layout in self._layouts):
                    self._read_whole(block[:-1].split(b"\n"), where, number)
                number += block.count(b"\n")
            return
        scan, number = log.scan(), 0
        while pairs := list(islice(scan, _BATCH)):
            lines, places = [line for _, line in pairs], [position for position, _ in pairs]
            taken: list[int] | range = range(len(lines))
            block = b"\n".join(lines)
            if not any(self._read_narrow(layout, block, len(lines)) for layout in self._layouts):
                taken = self._read_whole(lines, where, number)
            self._positions.extend([places[at] for at in taken])
            number += len(lines)

    def columns(self) -> Columns:
        ids, item = _numbered(np.frombuffer(self._item, dtype=np.uint64))
        self._item = array("Q")
        return Columns(
            item=item,
            sample=np.frombuffer(self._sample, dtype=np.int32),
            score=np.frombuffer(self._score, dtype=np.float64),
            combination=np.frombuffer(self._combination, dtype=np.int32),
            combinations=self._combinations,
            ids=ids,
            starts=self._starts,
            positions=np.frombuffer(self._positions, dtype=np.int64),
        )

    def _read_narrow(self, layout: _Layout, block: bytes, lines: int = 0) -> bool:
        """False, with nothing taken, where a row does not fit this layout, or where these are not so many `lines`."""
        try:
            rows = cast("list[Any]", layout.decode_lines(block))
        except msgspec.DecodeError:
            return False
        if lines and len(rows) != lines:
            return False
        keys = list(map(layout.key, rows))
        codes = list(map(layout.known.get, keys))
        if None in codes:
            for row, key in zip(rows, keys, strict=True):
                if key not in layout.known:
                    code = self._code(row.label, row.scorer, row.outcome, row.passed, layout.values(row))
                    layout.known[key] = code
            codes = list(map(layout.known.get, keys))
        self._combination.extend(cast("list[int]", codes))
        self._item.extend(self._hashed([row.item_id for row in rows]))
        self._sample.extend([row.sample_index for row in rows])
        scores = [row.score for row in rows]
        self._score.extend(scores if None not in scores else [math.nan if s is None else s for s in scores])
        return True

    def _hashed(self, ids: list[str]) -> list[int]:
        """Samples of one item mostly stand near one another, and a lookup is quicker than hashing again."""
        hashes = list(map(self._hashes.get, ids))
        if None in hashes:
            if len(self._hashes) > _MOST_HASHES:
                self._hashes.clear()
            self._hashes.update((id, id_hash(id)) for id in set(ids) - self._hashes.keys())
            hashes = list(map(self._hashes.get, ids))
        return cast("list[int]", hashes)

    def _read_whole(self, lines: list[bytes], where: str, before: int) -> list[int]:
        """Which of the lines hold rows: a foreign file may have blank ones."""
        taken: list[int] = []
        for at, line in enumerate(lines):
            if not line.strip():
                continue
            place = f"{where}, line {before + at + 1}"
            row = decode_row(line, place)
            if "item_id" not in row:
                raise UserError("an evaluation row without item_id", where=place)
            outcome, passed, score = _verdict(row)
            values = tuple(find_in_row(row, facet) for facet in self.facets)
            self._combination.append(
                self._code(_label(row.get("label")), str(row.get("scorer") or ""), outcome, passed, values)
            )
            self._item.append(id_hash(str(row["item_id"])))
            self._sample.append(int(row.get("sample_index") or 0))
            self._score.append(score)
            taken.append(at)
        return taken

    def _code(
        self, label: str, scorer: str, outcome: EvaluationOutcome, passed: bool | None, values: tuple[Any, ...]
    ) -> int:
        key = (label, scorer, outcome, passed, *(UNSET if value is UNSET else typed(value) for value in values))
        if key not in self._codes:
            self._codes[key] = len(self._combinations)
            self._combinations.append(Combination(label, scorer, outcome, passed, values))
        return self._codes[key]


def _numbered(hashes: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """The distinct hashes, sorted, and for each row its place among them; runs of equal ones are looked up once."""
    if not len(hashes):
        return hashes, np.zeros(0, np.int32)
    starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    ids, places = np.unique(hashes[starts], return_inverse=True)
    return ids, np.repeat(places.astype(np.int32), np.diff(starts, append=len(hashes)))


def decode_row(line: bytes, where: str) -> dict[str, Any]:
    """A whole row; NaN and Infinity, which foreign writers put into JSON, are tolerated."""
    try:
        row = msgspec.json.decode(line)
    except msgspec.DecodeError:
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserError(f"not a JSON row: {error}", where=where, fix="remove the line") from None
    if not isinstance(row, dict):
        raise UserError("a row must be a JSON object", where=where, fix="remove the line")
    return cast("dict[str, Any]", row)


def _label(label: Any) -> str:
    name: Any = cast("dict[str, Any]", label).get("name") if isinstance(label, dict) else label
    return "" if name is None else str(name)


def _verdict(row: dict[str, Any]) -> tuple[EvaluationOutcome, bool | None, float]:
    """Outcome, passed and score (NaN: none) of a row of any origin."""
    details, outcome = row.get("detailed_results"), row.get("outcome")
    if outcome not in OUTCOMES:
        failed = row.get("error") or (isinstance(details, dict) and cast("dict[str, Any]", details).get("error"))
        outcome = "errored" if failed else "scored"
    passed, score = row.get("passed"), row.get("score")
    if score is not None and not (isinstance(score, (int, float)) and math.isfinite(score)):
        return "errored" if outcome == "scored" else outcome, None, math.nan
    return outcome, None if passed is None else bool(passed), math.nan if score is None else float(score)
