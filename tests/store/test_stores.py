import json
from pathlib import Path

import pytest

from assay.errors import LockedError, StoreError, UserError
from assay.interfaces import Store
from assay.records import Manifest
from assay.store.stores import FlatStore, FolderStore, MemoryStore, directory_of, new_id, open_store

from .contract import HARD_IDS, ManyContract, StoreContract


class TestMemoryStore(ManyContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestFolderStore(ManyContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FolderStore(tmp_path / "root")


class TestFlatStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FlatStore(tmp_path / "only")


def test_the_files_of_an_experiment(tmp_path: Path) -> None:
    store = FlatStore(tmp_path / "exp")
    assert store.id == "exp"
    for kind in ("dataset", "run", "evaluation", "aggregation"):
        store.put_manifest(Manifest(kind=kind, id="exp"))
        store.log(kind, "exp").append(b"{}\n")
    for name in ("calls", "traces", "superseded", "rejected"):
        store.log("run", "exp", name).append(b"{}\n")
    files = {
        path.relative_to(tmp_path / "exp").as_posix()
        for path in (tmp_path / "exp").rglob("*")
        if path.is_file()
    }
    assert files == {
        "items.jsonl",
        "responses.jsonl",
        "evaluation_results.jsonl",
        "metrics.jsonl",
        "manifest.json",
        "calls.jsonl",
        "traces.jsonl",
        "superseded/responses.jsonl",
        "rejected/responses.jsonl",
    }
    assert set(json.loads((tmp_path / "exp" / "manifest.json").read_text())) == {
        "dataset",
        "run",
        "evaluation",
        "aggregation",
        "seal",
    }


def test_the_files_of_a_repository_stay_inside_it(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "outer" / "root")
    for id in HARD_IDS:
        store.put_manifest(Manifest(kind="run", id=id))
        store.log("dataset", id).append(b"{}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["outer"]
    assert [path.name for path in (tmp_path / "outer").iterdir()] == ["root"]
    assert sorted(path.name for path in store.root.iterdir()) == ["datasets", "runs"]
    assert {len(path.relative_to(store.root).parts) for path in store.root.rglob("*.json*")} == {3}


def test_a_flat_folder_holds_one_of_each_kind(tmp_path: Path) -> None:
    store = FlatStore(tmp_path)
    store.put_manifest(Manifest(kind="run", id="mine"))
    assert store.ids("run") == ["mine"]
    assert store.manifest("run", "other") is None
    store.delete("run", "other")
    for use in (
        lambda: store.log("run", "other"),
        lambda: store.put_manifest(Manifest(kind="run", id="other")),
        lambda: store.lock("run", "other"),
    ):
        with pytest.raises(UserError, match="holds the run 'mine', not 'other'"):
            use()
    store.put_manifest(Manifest(kind="evaluation", id="other"))
    assert store.ids("run") == ["mine"]


def test_deleting_a_run_keeps_the_calls_that_its_evaluation_paid(tmp_path: Path) -> None:
    store = FlatStore(tmp_path)
    for kind in ("run", "evaluation"):
        store.put_manifest(Manifest(kind=kind, id="e"))
    store.log("evaluation", "e", "calls").append(b"{}\n")
    store.delete("run", "e")
    assert (tmp_path / "calls.jsonl").exists()
    store.delete("evaluation", "e")
    assert not (tmp_path / "calls.jsonl").exists()


def test_deleting_from_a_flat_folder_leaves_what_is_not_ours(tmp_path: Path) -> None:
    store = FlatStore(tmp_path)
    store.put_manifest(Manifest(kind="run", id="e"))
    (tmp_path / "notes.txt").write_text("mine")
    store.delete("run", "e")
    assert (tmp_path / "notes.txt").read_text() == "mine"


INNER = [
    *(
        f'"metadata": {{"{name}": 5}}'
        for name in ("rows", "faults", "calibrations", "own_answers", "usage", "calls")
    ),
    *(
        '"metadata": {"rows": {"run": [5]}}',
        '"metadata": {"rows": {"nothing": "a"}}',
        '"plan": {"scorers": "x"}',
    ),
    *(
        '"plan": {"tasks": [1]}',
        '"inputs": [{"kind": "x"}]',
        '"inputs": [{"kind": "run", "id": "r", "partial": 1}]',
    ),
]


@pytest.mark.parametrize(
    "content",
    [
        *(b"{broken", b"[]", b'{"run": {"id": 5}}', b'{"run": null}', b""),
        *(f'{{"run": {{"kind": "run", "id": "r", {inner}}}}}'.encode() for inner in INNER),
    ],
)
def test_a_broken_manifest_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(StoreError, match="manifest cannot be read") as caught:
        FlatStore(tmp_path).manifest("run", "e")
    assert caught.value.where == str(tmp_path / "manifest.json")
    assert (tmp_path / "manifest.json").read_bytes() == content


def test_sections_of_other_kinds_keep_what_we_do_not_know(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(
        '{"evaluation": {"kind": "evaluation", "id": "e", "new_field": 1}}'
    )
    FlatStore(tmp_path).put_manifest(Manifest(kind="run", id="e"))
    assert json.loads((tmp_path / "manifest.json").read_text())["evaluation"]["new_field"] == 1


def test_a_locked_artefact_is_not_deleted(tmp_path: Path) -> None:
    store, other = FolderStore(tmp_path), FolderStore(tmp_path)
    store.put_manifest(Manifest(kind="run", id="r"))
    with store.lock("run", "r"), pytest.raises(LockedError):
        other.delete("run", "r")
    assert store.ids("run") == ["r"]


def test_open_store_knows_the_layout(tmp_path: Path) -> None:
    FolderStore(tmp_path / "root").put_manifest(Manifest(kind="run", id="r"))
    FlatStore(tmp_path / "flat").put_manifest(Manifest(kind="run", id="r"))
    assert isinstance(open_store(tmp_path / "root"), FolderStore)
    assert isinstance(open_store(tmp_path / "flat"), FlatStore)
    assert isinstance(open_store(tmp_path / "none"), FlatStore)


def test_directories_and_new_ids(tmp_path: Path) -> None:
    flat, root, memory = FlatStore(tmp_path / "exp"), FolderStore(tmp_path), MemoryStore()
    assert directory_of(flat, "run", "x") == tmp_path / "exp"
    assert directory_of(root, "run", "x") == tmp_path / "runs" / "x"
    assert directory_of(memory, "run", "x") is None
    assert new_id(flat) == "exp"
    assert new_id(root) != new_id(root)
