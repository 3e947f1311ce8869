"""What stands in a converted file is what is read of it; nothing is replaced or half made."""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.analysis.look import convert as module
from assay.errors import StoreError, UserError
from assay.store.files import temporary_of
from tests.cli.shell import Shell
from tests.convert_lab import content, make

Rows = list[dict[str, str]]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return make(tmp_path / "own")


def to_csv(own: Path) -> Path:
    (converted,) = assay.convert(own, own.parent / "table.csv")
    assert converted.format == "csv"
    return Path(converted.path)


def edit(file: Path, change: Callable[[Rows], Rows]) -> None:
    with file.open(newline="") as text:
        rows = list(csv.DictReader(text))
    names = list(rows[0])
    with file.open("w", newline="") as text:
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows(change(rows))


def back(source: Path, name: str = "again") -> tuple[dict[str, Any], list[str]]:
    (converted,) = assay.convert(source, source.parent / name, to="assay")
    return content(Path(converted.path)), converted.notes


# ---- edits


def test_what_is_edited_in_a_table_is_read(own: Path) -> None:
    file = to_csv(own)

    def change(rows: Rows) -> Rows:
        rows[1]["response"], rows[1]["score.exact_match (exact)"] = "five", "0.75"
        return [*rows[:0:-1], {**rows[1], "item_id": "new", "response": "from a person"}]

    edit(file, change)
    found = back(file)[0]
    answers = {
        (row["item_id"], row["model_name"], row["sample_index"]): row["response"]
        for row in found["responses.jsonl"]
    }
    assert ("q1", "small", 0) not in answers
    assert answers["q1", "small", 1] == "five"
    assert answers["new", "small", 1] == "from a person"
    assert len(answers) == 16
    scores = [row["score"] for row in found["evaluation_results.jsonl"] if row["score"] == 0.75]
    assert len(scores) == 2


def test_a_table_is_read_as_far_as_it_goes(own: Path) -> None:
    found = back(to_csv(own))[0]
    assert len(found["responses.jsonl"]) == 16
    assert {row["response"] for row in found["responses.jsonl"]} <= {
        row["response"].replace("\u2028", "\\u2028") for row in content(own)["responses.jsonl"]
    }
    assert {row["key"] for row in found["responses.jsonl"]} == {""}


# ---- sidecars of earlier versions

SIDECAR = '{"assay_sidecar":1,"format":"csv"}\n'


@pytest.mark.parametrize("to", ["csv", "een"])
def test_a_sidecar_is_named_and_nothing_is_written(own: Path, to: str) -> None:
    (made,) = assay.convert(own, own.parent / f"files.{to}", to=to)
    file = Path(made.path)
    sidecar = file / "assay_sidecar.jsonl" if to == "een" else Path(f"{file}.assay.jsonl")
    sidecar.write_text(SIDECAR)
    place, shell = own.parent / "place", Shell(own.parent)
    verbs = [("import", file, "-o", place), ("convert", file, place)]
    verbs += [("sql", file, "select 1")] if to == "csv" else []  # rows of EEN's files are ours
    for words in verbs:
        refused = shell.call(*map(str, words))
        assert refused.code == 2, refused.said
        assert str(sidecar) in refused.err.replace("\n", "")
        assert "--without-sidecar" in refused.err
        assert not place.exists()
    for verb in (("import", file, "-o"), ("convert", file)):
        told = shell.call(*map(str, verb), str(place), "--without-sidecar")
        assert told.code == 0, told.said
        assert len(content(place)["responses.jsonl"]) == 16
        shutil.rmtree(place)


def test_a_sidecar_below_the_folder_that_is_imported_is_found(own: Path) -> None:
    (own.parent / "all").mkdir()
    file = to_csv(own).rename(own.parent / "all/table.csv")
    Path(f"{file}.assay.jsonl").write_text(SIDECAR)
    with pytest.raises(UserError, match="sidecars are no longer read"):
        assay.import_(file.parent, own.parent / "out")
    Path(f"{file}.assay.jsonl").write_text("{}\n")  # a file of somebody else
    assert assay.import_(file.parent, own.parent / "out")[0].rejected == 0


# ---- what exists


def times(folder: Path) -> dict[Path, int]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {path: path.stat().st_mtime_ns for path in files}


def test_the_same_copy_again_does_nothing(own: Path) -> None:
    assay.convert(own, own.parent / "copy")
    before = times(own.parent)
    (again,) = assay.convert(own, own.parent / "copy")
    assert times(own.parent) == before
    assert again.unchanged


@pytest.mark.parametrize("to", ["csv", "een", "assay"])
def test_a_target_that_exists_is_never_replaced(own: Path, to: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    # an empty folder is free
    assay.convert(own, target, to=to) if to != "csv" else shutil.rmtree(target)
    (target / "notes.txt").write_text("mine") if target.is_dir() else target.write_text("mine")
    before = {path: path.read_bytes() for path in [target, *target.rglob("*")] if path.is_file()}
    other = make(tmp_path / "other", beside=False)
    for source in (own, other) if to != "assay" else (other,):
        with pytest.raises(UserError, match="this exists, and is not"):
            assay.convert(source, target, to=to)
    assert {
        path: path.read_bytes() for path in [target, *target.rglob("*")] if path.is_file()
    } == before


def test_of_several_targets_one_that_exists_stops_all(own: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        make(tmp_path / "all" / name)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/two.csv").write_text("mine")
    with pytest.raises(UserError, match="this exists"):
        assay.convert(tmp_path / "all", tmp_path / "tables", to="csv")
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["two.csv"]


def stop(*_: Any) -> None:
    raise KeyboardInterrupt


def test_what_is_stopped_leaves_nothing_and_runs_again(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(own.parent.iterdir())
    for name in ("_left_out", "_publish"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, stop)
            with pytest.raises(KeyboardInterrupt):
                to_csv(own)
        assert sorted(own.parent.iterdir()) == before
    assert len(back(to_csv(own))[0]["responses.jsonl"]) == 16


def test_what_a_killed_process_left_is_swept(own: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = temporary_of(own.parent / "table.csv")
    left = left.with_name(left.name.replace(f".{os.getpid()}.", f".{ended.pid}."))
    left.mkdir()
    (left / "table.csv").write_text("half")
    to_csv(own)
    assert not left.exists()


# ---- what is asked for


@pytest.mark.parametrize(
    ("target", "to", "words"),
    [
        ("table.xyz", "", "no format has the suffix '.xyz'"),
        ("table", "markdown", "it has no reader"),
        ("table", "cvs", "no format 'cvs'"),
        ("table", "inspect_ai", "files of inspect_ai are read, not written"),
        ("own", "", "are the same"),
        ("own/table.csv", "", "inside the source"),
    ],
)
def test_what_cannot_be_is_said(own: Path, target: str, to: str, words: str) -> None:
    before = sorted(own.parent.rglob("*"))
    with pytest.raises(UserError, match=words):
        assay.convert(own, own.parent / target, to=to)
    assert sorted(own.parent.rglob("*")) == before


def test_other_places_and_parameters_that_cannot_be(own: Path) -> None:
    with pytest.raises(UserError, match="a path here"):
        assay.convert(own, "s3://bucket/table.csv")
    with pytest.raises(UserError, match="no file or folder"):
        assay.convert(own.parent / "nothing", own.parent / "table.csv")
    with pytest.raises((UserError, StoreError)):
        assay.convert(own, own.parent / "table.csv", params={"no_such": 1}, format_name="csv")


def test_parameters_of_the_target(own: Path) -> None:
    assay.convert(own, own.parent / "table.csv", params={"keep_formulas": True})
    assert "'=SUM" not in (own.parent / "table.csv").read_text()


def test_several_experiments_become_several_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make(tmp_path / "all" / name)
    made = assay.convert(tmp_path / "all", tmp_path / "tables", to="csv")
    assert [Path(each.path).name for each in made] == ["one.csv", "two.csv"]
    folders = assay.convert(tmp_path / "tables", tmp_path / "back", to="assay", format_name="csv")
    assert [Path(each.path).name for each in folders] == ["one", "two"]
    assert [each.responses for each in folders] == [16, 16]


def test_what_is_left_out_is_printed_and_in_json(own: Path) -> None:
    shell = Shell(own.parent)
    printed = shell.call("convert", str(own), "table.csv")
    assert printed.code == 0, printed.said
    assert "no place in csv for: items (1), evaluations (1)" in printed.out
    assert "calls (1), traces (1), config (1)" in printed.out.replace("\n", " ")
    told = json.loads(shell.call("convert", str(own), "files", "--to", "een", "--json").out)
    assert told["left_out"]["items"] == 5
    assert told["left_out"]["responses.cost"] == 13


def test_a_format_that_does_not_say_what_it_holds(own: Path) -> None:
    (made,) = assay.convert(own, own.parent / "files", to="mixeval", params={"extras": False})
    assert any("does not say which fields it holds" in note for note in made.notes)


def test_logs_of_inspect_ai_are_no_longer_exported(own: Path) -> None:
    with pytest.raises(UserError, match=r"read, not written(.|\n)*csv,(.|\n)*jsonl,.*parquet"):
        assay.export(own, "inspect_ai", output=own.parent / "log.eval")
    assert not (own.parent / "log.eval").exists()
