"""Datasets that are kept: named, immutable, and checked whenever they are read."""

from pathlib import Path
from typing import NamedTuple

import pytest

import assay
from assay.datasets.stored import find, repository_of
from assay.engine.experiment.dataset import dataset_of, keep
from assay.errors import StoreError, UserError
from assay.records import Manifest
from assay.registry import dataset
from assay.store.repositories import DatasetRepository
from tests.support import Lab


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_REPOSITORY", raising=False)
    (tmp_path / "items.jsonl").write_text(
        '{"id": "a", "question": "1 + 1"}\n{"id": "b", "question": "2 + 2"}\n'
    )
    return tmp_path


class Kept(NamedTuple):
    manifest: Manifest
    new: bool


def kept(name: str = "sums", source: str = "items.jsonl", **more: str) -> Kept:
    return Kept(*keep(dataset_of(source), name=name, **more))


def test_a_dataset_is_kept_and_read_again(folder: Path) -> None:
    first = kept()
    assert first.new
    assert first.manifest.counts == {"items": 2}
    assert (folder / "assay-data/datasets/sums/items.jsonl").is_file()
    (folder / "items.jsonl").unlink()
    assert [place for place, _ in dataset.get("stored")("sums")] == ["sums:1", "sums:2"]
    assert [row["id"] for _, row in dataset.get("stored")("sums", repository="assay-data")] == [
        "a",
        "b",
    ]


def test_where_the_repository_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_REPOSITORY", str(folder / "elsewhere"))
    kept()
    assert (folder / "elsewhere/datasets/sums").is_dir()
    assert DatasetRepository(assay.FolderStore("elsewhere")).ids() == ["sums"]


def test_the_same_content_again_is_nothing_new_and_other_content_is_refused(folder: Path) -> None:
    first = kept()
    stored = (folder / "assay-data/datasets/sums/manifest.json").read_bytes()
    again = kept()
    assert (again.new, again.manifest) == (False, first.manifest)
    (folder / "items.jsonl").write_text('{"id": "a", "question": "3 + 1"}\n')
    other = kept("other")
    with pytest.raises(UserError, match="stored already with other content") as caught:
        kept()
    assert first.manifest.digest in caught.value.what
    assert other.manifest.digest in caught.value.what
    assert (folder / "assay-data/datasets/sums/manifest.json").read_bytes() == stored


def test_an_id_of_its_own() -> None:
    kept(id="sums-v1")
    assert find("sums").id == "sums-v1"
    assert find("sums-v1").name == "sums"
    with pytest.raises(UserError, match="the id 'sums-v1' belongs to the dataset 'sums'"):
        kept("more", id="sums-v1")


def test_a_bad_source_keeps_nothing(folder: Path) -> None:
    (folder / "more.jsonl").write_text('{"id": "b", "question": "x"}\n')
    with pytest.raises(UserError, match="two items have the id 'b'") as caught:
        kept(source="*.jsonl")
    assert caught.value.where == f"{folder}/items.jsonl:2 and {folder}/more.jsonl:1"
    assert repository_of().ids() == []
    assert kept().new


def test_an_unknown_name() -> None:
    kept()
    with pytest.raises(UserError, match="there is no stored dataset 'smus'") as caught:
        list(dataset.get("stored")("smus"))
    assert "did you mean 'sums'?" in caught.value.fix


def test_a_manifest_that_is_damaged_is_named(folder: Path) -> None:
    kept()
    path = folder / "assay-data/datasets/sums/manifest.json"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(StoreError, match="the manifest cannot be read") as caught:
        find("sums")
    assert caught.value.where == "assay-data/datasets/sums/manifest.json"


def test_changed_bytes_are_refused_with_both_hashes(folder: Path) -> None:
    first = kept()
    path = folder / "assay-data/datasets/sums/items.jsonl"
    path.write_bytes(path.read_bytes().replace(b"1 + 1", b"1 + 2"))
    with pytest.raises(
        UserError, match=f"its hash was {first.manifest.digest} and is now"
    ) as caught:
        list(dataset.get("stored")("sums"))
    assert "has changed since it was stored" in caught.value.what


def test_a_config_names_it(lab: Lab, folder: Path) -> None:
    lab.run()
    repository = str(folder / "repo")
    keep(dataset_of(str(folder / "items.jsonl")), name="lab", repository=repository)
    lab.config["dataset"] = {
        "type": "stored",
        "name": "lab",
        "repository": repository,
        "filter": 'id != "q0"',
    }
    lab.config["output_dir"] = str(folder / "second")
    assert lab.run().ran == 3 * 2
    assert lab.run().ran == 0
    path = folder / "repo/datasets/lab/items.jsonl"
    path.write_bytes(path.read_bytes().replace(b"1 + 1", b"1 + 2"))
    with pytest.raises(UserError, match="has changed since it was stored"):
        lab.run()
