"""Evaluation rows as columns: one streaming pass that decodes only what the metrics need.

A row costs 24 bytes: item, sample, score, and the code of its combination of label, outcome, verdict and facet values,
of which there are few. Rows of foreign files and unusual types of facet values take slower ways to the same numbers.
"""

import math
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.errors import UserError
from assay.interfaces import Codes, FloatArray, Hashes, IntArray, Log, Mask
from assay.records import OUTCOMES as OUTCOMES
from assay.records import EvaluationOutcome, verdict_of
from assay.store.keys import id_hash
from assay.store.table.columns import in_fewer_bytes
from assay.store.table.decode import decode_row, placed_lines
from assay.store.table.facets import find_in_row, typed
from assay.store.table.join import Lookup
from assay.store.table.layouts import Layout, layouts

Ints = IntArray
SKIPPED = OUTCOMES.index("skipped")
# scored with a typed value alone: no verdict for metrics of verdicts, a row for those of values
VALUED = len(OUTCOMES)
_MOST_HASHES = 8192  # one megabyte; samples of one item mostly stand near one another


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

    item: Codes
    sample: Codes
    score: FloatArray
    combination: Codes
    combinations: list[Combination]
    ids: Hashes
    starts: list[int]
    positions: Ints
    row: Ints | None = None


def narrowed(columns: Columns) -> Columns:
    """Return the same numbers in fewer bytes."""
    columns.sample = in_fewer_bytes(columns.sample)
    columns.combination = in_fewer_bytes(columns.combination)
    columns.score = in_fewer_bytes(columns.score)
    return columns


class _Hashes(dict[str, int]):
    """Samples of one item mostly stand near one another, and a lookup is quicker than hashing again."""

    def __missing__(self, id: str) -> int:
        self[id] = found = id_hash(id)
        return found


class Reader:
    """Reads logs of evaluation rows, one after another; `positions` keeps where each row stands."""

    def __init__(self, facets: Sequence[str], *, positions: bool = False) -> None:
        self.facets = list(facets)
        self._keep_positions = positions
        self._layouts = layouts(self.facets)
        self._codes: dict[Any, int] = {}
        self._combinations: list[Combination] = []
        self._item = array("Q")
        self._sample = array("i")
        self._score = array("d")
        self._combination = array("i")
        self._positions = array("q")
        self._starts: list[int] = []
        self._hashes = _Hashes()

    def read(self, log: Log, where: str) -> None:
        self._starts.append(len(self._item))
        if not self._keep_positions:
            for count, block in enumerate(log.blocks()):
                if not self._read_narrow(block):
                    self._read_whole(
                        block[:-1].split(b"\n"), partial(_place_in_block, log, where, count)
                    )
            return
        number = 0
        for positions, block in placed_lines(log):
            if not self._read_narrow(block, len(positions)):
                lines = block[:-1].split(b"\n")
                positions = positions[self._read_whole(lines, partial(_line, where, number))]
            self._positions.frombytes(positions.tobytes())
            number += block.count(b"\n")

    def columns(self) -> Columns:
        self._hashes.clear()
        ids, item = _numbered(np.frombuffer(self._item, dtype=np.uint64))
        self._item = array("Q")
        columns = Columns(
            item=item,
            sample=np.frombuffer(self._sample, dtype=np.int32),
            score=np.frombuffer(self._score, dtype=np.float64),
            combination=np.frombuffer(self._combination, dtype=np.int32),
            combinations=self._combinations,
            ids=ids,
            starts=self._starts,
            positions=np.frombuffer(self._positions, dtype=np.int64),
        )
        # a caller that gives a column up frees it
        self._sample = array("i")
        self._score = array("d")
        self._combination = array("i")
        self._positions = array("q")
        return columns

    def join(self, parts: Sequence[Columns]) -> Columns:
        """The columns of all rows from those of readers that have read a share of each log, in order."""
        if len(parts) == 1:
            return parts[0]
        ids = np.concatenate([part.ids for part in parts])
        ids.sort(kind="stable")  # they are sorted by parts
        ids = ids[_begins(ids)]
        ends = np.cumsum([len(part.item) for part in parts]).tolist()
        item = np.empty(ends[-1], np.int32)
        combination = np.empty(ends[-1], np.int32)
        for part, end in zip(parts, ends, strict=True):
            rows = slice(end - len(part.item), end)
            item[rows] = Lookup(ids).first(part.ids).astype(np.int32)[part.item]
            codes = [self._code(*one) for one in part.combinations]
            combination[rows] = np.array(codes, np.int32)[part.combination]
        return Columns(
            item=item,
            sample=np.concatenate([part.sample for part in parts]),
            score=np.concatenate([part.score for part in parts]),
            combination=combination,
            combinations=self._combinations,
            ids=ids,
            starts=np.sum([part.starts for part in parts], axis=0).tolist(),
            positions=np.concatenate([part.positions for part in parts]),
        )

    def _read_narrow(self, block: bytes, lines: int = 0) -> bool:
        """False, with nothing taken, where the rows fit no layout, or are not this many `lines`."""
        for layout in self._layouts:
            try:
                rows = layout.decode_lines(block)
                if lines and len(rows) != lines:
                    continue
                # facet values of any type are decoded here, before anything is taken
                self._take(layout, rows)
            except (ValueError, RecursionError):
                continue
            self._layouts = layout.improved(self._layouts)
            return True
        return False

    def _take(self, layout: Layout, rows: list[Any]) -> None:
        codes = list(map(layout.known.get, map(layout.key, rows)))
        if None in codes:
            layout.learn(rows, self._code_of)
            codes = list(map(layout.known.get, map(layout.key, rows)))
        hashes = self._hashes
        if len(hashes) > _MOST_HASHES:
            hashes.clear()
        self._item.extend([hashes[row.item_id] for row in rows])
        if layout.few:
            at = np.array(codes)
            for column, table in zip(
                (self._combination, self._sample, self._score), layout.table, strict=True
            ):
                column.frombytes(table[at].tobytes())
        else:
            self._combination.extend(cast("list[int]", codes))
            self._sample.extend([row.sample_index for row in rows])
            self._score.extend([math.nan if row.score is None else row.score + 0.0 for row in rows])

    def _read_whole(self, lines: list[bytes], place: Callable[[int], str]) -> list[int]:
        """Which of the lines hold rows: a foreign file may have blank ones. `place` says where a line stands."""
        taken: list[int] = []
        for at, line in enumerate(lines):
            if not line.strip():
                continue
            row = decode_row(line, partial(place, at))
            if "item_id" not in row:
                raise UserError("an evaluation row without item_id", where=place(at))
            outcome, passed, score = verdict_of(row)
            values = tuple(find_in_row(row, facet) for facet in self.facets)
            self._combination.append(
                self._code(
                    _label(row.get("label")), str(row.get("scorer") or ""), outcome, passed, values
                )
            )
            self._item.append(id_hash(str(row["item_id"])))
            self._sample.append(_sample(row.get("sample_index"), partial(place, at)))
            self._score.append(score)
            taken.append(at)
        return taken

    def _code_of(self, row: Any, values: tuple[Any, ...]) -> int:
        return self._code(row.label, row.scorer, row.outcome, row.passed, values)

    def _code(
        self,
        label: str,
        scorer: str,
        outcome: EvaluationOutcome,
        passed: bool | None,
        values: tuple[Any, ...],
    ) -> int:
        key = (
            label,
            scorer,
            outcome,
            passed,
            *(UNSET if value is UNSET else typed(value) for value in values),
        )
        if key not in self._codes:
            self._codes[key] = len(self._combinations)
            self._combinations.append(Combination(label, scorer, outcome, passed, values))
        return self._codes[key]


def labels_apart(
    given: Sequence[tuple[Any, ...]], codes: Codes, *answer: npt.NDArray[Any]
) -> list[str]:
    """Return the label of each combination, which begins with a label, a scorer and an outcome.

    A label that several scorers gave to the same answer is `label (scorer)`: as one it would be
    read as samples of that answer.
    """
    gave = {(label, scorer) for label, scorer, outcome, *_ in given if outcome in ("scored", 0)}
    names = [label for label, _ in gave]
    shared: set[str] = set()
    if len(set(names)) < len(names):
        seen: dict[tuple[Any, ...], str] = {}
        for code, *place in zip(codes.tolist(), *(part.tolist() for part in answer), strict=True):
            label, scorer, *_ = given[int(code)]
            own = (label, scorer)
            if own in gave and seen.setdefault((label, *place), scorer) != scorer:
                shared.add(label)
    return [
        f"{label} ({scorer})" if label in shared and (label, scorer) in gave else label
        for label, scorer, *_ in given
    ]


def _numbered(
    hashes: Hashes,
) -> tuple[Hashes, Codes]:
    """The distinct hashes, sorted, and for each row its place among them; runs of equal ones are looked up once.
    `np.unique` would need twice the memory."""
    if not len(hashes):
        return hashes, np.zeros(0, np.int32)
    begins = _begins(hashes)
    firsts = hashes if begins.all() else hashes[begins]
    order = np.argsort(firsts)
    ordered = firsts[order]
    distinct = _begins(ordered)
    ids = ordered[distinct]
    del ordered
    places = np.empty(len(firsts), np.int32)
    places[order] = np.cumsum(distinct, dtype=np.int32)
    places -= 1
    del order
    return ids, places if firsts is hashes else np.repeat(
        places, np.diff(np.flatnonzero(begins), append=len(hashes))
    )


def _begins(values: Hashes) -> Mask:
    """Where a value differs from the one before."""
    begins = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return begins


def _line(where: str, before: int, at: int) -> str:
    return f"{where}, line {before + at + 1}"


def _place_in_block(log: Log, where: str, blocks: int, at: int) -> str:
    """Return where a line of a block is. The lines before it are counted only when there is something to say."""
    return _line(where, sum(block.count(b"\n") for block in islice(log.blocks(), blocks)), at)


def _sample(index: Any, where: Callable[[], str]) -> int:
    number: Any = index or 0
    if not isinstance(number, (int, float)) or not 0 <= number < 1 << 31:
        raise UserError(
            "sample_index is not a count from 0", where=where(), fix="correct or remove the line"
        )
    return int(number)


def _label(label: Any) -> str:
    name: Any = cast("dict[str, Any]", label).get("name") if isinstance(label, dict) else label
    return "" if name is None else str(name)
