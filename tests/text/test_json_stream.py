import io
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.text import json_stream
from assay.text.json_stream import BrokenJson, json_entries, json_parts

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Slow(io.BytesIO):
    """Gives one byte at a time, so that every value is cut everywhere."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(1)


def entries(
    text: str | bytes, file: type[io.BytesIO] = io.BytesIO
) -> tuple[str, list[tuple[str, Any]]]:
    shape, found = json_entries(file(text.encode() if isinstance(text, str) else text))
    return shape, list(found)


@given(st.lists(JSON), st.sampled_from([None, 1]), st.sampled_from([io.BytesIO, Slow]))
def test_lists_of_anything(values: list[Any], indent: int | None, file: type[io.BytesIO]) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    assert entries(text, file) == ("list", [("", value) for value in values])


@given(
    st.dictionaries(st.text(), st.dictionaries(st.text(), JSON, max_size=3), min_size=1),
    st.booleans(),
)
def test_objects_of_objects(values: dict[str, Any], ascii: bool) -> None:
    assert entries(json.dumps(values, ensure_ascii=ascii), Slow) == ("object", list(values.items()))


@given(
    st.lists(st.integers() | st.dictionaries(st.just("a"), st.integers(), min_size=1), min_size=1)
)
def test_lines(values: list[Any]) -> None:
    text = "\n\n".join(json.dumps(value) for value in values) + "\n"
    assert entries(text, Slow) == ("lines", [("", value) for value in values])


def test_nothing_and_a_mark_of_order() -> None:
    assert entries("") == ("lines", [])
    assert entries("\ufeff[]") == ("list", [])
    assert entries("[NaN]")[1][0][1] != entries("[NaN]")[1][0][1]


@pytest.mark.parametrize(
    ("text", "line", "at_end"),
    [
        ('[{"a": 1},\n{"a": 2', 2, True),
        ('[{"a": 1},\n', 2, True),
        ('[{"a": 1},\n{"a": "cut of', 2, True),
        ("[1, 2] 3", 1, False),
        ('[{"a": 1}\n{"a": 2}]', 2, False),
        ('{"a": {}, 5: {}}', 1, False),
        ('[{"a": \n bad}]' + " " * 100, 2, False),
        ("[" * 100_000, 1, False),
        (b'["\xff"]', 1, False),
    ],
)
def test_broken_files(text: str | bytes, line: int, at_end: bool) -> None:
    with pytest.raises(BrokenJson) as raised:
        entries(text)
    assert (raised.value.line, raised.value.at_end) == (line, at_end)


def test_memory_is_one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_WINDOW", 1 << 10)
    widest = 0
    window = json_stream._Window(io.BytesIO(json.dumps([{"text": "x" * 300}] * 2000).encode()))
    for _ in json_stream._entries(window, "list"):
        widest = max(widest, len(window.text))
    assert widest < 4 << 10


NAMES = st.text(alphabet='xyz"\\{[ ', max_size=4)


@given(
    st.dictionaries(NAMES, JSON, max_size=4),
    st.dictionaries(NAMES, JSON, max_size=3),
    st.lists(JSON, max_size=3),
)
def test_the_parts_inside_of_objects(
    fields: dict[str, Any], inner: dict[str, Any], entries: list[Any]
) -> None:
    whole = {**fields, "a": {**inner, "b": {"c": entries}, "d": {"e": 1}}}
    found: dict[str, Any] = {}
    for key, number, value in json_parts(Slow(json.dumps(whole).encode()), inside=("a", "a.b")):
        if number is None:
            assert key not in found
            found[key] = value
        else:
            assert number == len(found[key])
            found[key].append(value)
    assert found == {
        **fields,
        **{f"a.{name}": value for name, value in inner.items()},
        "a.b.c": entries,
        "a.d": {"e": 1},
    }
