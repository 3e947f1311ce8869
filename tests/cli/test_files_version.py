"""Folders say which version of the files they have: older ones open, newer ones are refused by every verb."""

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import StoreError, UserError
from assay.records import FILES_VERSION, ROWS_FILE, Manifest
from assay.store.stores import FlatStore, FolderStore, MemoryStore, read_manifests
from tests.cli.shell import Shell
from tests.viewer.client import viewing

SAID = f"a newer Assay wrote these files: version {FILES_VERSION + 1}, not {FILES_VERSION}"
REFUSING = {
    "run": ["run", "CONFIG"],
    "run with workers": ["run", "CONFIG", "--workers", "2"],
    "evaluate": ["evaluate", "out"],
    "evaluate elsewhere": ["evaluate", "out/responses.jsonl", "-c", "CONFIG", "-o", "new"],
    "aggregate": ["aggregate", "out"],
    "sql": ["sql", "out", "select 1"],
    "compare": ["compare", "other", "out"],
    "diff": ["diff", "other", "out"],
    "rank": ["rank", "out", "other"],
    "gate": ["gate", "out"],
    "export": ["export", "out", "--format", "csv", "-o", "new"],
    "import": ["import", "out", "-o", "new"],
    "import of all below": ["import", ".", "-o", "new"],
    "merge": ["merge", "other", "out", "-o", "new"],
    "convert": ["convert", "out", "new.csv"],
    "trace": ["trace", "out", "q0"],
    "status": ["status", "out"],
    "plan": ["plan", "CONFIG"],
    "judge calibrate": ["judge", "calibrate", "out"],
}


def edit_manifest(folder: Path, version: Any, **fields: Any) -> dict[str, bytes]:
    """Give the evaluation in a folder this version, None for none, and other fields; return what all files hold."""
    file = folder / "manifest.json"
    sections = json.loads(file.read_bytes())
    section = sections["evaluation"] | fields | {"files_version": version}
    if version is None:
        del section["files_version"]
    file.write_text(json.dumps({**sections, "evaluation": section}, indent=2))
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def two(shell: Shell) -> Shell:
    """Experiments in `out` and `other`."""
    for name in ("other", "out"):
        shell.config["models"] = [{"name": name, "type": "demo"}]
        shell.config["output_dir"] = str(shell.folder / name)
        assert shell.run("--no-progress").code == 0
    return shell


def test_every_manifest_says_the_version(two: Shell) -> None:
    manifests = read_manifests(two.out)
    assert {kind: manifest.files_version for kind, manifest in manifests.items()} == dict.fromkeys(
        ROWS_FILE, FILES_VERSION
    )
    assert assay.verify(two.out)[0].ok


def test_a_manifest_without_a_version_is_of_0_1_and_is_resumed(two: Shell) -> None:
    edit_manifest(two.out, None)
    assert read_manifests(two.out)["evaluation"].files_version == 1
    before = {name: two.lines(name) for name in ("responses.jsonl", "evaluation_results.jsonl")}
    assert two.call("aggregate", "out").code == 0
    assert two.run("--no-progress").code == 0
    assert {name: two.lines(name) for name in before} == before
    two.rows.append({**two.rows[-1], "id": "new"})
    assert two.run("--no-progress").code == 0
    assert all(two.lines(name)[: len(lines)] == lines for name, lines in before.items())
    assert read_manifests(two.out)["evaluation"].files_version == FILES_VERSION


@pytest.mark.parametrize("changed", [{}, {"counts": ["a", "shape"], "kind": "of another time"}])
def test_every_verb_refuses_a_newer_one(two: Shell, changed: dict[str, Any]) -> None:
    before = edit_manifest(two.out, FILES_VERSION + 1, **changed)
    for words in REFUSING.values():
        ended = two.call(*words)
        assert (ended.code, SAID in ended.words) == (2, True), (words, ended.said)
        assert "fix: use that Assay" in ended.words
        assert str(Path("out") / "manifest.json") in ended.words
    assert contents(two.out) == before
    assert not [*two.folder.glob("new*")]


def test_a_newer_one_is_listed_with_the_reason_beside_the_others(two: Shell) -> None:
    edit_manifest(two.out, FILES_VERSION + 1, counts=[])
    listed = {entry.folder.rpartition("/")[2]: entry for entry in assay.ls(two.folder)}
    assert (listed["out"].state, listed["out"].problem) == ("broken", SAID)
    assert (listed["other"].state, listed["other"].problem) == ("complete", None)
    with viewing(two.folder) as client:
        shown = {entry["id"]: entry for entry in client.page("experiments")["experiments"]}
        assert (shown["out"]["state"], shown["out"]["problem"]) == ("broken", SAID)
        board = client.page("leaderboard")
        assert {row["experiment"] for row in board["rows"]} == {"other"}
        assert f"out is left out: {SAID}" in board["notes"]
    (found,) = assay.verify(two.out)
    assert not found.ok
    assert SAID in found.notes[0]
    assert [(fault.kind, fault.what) for fault in found.faults] == [("unsealed", SAID)]
    assert assay.verify(two.folder / "other")[0].ok


@pytest.mark.parametrize("version", ["2", 2.5, [], True, {"major": 2}])
def test_a_version_is_an_integer(two: Shell, version: Any) -> None:
    before = edit_manifest(two.out, version)
    with pytest.raises(StoreError, match=r"manifest cannot be read: Expected `int`.*files_version"):
        read_manifests(two.out)
    ended = two.call("aggregate", "out")
    assert ended.code == 1
    assert "the manifest cannot be read: Expected `int`" in ended.words
    assert contents(two.out) == before
    listed = {entry.folder.rpartition("/")[2]: entry for entry in assay.ls(two.folder)}
    assert "manifest cannot be read" in (listed["out"].problem or "")


@pytest.mark.parametrize("layout", [FlatStore, FolderStore, lambda folder: MemoryStore()])
def test_stores_write_the_version_whatever_it_was(layout: Any, tmp_path: Path) -> None:
    store = layout(tmp_path)
    old = Manifest(kind="run", id="r")
    store.put_manifest(old)
    assert store.manifest("run", "r").files_version == FILES_VERSION
    assert store.manifest("run", "r") == old


def test_a_newer_section_closes_the_whole_folder(tmp_path: Path) -> None:
    store = FlatStore(tmp_path)
    for kind in ("dataset", "run"):
        store.put_manifest(Manifest(kind=kind, id="r"))
    sections = json.loads((tmp_path / "manifest.json").read_bytes())
    sections["run"]["files_version"] = FILES_VERSION + 1
    (tmp_path / "manifest.json").write_text(json.dumps(sections))
    for call in (
        lambda: store.manifest("dataset", "r"),
        lambda: store.put_manifest(Manifest(kind="evaluation", id="r")),
        lambda: store.delete("dataset", "r"),
        lambda: store.log("dataset", "r"),
    ):
        with pytest.raises(UserError, match="newer Assay"):
            call()
    assert json.loads((tmp_path / "manifest.json").read_bytes()) == sections


def test_a_stored_dataset_of_a_newer_assay_is_refused(shell: Shell) -> None:
    shell.save()
    assert shell.call("dataset", "add", "items.jsonl", "--name", "d").code == 0
    (file,) = shell.folder.glob("assay-data/datasets/*/manifest.json")
    sections = json.loads(file.read_bytes())
    sections["dataset"]["files_version"] = FILES_VERSION + 1
    file.write_text(json.dumps(sections))
    shell.config |= {"dataset": {"type": "stored", "name": "d"}}
    ended = shell.run()
    assert (ended.code, SAID in ended.words) == (2, True), ended.said
