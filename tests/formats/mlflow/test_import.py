"""Tables and runs of `mlflow.models.evaluate`, really made by it (`make_logs.py`), and what can be wrong with them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.formats.mlflow.metrics import MetricScores
from assay.formats.mlflow.reader import mlflow
from tests.formats.imports import bring, bring_one
from tests.formats.mlflow.stores import RUNS, table_of


def saved(folder: Path, columns: list[str], rows: list[list[Any]]) -> Path:
    file = folder / "table.json"
    file.write_text(json.dumps({"columns": columns, "data": rows}))
    return file


@pytest.mark.parametrize(("model", "share"), [("large", 7 / 12), ("tiny", 4 / 12)])
def test_the_metrics_of_the_run_are_those_of_the_rows(
    tmp_path: Path, model: str, share: float
) -> None:
    brought = bring_one(table_of(model), tmp_path / "out")
    assert brought.unequal() == []
    mean = brought.headline("right", "mean")
    assert mean.theirs == mean.ours == pytest.approx(share)
    assert {each.metric for each in brought.result.headlines if each.equal} == {
        "mean",
        "variance",
        "p90",
    }
    assert {each.label for each in brought.result.headlines} == {"right", "latency"}
    assert brought.result.agents == [model]
    assert brought.result.planned == 12


def test_every_column_lands(tmp_path: Path) -> None:
    brought = bring_one(table_of("large"), tmp_path / "out")
    assert brought.items["sum-9-9"]["data"] == {"question": "What is 9 + 9?"}
    assert brought.items["sum-9-9"]["ground_truth"] == "18"
    (response,) = brought.responses_to("sum-9-9")
    assert response["response"] == "The answer is 0."
    assert response["inference_time"] > 0
    label = brought.labels_of("sum-9-9")["right"]
    assert (label["score"], label["scorer"]) == (0.0, "right/v1")
    assert label["detailed_results"] == {"explanation": "compared with the answer"}


def test_a_folder_of_runs_has_an_experiment_for_each(tmp_path: Path) -> None:
    brought = bring(RUNS, tmp_path / "out")
    assert sorted(each.result.dataset for each in brought) == ["sums-large", "sums-tiny"]


def test_a_table_alone_has_no_numbers_to_compare_with(tmp_path: Path) -> None:
    shutil.copy(table_of("large"), tmp_path / "mine.json")
    brought = bring_one(tmp_path / "mine.json", tmp_path / "out")
    assert brought.result.headlines == []
    assert any("metrics of the run were not found" in note for note in brought.result.notes)
    assert len(brought.evaluations) == 12


def test_rows_that_are_missing_make_the_import_partial(tmp_path: Path) -> None:
    shutil.copytree(RUNS, tmp_path / "mlruns")
    table = tmp_path / table_of("large").relative_to(RUNS.parent)
    content = json.loads(table.read_text())
    table.write_text(json.dumps({**content, "data": content["data"][:9]}))
    brought = bring_one(table, tmp_path / "out")
    assert (brought.result.planned, len(brought.responses)) == (12, 9)
    assert brought.unequal() == [
        "latency mean",
        "latency p90",
        "latency variance",
        "right mean",
        "right variance",
    ]


def test_a_run_that_was_evaluated_twice_has_two_samples(tmp_path: Path) -> None:
    row = ["What is 1 + 1?", "2", "2", 1.0]
    brought = bring_one(
        saved(tmp_path, ["question", "target", "outputs", "right/score"], [row, row]),
        tmp_path / "out",
    )
    assert len(brought.items) == 1
    assert [row["sample_index"] for row in brought.responses] == [0, 1]
    assert len({row["key"] for row in brought.responses}) == 2


def test_columns_can_be_named(tmp_path: Path) -> None:
    file = saved(
        tmp_path,
        ["inputs", "wanted", "said", "right/v1/score"],
        [["What is 1 + 1?", "2", "two", 0.5]],
    )
    brought = bring_one(file, tmp_path / "guessed")
    assert brought.responses[0]["response"] == ""
    assert any("--set outputs=" in note for note in brought.result.notes)
    brought = bring_one(file, tmp_path / "named", outputs="said", targets="wanted")
    (item,) = brought.items.values()
    assert (item["data"], item["ground_truth"]) == ({"input": "What is 1 + 1?"}, "2")
    assert brought.responses[0]["response"] == "two"


def test_scores_that_are_missing_texts_and_two_versions(tmp_path: Path) -> None:
    columns = [
        "question",
        "outputs",
        "judge/v1/score",
        "judge/v1/justification",
        "judge/v2/score",
        "tone/score",
    ]
    rows = [
        ["a", "x", None, "the judge did not answer", 4, "kind"],
        ["b", "y", 2, "good", None, None],
    ]
    brought = bring_one(saved(tmp_path, columns, rows), tmp_path / "out")
    first, second = (brought.labels_of(item) for item in brought.items)
    assert {label: row["outcome"] for label, row in first.items()} == {
        "judge/v1": "errored",
        "judge/v2": "scored",
        "tone": "scored",
    }
    assert first["judge/v1"]["error"] == "the judge did not answer"
    assert (first["tone"]["value"], first["tone"]["score"]) == ("kind", None)
    assert (second["judge/v1"]["score"], second["tone"]["outcome"]) == (2.0, "errored")


def test_a_torn_table_gives_what_is_whole(tmp_path: Path) -> None:
    text = table_of("large").read_text()
    (tmp_path / "torn.json").write_text(text[: text.index("capital-france")])
    brought = bring_one(tmp_path / "torn.json", tmp_path / "out")
    assert brought.result.rejected == 1
    assert len(brought.responses) == 10


def test_rows_of_another_width_are_counted(tmp_path: Path) -> None:
    file = saved(tmp_path, ["question", "outputs", "right/score"], [["a", "b", 1], ["a"], "text"])  # pyright: ignore
    brought = bring_one(file, tmp_path / "out")
    assert (brought.result.rejected, len(brought.responses)) == (2, 1)


@pytest.mark.parametrize(
    "text",
    [
        '{"columns": ["question", "outputs"], "data": [["a", "b"]]}',
        '{"columns": "right/score", "data": []}',
        '{"columns": [1, 2], "data": [[1, 2]]}',
        '{"columns": ["right/score"',
        '{"data": [[1]], "columns": ["right/score"]}',
        "[]",
        "",
    ],
)
def test_what_is_not_a_table_of_an_evaluation(tmp_path: Path, text: str) -> None:
    (tmp_path / "table.json").write_text(text)
    assert mlflow(tmp_path) == []
    with pytest.raises(UserError, match="nothing that can be imported"):
        bring(tmp_path, tmp_path / "out")


def test_facts_of_a_run_that_are_not_readable(tmp_path: Path) -> None:
    shutil.copytree(RUNS, tmp_path / "mlruns")
    run = (tmp_path / table_of("large").relative_to(RUNS.parent)).parents[1]
    (run / "metrics/right/v1/mean").write_text("1 nan 0\nnothing\n")
    (run / "metrics/latency/mean").unlink()
    (run / "metrics/latency/mean").symlink_to("/etc/hostname")
    (run / "params/model").write_bytes(b"\xff\xfe")
    brought = bring_one(run, tmp_path / "out")
    assert {f"{each.label} {each.metric}" for each in brought.result.headlines} == {
        "latency p90",
        "latency variance",
        "right p90",
        "right variance",
    }
    (run / "meta.yaml").write_text("a: &a [*a, *a]\n- broken")
    assert bring_one(run, tmp_path / "again").result.headlines == []


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_aggregations_are_those_of_mlflow(values: list[float]) -> None:
    numpy = pytest.importorskip("numpy")
    scores = MetricScores()
    for value in values:
        scores.add("x/v1", value, "x")
    wanted = {
        "x/v1/p90": numpy.percentile(values, 90),
        "x/v1/variance": numpy.var(values),
        "x/v1/median": numpy.median(values),
        "x/v1/min": min(values),
        "x/v1/max": max(values),
    }
    for headline in scores.headlines(wanted):
        assert headline.ours == pytest.approx(headline.value)
        assert headline.label == "x"
    (other,) = scores.headlines({"x/v1/entropy": 1.0})
    assert other.ours is None
    assert other.reason
