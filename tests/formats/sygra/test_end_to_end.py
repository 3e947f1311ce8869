"""`assay sygra` as a user runs it: real processes, real files, a real server."""

import base64
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from assay.errors import RunFailed, UserError
from assay.server import Options, running, stats
from tests.cli.shell import ended
from tests.formats.sygra.folder import REPORT, Folder

EXAMPLE = Path(__file__).parents[3] / "examples" / "sygra"


# ---- the example, which is in the original's style


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Any:
    base = tmp_path_factory.mktemp("example")
    shutil.copytree(
        EXAMPLE, base, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".assay")
    )
    with running(Options(answers=f"{base / 'answers.py'}:answer")) as url:
        folder = Folder(base, url)
        folder.environ = {"SYGRA_EVAL_MODEL_URL": url, "HF_HUB_OFFLINE": "1"}
        yield folder


def as_printed(example: Folder, *words: str) -> dict[str, Any]:
    """Run main.py as the seed prints it; the reports by task folder."""
    import os

    command = [sys.executable, "main.py", *words, "--no-progress"]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=example.base,
        env={**os.environ, **example.environ},
    )
    done = ended(child)
    assert done.code == 0, done.said
    files = [
        Path(line.removeprefix("file: "))
        for line in done.out.splitlines()
        if line.startswith("file: ")
    ]
    return {file.name.split("_")[0]: json.loads(file.read_text()) for file in files}


def test_the_first_quick_start_command(example: Folder) -> None:
    found = as_printed(
        example, "--task", "tasks.eval.question_answering.simpleqa", "--num_records", "50"
    )
    (report,) = found["MetricCollatorPostProcessor"]
    assert report["results"]["exact_match-accuracy"] == {"accuracy": 0.6}
    assert report["results"]["fuzzy_match-accuracy"] == {"accuracy": 0.8}
    assert report["evaluation_summary"]["status"] == "success"
    assert list(report["evaluation_summary"])[:3] == ["total_records", "timestamp", "status"]
    assert [row["original_index"] for row in found["output"]] == [11, 12, 13, 14, 15]


def test_the_second_quick_start_command_gives_the_worked_numbers(example: Folder) -> None:
    found = as_printed(example, "--task", "eval/classification/simpleqa", "--num_records", "50")
    (report,) = found["MetricCollatorPostProcessor"]
    results = report["results"]
    assert list(results) == ["accuracy", "precision", "recall", "f1_score"]
    assert results["accuracy"]["accuracy"] == pytest.approx(0.8)
    assert results["precision"]["average_precision"] == pytest.approx(0.8)
    assert results["recall"]["average_recall"] == pytest.approx(0.8333, abs=1e-4)
    assert results["f1_score"]["average_f1_score"] == pytest.approx(0.81632653)
    assert results["precision"]["precision_per_class"] == {
        "Music": 1.0,
        "music": 1.0,
        "Politics": 1.0,
        "Other": 0.0,
        "Video games": 1.0,
    }


def test_the_third_quick_start_command_writes_where_it_is_told(
    example: Folder, tmp_path: Path
) -> None:
    task = "tasks.eval.question_answering.simpleqa"
    as_printed(
        example, "--task", task, "--num_records", "50", "--output_dir", str(tmp_path / "mine")
    )
    names = sorted(path.name for path in (tmp_path / "mine").iterdir())
    assert [name.split("_")[0] for name in names] == [
        ".assay",
        "MetricCollatorPostProcessor",
        "output",
    ]


def test_the_web_agent_tries_again_and_is_judged_step_by_step(example: Folder) -> None:
    found = as_printed(example, "--task", "eval.agents.web_agents")
    assert len(found["Flatten"]) == 9
    (report,) = found["MetricCollatorPostProcessor"]
    results = report["results"]
    # news-1: right three times; shop-1: the wrong tool, then right twice; shop-2: the wrong direction three times
    assert results["tool_match-accuracy"]["accuracy"] == pytest.approx(8 / 9)
    assert results["step_match-accuracy"]["accuracy"] == pytest.approx(5 / 9)
    assert results["step_match-pass@k"]["pass@3"] == pytest.approx(1 - (4 * 3 * 2) / (9 * 8 * 7))
    assert results["step_match-pass^k"]["pass^2"] == pytest.approx((5 / 9) ** 2)
    efficiency = results["step_match-step_efficiency"]
    assert efficiency["step_efficiency"] == pytest.approx((1 + 0.8 + 0) / 3)
    assert [
        efficiency[key] for key in ("first_attempt_correct", "retry_correct", "never_correct")
    ] == [1, 1, 1]


# ---- the files


def test_records_keep_their_order_and_the_report_its_shape(folder: Folder) -> None:
    folder.records = [
        {"id": f"q{n}", "question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(60)
    ]
    done = folder.run("--num_records", "0", "--batch_size", "7")
    assert done.code == 0, done.said
    rows = folder.output()
    assert [row["id"] for row in rows] == [f"q{n}" for n in range(60)]
    assert rows[3]["exact_match_result"]["correct"] is True
    report = folder.report()
    assert report["results"] == {"accuracy": {"accuracy": 1.0}}
    assert list(report["evaluation_summary"])[:2] == ["total_records", "status"]
    assert "records: 60, 60 done" in done.out
    (output,) = folder.files("output_*.json")
    assert output.name.replace("output", REPORT.rpartition(".")[2]) in {
        path.name for path in folder.out.iterdir()
    }


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["-owt", "False"], ["MetricCollatorPostProcessor.json", "output.json"]),
        (
            ["--output_with_ts=False", "-dm", "True"],
            ["MetricCollatorPostProcessor.json", "output.json"],
        ),
        (
            [
                "-owt",
                "False",
                "-dm",
                "true",
                "--run-name",
                "my_output_run",
                "--output-format",
                "jsonl",
            ],
            ["my_output_run_MetricCollatorPostProcessor.json", "my_output_run_output.jsonl"],
        ),
    ],
)
def test_the_names_of_the_files(folder: Folder, words: list[str], names: list[str]) -> None:
    assert folder.run(*words).code == 0
    assert sorted(path.name for path in folder.out.iterdir() if path.name != ".assay") == names
    assert len(folder.output()) == 4


def test_report_keys_can_be_chosen(folder: Folder) -> None:
    assert folder.run("--report-keys", "field").code == 0
    assert list(folder.report()["results"]) == ["exact_match_result-accuracy"]


def test_flags_of_the_original(folder: Folder) -> None:
    done = folder.run(
        *(
            "-si",
            "1",
            "-n",
            "2",
            "-b",
            "5",
            "-ci",
            "10",
            "-d",
            "False",
            "-cl",
            "True",
            "-r",
            "True",
            "-ra",
            '{"a": 1}',
        ),
        *("-ost", "False", "-q", "False"),
    )
    assert done.code == 0, done.said
    assert [row["id"] for row in folder.output()] == ["q1", "q2"]
    assert "--run-args" in done.err
    assert "metadata" not in done.err


def test_there_is_no_metadata_file_to_switch_off(folder: Folder) -> None:
    done = folder.run("-dm", "True")
    assert done.code == 0, done.said
    assert "--disable-metadata: there is no metadata file to switch off" in done.err
    assert not (folder.out / "metadata").exists()


@pytest.mark.parametrize(
    "words", [["--oasst", "True"], ["-q", "True"], ["--draw"], ["--draw", "graph.svg"]]
)
def test_flags_that_cannot_be_served_are_refused(folder: Folder, words: list[str]) -> None:
    done = folder.run(*words)
    assert done.code == 2
    assert "is not offered" in done.err
    assert "fix:   use " in done.err
    assert not folder.out.exists()
    assert not (folder.base / "graph.svg").exists()


def test_json_events_end_with_the_result(folder: Folder) -> None:
    done = folder.run("--json")
    assert done.result["ok"] is True
    assert done.result["total"] == 4
    assert Path(done.result["output"]).is_file()


# ---- going on


def test_the_same_command_pays_nothing_twice_and_more_records_only_the_new_ones(
    folder: Folder,
) -> None:
    folder.records = [
        {"id": f"q{n}", "question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(6)
    ]
    before = stats(folder.url)["requests"]
    assert folder.call(num_records=2).ok
    assert folder.call(num_records=2).ok
    assert stats(folder.url)["requests"] - before == 2
    assert len(folder.files("output_*.json")) == 2
    assert folder.call(num_records=6).ok
    assert stats(folder.url)["requests"] - before == 6
    assert sorted(len(json.loads(path.read_text())) for path in folder.files("output_*.json")) == [
        2,
        2,
        6,
    ]
    assert folder.call(num_records=6, resume=False).ok
    assert stats(folder.url)["requests"] - before == 12


def test_edits_after_the_model_cost_no_calls(folder: Folder) -> None:
    folder.nodes["ask"]["post_process"] = "tasks.qa.code.Post"
    folder.nodes["ask"]["output_keys"] = ["predicted_answer"]
    code = """
    from tasks.qa.shared import mark

    class Post:
        def apply(self, resp, state):
            return {"predicted_answer": mark(resp.message.content)}
    """
    folder.write("tasks/qa/code.py", code)
    folder.write("tasks/qa/shared.py", "def mark(text): return text\n")
    assert folder.call(output_with_ts=False).ok
    before = stats(folder.url)["requests"]
    folder.write("tasks/qa/shared.py", "def mark(text): return 'wrong'\n")
    folder.aggregators.append(
        {"name": "pass@k", "params": {"k": 1}, "unit_metrics_results": "exact_match_result"}
    )
    folder.graph["output_config"]["output_map"]["more"] = {"value": 1}
    assert folder.call(output_with_ts=False).ok
    assert stats(folder.url)["requests"] == before
    assert folder.output()[0]["predicted_answer"] == "wrong"
    assert folder.output()[0]["more"] == 1
    assert folder.report()["results"] == {"accuracy": {"accuracy": 0.0}, "pass@k": {"pass@k": 0.0}}
    folder.nodes["ask"]["model"]["parameters"]["temperature"] = 0.9
    assert folder.call(output_with_ts=False).ok
    assert stats(folder.url)["requests"] == before + 4


@pytest.mark.slow
def test_kill_nine_and_the_same_command(tmp_path: Path) -> None:
    with running(Options(skill=1.0, latency_ms=30)) as url:
        folder = Folder(tmp_path, url, records=120)
        folder.nodes["again"] = {
            **folder.nodes["ask"],
            "prompt": [{"user": "{question} Once more."}],
            "output_keys": "second_answer",
        }
        folder.graph["graph_config"]["edges"] = [
            {"from": "START", "to": "ask"},
            {"from": "ask", "to": "again"},
            {"from": "again", "to": "unit_metrics"},
            {"from": "unit_metrics", "to": "END"},
        ]
        kills = 0
        for wanted in (30, 90, 150, 200):
            child = folder.start("-n", "0", "-b", "8")
            end = time.monotonic() + 30
            while (
                stats(url)["requests"] < wanted + kills * 8
                and child.poll() is None
                and time.monotonic() < end
            ):
                time.sleep(0.002)
            child.kill()
            kills += child.wait() == -9
            child.communicate()
        assert kills == 4
        assert not folder.files("*output*")
        stamps = {path.name for path in folder.out.glob(".assay/*/sygra.json")}
        assert stamps == {"sygra.json"}
        done = folder.run("-n", "0", "-b", "8")
        assert done.code == 0, done.said
        assert [row["id"] for row in folder.output()] == [f"q{n}" for n in range(120)]
        assert folder.report()["results"]["accuracy"]["accuracy"] == 1.0
        assert folder.report()["evaluation_summary"]["total_records"] == 120
        # at most what was in flight is paid again: 8 places, of which the lane may use all
        assert 240 <= stats(url)["requests"] <= 240 + kills * 8


# ---- records that fail


def failing_on(text: str) -> str:
    return f"""
    class Post:
        def apply(self, resp, state):
            if {text!r} in state["question"]:
                raise ValueError("no such thing")
            return {{"predicted_answer": resp.message.content}}
    """


def test_the_last_record_fails_and_nothing_is_lost(folder: Folder) -> None:
    folder.nodes["ask"] |= {
        "post_process": "tasks.qa.code.Post",
        "output_keys": ["predicted_answer"],
    }
    folder.write("tasks/qa/code.py", failing_on("3 + 1"))
    done = folder.run()
    assert done.code == 0, done.said
    *right, last = folder.output()
    assert [row["exact_match_result"]["correct"] for row in right] == [True, True, True]
    assert last["id"] == "q3"
    assert last["question"] is last["predicted_answer"] is last["exact_match_result"] is None
    assert "no such thing" in last["error"]
    summary = folder.report()["evaluation_summary"]
    assert [summary[key] for key in ("total_records", "scored", "failed", "status")] == [
        4,
        3,
        1,
        "success",
    ]
    assert folder.report()["results"]["accuracy"]["accuracy"] == 1.0
    assert "4, 3 done, 1 failed" in done.out
    assert "no such thing" in done.out


def test_a_server_failure_is_no_wrong_answer(tmp_path: Path) -> None:
    answers = tmp_path / "answers.py"
    answers.write_text(
        "def answer(request):\n"
        "    bad = '2 + 1' in request['messages'][-1]['content']\n"
        "    return {'status': 400, 'body': {'error': {'message': 'no'}}} if bad else None\n"
    )
    with running(Options(skill=1.0, answers=f"{answers}:answer")) as url:
        folder = Folder(tmp_path, url)
        assert folder.call().ok
        assert folder.output()[2]["predicted_answer"] is None
        assert "no" in folder.output()[2]["error"]
        assert folder.report()["results"]["accuracy"]["accuracy"] == 1.0
        assert folder.report()["evaluation_summary"]["failed"] == 1
        # the next command asks again for what may have been an accident, and with the flag for all that failed
        answers.write_text("def answer(request): return None\n")
        with running(Options(skill=1.0)) as healthy:
            folder.environ["SYGRA_EVAL_MODEL_URL"] = healthy
            for path in folder.files("*.json"):
                path.unlink()
            assert folder.call(retry_errors=True).ok
            assert stats(healthy)["requests"] == 1
            assert folder.report()["evaluation_summary"]["failed"] == 0


def test_when_every_record_fails_the_command_fails_and_the_files_say_why(folder: Folder) -> None:
    folder.graph["schema_config"] = {"fields": [{"name": "nowhere", "type": "str"}]}
    done = folder.run()
    assert done.code == 1
    assert all("schema" in row["error"] for row in folder.output())
    assert [row["id"] for row in folder.output()] == ["q0", "q1", "q2", "q3"]
    assert folder.report()["evaluation_summary"]["failed"] == 4
    assert "the schema refuses the record" in done.said


def test_rows_that_a_schema_refuses_are_kept_as_failed(folder: Folder) -> None:
    folder.records[1]["answer"] = 7
    folder.graph["schema_config"] = {"fields": [{"name": "answer", "type": "str"}]}
    assert folder.call().ok
    rows = folder.output()
    assert [row["id"] for row in rows] == ["q0", "q1", "q2", "q3"]
    assert ["error" in row for row in rows] == [False, True, False, False]
    assert "schema" in rows[1]["error"]
    assert folder.report()["results"]["accuracy"]["accuracy"] == 1.0


def test_start_index_that_leaves_few_rows(folder: Folder) -> None:
    assert folder.call(start_index=3, num_records=5).ok
    assert [row["id"] for row in folder.output()] == ["q3"]


def test_a_server_that_answers_nobody_stops_the_run_and_the_rows_are_kept(folder: Folder) -> None:
    assert folder.call(num_records=2).ok
    folder.environ["SYGRA_EVAL_MODEL_URL"] = "http://127.0.0.1:9/v1"
    with pytest.raises(RunFailed):
        folder.call(num_records=4)
    assert len(folder.files("output_*.json")) == 1
    folder.environ["SYGRA_EVAL_MODEL_URL"] = folder.url
    before = stats(folder.url)["requests"]
    assert folder.call(num_records=4).ok
    assert stats(folder.url)["requests"] - before == 2


# ---- reports


def test_an_aggregator_that_fails_leaves_the_others(folder: Folder) -> None:
    folder.aggregators.append({"name": "accuracy", "unit_metrics_results": ["question"]})
    done = folder.run()
    assert done.code == 1
    summary = folder.report()["evaluation_summary"]
    assert summary["status"] == "fatal_error"
    assert "not all results of MetricCollatorPostProcessor could be computed" in done.err
    assert summary["errors"] == {"question-accuracy": "no record has a result in 'question'"}
    assert folder.report()["results"]["exact_match_result-accuracy"] == {"accuracy": 1.0}
    assert "no record has a result in 'question'" in done.said
    assert len(folder.output()) == 4


POST_PROCESSORS = """
from sygra.core.graph.graph_postprocessor import GraphPostProcessor

class First(GraphPostProcessor):
    def process(self, data, metadata):
        assert isinstance(data, list) and metadata["output_file"].endswith(".json")
        for row in data:
            row["mark"] = metadata["params"]["mark"]
        return data

    def __init__(self, mark):
        self.mark = mark

class Second(GraphPostProcessor):
    def process(self, data, metadata):
        return [{"marks": [row.get("mark") for row in data]}]

class Empty(GraphPostProcessor):
    def process(self, data, metadata):
        return []

class Broken(GraphPostProcessor):
    def process(self, data, metadata):
        raise RuntimeError("broken on purpose")
"""


def test_post_processors_one_after_the_other(folder: Folder) -> None:
    folder.write("tasks/qa/post.py", POST_PROCESSORS)
    folder.graph["graph_post_process"] = [
        {"processor": "tasks.qa.post.First", "params": {"mark": "é"}},
        {"processor": "tasks.qa.post.Second", "params": {"use_previous_output": True}},
        "tasks.qa.post.Second",
        {"processor": "tasks.qa.post.Empty", "params": None},
        {
            "processor": REPORT,
            "params": {"use_previous_output": True, "aggregator_metrics_map": []},
        },
    ]
    assert folder.call(output_with_ts=False).ok
    read = {path.stem: json.loads(path.read_text()) for path in folder.files("*.json")}
    assert read["Second"] == [{"marks": ["é"] * 4}]
    assert read["Second-2"] == [{"marks": [None] * 4}]
    assert read["Empty"] == []
    assert read["MetricCollatorPostProcessor"][0]["evaluation_summary"] == {
        "total_records": 0,
        "status": "no_data",
    }
    assert "mark" not in read["output"][0]


def test_no_record_is_an_error_and_a_report(folder: Folder) -> None:
    with pytest.raises(UserError, match="none is left from start_index 100 on"):
        folder.call(output_with_ts=False, start_index=100)
    (report,) = folder.files("MetricCollatorPostProcessor*.json")
    assert json.loads(report.read_text()) == [
        {"evaluation_summary": {"total_records": 0, "status": "no_data"}, "results": {}}
    ]


def test_a_post_processor_that_fails_keeps_no_other_from_running(folder: Folder) -> None:
    folder.write("tasks/qa/post.py", POST_PROCESSORS)
    folder.graph["graph_post_process"] = [
        "tasks.qa.post.Broken",
        folder.graph["graph_post_process"][0],
    ]
    done = folder.call()
    assert not done.ok
    assert [each.status for each in done.processed] == ["failed", "success"]
    place = 'post.py, line 24: raise RuntimeError("broken on purpose")'
    assert done.processed[0].error == f"RuntimeError: broken on purpose ({place})"
    assert folder.report()["results"] == {"accuracy": {"accuracy": 1.0}}
    assert len(folder.output()) == 4


def test_media_become_files_beside_the_output(folder: Folder) -> None:
    picture = b"\x89PNG not really"
    url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    folder.records = [
        {**record, "picture": url, "id": f"../{record['id']}"} for record in folder.records
    ]
    folder.graph["output_config"]["output_map"]["picture/../x"] = {"from": "picture"}
    assert folder.call(output_with_ts=False).ok
    paths = {row["picture/../x"] for row in folder.output()}
    (path,) = paths
    assert Path(path).parent == folder.out / "output"
    assert Path(path).read_bytes() == picture


def test_an_executor_of_the_tasks_own_is_said_to_be_unused(folder: Folder) -> None:
    folder.write("tasks/qa/task_executor.py", "class TaskExecutor: ...\n")
    folder.write("tasks/eval/utils.py", "from assay.formats.sygra.eval_utils import *\n")
    notes = folder.call().notes
    assert any("TaskExecutor" in note for note in notes)
    assert any("tasks/eval/utils.py" in note for note in notes)


@pytest.mark.slow
def test_more_than_25000_records(tmp_path: Path, sygra_url: str) -> None:
    folder = Folder(tmp_path, sygra_url)
    folder.records = [
        {"id": n, "question": "q", "answer": "a" if n % 4 else "b"} for n in range(25_003)
    ]
    folder.nodes["ask"] = {
        "node_type": "lambda",
        "lambda": "tasks.qa.code.say",
        "output_keys": ["predicted_answer"],
    }
    folder.write("tasks/qa/code.py", "def say(config, state): return {'predicted_answer': 'a'}\n")
    folder.write(
        "tasks/qa/post.py",
        "class Count:\n    def process(self, data, metadata):\n        return [len(data)]\n",
    )
    folder.graph["graph_post_process"].append("tasks.qa.post.Count")
    assert folder.call(num_records=0, batch_size=64).ok
    (output,) = folder.files("output_*")
    assert output.suffix == ".jsonl"
    rows = folder.output()
    assert [row["id"] for row in rows] == list(range(25_003))
    wrong = len(range(0, 25_003, 4))
    assert folder.report()["results"]["accuracy"]["accuracy"] == pytest.approx(1 - wrong / 25_003)
    assert json.loads(folder.files("Count_*")[0].read_text()) == [25_003]
