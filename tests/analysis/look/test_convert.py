"""What is edited in a converted file stays so, the rest comes from the sidecar; nothing is replaced or half made."""

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
from assay.engine.experiment.imports.sidecar import SidecarHead

import assay
from assay.analysis.look import convert as module
from assay.engine.experiment import trust
from assay.errors import StoreError, UserError
from assay.store.files import temporary_of
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


def by_key(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in rows}


# ---- edits


def test_an_edited_answer_and_score_win_and_all_else_is_put_back(own: Path) -> None:
    file = to_csv(own)
    label = "score.exact_match (exact)"

    def change(rows: Rows) -> Rows:
        rows[0]["response"], rows[0][label] = "five", "0.75"
        return rows

    edit(file, change)
    found, notes = back(file)
    wanted = content(own)
    key = next(
        r for r in wanted["responses.jsonl"] if r["item_id"] == "q1" and r["model_name"] == "small"
    )["key"]
    for row in wanted["responses.jsonl"]:
        if row["key"] == key:
            row["response"] = "five"
    for row in wanted["evaluation_results.jsonl"]:
        if row["responses"] == [key] and row["scorer"] == "exact":
            row["score"] = 0.75 if row["label"] == "exact_match" else row["score"]
    assert by_key(found["responses.jsonl"]) == by_key(wanted["responses.jsonl"])
    assert by_key(found["evaluation_results.jsonl"]) == by_key(wanted["evaluation_results.jsonl"])
    assert found["items.jsonl"] == wanted["items.jsonl"]
    assert found["metrics.jsonl"] == []  # they were of the rows before
    assert any("assay aggregate" in note for note in notes)


def test_a_field_that_did_not_fit_is_not_put_back_over_an_edit(own: Path) -> None:
    """The number 2.0 was read as text of a table; somebody writes 3 instead."""
    file = to_csv(own)

    def change(rows: Rows) -> Rows:
        for row in rows:
            if row["item_id"] == "3":
                row["data.level"], row["data.question"] = "3", "=SUM(2)"
        return rows

    edit(file, change)
    item = next(row for row in back(file)[0]["items.jsonl"] if row["id"] == "3")
    assert item["data"] == {"question": "=SUM(2)", "level": 3, "flag": True, "empty": ""}
    assert item["source"] == {"page": 7}


def test_removed_rows_stay_removed_and_new_ones_stay(own: Path) -> None:
    file = to_csv(own)
    edit(
        file,
        lambda rows: [
            *rows[1:],
            {**rows[1], "item_id": "new", "response": "from a person", "outcome": "ok"},
        ],
    )
    found = back(file)[0]
    answers = {
        (row["item_id"], row["model_name"], row["sample_index"]) for row in found["responses.jsonl"]
    }
    assert ("q1", "small", 0) not in answers
    assert ("new", "small", 1) in answers
    assert len(answers) == 16
    assert all(row["key"] for row in found["responses.jsonl"] if row["item_id"] != "new")


def test_rows_may_be_in_any_order(own: Path) -> None:
    file = to_csv(own)
    edit(file, lambda rows: sorted(rows, key=lambda row: row["response"]))
    assert back(file)[0] == content(own)


def test_evaluations_that_are_alike_in_the_file_are_told_apart(own: Path) -> None:
    """EEN's rows have no scorer: two of them differ only in what was read."""
    (converted,) = assay.convert(own, own.parent / "files", to="een")
    file = Path(converted.path) / "evaluation_results.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(reversed(lines)))
    assert back(file.parent)[0] == content(own)


def test_without_its_sidecar_a_file_is_read_as_far_as_it_goes(own: Path) -> None:
    file = to_csv(own)
    Path(f"{file}.assay.jsonl").unlink()
    found = back(file)[0]
    assert len(found["responses.jsonl"]) == 16
    assert {row["response"] for row in found["responses.jsonl"]} <= {
        row["response"].replace("\u2028", "\\u2028") for row in content(own)["responses.jsonl"]
    }
    assert {row["key"] for row in found["responses.jsonl"]} == {""}


def test_a_sidecar_of_another_file_is_not_used(own: Path, tmp_path: Path) -> None:
    file = to_csv(own)
    edit(file, lambda rows: [{**row, "item_id": f"other {row['item_id']}"} for row in rows])
    found, notes = back(file)
    assert len(found["items.jsonl"]) == 4
    assert found["metrics.jsonl"] == []
    assert any("another file" in note for note in notes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace(b'"timestamp":1', b'"timestamp":"x', 1), "does not fit"),
        (lambda text: text.replace(b'{"of":"response"', b'{"of":"response",,', 1), "does not fit"),
        (lambda text: text.replace(b'"assay_sidecar":1', b'"assay_sidecar":2', 1), "version 2"),
        (lambda text: text.replace(b'"params":{}', b'"params":{', 1), "cannot be read"),
    ],
)
def test_a_damaged_sidecar_is_refused(own: Path, change: Any, words: str) -> None:
    file = to_csv(own)
    sidecar = Path(f"{file}.assay.jsonl")
    changed = change(sidecar.read_bytes())
    assert changed != sidecar.read_bytes()
    sidecar.write_bytes(changed)
    with pytest.raises(UserError, match=words):
        back(file)


def test_a_restored_config_is_not_the_users_word(own: Path) -> None:
    """A sidecar that somebody sends may have a config that runs their code."""
    file = to_csv(own)
    sidecar = Path(f"{file}.assay.jsonl")
    sidecar.write_bytes(sidecar.read_bytes().replace(b"name: lab", b"name: theirs", 1))
    assert back(file)[0]["config.yaml"].startswith("name: theirs")
    is_ours = [
        trust._is_remembered(trust._digest("own", trust._content(own.parent / name)))
        for name in ("own", "again")
    ]
    assert is_ours == [True, False]


# ---- what exists


def times(folder: Path) -> dict[Path, int]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {path: path.stat().st_mtime_ns for path in files}


def test_the_same_conversion_again_does_nothing(own: Path) -> None:
    for target, to in (("table.csv", ""), ("files", "een"), ("copy", "")):
        assay.convert(own, own.parent / target, to=to)
        before = times(own.parent)
        (again,) = assay.convert(own, own.parent / target, to=to)
        assert times(own.parent) == before
        assert again.unchanged


@pytest.mark.parametrize("to", ["csv", "een", "assay"])
def test_a_target_that_exists_is_never_replaced(own: Path, to: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    assay.convert(own, target, to=to) if to != "csv" else shutil.rmtree(
        target
    )  # an empty folder is free
    (target / "notes.txt").write_text("mine") if target.is_dir() else target.write_text("mine")
    before = {path: path.read_bytes() for path in [target, *target.rglob("*")] if path.is_file()}
    other = make(tmp_path / "other", beside=False)
    for source in (own, other) if to != "assay" else (other,):
        with pytest.raises(UserError, match="exists, and is not what"):
            assay.convert(source, target, to=to)
    assert {
        path: path.read_bytes() for path in [target, *target.rglob("*")] if path.is_file()
    } == before


def test_an_edited_target_or_another_source_is_refused(own: Path) -> None:
    file = to_csv(own)
    text = file.read_bytes()
    file.write_bytes(text + b"x\n")
    with pytest.raises(UserError, match="exists, and is not what"):
        to_csv(own)
    file.write_bytes(text)
    assert assay.convert(own, file)[0].unchanged
    (own / "metrics.jsonl").write_text("")
    with pytest.raises(UserError, match="exists, and is not what"):
        to_csv(own)
    assert file.read_bytes() == text


def stop(*_: Any) -> None:
    raise KeyboardInterrupt


def test_what_is_stopped_leaves_nothing_and_runs_again(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(own.parent.iterdir())
    for name in ("write_sidecar", "_publish"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, stop)
            with pytest.raises(KeyboardInterrupt):
                to_csv(own)
        assert sorted(own.parent.iterdir()) == before
    assert back(to_csv(own))[0] == content(own)


def test_killed_between_sidecar_and_file_is_completed(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", stop)
        with pytest.raises(KeyboardInterrupt):
            to_csv(own)
    assert not (own.parent / "table.csv").exists()
    sidecar = own.parent / "table.csv.assay.jsonl"
    assert sidecar.exists()
    other = make(own.parent / "other", beside=False)
    with pytest.raises(
        UserError, match="exists, and is not what"
    ):  # it may belong to a file that was moved
        assay.convert(other, own.parent / "table.csv")
    assert back(to_csv(own))[0] == content(own)


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
    assert back(own.parent / "table.csv")[0] == content(own)


def test_several_experiments_become_several_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make(tmp_path / "all" / name)
    made = assay.convert(tmp_path / "all", tmp_path / "tables", to="csv")
    assert [Path(each.path).name for each in made] == ["one.csv", "two.csv"]
    folders = assay.convert(tmp_path / "tables", tmp_path / "back", to="assay", format_name="csv")
    for each in folders:
        assert content(Path(each.path)) == content(tmp_path / "all" / Path(each.path).name)


def test_how_far_it_is(own: Path) -> None:
    steps: list[tuple[int, int]] = []
    assay.convert(
        own, own.parent / "table.csv", step=lambda done, total: steps.append((done, total))
    )
    assert steps[0] == (0, 118)
    assert steps[-1] == (118, 118)


def test_the_sidecar_says_what_it_is(own: Path) -> None:
    file = to_csv(own)
    first, *lines = Path(f"{file}.assay.jsonl").read_text("utf-8").split("\n")[:-1]
    head = SidecarHead(**json.loads(first))
    assert (head.format, head.dataset, list(head.files)) == ("csv", "own", ["table.csv"])
    assert str(own) not in first.replace(
        json.dumps(head.config)[1:-1], ""
    )  # no path of this machine
    assert {json.loads(line).get("of", "file") for line in lines} == {
        "item",
        "response",
        "evaluation",
        "file",
    }
