import random
import sys
import tracemalloc
from array import array

import pytest
from hypothesis import given, strategies as st

from assay.store import keyset
from assay.store.keys import short
from assay.store.keyset import KeySet, Seen

from .conftest import unhurried

words = st.integers(0, 2**64 - 1)


@unhurried
@given(st.lists(words, max_size=200), st.lists(words, max_size=20))
def test_agrees_with_a_set(inside: list[int], others: list[int]) -> None:
    keys = KeySet(inside)
    assert list(keys) == sorted(set(inside))
    assert len(keys) == len(set(inside))
    for key in [*inside, *others, 0, 2**64 - 1]:
        assert (key in keys) == (key in set(inside))


def test_agrees_with_a_set_when_large() -> None:
    draw = random.Random(5).getrandbits
    inside = [draw(64) for _ in range(50_000)]
    keys = KeySet(array("Q", inside))
    assert all(key in keys for key in inside)
    assert not any(key ^ 1 in keys for key in inside)


def test_uneven_keys_are_found_too() -> None:
    keys = KeySet(range(10_000))
    assert 9_999 in keys
    assert 10_000 not in keys


def test_keys_as_bytes() -> None:
    key = bytes(range(16))
    assert key in KeySet([short(key)])
    assert bytes(16) not in KeySet([1])


def test_about_ten_bytes_a_key() -> None:
    keys = KeySet(array("Q", [random.Random(1).getrandbits(64) ^ n << 32 for n in range(100_000)]))
    size = sum(sys.getsizeof(part) for part in vars(keys).values())
    assert size <= 11 * len(keys)


@unhurried
@given(st.lists(st.integers(0, 40), max_size=200))
def test_seen_tells_new_from_old(sequence: list[int]) -> None:
    seen, known = Seen(), set[int]()
    for key in sequence:
        assert seen.add(key) == (key not in known)
        known.add(key)


def test_seen_beyond_its_buffer(monkeypatch) -> None:
    monkeypatch.setattr(keyset, "_BUFFER", 10)
    seen = Seen()
    assert all(seen.add(key) for key in range(1000))
    assert not any(seen.add(key) for key in range(1000))


@unhurried
@given(st.sets(words, max_size=80), st.sets(words, max_size=80))
def test_a_grown_set_is_that_of_all_keys(before: set[int], added: set[int]) -> None:
    keys = KeySet(before)
    keys.grow(added - before)
    assert list(keys) == sorted(before | added)
    assert all(key in keys for key in before | added)


def test_seen_costs_at_most_thirty_bytes_a_key_even_while_it_grows() -> None:
    draw = random.Random(3).getrandbits
    seen = Seen()
    for _ in range(100_000):
        seen.add(draw(64))
    tracemalloc.start()
    for _ in range(200_000):
        seen.add(draw(64))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30 * 300_000


@unhurried
@given(st.lists(st.lists(st.integers(0, 60), max_size=30), max_size=12), st.integers(1, 20))
def test_many_keys_at_once(groups: list[list[int]], buffer: int) -> None:
    seen, known = Seen(), set[int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyset, "_BUFFER", buffer)
        for group in groups:
            assert seen.isdisjoint(group) == known.isdisjoint(group)
            seen.update([key for key in group if key not in known])
            known.update(group)
            assert all((key in seen) == (key in known) for key in range(61))
