"""Runs of `mlflow.genai.evaluate` in its database and in the file store, really made by it (`make_logs.py`)."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.mlflow.reader import mlflow
from tests.formats.imports import Brought, bring, bring_one
from tests.formats.mlflow.stores import database, store, tables


@pytest.fixture
def brought(tmp_path: Path) -> Brought:
    return bring_one(database(tmp_path), tmp_path / "out")


def item_about(brought: Brought, text: str) -> str:
    return next(row["id"] for row in brought.items.values() if text in row["data"]["question"])


def test_the_metrics_of_the_run_are_those_of_the_rows(brought: Brought) -> None:
    assert brought.unequal() == []
    assert brought.headline("right", "mean").theirs == pytest.approx(4 / 9)
    found = {f"{each.label} {each.metric}" for each in brought.result.headlines}
    assert found >= {
        "brevity mean",
        "brevity median",
        "brevity max",
        "brevity p90",
        "brevity variance",
        "polite mean",
    }
    assert brought.result.planned == len(brought.responses) == 9
    assert brought.result.agents == ["large"]


def test_a_mean_that_hides_failures_is_shown_with_them(brought: Brought) -> None:
    fragile = brought.headline("fragile", "mean")
    assert (fragile.theirs, fragile.ours, fragile.failed) == (1.0, 1.0, 3)
    assert fragile.with_failures == pytest.approx(6 / 9)
    label = brought.labels_of(item_about(brought, "Peru"))["fragile"]
    assert (label["outcome"], label["error"]) == ("errored", "planned failure of a scorer")


def test_every_part_of_a_trace_lands(brought: Brought, tmp_path: Path) -> None:
    item = brought.items["sum-9-9"]  # the user's own tag
    assert item["data"] == {"question": "What is 9 + 9?"}
    assert (item["ground_truth"], item["metadata"]) == ("18", {"id": "sum-9-9", "kind": "sum"})
    (response,) = brought.responses_to("sum-9-9")
    assert response["response"] == "The answer is 0."
    assert response["inference_time"] > 0
    assert response["timestamp"] > 1_700_000_000
    assert response["metadata"]["source"]["trace_id"].startswith("tr-")
    labels = brought.labels_of("sum-9-9")
    assert (labels["right"]["passed"], labels["right"]["score"]) == (False, 0.0)
    assert labels["brevity"]["detailed_results"]["explanation"] == "words were counted"
    assert (labels["polite"]["passed"], labels["polite"]["value"]) == (True, "yes")
    assert (labels["mood"]["score"], labels["mood"]["value"]) == (None, "unknown")
    traces = [json.loads(line) for line in (tmp_path / "out/traces.jsonl").read_text().splitlines()]
    spans = next(row["spans"] for row in traces if row["key"] == response["key"])
    assert [span["name"] for span in spans] == ["predict"]
    assert spans[0]["data"]["mlflow.spanOutputs"] == "The answer is 0."


def test_what_a_person_said_is_a_label_of_its_own(brought: Brought) -> None:
    said = [row for row in brought.evaluations if row["label"] == "right/human"]
    assert [
        (row["passed"], row["scorer"], row["detailed_results"]["explanation"]) for row in said
    ] == [(False, "annotator", "too short")]


def test_a_function_that_raised_is_a_response_with_an_error(brought: Brought) -> None:
    (response,) = brought.responses_to(item_about(brought, "40 + 2"))
    assert response["outcome"] == "errored"
    assert response["error"] == "RuntimeError: error: HTTP Error 500: Internal Server Error"


def test_secrets_among_the_parameters_do_not_come_in(brought: Brought, tmp_path: Path) -> None:
    assert brought.responses
    assert not [
        file
        for file in (tmp_path / "out").rglob("*")
        if file.is_file() and b"sk-not" in file.read_bytes()
    ]


def test_the_file_store_has_the_same(tmp_path: Path) -> None:
    brought = bring_one(store(tmp_path), tmp_path / "out")
    assert brought.unequal() == []
    assert len(brought.responses) == brought.result.planned == 3
    assert brought.items["sum-2-3"]["ground_truth"] == "5"
    assert [row["passed"] for row in brought.evaluations if row["label"] == "right/human"] == [
        False
    ]
    assert {row["outcome"] for row in brought.responses} == {"ok", "errored"}
    (run,) = {
        file.parent
        for file in (tmp_path / "store").glob("*/*/meta.yaml")
        if file.parent.parent.name != "datasets"
    }
    assert len(bring_one(run, tmp_path / "run").responses) == 3


def test_feedback_of_other_runs_and_what_was_corrected_is_not_of_this_one(tmp_path: Path) -> None:
    content = tables()
    columns = content["assessments"]["columns"]
    name, valid, metadata = (
        columns.index(column) for column in ("name", "valid", "assessment_metadata")
    )
    for row in content["assessments"]["rows"]:
        if row[name] == "polite":
            row[valid] = 0
        if row[name] == "mood":
            row[metadata] = json.dumps({"mlflow.assessment.sourceRunId": "0" * 32})
    labels = {
        row["label"] for row in bring_one(database(tmp_path, content), tmp_path / "out").evaluations
    }
    assert labels == {"right", "right/human", "brevity", "fragile"}


def test_a_newer_database_is_refused_by_what_is_missing(tmp_path: Path) -> None:
    content = tables()
    content["assessments"]["columns"] = [
        f"new_{name}" if name == "valid" else name for name in content["assessments"]["columns"]
    ]
    with pytest.raises(UserError, match=r"assessments\.valid"):
        bring(database(tmp_path, content), tmp_path / "out")


def test_a_run_that_is_not_finished(tmp_path: Path) -> None:
    content = tables()
    status = content["runs"]["columns"].index("status")
    content["runs"]["rows"][0][status] = "RUNNING"
    brought = bring_one(database(tmp_path, content), tmp_path / "out")
    assert any("status is RUNNING" in note for note in brought.result.notes)


def test_traces_that_are_missing_make_the_import_partial(tmp_path: Path) -> None:
    content = tables()
    content["trace_info"]["rows"] = content["trace_info"]["rows"][:5]
    brought = bring_one(database(tmp_path, content), tmp_path / "out")
    assert (brought.result.planned, len(brought.responses)) == (9, 5)


@pytest.mark.parametrize(
    "change",
    [
        {"value": "not json {", "error": None},
        {"value": "NaN", "error": "[[["},
        {"assessment_metadata": "3", "source_id": None, "source_type": None},
        {"assessment_metadata": "{{", "rationale": ""},
    ],
)
def test_odd_values(tmp_path: Path, change: dict[str, Any]) -> None:
    content = tables()
    table = content["assessments"]
    for row in table["rows"]:
        if row[table["columns"].index("name")] == "brevity":
            for column, value in change.items():
                row[table["columns"].index(column)] = value
    brought = bring_one(database(tmp_path, content), tmp_path / "out")
    assert len(brought.responses) == 9
    assert {row["label"] for row in brought.evaluations} >= {"right", "brevity"}


def test_a_damaged_database(tmp_path: Path) -> None:
    file = database(tmp_path)
    data = bytearray(file.read_bytes())
    data[12288:] = b"\xa5" * (len(data) - 12288)
    file.write_bytes(data)
    with pytest.raises(UserError, match="the database cannot be read"):
        bring(file, tmp_path / "out")


def test_other_databases_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table runs (id)")
        connection.commit()
    (tmp_path / "fake.db").write_bytes(b"SQLite format 3\0" + bytes(90))
    assert mlflow(tmp_path) == []
