"""JSON out of what models write."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.text.json_out import NoJson, at_path, find_json, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here: {"a": {"b": [1]}}. Done.', {"a": {"b": [1]}}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('First {"a": 0}\n```\n{"a": 1}\n```\nbye', {"a": 1}),
        ('```json\n{"a": 1}', {"a": 1}),
        ('a [1] and {"b": 2} and [3]', {"b": 2}),
        ("see [note] and [1, 2]", [1, 2]),
        (" 3 ", 3),
    ],
)
def test_found(text: str, value: Any) -> None:
    assert find_json(text) == value


@pytest.mark.parametrize(
    "text", ["", "none", "{a: 1}", "{'a': 1}", "NaN", '{"a": NaN}', "[" * 100_000]
)
def test_none(text: str) -> None:
    with pytest.raises(NoJson):
        find_json(text)


@given(VALUES.filter(lambda value: isinstance(value, dict) and value))
def test_an_object_is_found_in_any_prose(value: Any) -> None:
    text = json.dumps(value)
    assert find_json(f"The answer is: {text}\nThat is all.") == value
    assert read_json(text) == value


@pytest.mark.parametrize(
    ("path", "value"),
    [("a.b", 1), ("l.0.x", 2), ("l[0].x", 2), ("l.-1.x", 2), ("d.o.t", 3), ("a", {"b": 1})],
)
def test_paths(path: str, value: Any) -> None:
    assert at_path({"a": {"b": 1}, "l": [{"x": 2}], "d.o.t": 3}, path) == value


@pytest.mark.parametrize("path", ["b", "a.c", "l.1", "l.x", "a.b.c", ""])
def test_paths_to_nothing(path: str) -> None:
    with pytest.raises(KeyError):
        at_path({"a": {"b": 1}, "l": [{"x": 2}]}, path)
