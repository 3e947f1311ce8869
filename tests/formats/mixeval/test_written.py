"""Nothing of another tool's is overwritten: its response files are continued, its scores are left alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.mixeval.written import Written
from tests.formats.mixeval.folder import VERSION
from tests.formats.mixeval.folders import rows, write_both, write_model
from tests.formats.mixeval.test_experiment import Lab

NAMES = {"free-form": "m_close_freeform.jsonl", "multiple-choice": "m_close_multichoice.jsonl"}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def place(lab: Lab) -> Path:
    return lab.folder / "out" / "m" / "mixeval" / VERSION


def begin(lab: Lab, free: int = 2, choice: int = 1, **changes: Any) -> dict[str, bytes]:
    """The beginning of the original's two files, which writes keys and spaces in its own way."""
    place(lab).mkdir(parents=True)
    made: dict[str, bytes] = {}
    for kind, count, answers in (
        ("free-form", free, ["Oslo", "It is Oslo, née Christiania.", "8"]),
        ("multiple-choice", choice, ["B", "A", "C"]),
    ):
        written = [{**row, **changes} for row in rows(kind, answers)[:count]]
        made[kind] = "".join(json.dumps(row) + "\n" for row in written).encode()
        (place(lab) / NAMES[kind]).write_bytes(made[kind])
    return made


def calls(lab: Lab) -> int:
    return len(lab.paid.read_text().splitlines()) if lab.paid.exists() else 0


def test_a_run_continues_what_another_tool_began(lab: Lab) -> None:
    begun = begin(lab)
    model = lab.model("m")
    result = lab.run(model, limit=2)
    assert calls(lab) == 0, "the first entry of each kind is answered"
    for kind, bytes in begun.items():
        assert (place(lab) / NAMES[kind]).read_bytes() == bytes
    assert result.scored[0].scores[1].cells["overall"].entries == 3, (
        "what is there counts, whatever was asked for"
    )
    lab.run(model)
    assert calls(lab) == 3
    for kind, bytes in begun.items():
        written = (place(lab) / NAMES[kind]).read_bytes()
        assert written.startswith(bytes)
        assert sorted(json.loads(line)["id"] for line in written.splitlines()) == ["0", "1", "2"]
    assert [row["response"] for row in lab.read(NAMES["free-form"])] == [
        "Oslo",
        "It is Oslo, née Christiania.",
        "Oslo",
    ]
    lab.run(model)
    assert calls(lab) == 3


def test_other_sampling_asks_again_only_for_our_own_rows(lab: Lab) -> None:
    begun = begin(lab)
    model = lab.model("m")
    lab.run(model)
    lab.run(model, settings={"sample_params": {"temperature": 0.5}})
    assert calls(lab) == 6
    for kind, bytes in begun.items():
        assert (place(lab) / NAMES[kind]).read_bytes().startswith(bytes)


def test_the_other_tool_may_go_on(lab: Lab) -> None:
    begin(lab)
    model = lab.model("m")
    lab.run(model, limit=2)
    path = place(lab) / NAMES["free-form"]
    path.write_text(path.read_text() + json.dumps(rows("free-form", ["", "", "8 boats"])[2]) + "\n")
    lab.run(model)
    assert calls(lab) == 2
    assert lab.read(NAMES["free-form"])[2]["response"] == "8 boats"


def test_half_a_line_and_a_row_without_a_response_are_asked_for(lab: Lab) -> None:
    begin(lab)
    path = place(lab) / NAMES["free-form"]
    null = {**rows("free-form", ["Oslo", None, "8"])[1]}
    first = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(first + json.dumps(null).encode() + b"\n" + first[:40])
    lab.run(lab.model("m"))
    assert [row["id"] for row in lab.read(NAMES["free-form"])] == ["0", "1", "2"]
    assert path.read_bytes().startswith(first)


def test_files_with_answers_to_something_else_are_refused(lab: Lab) -> None:
    begun = begin(lab, formated_input="something else")
    with pytest.raises(UserError, match="other questions"):
        lab.run(lab.model("m"))
    assert calls(lab) == 0
    assert (place(lab) / NAMES["free-form"]).read_bytes() == begun["free-form"]


def test_a_file_that_was_changed_by_hand_is_refused(lab: Lab) -> None:
    model = lab.model("m")
    lab.run(model)
    path = place(lab) / NAMES["free-form"]
    path.write_text(path.read_text().replace('"response":"Oslo"', '"response":"Bergen"', 1))
    with pytest.raises(UserError, match="1 responses are not those of the run"):
        lab.run(model)
    assert "Bergen" in path.read_text()


def test_a_list_of_another_tool_is_refused(lab: Lab) -> None:
    begin(lab)
    (place(lab) / "m_close_freeform.json").write_text("[]")
    with pytest.raises(
        UserError, match=r"Assay would replace what it did not write: m_close_freeform\.json"
    ):
        lab.run(lab.model("m"))
    (place(lab) / "m_close_freeform.json").unlink()
    with pytest.raises(UserError, match="begun by another tool"):
        lab.run(lab.model("m"), layout="array")
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


def test_folders_of_versions_without_a_list(lab: Lab) -> None:
    model = lab.model("m")
    lab.run(model)
    (place(lab) / "written.json").unlink()
    lab.run(model, settings={"sample_params": {"temperature": 0.5}})
    assert calls(lab) == 12, "the run had all their rows: they are ours, and asked for anew"
    assert Written(place(lab)).begun(NAMES["free-form"]) == 0
