"""Rows by value: `Lookup` and `group_rows` against plain Python."""

import numpy as np
from hypothesis import given, strategies as st

from assay.store.table.join import Lookup, group_rows

few = st.integers(-3, 3)
pairs = st.lists(st.tuples(few, few), max_size=30)


@given(pairs)
def test_groups_are_those_of_a_dict(rows: list[tuple[int, int]]) -> None:
    columns = [np.array([row[at] for row in rows], np.int64) for at in (0, 1)]
    groups = group_rows(*columns)
    expected: dict[tuple[int, int], list[int]] = {}
    for at, row in enumerate(rows):
        expected.setdefault(row, []).append(at)
    found = [rows_of.tolist() for rows_of in groups.rows()] if rows else []
    assert found == [expected[row] for row in sorted(expected)]
    assert groups.first.tolist() == [each[0] for each in found]


@given(st.lists(few, max_size=30), st.lists(few, max_size=30))
def test_lookup_finds_the_first_row_and_all_of_them(has: list[int], wanted: list[int]) -> None:
    lookup = Lookup(np.array(has, np.int64))
    sought = np.array(wanted, np.int64)
    assert lookup.first(sought).tolist() == [has.index(v) if v in has else -1 for v in wanted]
    begin, end = lookup.ranges(sought)
    for value, start, stop in zip(wanted, begin.tolist(), end.tolist(), strict=True):
        rows = [at for at, own in enumerate(has) if own == value]
        assert lookup.order[start:stop].tolist() == rows


def test_there_may_be_more_pairs_of_values_than_32_bits_count() -> None:
    one = np.arange(70_000, dtype=np.int32)[::-1]
    other = (np.arange(70_000) * 7919 % 69_997).astype(np.int64)
    groups = group_rows(one, other)
    assert groups.of_row.tolist() == one.tolist()
    assert groups.first.tolist() == one.tolist()
