"""`assay ls` and `assay trace`: what they find in folders, whole and broken."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from assay.analysis.look.ls import ls
from assay.analysis.look.trace import Trace, trace
from assay.cli import group
from assay.errors import UserError
from assay.reports.sheet import sheet
from tests.support import Lab


def trace_text(trace: Trace, full: bool = False) -> str:
    return str(sheet(trace, full=full))


@pytest.fixture
def done(lab: Lab) -> Path:
    lab.run()
    return lab.folder / "out"


def test_an_experiment_with_its_counts_and_metrics(done: Path) -> None:
    (found,) = ls(done.parent)
    assert (found.name, found.state, found.items, found.planned) == ("lab", "complete", 4, 8)
    assert (found.responses, found.errors, found.evaluations) == (8, 0, 16)
    assert found.values == {"pass@1": (1.0, 1.0, 2)}
    header, line = str(sheet([found], root=str(done.parent))).splitlines()
    assert header.split()[:2] == ["experiment", "state"]
    assert line.split() == ["out", "complete", "4", "8/8", "0", "pass@1", "1.000"]


def test_states(done: Path, lab: Lab) -> None:
    def state(**status: Any) -> str:
        (done / "status.json").write_text(json.dumps(status))
        return ls(done)[0].state

    assert state(state="running", last_update=time.time()) == "running"
    assert state(state="running", last_update=time.time() - 60) == "killed"
    assert state(state="stopped") == "stopped"
    (done / "status.json").write_text("{")
    assert ls(done)[0].state == "complete"
    lab.config["sample_params"]["num_samples"] = 3
    lab.run(limit=1)
    assert ls(done)[0].state == "partial"
    (done / "manifest.json").write_text("[]")
    (found,) = ls(done)
    assert found.state == "broken"
    assert "cannot be read" in str(sheet([found], root=str(done)))


def test_a_thousand_folders_in_a_second(done: Path, tmp_path: Path) -> None:
    files = {
        name: (done / name).read_bytes()
        for name in ("manifest.json", "status.json", "metrics.jsonl")
    }
    root = tmp_path / "many"
    for number in range(1000):
        folder = root / f"{number % 10}" / f"experiment-{number}"
        folder.mkdir(parents=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    started = time.process_time()
    found = ls(root)
    assert time.process_time() - started < 2
    assert len(found) == 1000
    assert str(sheet(found, root=str(root))).count("\n") == 1000


def test_no_experiments_and_no_folder(tmp_path: Path) -> None:
    assert "no experiments" in CliRunner().invoke(group, ["ls", str(tmp_path)]).output
    with pytest.raises(UserError, match="there is no folder"):
        ls(tmp_path / "none")


def test_a_trace_goes_from_item_to_metric_rows(done: Path) -> None:
    found = trace(done, "q2", sample=1)
    assert found.item is not None
    assert found.item["ground_truth"] == {"answer": "3"}
    (one,) = found.samples
    assert one.response["response"] == "3"
    assert [row["label"] for row in one.evaluations] == ["contains", "exact_match"]
    for row in one.evaluations:
        (metric,) = row["metrics"]
        assert (metric["metric_name"], metric["label"]) == ("pass@1", row["label"])
    text = trace_text(found)
    for shown in (
        "item q2",
        "user: What is 2 + 1?",
        "response: 3",
        "label exact_match: passed, score 1",
        "in pass@1: 1",
    ):
        assert shown in text


def test_the_facets_decide_which_metric_rows(lab: Lab) -> None:
    lab.config["models"].append(lab.model("other"))
    lab.run()
    found = trace(lab.folder / "out", "q1", model="other")
    assert {row.response["model_name"] for row in found.samples} == {"other"}
    metrics = [
        metric for one in found.samples for row in one.evaluations for metric in row["metrics"]
    ]
    assert len(metrics) == 4
    assert {metric["metadata.model_id"] for metric in metrics} == {"other"}


def test_failures_calls_and_spans_are_seen(lab: Lab) -> None:
    code = lab.write(
        "task.py",
        """
        async def agent(item, context):
            with context.span("think") as seen:
                seen["plan"] = "ask"
            return (await context.complete([{"role": "user", "content": "What is 1 + 1?"}], step="ask")).text

        def judge(response, ground_truth):
            raise ValueError("no\\x1b[31m idea")
        """,
    )
    lab.config["models"][0]["helper"] = True
    lab.config["metrics"] = [{"name": "pass@1", "facets": ["task"]}]
    lab.config["tasks"] = [{"name": "agent", "function": f"{code}:agent"}]
    lab.config["evaluation_methods"].append({"name": "judge", "type": "custom", "path": str(code)})
    lab.run()
    found = trace(lab.folder / "out", "q0")
    assert len(found.calls) == 2
    assert [one.spans[0]["name"] for one in found.samples] == ["think", "think"]
    text = trace_text(found)
    assert "call ask to calculator" in text
    assert "label judge: errored" in text
    assert "ValueError: no\\x1b[31m idea" in text


def test_long_texts_are_cut_unless_wanted_whole(lab: Lab) -> None:
    lab.rows[0]["data"]["note"] = "x" * 5000
    lab.run()
    found = trace(lab.folder / "out", "q0")
    assert len(trace_text(found)) < 3000
    assert "x" * 5000 in trace_text(found, full=True)


@pytest.mark.parametrize(
    ("item", "options", "hint"),
    [
        ("Q1", {}, "did you mean 'q1'"),
        ("zzz", {}, "there are 4, such as 'q0'"),
        ("q1", {"sample": 9}, "samples: 0, 1"),
        ("q1", {"model": "calc"}, "models: calculator"),
    ],
)
def test_what_is_not_there(done: Path, item: str, options: dict[str, Any], hint: str) -> None:
    with pytest.raises(UserError) as caught:
        trace(done, item, **options)
    assert hint in str(caught.value)


def test_garbage_lines_belong_to_no_item(done: Path) -> None:
    with open(done / "responses.jsonl", "a") as file:
        file.write('garbage\n[1]\n{"item_id": 3}\n')
    assert len(trace(done, "q1").samples) == 2


def test_json_has_whole_rows(done: Path) -> None:
    shown = CliRunner().invoke(group, ["trace", str(done), "q1", "--json"]).output
    assert json.loads(shown)["samples"][0]["response"]["key"]
    listed = CliRunner().invoke(group, ["ls", str(done), "--json"]).output
    assert json.loads(listed)["planned"] == 8


def test_a_repository_root_is_searched_as_a_whole(tmp_path: Path) -> None:
    import assay

    store = assay.FolderStore(tmp_path)
    dataset = assay.DatasetRepository(store).create(
        [{"id": "a", "question": "What is 1 + 1?", "answer": "2"}], name="d"
    )
    model = assay.model.get("demo")("small", skill=1.0)
    task = assay.prompt_task(assay.prompt.get("jinja")("{{question}}", name="p"), model)
    run = assay.Runner(store).run(dataset.id, [task])
    evaluation = assay.Evaluator(store).evaluate(
        [run.id], [assay.bind_scorer(assay.scorer.get("exact_match"))]
    )
    metric = assay.bind_metric(name="rate", type="pass_rate", facets=["model_name"])
    assay.Aggregator(store).aggregate([evaluation.id], [metric])
    (sample,) = trace(tmp_path, "a").samples
    assert [row["metric_name"] for row in sample.evaluations[0]["metrics"]] == ["rate"]
    assert len(ls(tmp_path)) == 4


def test_labels_of_rows_that_do_not_number_their_samples(tmp_path: Path) -> None:
    response = {"item_id": "a", "model_name": "m", "response": "4"}
    label = {"item_id": "a", "model_name": "m", "label": "right", "score": 1.0, "passed": True}
    for first, second in (
        ({}, {"sample_index": 0}),
        ({"sample_index": 0}, {}),
        ({"sample_index": None}, {}),
    ):
        (tmp_path / "responses.jsonl").write_text(json.dumps({**response, **first}) + "\n")
        (tmp_path / "evaluation_results.jsonl").write_text(json.dumps({**label, **second}) + "\n")
        assert "label right: passed, score 1" in trace_text(trace(tmp_path, "a"))
    (tmp_path / "responses.jsonl").unlink()
    assert "label right: passed, score 1" in trace_text(trace(tmp_path, "a"))


def test_turns_with_tool_calls_are_shown(tmp_path: Path) -> None:
    asked = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    messages = [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    ]
    row = {
        "item_id": "a",
        "model_name": "m",
        "response": "",
        "messages": messages,
        "tool_calls": [asked, "odd"],
    }
    (tmp_path / "responses.jsonl").write_text(json.dumps(row) + "\n")
    text = trace_text(trace(tmp_path, "a"))
    assert text.count('calls add c1: {"a": 1}') == 2
    assert "tool c1: 2" in text
    assert "calls: odd" in text
