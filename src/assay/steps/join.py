"""Facet values that evaluation rows lack, taken from their responses and items.

Made only for facets that are missing somewhere: one more pass over the evaluations for the keys of their responses,
one over the responses, one over the items. Kept are 8 bytes and a small code for each row, never the rows.
"""

from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.interfaces import Log
from assay.steps.columns import Columns, Combination, Ints, decode_row
from assay.steps.facets import find_in_item, find_in_row, typed
from assay.store.keys import id_hash, short

Keys = npt.NDArray[np.uint64]


def join_responses(columns: Columns, facets: Sequence[str], evaluations: Sequence[Log], runs: Sequence[Log]) -> None:
    """Fill in what `facets` find in the responses behind the rows."""
    wanted = missing(columns, facets)
    if not wanted or not runs:
        return
    found = [_Values() for _ in wanted]
    keys, codes = array("Q"), [array("q") for _ in wanted]
    for row in _rows(runs, "responses"):
        keys.append(_response_key(row.get("key"), row))
        for values, column, at in zip(found, codes, wanted, strict=True):
            column.append(values.code(find_in_row(row, facets[at])))
    sought = array("Q")
    for row in _rows(evaluations, "evaluation_results"):
        responses = row.get("responses") or [None]
        sought.append(_response_key(responses[0], row))
    for values, column, at in zip(found, codes, wanted, strict=True):
        _fill(columns, at, values.seen, _looked_up(_array(sought), _array(keys), np.frombuffer(column, np.int64)))


def join_items(columns: Columns, facets: Sequence[str], datasets: Sequence[Log]) -> None:
    """Fill in what `facets` find in the items of the rows."""
    wanted = missing(columns, facets)
    if not wanted or not datasets:
        return
    found = [_Values() for _ in wanted]
    codes = np.full((len(wanted), len(columns.ids)), -1, dtype=np.int64)
    for row in _rows(datasets, "items"):
        id = np.uint64(id_hash(str(row.get("id"))))
        item = int(np.searchsorted(columns.ids, id))
        if item < len(columns.ids) and columns.ids[item] == id:
            for number, (values, at) in enumerate(zip(found, wanted, strict=True)):
                codes[number, item] = values.code(find_in_item(row, facets[at]))
    for number, (values, at) in enumerate(zip(found, wanted, strict=True)):
        _fill(columns, at, values.seen, codes[number][columns.item])


def missing(columns: Columns, facets: Sequence[str]) -> list[int]:
    """Which facets some row lacks."""
    return [at for at in range(len(facets)) if any(one.values[at] is UNSET for one in columns.combinations)]


class _Values:
    """Values by code, equal ones once."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self._codes: dict[bytes, int] = {}

    def code(self, value: Any) -> int:
        if value is UNSET:
            return -1
        code = self._codes.setdefault(typed(value), len(self.seen))
        if code == len(self.seen):
            self.seen.append(value)
        return code


def _rows(logs: Iterable[Log], what: str) -> Iterable[dict[str, Any]]:
    for log in logs:
        for number, (_, line) in enumerate(log.scan(), 1):
            if line.strip():
                yield decode_row(line, f"{what}, line {number}")


def _response_key(key: Any, row: dict[str, Any]) -> int:
    """The row's own key; foreign rows have only where they stand."""
    if key:
        return short(str(key))
    place = [str(row.get("model_name")), str(row.get("item_id")), row.get("sample_index") or 0]
    return int.from_bytes(blake2b(msgspec.json.encode(place), digest_size=8).digest(), "big")


def _looked_up(sought: Keys, keys: Keys, codes: Ints) -> Ints:
    """The code of each key, -1 where there is none or where rows of one key disagree."""
    order = np.lexsort((codes, keys))
    keys, codes = keys[order], codes[order]
    first, last = np.searchsorted(keys, sought, "left"), np.searchsorted(keys, sought, "right") - 1
    known = (last >= first) & (codes[np.minimum(first, len(codes) - 1)] == codes[last])
    return np.where(known, codes[last], -1)


def _array(numbers: "array[int]") -> Keys:
    return np.frombuffer(numbers, np.uint64)


def _fill(columns: Columns, at: int, values: list[Any], codes: Ints) -> None:
    """Split the combinations that lack facet `at` by the joined value of their rows."""
    lacking = np.array([one.values[at] is UNSET for one in columns.combinations])
    codes = np.where(lacking[columns.combination], codes, -1)
    pairs, numbers = np.unique(
        columns.combination.astype(np.int64) * (len(values) + 1) + codes + 1, return_inverse=True
    )
    made: list[Combination] = []
    for old, code in (divmod(int(pair), len(values) + 1) for pair in pairs):
        one = columns.combinations[old]
        if code:
            one = one._replace(values=(*one.values[:at], values[code - 1], *one.values[at + 1 :]))
        made.append(one)
    columns.combinations, columns.combination = made, numbers.astype(np.int32)
