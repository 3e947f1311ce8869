import pytest
from hypothesis import given, strategies as st

from assay.store.files import safe_name

from .conftest import unhurried


@pytest.mark.parametrize("id", ["a", "run-1", "GPT_4.1", "x" * 100, "0"])
def test_plain_ids_are_their_own_name(id: str) -> None:
    assert safe_name(id) == id


@pytest.mark.parametrize(
    "id",
    ["", ".", "..", "../up", "/etc/passwd", "a/b", "a\\b", ".hidden", "-flag", "a.", "x" * 101, "ä", "a b", "a\0b",
     "a~b", "a\n", "ａ", "ж" * 10_000, "\ud800"],
)  # fmt: skip
def test_others_are_encoded(id: str) -> None:
    name = safe_name(id)
    assert name != id
    assert "~" in name


def test_the_name_stays_readable_and_stable() -> None:
    assert safe_name("models/llama 3:8b") == "models-llama-3-8b~ae2e789f6e78344d"


@unhurried
@given(st.text(), st.text())
def test_names_are_safe_and_distinct(first: str, second: str) -> None:
    for name in (safe_name(first), safe_name(second)):
        assert name.isascii()
        assert 1 <= len(name) <= 100
        assert not set(name) & set("/\\\0 ")
        assert name[0] not in ".-~"
    assert (safe_name(first) == safe_name(second)) == (first == second)
