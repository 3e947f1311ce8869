"""A tree with a `tasks/eval/utils.py` of its own, as SyGra's: the same experiment as without it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.formats.sygra import run
from assay.formats.sygra.metrics import UnitMetricRegistry
from assay.server import Options, running, stats
from tests.cli.shell import Ended, assay, surrounding
from tests.formats.sygra.folder import REPORT, Folder
from tests.formats.sygra.test_own_code import UNIT

EXAMPLE = Path(__file__).parents[3] / "examples" / "sygra"
# The names and imports of SyGra's own file; its two versions differ in what is filled in.
UTILS = """
import json
from typing import Any

import pandas as pd
import regex

from sygra.core.eval.metrics.aggregator_metrics.aggregator_metric_registry import (
    AggregatorMetricRegistry,
)
from sygra.core.eval.metrics.unit_metrics.unit_metric_registry import UnitMetricRegistry
from sygra.core.eval.metrics.unit_metrics.unit_metric_result import UnitMetricResult
from sygra.core.graph.functions.lambda_function import LambdaFunction
from sygra.core.graph.graph_postprocessor import GraphPostProcessor
from sygra.core.graph.sygra_state import SygraState
from sygra.logger.logger_config import logger


def parse_response_as_json(s):
    found = regex.search(r"\\{(?:[^{}]|(?R))*\\}", str(s))
    return json.loads(found[0]) if found else None


class UnitMetrics(LambdaFunction):
    @staticmethod
    def apply(lambda_node_dict: dict, state: SygraState) -> SygraState:
        keys = [lambda_node_dict[side] for side in ("golden_key", "predicted_key")]
        sides = [[{"text": state[key]}] for key in keys]
        for entry in lambda_node_dict["unit_metrics_map"]:
            metric = UnitMetricRegistry.get_metric(entry["name"], **entry.get("params", {}))
            state[entry["name"] + "SUFFIX"] = metric.evaluate(*sides)[0].to_dict()
        return state


class MetricCollatorPostProcessor(GraphPostProcessor):
    def __init__(self, aggregator_metrics_map=None, MORE):
        self.aggregators = aggregator_metrics_map or []

    def process(self, data: list, metadata: dict) -> list:
        table = pd.DataFrame(data)
        results: dict[str, Any] = {}
        for entry in self.aggregators:
            column, name = entry["unit_metrics_results"][0], entry["name"]
            rows = [UnitMetricResult(**row) for row in table[column] if isinstance(row, dict)]
            metric = AggregatorMetricRegistry.get_metric(name, **entry.get("params", {}))
            results[KEY] = metric.calculate(rows)
        logger.info("collated")
        summary = {"total_records": len(data), "status": "success"}
        return [{"evaluation_summary": summary, "results": results}]
"""


def version(suffix: str, more: str, key: str) -> str:
    return UTILS.replace("SUFFIX", suffix).replace("MORE", more).replace("KEY", key)


OLDER = version("_result", "unit_metrics_results='text'", "name")
NEWER = version("", "**kwargs", "column + '-' + name")
TASKS = {  # the examples are of one version each
    "eval.classification.simpleqa": (OLDER, "exact_match_result", "accuracy", 0.8),
    "eval.question_answering.simpleqa": (NEWER, "exact_match", "exact_match-accuracy", 0.6),
}


@pytest.fixture(scope="module")
def answering() -> Iterator[str]:
    with running(Options(answers=f"{EXAMPLE / 'answers.py'}:answer")) as url:
        yield url


def checkout(base: Path, url: str, utils: str) -> Path:
    """Copy our own tasks, which are laid out as the original's, with such a file among them."""
    shutil.copytree(EXAMPLE, base, ignore=shutil.ignore_patterns("__pycache__", ".assay"))
    if utils:
        (base / "tasks/eval/utils.py").write_text(utils)
    (base / "models.yaml").write_text(yaml.safe_dump({"eval_model": {"url": url, "model": "m"}}))
    shutil.rmtree(base / "sygra")
    return base


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows_in(out: Path) -> Path:
    (rows,) = (out / ".assay").iterdir()
    return rows


def verb(*words: str | Path) -> Ended:
    shown = assay(*map(str, words), folder=Path(words[1]), environ=surrounding(COLUMNS="200"))
    assert shown.code == 0, shown.said
    return shown


@pytest.mark.parametrize("task", TASKS)
def test_the_experiment_is_the_same_with_the_file_as_without(
    tmp_path: Path, answering: str, task: str
) -> None:
    utils, label, metric, value = TASKS[task]
    results: list[tuple[Any, ...]] = []
    for name, text in (("with", utils), ("without", "")):
        out = checkout(tmp_path / name, answering, text) / "out"
        result = run(task, base=str(out.parent), output_dir=str(out), output_with_ts=False)
        assert result.ok
        assert any("your own tasks/eval/utils.py" in note for note in result.notes) == bool(text)
        rows = rows_in(out)
        labels = {
            (row["item_id"], row["label"], row["passed"], str(row["detailed_results"]))
            for row in read(rows / "evaluation_results.jsonl")
        }
        (report,) = json.loads((out / "MetricCollatorPostProcessor.json").read_text())
        kept = [(rows / name).read_bytes() for name in ("config.yaml", "metrics.jsonl")]
        results.append((labels, kept, report["results"]))
    assert results[0] == results[1]
    assert ("14", label, False) in {row[:3] for row in results[0][0]}
    out = tmp_path / "with/out"
    before = (rows_in(out) / "metrics.jsonl").read_bytes()
    assert f"{metric} {value:.3f}" in verb("ls", out).words
    verb("aggregate", out)
    assert (rows_in(out) / "metrics.jsonl").read_bytes() == before
    verb("gate", out, "--label", label, "--metric", metric, "--min", str(value), "--point")
    assert "chambers" in verb("trace", rows_in(out), "14").out  # the ids are `original_index`


def test_a_subclass_and_a_copy_under_another_name(folder: Folder) -> None:
    folder.write("tasks/qa/own.py", NEWER.replace("class UnitMetrics", "class Compare"))
    folder.write(
        "tasks/qa/more.py",
        """
        from tasks.eval.utils import MetricCollatorPostProcessor

        class Mine(MetricCollatorPostProcessor):
            def process(self, data, metadata):
                return [*super().process(data, metadata), "and more"]
        """,
    )
    node = folder.nodes["unit_metrics"]
    node |= {"lambda": "tasks.qa.own.Compare", "output_keys": ["exact_match"]}
    folder.graph["output_config"]["output_map"]["exact_match_result"] = {"from": "exact_match"}
    folder.graph["graph_post_process"][0]["processor"] = "tasks.qa.more.Mine"
    assert folder.call(output_with_ts=False).ok
    (report, more) = json.loads((folder.out / "Mine.json").read_text())
    assert (report["results"], more) == ({"accuracy": {"accuracy": 1.0}}, "and more")
    metrics = read(rows_in(folder.out) / "metrics.jsonl")
    assert [row["metric_name"] for row in metrics] == ["accuracy"]
    del folder.graph["graph_post_process"]
    (folder.out / "output.json").unlink()
    folder.out = folder.base / "alone"
    assert folder.call(output_with_ts=False).ok
    (metric,) = read(rows_in(folder.out) / "metrics.jsonl")
    assert metric["metric_name"] == "exact_match_result-accuracy"


COUNT = """

class Count:
    def __init__(self, *_): ...

    def calculate(self, rows):
        return len(rows)
"""


def test_an_aggregator_that_only_their_collator_knows_is_theirs(folder: Folder) -> None:
    own = NEWER.replace("AggregatorMetricRegistry.get_metric(name", "Count(name")
    folder.write("tasks/qa/own.py", own + COUNT)
    folder.graph["graph_post_process"][0]["processor"] = "tasks.qa.own.MetricCollatorPostProcessor"
    folder.aggregators[0]["name"] = "how_many"
    assert folder.call(output_with_ts=False).ok
    assert folder.report()["results"] == {"exact_match_result-how_many": 4}
    (metric,) = read(rows_in(folder.out) / "metrics.jsonl")
    assert metric["metric_name"] == "exact_match_result-accuracy"


@pytest.fixture
def as_long() -> Iterator[str]:
    yield UNIT
    UnitMetricRegistry.unregister("as_long")


def test_an_edit_of_a_metric_scores_again_and_asks_no_model(folder: Folder, as_long: str) -> None:
    folder.write("tasks/eval/utils.py", OLDER)
    folder.write("tasks/qa/measures.py", as_long)
    folder.nodes["unit_metrics"] |= {
        "unit_metrics_map": [{"name": "as_long"}],
        "output_keys": ["as_long_result"],
    }
    folder.graph["output_config"]["output_map"]["exact_match_result"] = {"from": "as_long_result"}
    assert folder.call(output_with_ts=False).ok
    before = stats(folder.url)["requests"]
    folder.write("tasks/qa/measures.py", as_long.replace("<= self.most", "< 0"))
    assert folder.call(output_with_ts=False).ok
    assert folder.report()["results"] == {"accuracy": {"accuracy": 0.0}}
    assert stats(folder.url)["requests"] == before


# ---- ids


def test_a_folder_with_digests_for_ids_goes_on_with_them(
    tmp_path: Path, answering: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As 0.1 wrote them: keys of paid calls hold the id."""
    task = "eval.question_answering.simpleqa"
    base = checkout(tmp_path / "old", answering, NEWER)

    def ask(out: str, count: int) -> list[str]:
        assert run(task, base=str(base), output_dir=str(base / out), num_records=count).ok
        return [item["id"] for item in read(rows_in(base / out) / "items.jsonl")]

    with monkeypatch.context() as older:
        older.setattr("assay.formats.sygra.data.INDEX", "no such field")
        assert [len(id) for id in ask("out", 3)] == [64] * 3
    before = stats(answering)["requests"]
    assert [len(id) for id in ask("out", 5)] == [64] * 5
    assert stats(answering)["requests"] - before == 2
    assert ask("new", 3) == ["11", "12", "13"]
    assert ask("new", 5) == ["11", "12", "13", "14", "15"]
    assert stats(answering)["requests"] - before == 7


def test_what_a_post_processor_made_of_a_record_names_it_by_the_index_or_by_its_id(
    folder: Folder,
) -> None:
    folder.records = [
        {"original_index": n, "question": f"What is {n} + 1?", "answer": str(n + 1)}
        for n in range(3)
    ]
    folder.graph["output_config"]["output_map"]["original_index"] = {"from": "original_index"}
    params = folder.graph["graph_post_process"][0]["params"]
    for left_out in ("id", "original_index"):
        folder.write(
            "tasks/qa/own.py",
            f"""
            class Without:
                def process(self, data, metadata):
                    return [{{k: v for k, v in row.items() if k != {left_out!r}}} for row in data]
            """,
        )
        folder.graph["graph_post_process"] = [
            "tasks.qa.own.Without",
            {"processor": REPORT, "params": {**params, "use_previous_output": True}},
        ]
        folder.out = folder.base / f"without_{left_out}"
        result = folder.call(output_with_ts=False)
        assert result.ok
        assert not any("name no item" in note for note in result.notes)
        rows = read(rows_in(folder.out) / "evaluation_results.jsonl")
        assert sorted(row["item_id"] for row in rows) == ["0", "1", "2"]
