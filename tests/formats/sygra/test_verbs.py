"""After a run, a task's folder of rows is an experiment like any other: each verb of the command line works on it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli import shell
from tests.cli.shell import Ended
from tests.formats.sygra.folder import REPORT, Folder

LABEL = "exact_match_result"


def assay(*words: str | Path) -> Ended:
    return shell.assay(
        *map(str, words), folder=Path(words[1]).parent, environ=shell.surrounding(COLUMNS="200")
    )


def rows_of(folder: Folder) -> Path:
    (found,) = (folder.out / ".assay").iterdir()
    return found


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def with_post(folder: Folder, code: str) -> None:
    """What the model says is changed by a post-processor."""
    folder.nodes["ask"] |= {
        "post_process": "tasks.qa.code.Post",
        "output_keys": ["predicted_answer"],
    }
    folder.write(
        "tasks/qa/code.py", f"class Post:\n    def apply(self, resp, state):\n        {code}\n"
    )


@pytest.fixture
def done(folder: Folder) -> Path:
    """Three of four right."""
    with_post(
        folder, "return {'predicted_answer': resp.message.content if state['id'] != 'q2' else 'no'}"
    )
    assert folder.call(output_with_ts=False).ok
    return rows_of(folder)


def test_the_rows_of_all_four_kinds(done: Path) -> None:
    responses = read(done / "responses.jsonl")
    evaluations = read(done / "evaluation_results.jsonl")
    assert len(responses) == len(evaluations) == 4
    assert {row["label"] for row in evaluations} == {LABEL}
    assert {row["responses"][0] for row in evaluations} == {row["key"] for row in responses}
    assert {row["item_id"]: row["passed"] for row in evaluations} == {
        "q0": True,
        "q1": True,
        "q2": False,
        "q3": True,
    }
    (wrong,) = [row for row in evaluations if not row["passed"]]
    assert wrong["detailed_results"]["predicted"] == {"text": "no"}
    assert wrong["detailed_results"]["expected"] == {"text": "3"}
    (metric,) = read(done / "metrics.jsonl")
    assert (metric["metric_name"], metric["metric_type"], metric["label"]) == (
        "accuracy",
        "sygra.accuracy",
        LABEL,
    )
    assert metric["value"] == metric["accuracy"] == metric["sound"]["accuracy"]["value"] == 0.75
    assert metric["ci_low"] == pytest.approx(0.3006, abs=1e-4)
    assert metric["ci_method"] == "wilson; weak: fewer than 5 items"


@pytest.fixture(params=["the output folder", "the folder of the rows"])
def place(done: Path, folder: Folder, request: pytest.FixtureRequest) -> Path:
    return folder.out if request.param == "the output folder" else done


def test_ls_sql_trace_and_export(done: Path, place: Path) -> None:
    shown = assay("ls", place)
    assert (shown.code, "accuracy 0.750" in shown.out) == (0, True), shown.said
    shown = assay(
        "sql", place, "--csv", "select label, sum(score) as right from evaluations group by label"
    )
    assert (shown.code, shown.out.splitlines()[1]) == (0, f"{LABEL},3.0"), shown.said
    shown = assay("trace", place, "q2")
    assert shown.code == 0, shown.said
    assert LABEL in shown.out
    assert "What is 2 + 1?" in shown.out
    shown = assay("export", place, "-t", "metrics", "-f", "csv")
    assert (shown.code, "0.75" in shown.out) == (0, True), shown.said
    shown = assay("export", place, "-t", "evaluations", "-f", "jsonl")
    assert len(shown.out.splitlines()) == 4, shown.said


def test_aggregate_computes_the_report_again(done: Path, place: Path) -> None:
    before = (done / "metrics.jsonl").read_bytes()
    assert assay("aggregate", place).code == 0
    assert (done / "metrics.jsonl").read_bytes() == before
    (done / "metrics.jsonl").unlink()
    assert assay("aggregate", place).code == 0
    assert (done / "metrics.jsonl").read_bytes() == before
    config = done / "other.yaml"
    config.write_text(json.dumps({"metrics": [{"name": "p", "type": "pass_rate"}]}))
    shown = assay("aggregate", done, "-c", config, "-o", done / "other")
    assert (shown.code, "0.750" in shown.out) == (0, True), shown.said


def test_compare_and_gate(done: Path, folder: Folder) -> None:
    with_post(folder, "return {'predicted_answer': resp.message.content}")
    folder.out = folder.base / "better"
    assert folder.call(output_with_ts=False).ok
    better = folder.out
    shown = assay("compare", done, better)
    assert shown.code == 0, shown.said
    assert "0.750" in shown.words
    assert "1.000" in shown.words
    assert assay("gate", done, "--min", "0.7", "--point").code == 0
    assert assay("gate", done, "--min", "0.8", "--point").code == 3
    assert assay("gate", better, "--baseline", done, "--max-drop", "0.1", "--point").code == 0


def test_the_report_is_what_the_rows_say(done: Path, folder: Folder) -> None:
    """Nothing is computed beside them: another metric row makes another report."""
    rows = read(done / "metrics.jsonl")
    rows[0]["accuracy"] = 0.125
    (done / "metrics.jsonl").write_text(json.dumps(rows[0]) + "\n")
    manifest = json.loads((done / "manifest.json").read_text())
    stat = (done / "metrics.jsonl").stat()
    manifest["aggregation"]["checksums"] = {}
    manifest["aggregation"]["segments"] = [
        {"name": "metrics.jsonl", "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    ]
    manifest["aggregation"]["checksums"] = {}
    (done / "manifest.json").write_text(json.dumps(manifest))
    assert folder.call(output_with_ts=False).ok
    assert folder.report()["results"] == {"accuracy": {"accuracy": 0.125}}


def test_a_record_that_failed_and_one_without_a_result(folder: Folder) -> None:
    with_post(
        folder,
        "return {'predicted_answer': {'q1': 1 / 0}[state['id']] if state['id'] == 'q1' else 'x'}",
    )
    assert folder.call(output_with_ts=False).ok
    rows = {row["item_id"]: row for row in read(rows_of(folder) / "evaluation_results.jsonl")}
    assert rows["q1"]["outcome"] == "errored"
    assert "division by zero" in rows["q1"]["error"]
    (metric,) = read(rows_of(folder) / "metrics.jsonl")
    assert (metric["errored_count"], metric["used_sample_count"]) == (1, 3)
    assert (metric["value_if_missing_wrong"], metric["value_if_missing_right"]) == (0.0, 0.25)
    sound = folder.report()["sound"][LABEL]["accuracy"]
    assert (sound["value_if_missing_wrong"], sound["value_if_missing_right"]) == (0.0, 0.25)


def test_unit_metrics_without_a_collator_are_rows_as_well(folder: Folder) -> None:
    del folder.graph["graph_post_process"]
    assert folder.call().ok
    assert {row["label"] for row in read(rows_of(folder) / "evaluation_results.jsonl")} == {LABEL}
    (metric,) = read(rows_of(folder) / "metrics.jsonl")
    assert (metric["metric_name"], metric["value"]) == (f"{LABEL}-accuracy", 1.0)


def test_a_graph_without_unit_metrics_has_no_evaluation(folder: Folder) -> None:
    del folder.graph["graph_post_process"], folder.nodes["unit_metrics"]
    folder.graph["graph_config"]["edges"] = [
        {"from": "START", "to": "ask"},
        {"from": "ask", "to": "END"},
    ]
    assert folder.call().ok
    assert not (rows_of(folder) / "evaluation_results.jsonl").exists()
    assert assay("ls", rows_of(folder)).code == 0


OWN = """
from sygra.core.eval.metrics.aggregator_metrics.aggregator_metric_registry import aggregator_metric
from sygra.core.eval.metrics.aggregator_metrics.base_aggregator_metric import BaseAggregatorMetric
from sygra.core.eval.metrics.base_metric_metadata import BaseMetricMetadata
from sygra.core.graph.graph_postprocessor import GraphPostProcessor

@aggregator_metric("order")
class Order(BaseAggregatorMetric):
    def validate_config(self):
        self.side = self.config["side"]

    def get_metadata(self):
        return BaseMetricMetadata(name="order", display_name="Order", description="What it was given, in order")

    def calculate(self, results):
        return {"order": len(results), "label": [getattr(result, self.side)["text"] for result in results]}

class Twice(GraphPostProcessor):
    def process(self, data, metadata):
        return [{**row, "id": row["id"], "retry": n} for row in data for n in range(2)]

class Nameless(GraphPostProcessor):
    def process(self, data, metadata):
        return [{"exact_match_result": row["exact_match_result"]} for row in data]
"""


def test_a_users_aggregator_is_a_metric_and_gets_the_records_in_their_order(folder: Folder) -> None:
    folder.records = [
        {"id": f"q{n}", "question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(9)
    ]
    folder.write("tasks/qa/own.py", OWN)
    folder.graph["graph_post_process"].insert(0, "tasks.qa.own.Twice")
    folder.aggregators.append(
        {"name": "order", "params": {"side": "golden"}, "unit_metrics_results": LABEL}
    )
    assert folder.call(output_with_ts=False).ok
    payload = {"order": 9, "label": [str(n + 1) for n in range(9)]}
    assert folder.report()["results"]["order"] == payload
    rows = {row["metric_name"]: row for row in read(rows_of(folder) / "metrics.jsonl")}
    assert (rows["order"]["value"], rows["order"]["payload"]) == (9.0, payload)
    (rows_of(folder) / "metrics.jsonl").unlink()
    shown = assay("aggregate", rows_of(folder))  # another process: the class is found again
    assert shown.code == 0, shown.said
    rows = {row["metric_name"]: row for row in read(rows_of(folder) / "metrics.jsonl")}
    assert sorted(rows["order"]["payload"]["label"]) == payload["label"]


def test_the_rows_of_another_post_processor_are_samples_of_their_items(folder: Folder) -> None:
    folder.write("tasks/qa/own.py", OWN)
    folder.graph["graph_post_process"] = [
        "tasks.qa.own.Twice",
        {
            "processor": REPORT,
            "params": {
                "use_previous_output": True,
                "aggregator_metrics_map": [
                    {
                        "name": "pass@k",
                        "params": {"k": 2},
                        "unit_metrics_results": LABEL,
                        "metadata": {"retry_number": "retry"},
                    }
                ],
            },
        },
    ]
    assert folder.call(output_with_ts=False).ok
    rows = read(rows_of(folder) / "evaluation_results.jsonl")
    assert sorted((row["item_id"], row["sample_index"]) for row in rows) == [
        (f"q{item}", sample) for item in range(4) for sample in range(2)
    ]
    assert {row["detailed_results"]["metadata"]["retry_number"] for row in rows} == {0, 1}
    assert folder.report()["evaluation_summary"]["total_records"] == 8
    sound = folder.report()["sound"][LABEL]["pass@k"]["pass@2"]
    assert (sound["value"], sound["problems"], sound["attempts"]) == (1.0, 4, 8)
    before = (rows_of(folder) / "evaluation_results.jsonl").read_bytes()
    assert folder.call(output_with_ts=False).ok
    assert (rows_of(folder) / "evaluation_results.jsonl").read_bytes() == before


def test_two_collators_of_one_column_have_labels_of_their_own(folder: Folder) -> None:
    folder.write("tasks/qa/own.py", OWN)
    params = folder.graph["graph_post_process"][0]["params"]
    folder.graph["graph_post_process"] += [
        "tasks.qa.own.Twice",
        {"processor": REPORT, "params": {**params, "use_previous_output": True}},
    ]
    result = folder.call(output_with_ts=False)
    assert result.ok
    reports = [processed.report for processed in result.processed if processed.report is not None]
    assert [report["evaluation_summary"]["total_records"] for report in reports] == [4, 8]
    assert [report["sound"][LABEL]["accuracy"]["attempts"] for report in reports] == [4, 8]
    rows = {
        (row["metric_name"], row["label"]): row for row in read(rows_of(folder) / "metrics.jsonl")
    }
    assert {key: row["used_sample_count"] for key, row in rows.items()} == {
        ("accuracy", LABEL): 4,
        ("accuracy'", f"{LABEL} of Twice"): 8,
    }


def test_rows_that_name_no_item_are_reported_and_not_stored(folder: Folder) -> None:
    folder.write("tasks/qa/own.py", OWN)
    folder.graph["graph_post_process"].insert(0, "tasks.qa.own.Nameless")
    folder.graph["graph_post_process"][1]["params"]["use_previous_output"] = True
    result = folder.call(output_with_ts=False)
    assert result.ok
    assert folder.report()["results"] == {"accuracy": {"accuracy": 1.0}}
    assert any("name no item" in note for note in result.notes)
    (metric,) = read(rows_of(folder) / "metrics.jsonl")
    assert metric["metric_name"] == f"{LABEL}-accuracy"
