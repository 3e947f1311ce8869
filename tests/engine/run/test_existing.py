"""Rows that are there, against a plan: exactly the planned ones stay, and nothing is ever lost."""

import json
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from assay.engine.run.existing import Existing
from assay.interfaces import Log
from assay.records import Kind
from assay.store.keys import digest
from assay.store.stores import MemoryStore

KEYS = [digest("test", b"%d" % number) for number in range(6)]
OUTCOMES = ["ok", "refused", "transient", "permanent"]


class Commit(NamedTuple):
    """The rows of one call: `size` labels, of which only the first `written` reached the disk."""

    key: int
    outcome: str
    size: int = 1
    written: int = 1

    def lines(self, mark: int) -> list[str]:
        outcome = "errored" if self.outcome in ("transient", "permanent") else self.outcome
        kind = self.outcome if outcome == "errored" else None
        row = {"item_id": "i", "key": KEYS[self.key].hex(), "mark": mark}
        return [
            json.dumps({**row, "outcome": outcome, "error_kind": kind, "part": [part, self.size]})
            for part in range(min(self.written, self.size))
        ]


commits = st.lists(
    st.one_of(
        st.builds(
            Commit,
            st.integers(0, 5),
            st.sampled_from(OUTCOMES),
            st.integers(1, 3),
            st.integers(1, 3),
        ),
        st.sampled_from(["", "garbage {", "   ", '{"no": "item"}', "null"]),
    ),
    max_size=12,
)
plans = st.sets(st.integers(0, 5))


def fill(log: Log, content: list[Commit | str], begin: int) -> None:
    for mark, entry in enumerate(content, begin):
        for line in [entry] if isinstance(entry, str) else entry.lines(mark):
            log.append(line.encode() + b"\n")


def lines(log: Log) -> list[str]:
    return [line.decode() for _, line in log.scan() if line.strip()]


def everything(store: MemoryStore, kind: Kind) -> Counter[str]:
    """All lines wherever they are; of rejected ones their text."""
    kept = lines(store.log(kind, "x")) + lines(store.log(kind, "x", "superseded"))
    rejected = [json.loads(line)["text"] for line in lines(store.log(kind, "x", "rejected"))]
    return Counter(kept + rejected)


@pytest.mark.parametrize("kind", ["run", "evaluation"])
@settings(deadline=None)
@given(commits, commits, plans, plans, st.booleans(), st.booleans())
def test_any_mix_settles_to_the_plan(
    kind: Kind,
    content: list[Any],
    put_aside: list[Any],
    planned: set[int],
    now: set[int],
    retry_errors: bool,
    fresh: bool,
) -> None:
    store = MemoryStore()
    fill(store.log(kind, "x"), content, 0)
    fill(store.log(kind, "x", "superseded"), put_aside, 1000)
    before = everything(store, kind)
    existing = Existing(store, kind, "x")
    existing.settle([(KEYS[n], n in now) for n in planned], retry_errors=retry_errors, fresh=fresh)
    assert everything(store, kind) == before
    rows = [json.loads(line) for line in lines(store.log(kind, "x"))]
    numbers = [KEYS.index(bytes.fromhex(row["key"])) for row in rows]
    assert set(numbers) == set() if fresh else set(numbers) <= planned
    for number in range(6):
        own = [row for row, key in zip(rows, numbers, strict=True) if key == number]
        assert (KEYS[number] in existing) == bool(own)
        if own:
            assert len({row["mark"] for row in own}) == 1  # one commit, and all of it
            assert [row["part"] for row in own] == [
                [part, own[0]["part"][1]] for part in range(len(own))
            ]
            assert len(own) == own[0]["part"][1]
        if number in planned and not fresh:
            again = {"transient", "permanent"} if retry_errors else {"transient"}
            there = [
                c
                for c in content
                if isinstance(c, Commit) and c.key == number and c.written >= c.size
            ]
            aside = [
                c
                for c in put_aside
                if isinstance(c, Commit) and c.key == number and c.written >= c.size
            ]
            if there:
                expected = not (number in now and there[0].outcome in again)
            else:
                expected = any(c.outcome in ("ok", "refused") for c in aside)
            assert bool(own) == expected
    assert existing.total == len(set(numbers))
    assert sum(count for name, count in existing.counts().items() if name != "transient") == len(
        rows
    )


@settings(deadline=None)
@given(commits, plans)
def test_settling_twice_changes_nothing_more(content: list[Any], planned: set[int]) -> None:
    store = MemoryStore()
    fill(store.log("evaluation", "x"), content, 0)
    plan = [(KEYS[n], False) for n in planned]
    Existing(store, "evaluation", "x").settle(plan)
    once = lines(store.log("evaluation", "x")), lines(store.log("evaluation", "x", "superseded"))
    Existing(store, "evaluation", "x").settle(plan)
    assert (
        lines(store.log("evaluation", "x")),
        lines(store.log("evaluation", "x", "superseded")),
    ) == once


def settled(
    content: list[Any], put_aside: list[Any], planned: set[int], **options: Any
) -> tuple[Any, list[str]]:
    store, notes = MemoryStore(), []
    fill(store.log("evaluation", "x"), content, 0)
    fill(store.log("evaluation", "x", "superseded"), put_aside, 1000)
    existing = Existing(store, "evaluation", "x")
    existing.settle([(KEYS[n], True) for n in planned], note=notes.append, **options)
    return [json.loads(line)["mark"] for line in lines(store.log("evaluation", "x"))], notes


def test_a_row_set_aside_after_its_failure_was_repeated_comes_back() -> None:
    marks, notes = settled([], [Commit(0, "transient"), Commit(0, "ok")], {0})
    assert marks == [1001]
    assert "brought back" in notes[0]


def test_all_labels_of_a_call_are_tried_again_together() -> None:
    store = MemoryStore()
    log = store.log("evaluation", "x")
    fill(log, [Commit(0, "ok", 2, 2)], 0)
    good, bad = lines(log)
    bad = bad.replace('"ok"', '"errored"').replace(
        '"error_kind": null', '"error_kind": "permanent"'
    )
    log.replace([good.encode() + b"\n", bad.encode() + b"\n"])
    existing = Existing(store, "evaluation", "x")
    existing.settle([(KEYS[0], True)], retry_errors=True)
    assert KEYS[0] not in existing
    assert lines(log) == []


def test_a_torn_commit_is_not_mixed_with_a_whole_one() -> None:
    marks, _ = settled([], [Commit(0, "ok", 3, 2), Commit(0, "ok", 3, 3)], {0})
    assert marks == [1001, 1001, 1001]


def test_blank_lines_do_not_shift_what_is_kept() -> None:
    marks, _ = settled(["", Commit(0, "ok"), "  ", Commit(1, "ok"), Commit(2, "ok")], [], {1})
    assert marks == [3]


def test_looking_changes_nothing() -> None:
    store = MemoryStore()
    content: list[Any] = [Commit(0, "ok"), "garbage", Commit(1, "transient"), Commit(2, "ok")]
    fill(store.log("run", "x"), content, 0)
    before = list(store.log("run", "x").scan())
    found = Existing(store, "run", "x").compare([(KEYS[n], True) for n in (0, 1, 3)])
    assert found is not None
    assert (found.stale, found.retried, found.returning, found.missing()) == (1, 1, 0, 2)
    assert list(store.log("run", "x").scan()) == before
    assert list(store.log("run", "x", "rejected").scan()) == []
