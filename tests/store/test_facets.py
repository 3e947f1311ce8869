"""How facet names find values, and how these are told apart."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import UNSET

from assay.store.memory_log import MemoryLog
from assay.store.table.facets import find, find_in_item, find_in_row, narrow, order, typed
from assay.store.table.labels import Reader


@pytest.mark.parametrize(
    ("row", "facet", "expected"),
    [
        ({"a": 1}, "a", 1),
        ({"a": {"b": 1}}, "a.b", 1),
        ({"a.b": 1, "a": {"b": 2}}, "a.b", 1),
        ({"a": {"b.c": 1, "b": {"c": 2}}}, "a.b.c", 1),
        ({"a.b": {"d": 1}, "a": {"b": {"c": 2}}}, "a.b.c", 2),
        ({"a": None}, "a", None),
        ({"a": None}, "a.b", UNSET),
        ({"a": [1]}, "a.0", UNSET),
        ({}, "", UNSET),
    ],
)
def test_a_literal_key_wins_over_a_path(row: dict[str, Any], facet: str, expected: Any) -> None:
    assert find(row, facet) is expected or find(row, facet) == expected


def test_places_in_order() -> None:
    row = {"top": 1, "metadata": {"top": 2, "only": 3}}
    assert [
        find_in_row(row, name) for name in ("top", "metadata.top", "only", "metadata.only")
    ] == [1, 2, 3, 3]
    item = {
        "id": "i",
        "topic": "a",
        "data": {"topic": "b", "level": 0},
        "metadata": {"level": 1, "source": None},
    }
    assert [find_in_item(item, name) for name in ("topic", "level", "source", "none")] == [
        "a",
        0,
        None,
        UNSET,
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(json_values, json_values)
def test_values_are_one_group_only_with_equal_types(one: Any, other: Any) -> None:
    same = msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
    assert (typed(one) == typed(other)) == same
    assert (order(one) == order(other)) == same


def test_equal_numbers_of_different_types_differ() -> None:
    assert len({typed(value) for value in (0, 0.0, False, None, "0", "", [], {})}) == 8
    assert typed({"a": 1, "b": 2}) == typed({"b": 2, "a": 1})


@given(st.lists(json_values, max_size=8))
def test_any_values_can_be_ordered(values: list[Any]) -> None:
    shuffled = list(values)
    random.Random(1).shuffle(shuffled)
    assert list(map(typed, sorted(values, key=order))) == list(
        map(typed, sorted(shuffled, key=order))
    )


def test_facets_inside_one_another_need_whole_rows() -> None:
    assert narrow(["metadata", "metadata.model_id"], {}, lambda place: str) is None
    assert narrow(["a.b.c.d.e"], {}, lambda place: str) is None
    assert narrow(["metadata.model_id", "prompt_template"], {}, lambda place: str) is not None


names = st.sampled_from(
    ["metadata.a", "a", "a.b", "metadata.a.b", "label", "score", "b", "metadata"]
)
fields = st.dictionaries(st.sampled_from(["a", "b", "a.b", "metadata.a"]), json_values, max_size=3)


@given(
    st.lists(names, min_size=1, max_size=3, unique=True),
    fields,
    st.one_of(fields, st.none(), st.text(max_size=1)),
)
def test_narrow_decoding_finds_what_whole_rows_have(
    facets: list[str], top: dict[str, Any], inner: Any
) -> None:
    row = {
        "item_id": "i",
        "outcome": "scored",
        "label": "l",
        "passed": True,
        "score": 1.0,
        **top,
        "metadata": inner,
    }
    log = MemoryLog("evaluation_results.jsonl")
    log.append(msgspec.json.encode(row) + b"\n")
    reader = Reader(facets)
    reader.read(log, "log")
    (found,) = reader.columns().combinations
    expected = [
        find_in_row(msgspec.json.decode(msgspec.json.encode(row)), facet) for facet in facets
    ]
    assert [v if v is UNSET else typed(v) for v in found.values] == [
        v if v is UNSET else typed(v) for v in expected
    ]
