"""The table of samples: what a person sees of an experiment in one sheet, in every format of a table."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.analysis.look.joining import label_and_scorer
from assay.errors import UserError
from assay.foreign import ForeignCase
from tests.convert_lab import content, evaluation, make, response


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return make(tmp_path / "own")


def exported(own: Path, name: str) -> Path:
    target = own.parent / f"table.{name}"
    assay.export(own, name, table="samples", output=target)
    return target


def test_a_row_has_the_item_the_answer_and_its_labels(own: Path) -> None:
    with exported(own, "csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    first, failed, refused = rows[:3]
    assert (first["item_id"], first["model_name"], first["sample_index"]) == ("q1", "small", "0")
    assert (first["data.question"], first["data.level"], first["ground_truth"]) == (
        "2 + 2?",
        "1",
        "4",
    )
    assert (first["response"], first["total_tokens"], first["cost"]) == ("4", "12", "0.0")
    assert (first["score.exact_match (exact)"], first["passed.exact_match (exact)"]) == (
        "0.0",
        "false",
    )
    assert first["score.exact_match (judge (strict))"] == "0.25"
    assert "passed.length of it, in %" not in first  # it has no verdicts
    assert (failed["outcome"], failed["error"]) == ("errored", 'HTTP 500: "broken"')
    assert (failed["score.exact_match (exact)"], failed["outcome.exact_match (exact)"]) == (
        "",
        "errored",
    )
    assert json.loads(refused["data.options"]) == ["a", {"b": None}]
    assert not [name for name in first if "better" in name]  # of a match of two answers


def test_all_formats_have_the_same_table(own: Path) -> None:
    import duckdb

    rows = [json.loads(line) for line in exported(own, "jsonl").read_text("utf-8").split("\n")[:-1]]
    assert json.loads(exported(own, "json").read_text("utf-8")) == rows
    names = list(rows[0])
    assert exported(own, "markdown").read_text("utf-8").count("\n") == 18
    table = duckdb.execute(f"select * from '{exported(own, 'parquet')}'")
    assert [column[0] for column in table.description or ()] == names
    scores = [row[names.index("score.exact_match (exact)")] for row in table.fetchall()]
    assert scores == [row["score.exact_match (exact)"] for row in rows]


def test_hugging_face_opens_it(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = datasets.load_from_disk(str(exported(own, "hf")))
    assert found.num_rows == 16
    assert found.features["score.exact_match (exact)"].dtype == "float64"
    assert found.features["passed.exact_match (exact)"].dtype == "bool"
    assert found[0]["data.question"] == "2 + 2?"
    assert found[0]["total_tokens"] == 12
    found.save_to_disk(str(own.parent / "theirs"))  # what the library writes is read, too
    (converted,) = assay.convert(own.parent / "theirs", own.parent / "back")
    assert converted.responses == 16


def test_a_dataset_that_names_a_file_elsewhere_is_refused(own: Path) -> None:
    folder = exported(own, "hf")
    state = folder / "state.json"
    state.write_text(state.read_text().replace("data-00000", "../data-00000"))
    with pytest.raises(UserError, match="elsewhere"):
        assay.convert(folder, own.parent / "back")


def test_data_that_are_not_objects_are_one_column(tmp_path: Path) -> None:
    answer = response("a", "m", 0, 0)
    own = make(
        tmp_path / "own",
        [ForeignCase({"id": "a", "data": ["x", 1]}, answer, [evaluation(answer, "l", "s", 0.5)])],
    )
    assert (
        exported(own, "csv")
        .read_text()
        .splitlines()[1]
        .split("m/short,0,")[1]
        .startswith('"[""x"",1]"')
    )


def test_an_experiment_without_labels_or_items(tmp_path: Path) -> None:
    own = make(
        tmp_path / "own", [ForeignCase({"id": "a", "data": {"q": "?"}}, response("a", "m", 0, 0))]
    )
    assert "score" not in exported(own, "csv").read_text()
    (own / "items.jsonl").unlink()
    rows = exported(own, "jsonl").read_text().split("\n")
    assert json.loads(rows[0])["data"] is None


def test_verbs_take_a_table_directly(own: Path) -> None:
    for name in ("csv", "parquet", "hf"):
        assert assay.sql(exported(own, name), "select count(*) as n from responses") == [{"n": 16}]


def test_an_item_that_is_edited_in_one_of_its_rows_is_reported(own: Path) -> None:
    file = exported(own, "csv")
    text = file.read_text("utf-8")
    file.write_text("5 + 5?".join(text.rsplit("2 + 2?", 1)), "utf-8")
    (imported,) = assay.import_(file, own.parent / "back")
    assert imported.items == 4
    assert any(note.startswith("1 rows have other data") for note in imported.notes)


def test_a_table_of_somebody_else(tmp_path: Path) -> None:
    """Without a sidecar, and with cells that cannot be."""
    file = tmp_path / "table.csv"
    lines = [
        "model_name,item_id,sample_index,response,outcome,score.good,note",
        "m,a,0,bad,ok,much,x",
        "m,a,0,yes,ok,1,x",
        "m,b,0,no,,0.5,",
        "m,c,zero,no,ok,0.5,",
        "m,e",
    ]
    file.write_text("\n".join(lines))
    (imported,) = assay.import_(file, tmp_path / "own")
    assert imported.rejected == 3
    found = content(tmp_path / "own")
    assert [row["id"] for row in found["items.jsonl"]] == ["a", "b"]
    assert [row["response"] for row in found["responses.jsonl"]] == ["yes", "no"]
    assert sorted(row["score"] for row in found["evaluation_results.jsonl"]) == [0.5, 1.0]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("exact_match", ("exact_match", "")),
        ("a (b)", ("a", "b")),
        ("a (b) (c)", ("a (b)", "c")),
        ("a (b (c))", ("a", "b (c)")),
        ("a(b)", ("a(b)", "")),
        (")", (")", "")),
        ("a )", ("a )", "")),
        ("", ("", "")),
    ],
)
def test_the_scorer_in_a_name(name: str, parts: tuple[str, str]) -> None:
    assert label_and_scorer(name) == parts


def test_there_is_no_such_table(own: Path, tmp_path: Path) -> None:
    frame: Any = assay.frame
    for call in (lambda: assay.export(own, "csv", table="sample"), lambda: frame(own, "samples")):
        with pytest.raises(UserError, match="there is no table"):
            call()


def test_rows_of_other_types_and_failed_ones_are_rows(tmp_path: Path) -> None:
    """What does not fit is left empty, and a label is beside the answer that it is about."""
    own = tmp_path / "own"
    own.mkdir()
    rows: list[dict[str, Any]] = [
        {
            "item_id": "a",
            "sample_index": "first",
            "model_name": "m",
            "cost": "free",
            "key": "1" * 32,
        },
        {"item_id": 7, "model_name": None, "outcome": "lost", "response": ["x"], "key": "2" * 32},
        {"item_id": "c", "outcome": "errored", "error": "HTTP 500", "key": "3" * 32},
    ]
    labels = [
        {"label": "good", "scorer": "s", "responses": [key * 32], "score": score, "error": "none"}
        for key, score in (("3", None), ("2", 0.5), ("1", "high"))
    ]
    for name, table in (("responses", rows), ("evaluation_results", labels)):
        (own / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    found = [json.loads(line) for line in exported(own, "jsonl").read_text().splitlines()]
    columns = ("item_id", "model_name", "sample_index", "response", "outcome", "cost", "score.good")
    assert [[row[name] for name in columns] for row in found] == [
        ["a", "m", 0, "", "ok", None, None],
        ["7", "", 0, "", "ok", None, 0.5],
        ["c", "", 0, "", "errored", None, None],
    ]
    assert [row["outcome.good"] for row in found] == ["errored", "errored", "errored"]


def test_a_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    (tmp_path / "responses.jsonl").write_text('{"item_id": "a", "response": "1"}\n[1]\n')
    with pytest.raises(UserError, match="not a row") as caught:
        assay.export(tmp_path, "csv", table="samples", output=tmp_path / "table.csv")
    assert "line 2" in caught.value.where
