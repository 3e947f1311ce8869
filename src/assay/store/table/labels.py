"""Evaluation rows as columns: one streaming pass that decodes only what the metrics need.

A row costs 24 bytes: item, sample, score, and the code of its combination of label, outcome,
verdict and facet values, of which there are few. Rows of foreign files and unusual types of
facet values take slower ways to the same numbers.
"""

import math
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, Literal, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.errors import UserError
from assay.interfaces import Codes, FloatArray, Hashes, IntArray, Log, Mask
from assay.records import OUTCOMES as OUTCOMES, EvaluationOutcome, JsonObject, verdict_of
from assay.store.keys import id_hash
from assay.store.table.decode import decode_row, placed_lines
from assay.store.table.facets import Narrow, find_in_row, first_of, narrow, typed
from assay.store.table.join import Lookup

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
    """Rows in the order of reading. `item` is a place in `ids`, the sorted hashes of the item
    ids, so that it does not depend on the order of rows; `starts` has the first row of each log;
    `row` is the number of each among all rows read, where a row that counts under several labels
    stands there several times."""

    item: Codes
    sample: Codes
    score: FloatArray
    combination: Codes
    combinations: list[Combination]
    ids: Hashes
    starts: list[int]
    positions: Ints
    row: Ints | None = None


def in_fewer_bytes(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same numbers in the smallest type that holds them."""
    if numbers.dtype.kind == "i":
        least = min(numbers.min(initial=-1), -1 - numbers.max(initial=0))
        return numbers.astype(np.min_scalar_type(int(least)), copy=False)
    for smaller in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            small = numbers.astype(smaller)
        if np.array_equal(small, numbers, equal_nan=True):
            return small
    return numbers


def narrowed(columns: Columns) -> Columns:
    """Return the same numbers in fewer bytes."""
    columns.sample = in_fewer_bytes(columns.sample)
    columns.combination = in_fewer_bytes(columns.combination)
    columns.score = in_fewer_bytes(columns.score)
    return columns


class _Hashes(dict[str, int]):
    """Samples of one item mostly stand near one another, and a lookup is quicker than hashing
    again."""

    def __missing__(self, id: str) -> int:
        self[id] = found = id_hash(id)
        return found


# ---- narrow decoding, the fastest way that fits first


_MOST_KNOWN = 1 << 11
_MOST_TEXTS = 32
_MOST_TRIES = 16
_TEXTS = ("label", "scorer", "outcome")
_BASE: dict[str, tuple[Any, Any]] = {  # in the order of the rows, which decodes fastest
    "item_id": (str, ...),
    "sample_index": (int, 0),
    "label": (str, ""),
    "passed": (bool | None, None),
    "score": (float | None, None),
    "scorer": (str, ""),
    "outcome": (EvaluationOutcome, ...),
}


def layouts(facets: Sequence[str]) -> list["Layout"]:
    """Return ways to decode evaluation rows, the fastest first; none where these facets need whole
    rows.

    A way that knows the texts which occurred so far is put before these two: it decodes them to
    the same few objects, and what never varies need not be looked at. The first of these takes
    any text, the second facet values of any type.
    """
    made: list[Layout] = []
    for leaf, raw in ((str | None, False), (msgspec.Raw, True)):
        if (
            found := narrow(facets, _BASE, lambda place, leaf=leaf: leaf, before="score")
        ) is not None:
            made.append(Layout(facets, found, raw=raw))
    return made


class Layout:
    """One struct type. Rows that are equal but for their item are known by one number, as long
    as there are few such numbers: a table then has their combination, sample and score. With
    many different scores the numbers are only combinations. `constant`: fields that the type
    itself pins to one value; None for types that pin nothing."""

    def __init__(
        self,
        facets: Sequence[str],
        found: Narrow,
        *,
        raw: bool,
        constant: Sequence[str] | None = None,
    ) -> None:
        self.decode_lines = cast(
            "Callable[[bytes], list[Any]]", msgspec.json.Decoder(found.type).decode_lines
        )
        self.known: dict[Any, int] = {}
        self.few = True
        self.table = _table([])
        self._rows: list[tuple[int, int, float]] = []
        self._facets = facets
        self._raw = raw
        self._special = constant is not None
        self._places = [[attrgetter(place) for place in places] for places in found.places]
        top = ["label", "scorer", "outcome", "passed", *found.fields]
        base = {place for places in found.places for place in places if place in _BASE}
        self._names = [
            name for name in [*top, *sorted(base - set(top))] if name not in (constant or ())
        ]
        self._texts: dict[str, set[Any]] = {
            place: set()
            for place in (*_TEXTS, *(place for places in found.places for place in places))
        }
        self._tries = 0
        self._learnt = False
        self.key = self._getter(*self._names, "sample_index", "score")

    def learn(self, rows: list[Any], code: Callable[[Any, tuple[Any, ...]], int]) -> None:
        """Take up the rows that are not known yet; `code` gives the combination of a row and its
        facet values."""
        if self.few and len(self.known) > _MOST_KNOWN:
            self.few, self.known = False, {}
            self.key = self._getter(*self._names)
        for row in rows:
            key = self.key(row)
            if key in self.known:
                continue
            combination = code(row, self._values(row))
            if self.few:
                score = math.nan if row.score is None else row.score + 0.0  # -0.0 is 0.0
                self.known[key] = len(self._rows)
                self._rows.append((combination, row.sample_index, score))
            else:
                self.known[key] = combination
            if not self._raw and not self._special:
                for place, texts in self._texts.items():
                    texts.add(attrgetter(place)(row))
                self._learnt = True
        self.table = _table(self._rows)

    def improved(self, present: list["Layout"]) -> list["Layout"]:
        """The layouts to continue with: if this one has met new texts, the first is made anew
        for them."""
        if not self._learnt:
            return present
        self._learnt = False
        self._tries += 1
        others = [layout for layout in present if not layout._special]
        if self._tries > _MOST_TRIES or any(
            len(texts) > _MOST_TEXTS for texts in self._texts.values()
        ):
            return others
        return [self._specialised(), *others]

    def _specialised(self) -> "Layout":
        constant = [name for name in _TEXTS if len(self._texts[name]) == 1]
        absent = [
            place for place, texts in self._texts.items() if texts == {UNSET} and "." not in place
        ]
        base = dict(_BASE)
        for name in _TEXTS:
            base[name] = (
                Literal[tuple(self._texts[name])],
                ... if name in constant else _BASE[name][1],
            )
        found = narrow(self._facets, base, self._literal, before="score")
        assert found is not None
        return Layout(self._facets, found, raw=False, constant=[*constant, *absent])

    def _literal(self, place: str) -> Any:
        texts = tuple(text for text in self._texts[place] if isinstance(text, str))
        # a text that never comes: then any is news, and the next layout's
        known: Any = Literal[texts or ("\0",)]
        return known | None if None in self._texts[place] else known

    def _getter(self, *names: str) -> Callable[[Any], Any]:
        get = attrgetter(*names)
        if not self._raw:
            return get
        places = [place for places in self._places for place in places]

        def key(row: Any) -> tuple[Any, ...]:
            values = (place(row) for place in places)
            plain = (row.label, row.scorer, row.outcome, row.passed)
            joint = (row.sample_index, row.score) if self.few else ()
            return (
                *plain,
                *joint,
                *(bytes(v) if isinstance(v, msgspec.Raw) else v for v in values),
            )

        return key

    def _values(self, row: Any) -> tuple[Any, ...]:
        found = (first_of(place(row) for place in places) for places in self._places)
        return tuple(
            msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
            for value in found
        )


def _table(rows: list[tuple[int, int, float]]) -> tuple[npt.NDArray[Any], ...]:
    combinations, samples, scores = zip(*rows, strict=True) if rows else ((), (), ())
    return (
        np.array(combinations, np.int32),
        np.array(samples, np.int32),
        np.array(scores, np.float64),
    )


# ---- rows


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
        """The columns of all rows from those of readers that have read a share of each log, in
        order."""
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
        """Which of the lines hold rows: a foreign file may have blank ones. `place` says where a
        line stands."""
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
    """The distinct hashes, sorted, and for each row its place among them; runs of equal ones are
    looked up once. `np.unique` would need twice the memory."""
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
    """Return where a line of a block is. The lines before it are counted only when there is
    something to say."""
    return _line(where, sum(block.count(b"\n") for block in islice(log.blocks(), blocks)), at)


def _sample(index: Any, where: Callable[[], str]) -> int:
    number: Any = index or 0
    if not isinstance(number, (int, float)) or not 0 <= number < 1 << 31:
        raise UserError(
            "sample_index is not a count from 0", where=where(), fix="correct or remove the line"
        )
    return int(number)


def _label(label: Any) -> str:
    name: Any = cast("JsonObject", label).get("name") if isinstance(label, dict) else label
    return "" if name is None else str(name)
