"""Cells, their keys, what a selection takes, and the digest that recognises a plan."""

from typing import Any

import pytest

from assay.engine.run.plan import (
    Selection,
    cells,
    describe,
    estimated_tokens,
    marked_cells,
    plan_digest,
)
from assay.interfaces import Answer, Context, Work
from assay.records import Item


class Echo:
    """A task whose fingerprint is the item's data."""

    def __init__(self, name: str, facets: dict[str, Any] | None = None) -> None:
        self.name = self.model_name = self.lane = name
        self.facets = facets or {}
        self.identity = {"echo": name}

    def prepare(self, item: Item) -> Work:
        return Work(item.data.encode(), [{"content": item.data}])

    async def run(self, work: Work, context: Context) -> Answer:
        return Answer()


ITEMS = [Item(id=f"q{i}", data=f"text {i}") for i in range(3)]
TASKS = [Echo("a"), Echo("b")]


def test_every_cell_item_by_item() -> None:
    found = [(cell.item.id, cell.task.name, cell.sample) for cell in cells(TASKS, ITEMS, 2)]
    assert found[:4] == [("q0", "a", 0), ("q0", "a", 1), ("q0", "b", 0), ("q0", "b", 1)]
    assert len({cell.key for cell in cells(TASKS, ITEMS, 2)}) == len(found) == 12


def test_keys_depend_on_address_and_fingerprint_only() -> None:
    keys = [cell.key for cell in cells(TASKS, ITEMS, 2)]
    assert [cell.key for cell in cells(list(reversed(TASKS)), ITEMS, 2)] != keys
    assert {cell.key for cell in cells(list(reversed(TASKS)), ITEMS, 2)} == set(keys)
    assert {cell.key for cell in cells(TASKS, ITEMS, 1)} < set(keys)
    changed = [Item(id="q0", data="other"), *ITEMS[1:]]
    assert len({cell.key for cell in cells(TASKS, changed, 2)} & set(keys)) == 8


def test_an_item_that_cannot_be_prepared_keeps_its_cells() -> None:
    found = list(cells(TASKS, [Item(id="bad", data=3), ITEMS[0]], 1))
    assert [cell.problem is None for cell in found] == [False, False, True, True]
    assert "AttributeError" in str(found[0].problem)
    assert [cell.key for cell in cells(TASKS, [Item(id="bad", data=3)], 1)] == [
        cell.key for cell in found[:2]
    ]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), 12),
        (Selection(items=2), 8),
        (Selection(samples=1), 6),
        (Selection(tasks=frozenset({"a"})), 6),
        (Selection(tasks=frozenset({"a"}), items=1, samples=1), 1),
        (Selection(items=0), 0),
        (Selection(tasks=frozenset()), 0),
    ],
)
def test_a_selection_narrows_what_runs_and_not_the_plan(
    selection: Selection, expected: int
) -> None:
    found = list(marked_cells(TASKS, ITEMS, 2, selection))
    assert len(found) == 12
    assert sum(selected for _, selected in found) == expected


def test_the_digest_recognises_a_plan() -> None:
    same = plan_digest(describe(TASKS, 2, "hash"))
    assert plan_digest(describe([Echo("a"), Echo("b")], 2, "hash")) == same
    others = [
        describe(TASKS, 3, "hash"),
        describe(TASKS, 2, "other"),
        describe(TASKS[:1], 2, "hash"),
        describe([Echo("a", {"level": 1}), TASKS[1]], 2, "hash"),
    ]
    assert len({same, *map(plan_digest, others)}) == 5


def test_estimated_tokens() -> None:
    assert 20 <= estimated_tokens(Work(b"", [{"content": "x" * 40}, {"content": "y" * 40}])) <= 24
    assert estimated_tokens(Work(b"", "no messages")) == 0
