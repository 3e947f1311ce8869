"""The extents of values are where `json` finds them, however the file is read."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.text import json_extents
from assay.text.json_extents import BrokenExtent, extents

TEXTS = st.text(max_size=12)
VALUES: Any = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
PLAIN_KEYS = st.text("abc", min_size=1, max_size=3)


class Slow(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(3)


def read(data: bytes, split: set[str], slowly: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, number, value in extents(Slow(data) if slowly else io.BytesIO(data), split):
        if number is not None:
            assert number == len(found[key])
            found[key].append(json.loads(value))
        elif value:
            found[key] = json.loads(value)
        else:
            found[key] = []
    return found


@given(
    st.dictionaries(PLAIN_KEYS, VALUES),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
    st.sets(PLAIN_KEYS),
)
def test_every_value_is_found(
    value: dict[str, Any], indent: int | None, slowly: bool, split: set[str]
) -> None:
    for ascii_only in (True, False):
        data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode(
            "utf-8", "surrogatepass"
        )
        if ascii_only or b"\xed" not in data:
            assert read(data, split, slowly) == value


ODD = (
    '{"a":[\n {"b":[\n {}\n ]},\n {\n }\n ]}',  # what is inside is indented as what is around it
    '{"a":[\n {"b":{\n }},\n {"c":[{\n }]}\n ]}',
    '{"a":\n [{"b":1\n [}],"c":[{"d":2}]}',
    '{"a":[\n[{"b":1},\n[{"c":2}]]]}',
    '{"a":[\n {"b":NaN\n },\n {"b":1\n },\n {"b":-Infinity\n }]}',
    '{"a":[\n {"b":1\n }\n ],"c":[\n {"d":1\n }\n ]}',
    '{"a":[\n {"b":1\n },\n 5,\n {"b":"\\n }"\n }\n ]}',
    '{"a":[\n {"b":1\n },,\n {"b":1\n }\n ]}',
    '{"a":[\n {"b":1\n } {"b":1\n }\n ]}',
    '{"a":[\n {"b":1\n }',
)


@pytest.mark.parametrize("slowly", [False, True])
@pytest.mark.parametrize("text", ODD)
def test_indentation_is_only_a_guess(text: str, slowly: bool) -> None:
    try:
        expected = repr(json.loads(text))
    except ValueError:
        with pytest.raises(ValueError):
            read(text.encode(), {"a", "c"}, slowly)
        return
    assert repr(read(text.encode(), {"a", "c"}, slowly)) == expected


@pytest.mark.parametrize("odd", ["NaN", "1"])
def test_many_entries_are_found_at_once(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry that has to be found step by step does not slow down those after its window."""
    monkeypatch.setattr(json_extents, "_WINDOW", 1 << 12)
    steps: list[int] = []
    slow = json_extents._ByteWindow._in_brackets
    monkeypatch.setattr(
        json_extents._ByteWindow, "_in_brackets", lambda self: steps.append(1) or slow(self)
    )
    value: dict[str, Any] = {
        "samples": [{"id": number, "list": [{}, [number]]} for number in range(1000)]
    }
    text = json.dumps(value, indent=2).replace('"id": 500,', f'"id": {odd},')
    assert len(read(text.encode(), {"samples"})["samples"]) == 1000
    assert len(steps) < 80 if odd == "NaN" else not steps


def test_brackets_and_quotes_in_texts_do_not_count() -> None:
    value = {"a": ['}]"', "\\", '\\"{', {"]": "["}], "b": "\\\\"}
    assert read(json.dumps(value).encode(), {"a"}, slowly=True) == value


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b'{"a"', b'{"a":', b'{"a":[1', b'{"a":"b', b'{"a":1', b"{a:1}", b'{"a" 1}'],
)
def test_what_is_not_one_object_is_broken(data: bytes) -> None:
    with pytest.raises(BrokenExtent):
        list(extents(io.BytesIO(data), {"a"}))


@given(st.dictionaries(PLAIN_KEYS, VALUES), st.sampled_from([None, 2]), st.booleans())
def test_lists_may_be_passed_over(value: dict[str, Any], indent: int | None, slowly: bool) -> None:
    data = json.dumps(value, indent=indent).encode()
    found = {
        key: (number, json.loads(text or b"[]"))
        for key, number, text in extents(Slow(data) if slowly else io.BytesIO(data), skip=None)
    }
    assert found == {
        key: (None, [] if isinstance(each, list) else each) for key, each in value.items()
    }


def test_only_one_entry_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_extents, "_WINDOW", 1 << 12)
    data = json.dumps(
        {"samples": [{"id": number, "text": "x" * 1000} for number in range(2000)]}
    ).encode()
    window = json_extents._ByteWindow(io.BytesIO(data))
    window.take(b"{")
    window.value()
    window.take(b":")
    largest = 0
    for _ in window.batches():
        largest = max(largest, len(window._data))
    assert largest < 1 << 14
