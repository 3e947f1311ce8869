"""Keys are on users' disks. A digest that changes here must come with a new `keys.FORMAT`, and makes all rows new."""

import pytest
from hypothesis import given, strategies as st

from assay.store import keys

from .conftest import unhurried

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_golden_digests() -> None:
    assert keys.FORMAT == b"assay-key-1\0"
    assert keys.digest("kind", b"a", b"bc").hex() == "7d7a29357ded348cfb0ecbb9222904b4"
    assert keys.response_key("q1", "m × p", 0, b"f").hex() == "78456e63f418cda1d63c6c984edda1ea"
    one = keys.evaluation_key(b"s", b"e", [("k1", b"c1")], None)
    assert one.hex() == "f29eda87a4969070b403710ec60ac56f"
    match = keys.evaluation_key(b"s", b"e", [("k1", b"c1"), ("k2", b"c2")], 1)
    assert match.hex() == "74123d7ab71f4e369b5866151ed4d1ea"
    messages = [{"role": "user", "content": "hi"}]
    call = keys.call_key(b"o", "plan", 2, messages, {"name": "m"}, {"temperature": 0})
    assert call.hex() == "666c85f808c07b5eba4973c6a3a0b7ad"
    assert keys.seed_of(7, keys.address("q1", "t", 3)) == 9019788464372376967


def test_canonical_is_one_encoding_for_equal_values() -> None:
    assert keys.canonical({"b": 1.0, "a": (1.5, None)}) == keys.canonical(
        {"a": [1.5, None], "b": 1}
    )
    assert keys.canonical({"a": 1}) != keys.canonical({"a": "1"})
    assert keys.canonical(True) != keys.canonical(1)


@unhurried
@given(json_values, json_values)
def test_different_values_have_different_encodings(first: object, second: object) -> None:
    if keys.canonical(first) == keys.canonical(second):
        assert first == second


@unhurried
@given(json_values)
def test_the_short_way_to_an_encoding_gives_the_same(value: object) -> None:
    assert keys.canonical(value) == keys._encode(keys._normal(value))


@pytest.mark.parametrize(
    "value", [{1: 2}, {None: 1.0}, {True: ["1.0", 1.0]}, (1.0, -0.0, 1e300, 2.0**53), "v1.0"]
)
def test_what_is_no_plain_json_is_encoded_as_ever(value: object) -> None:
    assert keys.canonical(value) == keys._encode(keys._normal(value))


def test_parts_cannot_run_into_each_other() -> None:
    assert (
        keys.digest("k", b"ab", b"c") != keys.digest("k", b"a", b"bc") != keys.digest("k", b"abc")
    )
    assert keys.response_key("a", "b_c", 1, b"") != keys.response_key("a_b", "c", 1, b"")


@pytest.mark.parametrize("seat", [0, 1])
def test_seats_are_different_calls(seat: int) -> None:
    pair = [("k1", b"c1"), ("k2", b"c2")]
    assert keys.evaluation_key(b"s", b"e", pair, seat) != keys.evaluation_key(
        b"s", b"e", pair, None
    )
    assert keys.evaluation_key(b"s", b"e", pair, seat) != keys.evaluation_key(
        b"s", b"e", pair, 1 - seat
    )


def test_short_agrees_on_bytes_and_hex() -> None:
    key = keys.response_key("q1", "t", 0, b"f")
    assert keys.short(key) == keys.short(key.hex()) == int(key.hex()[:16], 16)
    assert keys.short("not hex: a foreign key") < 2**64


@given(st.text())
def test_a_short_key_of_any_text_fits_64_bits(key: str) -> None:
    assert 0 <= keys.short(key) < 2**64
    assert 0 <= keys.short(f"-{key}") < 2**64
