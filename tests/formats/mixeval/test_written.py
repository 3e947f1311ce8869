"""Nothing of another tool's is overwritten: its response files and its scores are left alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.mixeval.files import ModelFolder
from assay.store.ledger import LEDGER, digest_of
from tests.formats.mixeval.folder import VERSION
from tests.formats.mixeval.folders import rows, write_both, write_model
from tests.formats.mixeval.test_experiment import Lab

NAMES = {"free-form": "m_close_freeform.jsonl", "multiple-choice": "m_close_multichoice.jsonl"}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def place(lab: Lab) -> Path:
    return lab.folder / "out" / "m" / "mixeval" / VERSION


def begin(lab: Lab, free: int = 2, choice: int = 1) -> dict[str, bytes]:
    """The beginning of the original's two files, which writes keys and spaces in its own way."""
    place(lab).mkdir(parents=True)
    made: dict[str, bytes] = {}
    for kind, count, answers in (
        ("free-form", free, ["Oslo", "It is Oslo, née Christiania.", "8"]),
        ("multiple-choice", choice, ["B", "A", "C"]),
    ):
        written = rows(kind, answers)[:count]
        made[kind] = "".join(json.dumps(row) + "\n" for row in written).encode()
        (place(lab) / NAMES[kind]).write_bytes(made[kind])
    return made


def calls(lab: Lab) -> int:
    return len(lab.paid.read_text().splitlines()) if lab.paid.exists() else 0


@pytest.mark.parametrize("more", [{}, {"layout": "array"}, {"force": True}])
def test_files_that_another_tool_began_are_refused(lab: Lab, more: dict[str, Any]) -> None:
    begun = begin(lab)
    with pytest.raises(UserError, match=f"did not write: {', '.join(NAMES.values())}") as caught:
        lab.run(lab.model("m"), **more)
    assert caught.value.where == str(place(lab))
    assert "`assay mixeval score`, or choose another folder with -o" in caught.value.fix
    assert calls(lab) == 0
    assert {path.name: path.read_bytes() for path in place(lab).iterdir()} == {
        NAMES[kind]: bytes for kind, bytes in begun.items()
    }
    assert [path.name for path in (lab.folder / "out").iterdir()] == ["m"]
    scored = lab.score(lab.folder / "out/m", output_dir=str(lab.folder / "scores"))
    assert scored.scored[0].scores[0].cells["overall"].entries == 3, "as they are"


def test_files_that_an_earlier_version_went_on_with_are_refused(lab: Lab) -> None:
    model = lab.model("m")
    lab.run(model)
    path = place(lab) / NAMES["free-form"]
    path.write_text(path.read_text().replace('":"', '": "'))
    list_as_before(lab, **{path.name: {"digest": digest_of(path), "begun": 2}})
    with pytest.raises(UserError, match=path.name):
        lab.run(model)
    assert calls(lab) == 6


def list_as_before(lab: Lab, **entries: dict[str, Any]) -> None:
    """Have a folder the list of its files that 0.1 kept."""
    (place(lab) / LEDGER).unlink()
    listed = {path.name: {"digest": digest_of(path)} for path in place(lab).glob("*.json*")}
    (place(lab) / "written.json").write_text(json.dumps({**listed, **entries}))


def test_folders_of_0_1_are_written_to_again(lab: Lab) -> None:
    model = lab.model("m")
    lab.run(model)
    list_as_before(lab)
    names = {path.name for path in place(lab).glob("*.json*")} - {"written.json"}
    lab.run(model, settings={"sample_params": {"temperature": 0.5}})
    assert all(ModelFolder(place(lab)).is_ours(name) for name in names)
    (place(lab) / "score.json").write_text("theirs")
    with pytest.raises(UserError, match=r"did not write: score\.json"):
        lab.run(model)


def test_a_file_that_was_changed_in_a_folder_of_0_1_is_refused(lab: Lab) -> None:
    model = lab.model("m")
    lab.run(model)
    list_as_before(lab, **{"score.json": {"digest": "0" * 32}})
    with pytest.raises(UserError, match=r"did not write: score\.json"):
        lab.run(model)


def test_a_list_that_is_broken_is_named(lab: Lab) -> None:
    place(lab).mkdir(parents=True)
    (place(lab) / "written.json").write_text("{")
    with pytest.raises(UserError, match="the list of files is broken"):
        lab.run(lab.model("m"))


def test_a_file_that_was_changed_by_hand_is_refused(lab: Lab) -> None:
    model = lab.model("m")
    lab.run(model)
    path = place(lab) / NAMES["free-form"]
    path.write_text(path.read_text().replace('"response":"Oslo"', '"response":"Bergen"', 1))
    with pytest.raises(UserError, match=r"did not write: m_close_freeform\.jsonl"):
        lab.run(model)
    assert "Bergen" in path.read_text()


def test_a_list_of_another_tool_is_refused(lab: Lab) -> None:
    place(lab).mkdir(parents=True)
    (place(lab) / "m_close_freeform.json").write_text("[]")
    with pytest.raises(
        UserError, match=r"Assay would replace what it did not write: m_close_freeform\.json\n"
    ):
        lab.run(lab.model("m"))
    assert calls(lab) == 0


def test_layouts_of_our_own_may_change(lab: Lab) -> None:
    model = lab.model("m")
    lab.run(model)
    lab.run(model, layout="array")
    lab.run(model)
    assert len(lab.read(NAMES["free-form"])) == 3
    assert not (place(lab) / "m_close_freeform.json").exists()


OTHERS = [
    "score.json",
    "judge_results_ff_rule.jsonl",
    "judge_results_mp_rule.jsonl",
    "config.yaml",
    "responses.jsonl",
]


@pytest.mark.parametrize("name", OTHERS)
def test_scores_of_others_are_not_replaced(lab: Lab, name: str) -> None:
    folder = write_model(lab.folder, "m", ["Oslo", "Oslo", "8"], ["B", "A", "C"])
    lab.data["data"] = str(write_both(lab.folder))
    place(lab).mkdir(parents=True)
    path = place(lab) / name
    path.write_text("theirs")
    with pytest.raises(UserError, match=f"Assay would replace what it did not write: {name}"):
        lab.score(folder)
    assert path.read_text() == "theirs"
    assert [entry.name for entry in place(lab).iterdir()] == [name]
    lab.score(folder, force=True)
    assert path.read_text() != "theirs"
    lab.score(folder)


@pytest.mark.parametrize("name", OTHERS[:3])
def test_a_run_leaves_them_alone_too(lab: Lab, name: str) -> None:
    begin(lab)
    (place(lab) / name).write_text("theirs")
    with pytest.raises(UserError, match=f"Assay would replace what it did not write: {name}"):
        lab.run(lab.model("m"))
    assert calls(lab) == 0


def test_scores_that_were_replaced_by_others_are_theirs(lab: Lab) -> None:
    folder = write_model(lab.folder, "m", ["Oslo", "Oslo", "8"], ["B", "A", "C"])
    lab.score(folder)
    (place(lab) / "score.json").write_text("theirs")
    with pytest.raises(UserError, match=r"score\.json"):
        lab.score(folder)


@pytest.mark.parametrize("layout", ["lines", "array"])
def test_folders_of_versions_without_a_list(lab: Lab, layout: str) -> None:
    model = lab.model("m")
    lab.run(model, layout=layout)
    (place(lab) / LEDGER).unlink()
    lab.run(model, settings={"sample_params": {"temperature": 0.5}})
    assert calls(lab) == 12, "the run had all their rows: they are ours, and asked for anew"
    assert all(ModelFolder(place(lab)).is_ours(path.name) for path in place(lab).glob("m_close_*"))
