"""Rows from elsewhere become a run of ours: once, whole or not at all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.engine.experiment.imports.rows import import_rows
from assay.records import Response
from assay.store.repositories import RunRepository
from assay.store.stores import FlatStore

INPUTS: list[dict[str, Any]] = [{"kind": "dataset", "id": "d", "digest": "1"}]


class Source:
    """Rows that count how often they are read."""

    def __init__(self, *answers: str, fails: bool = False) -> None:
        self.answers = answers
        self.fails = fails
        self.reads = 0

    def rows(self) -> Iterator[Response]:
        self.reads += 1
        for number, answer in enumerate(self.answers):
            yield Response(
                item_id=str(number), response=answer, outcome="ok" if answer else "errored"
            )
        if self.fails:
            raise ValueError("the source is broken")


@pytest.fixture
def store(tmp_path: Path) -> FlatStore:
    return FlatStore(tmp_path / "run")


def answers(store: FlatStore) -> list[str]:
    return [row.response for row in RunRepository(store).responses("r")]


def test_rows_are_stored_and_counted(store: FlatStore) -> None:
    manifest = import_rows(
        store, "run", "r", Source("a", "", "b").rows(), source={"v": 1}, inputs=INPUTS, name="n"
    )
    assert manifest == store.manifest("run", "r")
    assert (manifest.counts, manifest.planned, manifest.complete) == (
        {"ok": 2, "errored": 1},
        3,
        True,
    )
    assert (manifest.inputs, manifest.plan["adopted"], manifest.name) == (INPUTS, {"v": 1}, "n")
    assert answers(store) == ["a", "", "b"]


def test_an_unchanged_source_is_not_read_again(store: FlatStore) -> None:
    first = import_rows(store, "run", "r", Source("a").rows(), source={"v": 1}, inputs=INPUTS)
    again = Source("b")
    assert import_rows(store, "run", "r", again.rows(), source={"v": 1}, inputs=INPUTS) == first
    assert again.reads == 0
    assert answers(store) == ["a"]


@pytest.mark.parametrize(
    "change", [{"source": {"v": 2}}, {"inputs": [{**INPUTS[0], "digest": "2"}]}]
)
def test_a_changed_source_or_dataset_is(store: FlatStore, change: dict[str, Any]) -> None:
    first = import_rows(store, "run", "r", Source("a").rows(), source={"v": 1}, inputs=INPUTS)
    given = {"source": {"v": 1}, "inputs": INPUTS, **change}
    second = import_rows(store, "run", "r", Source("b").rows(), **given)
    assert answers(store) == ["b"]
    assert second.created == first.created


def test_rows_that_somebody_edited_are_put_right(store: FlatStore) -> None:
    import_rows(store, "run", "r", Source("a").rows(), source={"v": 1}, inputs=INPUTS)
    store.log("run", "r").append(b'{"item_id": "9", "response": "foreign"}\n')
    import_rows(store, "run", "r", Source("a").rows(), source={"v": 1}, inputs=INPUTS)
    assert answers(store) == ["a"]


def test_a_source_that_fails_half_way_changes_nothing(store: FlatStore) -> None:
    import_rows(store, "run", "r", Source("a").rows(), source={"v": 1}, inputs=INPUTS)
    before = store.manifest("run", "r")
    with pytest.raises(ValueError, match="broken"):
        import_rows(
            store, "run", "r", Source("b", fails=True).rows(), source={"v": 2}, inputs=INPUTS
        )
    assert answers(store) == ["a"]
    assert store.manifest("run", "r") == before
