"""A column of samples is one entry in one list: all that lists, filters and reports do follows from it."""

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import UserError
from assay.viewer.experiments import Experiments
from assay.viewer.index import columns
from assay.viewer.index.columns import COLUMNS, Column, query_type
from assay.viewer.index.opening import open_index
from assay.viewer.pages import matrix, page, samples
from tests.viewer.client import viewing
from tests.viewer.generated import experiment, read
from tests.viewer.test_report import carried

NEW = [
    Column(
        name="prompted",
        type="TEXT",
        field="prompt",
        sorts=True,
        filters={"prompted": "in"},
    ),
    Column(
        name="paid",
        type="REAL",
        sql="r.cost * 2",
        sorts=True,
        filters={"paid_from": ">=", "paid_to": "<="},
    ),
    Column(
        name="dear",
        type="BOOLEAN",
        sql="r.cost > 0.4",
        filters={"price": "is"},
        words=("dear", "cheap"),
    ),
]


@pytest.fixture(autouse=True)
def _columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(columns, "COLUMNS", [*COLUMNS, *NEW])
    monkeypatch.setattr("assay.viewer.rows.COLUMNS", columns.COLUMNS)
    for module in (samples, matrix):
        monkeypatch.setattr(module, "Query", query_type())


def test_a_new_column_is_in_the_schema_the_filters_the_sorts_the_rows_and_the_report(
    tmp_path: Path,
) -> None:
    folder = experiment(tmp_path / "runs/e", 31)
    experiments = Experiments([tmp_path / "runs"])
    index, _ = open_index(experiments, "e")
    named = {name: kind for _, name, kind, *_ in index.select("PRAGMA table_info(response)")}
    assert named["prompted"] == "TEXT"
    assert "paid" not in named
    rows = read(folder / "responses.jsonl")
    shown = page(experiments, "samples", {"limit": ["500"]})["rows"]
    assert [row["prompted"] for row in shown] == [row["prompt"] for row in rows]
    costs = [row["cost"] for row in rows]
    assert [row["paid"] for row in shown] == [None if c is None else 2 * c for c in costs]
    assert [row["dear"] for row in shown] == [None if c is None else c > 0.4 for c in costs]
    some = sorted({row["prompt"] for row in rows})[:2]
    answer = page(experiments, "samples", {"prompted": some, "sort": ["prompted"]})
    expected = sorted(row["prompt"] for row in rows if row["prompt"] in some)
    assert [row["prompted"] for row in answer["rows"]] == expected
    assert page(experiments, "matrix", {"prompted": some})["total"] > 0
    dear = sum(cost is not None for cost in costs)
    for query, total in (
        ({"paid_from": ["0.9"]}, dear),
        ({"paid_to": ["0.9"]}, 0),
        ({"price": ["dear"]}, dear),
        ({"price": ["cheap"]}, 0),
    ):
        assert page(experiments, "samples", query)["total"] == total
    with pytest.raises(UserError):
        page(experiments, "samples", {"price": ["free"]})
    best = page(experiments, "samples", {"sort": ["paid"], "limit": ["500"]})["rows"]
    assert [row["paid"] for row in best] == [1.0] * dear + [None] * (len(rows) - dear)
    assay.report([tmp_path / "runs"], tmp_path / "report.html", samples=None)
    pages = carried(tmp_path / "report.html")
    declared = columns_of(tmp_path / "report.html")
    given = {(each["name"], each["operator"]): each for each in declared["conditions"]}
    assert given["prompted", "in"]["column"] == "prompted"
    assert given["paid_from", ">="]["column"] == given["paid_to", "<="]["column"] == "paid"
    assert given["price", "is"]["words"] == ["dear", "cheap"]
    assert declared["sorts"]["paid"] == {"title": "paid", "type": "REAL"}
    assert {"prompted", "paid", "dear"} < {*declared["cells"]} <= shown[0].keys()
    assert {"prompted", "paid", "dear"} <= pages["rows/0"][0].keys()


def columns_of(file: Path) -> Any:
    """What the document tells the app of the columns."""
    _, _, rest = file.read_text().partition('<script type="application/json" id="columns">')
    return json.loads(rest.partition("</script>")[0])


def test_the_server_tells_the_app_of_a_new_column_as_a_report_does(tmp_path: Path) -> None:
    experiment(tmp_path / "runs/e", 34)
    assay.report([tmp_path / "runs"], tmp_path / "report.html")
    with viewing(tmp_path / "runs") as client:
        (tmp_path / "served.html").write_bytes(client.ask("/")[2])
    assert columns_of(tmp_path / "served.html") == columns_of(tmp_path / "report.html")


def test_an_index_with_other_columns_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.viewer.index.opening._LEAST_SAVED", 0)
    experiment(tmp_path / "runs/e", 32)
    assert page(Experiments([tmp_path / "runs"]), "samples", {})["rows"][0]["prompted"]
    monkeypatch.setattr(columns, "COLUMNS", COLUMNS)
    monkeypatch.setattr("assay.viewer.rows.COLUMNS", COLUMNS)
    monkeypatch.setattr(samples, "Query", query_type())
    assert "prompted" not in page(Experiments([tmp_path / "runs"]), "samples", {})["rows"][0]


def test_what_is_asked_for_is_never_part_of_a_statement(tmp_path: Path) -> None:
    experiment(tmp_path / "runs/e", 33)
    experiments = Experiments([tmp_path / "runs"])
    hostile = "x'); DROP TABLE response; --"
    for query in (
        {"outcome": [hostile]},
        {"prompted": [hostile]},
        {"where": [f"kind={hostile}"]},
        {"search": [hostile]},
        {"tag": [hostile]},
    ):
        assert page(experiments, "samples", query)["total"] == 0
    for query in (
        {"where": [f"{hostile}=1"]},
        {"sort": [hostile]},
        {"label": [hostile]},
        {"low": [hostile]},
    ):
        with pytest.raises(UserError):
            page(experiments, "samples", query)
    assert page(experiments, "samples", {})["all"] == 72
