import json
from pathlib import Path

import msgspec
import pytest

from assay.errors import StoreError, UserError
from assay.interfaces import Store
from assay.records import Evaluation, Manifest, Response
from assay.store.repositories import (
    AggregationRepository,
    DatasetRepository,
    EvaluationRepository,
    RunRepository,
)
from assay.store.stores import FlatStore, FolderStore, MemoryStore

ROWS = [
    {"id": "b", "question": "2+2?", "answer": "4"},
    {"id": "a", "data": {"question": "3+3?"}, "topic": "sums"},
]


@pytest.fixture(params=["memory", "flat", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return {
        "memory": MemoryStore,
        "flat": lambda: FlatStore(tmp_path),
        "folder": lambda: FolderStore(tmp_path),
    }[request.param]()


def test_a_dataset(store: Store) -> None:
    datasets = DatasetRepository(store)
    manifest = datasets.create(
        ROWS, name="sums", id="d", labels=["b", "a", "b"], metadata={"by": "me"}
    )
    assert manifest == datasets.get("d")
    assert (manifest.name, manifest.labels, manifest.metadata) == ("sums", ["a", "b"], {"by": "me"})
    assert manifest.counts == {"items": 2}
    assert manifest.complete
    assert datasets.ids() == ["d"]
    assert [item.id for item in datasets.items("d")] == ["b", "a"]
    item = datasets.item("d", "a")
    assert item is not None
    assert item.extra == {"topic": "sums"}
    assert datasets.item("d", "none") is None
    datasets.verify("d")


def test_equal_rows_give_equal_digests(store: Store) -> None:
    first = DatasetRepository(MemoryStore()).create(ROWS, name="one", id="x")
    assert DatasetRepository(store).create(iter(ROWS), name="two", id="y").digest == first.digest


def test_a_dataset_without_an_id_gets_one(store: Store) -> None:
    datasets = DatasetRepository(store)
    manifest = datasets.create(ROWS, name="sums")
    assert datasets.ids() == [manifest.id]
    assert manifest.id


def test_a_dataset_is_immutable(store: Store) -> None:
    datasets = DatasetRepository(store)
    datasets.create(ROWS, name="sums", id="d")
    with pytest.raises(UserError, match="there is a dataset 'd' already"):
        datasets.create([], name="other", id="d")
    assert len(list(datasets.items("d"))) == 2
    datasets.delete("d")
    assert datasets.get("d") is None
    datasets.create([], name="empty", id="d")
    assert list(datasets.items("d")) == []


def test_changed_bytes_are_refused_with_both_hashes(store: Store) -> None:
    datasets = DatasetRepository(store)
    was = datasets.create(ROWS, name="sums", id="d").digest
    assert datasets.item("d", "a")
    store.log("dataset", "d").append(b'{"id":"c","data":1}\n')
    for use in (datasets.verify, datasets.items, lambda dataset_id: datasets.item(dataset_id, "a")):
        with pytest.raises(UserError, match=f"was {was} and is now [0-9a-f]{{32}}"):
            use("d")


def test_repeated_ids_leave_no_dataset(store: Store) -> None:
    datasets = DatasetRepository(store)
    with pytest.raises(UserError, match="two items have the id 'x'") as caught:
        datasets.create(
            [{"id": "x", "q": 1}, {"q": 2}, {"id": "x", "q": 3}], name="twice.csv", id="d"
        )
    assert caught.value.where == "twice.csv, lines 1 and 3"
    assert datasets.ids() == []
    assert list(store.log("dataset", "d").scan()) == []


def test_unknown_ids_name_the_nearest(store: Store) -> None:
    DatasetRepository(store).create(ROWS, name="sums", id="sums-v1")
    assert DatasetRepository(store).get("sums-v2") is None
    with pytest.raises(UserError) as caught:
        DatasetRepository(store).items("sums-v2")
    assert "sums-v1" in caught.value.fix
    for use in (
        RunRepository(store).responses,
        EvaluationRepository(store).evaluations,
        AggregationRepository(store).metrics,
    ):
        with pytest.raises(UserError, match="there is no"):
            use("nothing")


def test_rows_of_runs_and_evaluations(store: Store) -> None:
    response, evaluation = Response(item_id="a", response="4"), Evaluation(item_id="a", passed=True)
    store.put_manifest(Manifest(kind="run", id="r"))
    store.put_manifest(Manifest(kind="evaluation", id="e"))
    store.log("run", "r").append(msgspec.json.encode(response) + b"\n\n")
    store.log("evaluation", "e").append(msgspec.json.encode(evaluation) + b"\n")
    assert list(RunRepository(store).responses("r")) == [response]
    assert list(EvaluationRepository(store).evaluations("e")) == [evaluation]
    store.log("run", "r").append(b"garbage\n")
    with pytest.raises(StoreError, match="line 3 is not a row"):
        list(RunRepository(store).responses("r"))
    RunRepository(store).delete("r")
    assert RunRepository(store).ids() == []


def test_metric_rows(store: Store, tmp_path: Path) -> None:
    rows = [
        {"metric_name": "pass@1", "value": 0.5, "facets": []},
        {"metric_name": "mean", "value": None},
    ]
    aggregations = AggregationRepository(store)
    store.put_manifest(Manifest(kind="aggregation", id="m"))
    aggregations.write("m", [{"metric_name": "old"}])
    aggregations.write("m", rows)
    assert aggregations.metrics("m") == rows
    lists = list(tmp_path.rglob("metrics.json"))
    assert [json.loads(path.read_text()) for path in lists] == (
        [] if isinstance(store, MemoryStore) else [rows]
    )
    aggregations.write("m", [])
    assert aggregations.metrics("m") == []
    assert [json.loads(path.read_text()) for path in lists] == [[] for _ in lists]
    aggregations.delete("m")
    assert list(tmp_path.rglob("metrics.json*")) == []
