"""Evaluation rows as columns: one streaming pass that decodes only what the metrics need.

A row costs 24 bytes: item, sample, score, and the code of its combination of label, outcome, verdict and facet values,
of which there are few. Rows of foreign files and unusual types of facet values take slower ways to the same numbers.
"""

import json
import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, cast
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.errors import UserError
from assay.interfaces import FloatArray, Log
from assay.records import EvaluationOutcome
from assay.steps.facets import Narrow, find_in_row, first_of, narrow, typed
from assay.store.keys import id_hash, short

Ints = npt.NDArray[np.int64]
OUTCOMES: tuple[EvaluationOutcome, ...] = ("scored", "unparsed", "refused", "errored", "skipped")
_FAILED = {"errored", "unparsed", "refused"}
_BATCH = 1024
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

    def read(self, log: Log, where: str) -> None:
        self._starts.append(len(self._item))
        scan, number = log.scan(), 0
        while pairs := list(islice(scan, _BATCH)):
            lines = [line for _, line in pairs]
            if not any(self._read_narrow(layout, lines) for layout in self._layouts):
                pairs = self._read_whole(pairs, where, number)
            if self._keep_positions:
                self._positions.extend([position for position, _ in pairs])
            number += len(lines)

    def columns(self) -> Columns:
        hashes, self._item = self._item, array("Q")
        ids, item = np.unique(np.frombuffer(hashes, dtype=np.uint64), return_inverse=True)
        del hashes
        return Columns(
            item=item.astype(np.int32),
            sample=np.frombuffer(self._sample, dtype=np.int32),
            score=np.frombuffer(self._score, dtype=np.float64),
            combination=np.frombuffer(self._combination, dtype=np.int32),
            combinations=self._combinations,
            ids=ids,
            starts=self._starts,
            positions=np.frombuffer(self._positions, dtype=np.int64),
        )

    def _read_narrow(self, layout: _Layout, lines: list[bytes]) -> bool:
        """False, with nothing taken, where a row does not fit this layout."""
        try:
            rows = cast("list[Any]", layout.decode_lines(b"\n".join(lines)))
        except msgspec.DecodeError:
            return False
        if len(rows) != len(lines):
            return False
        known = layout.known
        codes = list(map(known.get, map(layout.key, rows)))
        if None in codes:
            for row in rows:
                if (key := layout.key(row)) not in known:
                    known[key] = self._code(row.label, row.scorer, row.outcome, row.passed, layout.values(row))
            codes = [known[layout.key(row)] for row in rows]
        self._combination.extend(cast("list[int]", codes))
        self._item.extend([id_hash(row.item_id) for row in rows])
        self._sample.extend([row.sample_index for row in rows])
        scores = [row.score for row in rows]
        self._score.extend(scores if None not in scores else [math.nan if s is None else s for s in scores])
        return True

    def _read_whole(self, pairs: list[tuple[int, bytes]], where: str, before: int) -> list[tuple[int, bytes]]:
        """The lines that hold rows: a foreign file may have blank ones."""
        taken: list[tuple[int, bytes]] = []
        for number, pair in enumerate(pairs, before + 1):
            if not pair[1].strip():
                continue
            place = f"{where}, line {number}"
            row = decode_row(pair[1], place)
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
            taken.append(pair)
        return taken

    def _code(
        self, label: str, scorer: str, outcome: EvaluationOutcome, passed: bool | None, values: tuple[Any, ...]
    ) -> int:
        key = (label, scorer, outcome, passed, *(UNSET if value is UNSET else typed(value) for value in values))
        if key not in self._codes:
            self._codes[key] = len(self._combinations)
            self._combinations.append(Combination(label, scorer, outcome, passed, values))
        return self._codes[key]


def under_every_label(columns: Columns) -> Columns:
    """Rows of scorer calls that failed before they could name a label count under every label of that scorer:
    otherwise a failure would be missing from the very denominators that it belongs to."""
    labels: dict[str, dict[str, None]] = {}
    for one in columns.combinations:
        if one.scorer and one.outcome == "scored":
            labels.setdefault(one.scorer, {})[one.label] = None
    spread: dict[int, list[int]] = {}
    combinations = list(columns.combinations)
    for number, one in enumerate(columns.combinations):
        own = labels.get(one.scorer, {})
        if own and one.outcome in _FAILED and one.label == one.scorer and one.label not in own:
            spread[number] = list(range(len(combinations), len(combinations) + len(own)))
            combinations += [one._replace(label=label) for label in own]
    if not spread:
        return columns
    copies = np.array([len(spread.get(number, "1")) for number in range(len(columns.combinations))])
    row = np.repeat(np.arange(len(columns.item)), copies[columns.combination])
    combination = columns.combination[row]
    for number, codes in spread.items():
        at = combination == number
        combination[at] = np.resize(codes, int(at.sum()))
    return Columns(
        item=columns.item[row],
        sample=columns.sample[row],
        score=columns.score[row],
        combination=combination,
        combinations=combinations,
        ids=columns.ids,
        starts=np.searchsorted(row, columns.starts).tolist(),
        positions=columns.positions[row] if len(columns.positions) else columns.positions,
        row=row,
    )


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


def verdicts(columns: Columns) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_], FloatArray]:
    """Outcome (its place in OUTCOMES), passed and score of every row.

    A missing score is 1 or 0 by `passed`, a missing `passed` is score > 0; a scored row with neither is errored.
    """
    given = columns.combinations
    outcome = np.array([OUTCOMES.index(one.outcome) for one in given], dtype=np.int8)[columns.combination]
    passed = np.array([-1 if one.passed is None else int(one.passed) for one in given], dtype=np.int8)
    verdict = passed[columns.combination]
    score, unscored = columns.score, np.isnan(columns.score)
    if unscored.any():
        outcome[unscored & (verdict < 0) & (outcome == 0)] = OUTCOMES.index("errored")
        score = np.where(unscored, verdict == 1, score)
    return outcome, np.where(verdict < 0, score > 0, verdict == 1), score


class _Key(msgspec.Struct):
    key: str = ""


def tie_breakers(logs: Iterable[Log]) -> tuple[npt.NDArray[np.uint64], ...]:
    """Columns, the last one first to sort by, that depend on nothing but the row: its text and its key."""
    decode = msgspec.json.Decoder(_Key).decode
    texts, keys = array("Q"), array("Q")
    for log in logs:
        for _, line in log.scan():
            if not line.strip():
                continue
            try:
                key = decode(line).key
            except msgspec.DecodeError:
                key = ""
            keys.append(short(key) if key else 0)
            texts.append(crc32(line))
    return np.frombuffer(texts, dtype=np.uint64), np.frombuffer(keys, dtype=np.uint64)
