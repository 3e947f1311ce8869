"""The user's own code: decorated metrics as the document says, modules of their `sygra/` folder, and what it raises."""

import json
from pathlib import Path

import pytest
import yaml

from assay.formats.sygra.metrics import AggregatorMetricRegistry, UnitMetricRegistry
from assay.formats.sygra.modules import Loader
from assay.server import stats
from tests.cli.shell import Shell
from tests.formats.sygra.folder import Folder

UNIT = """
from sygra.core.eval.metrics.base_metric_metadata import BaseMetricMetadata
from sygra.core.eval.metrics.unit_metrics.base_unit_metric import BaseUnitMetric
from sygra.core.eval.metrics.unit_metrics.unit_metric_registry import unit_metric
from sygra.core.eval.metrics.unit_metrics.unit_metric_result import UnitMetricResult

@unit_metric("as_long")
class AsLong(BaseUnitMetric):
    def validate_config(self):
        self.most = int(self.config.get("most", 0))
    def get_metadata(self):
        return BaseMetricMetadata(name="as_long", display_name="As long", description="equal lengths")
    def evaluate(self, golden, predicted):
        return [
            UnitMetricResult(abs(len(str(one["text"])) - len(str(other["text"]))) <= self.most, one, other)
            for one, other in zip(golden, predicted)
        ]
"""
AGGREGATOR = """
from sygra.core.eval.metrics.base_metric_metadata import BaseMetricMetadata
from sygra.core.eval.metrics.aggregator_metrics.base_aggregator_metric import BaseAggregatorMetric
from sygra.core.eval.metrics.aggregator_metrics.aggregator_metric_registry import aggregator_metric

@aggregator_metric("right_ones")
class RightOnes(BaseAggregatorMetric):
    def validate_config(self): ...
    def get_metadata(self):
        return BaseMetricMetadata(name="right_ones", display_name="Right", description="how many are right")
    def calculate(self, results):
        return {"right_ones": self._count_correct(results)}
"""
IN_TREE = "sygra/core/eval/metrics"
PLACES = {
    "the document's": (
        f"{IN_TREE}/unit_metrics/as_long.py",
        f"{IN_TREE}/aggregator_metrics/right_ones.py",
    ),
    "beside the task": ("tasks/qa/measures.py", "tasks/qa/counting.py"),
}


@pytest.fixture(autouse=True)
def forget() -> None:
    UnitMetricRegistry.unregister("as_long")
    AggregatorMetricRegistry.unregister("right_ones")


def extended(folder: Folder, unit: str = "as_long", aggregator: str = "right_ones") -> Folder:
    """Names of the document: the column is the metric's name with `_result`."""
    folder.nodes["unit_metrics"] |= {
        "unit_metrics_map": [{"name": unit}],
        "output_keys": ["as_long_result"],
    }
    folder.graph["output_config"]["output_map"] = {
        name: {"from": name} for name in ("id", "as_long_result")
    }
    folder.aggregators[:] = [
        {"name": name, "unit_metrics_results": ["as_long_result"]}
        for name in ("accuracy", aggregator)
    ]
    return folder


@pytest.mark.parametrize("place", PLACES)
def test_decorated_classes_are_found_by_their_names(place: str, folder: Folder) -> None:
    for name, text in zip(PLACES[place], (UNIT, AGGREGATOR), strict=True):
        folder.write(name, text)
    done = extended(folder).run("--json")
    assert done.code == 0, done.err
    assert all(row["as_long_result"]["correct"] for row in folder.output())
    assert folder.report()["results"] == {
        "accuracy": {"accuracy": 1.0},
        "right_ones": {"right_ones": 4},
    }
    (place,) = (folder.out / ".assay").iterdir()
    (place / "metrics.jsonl").unlink()
    assert Shell(folder.base).call("aggregate", str(place)).code == 0
    rows = [json.loads(line) for line in (place / "metrics.jsonl").read_text().splitlines()]
    assert [row["payload"] for row in rows if row["metric_name"] == "right_ones"] == [
        {"right_ones": 4}
    ]


def test_the_column_is_named_by_the_metric_also_where_a_path_names_its_class(
    folder: Folder,
) -> None:
    folder.write("tasks/qa/measures.py", UNIT)
    folder.write("tasks/qa/counting.py", AGGREGATOR)
    assert extended(folder, "tasks.qa.measures.AsLong", "tasks.qa.counting.RightOnes").call().ok
    assert all(row["as_long_result"]["correct"] for row in folder.output())
    assert folder.report()["results"]["right_ones"] == {"right_ones": 4}


def test_files_that_register_nothing_are_not_imported(folder: Folder) -> None:
    folder.write("tasks/qa/script.py", "raise SystemExit('a script')\n")
    folder.write(f"{IN_TREE}/unit_metrics/notes.py", "raise SystemExit('a script')\n")
    assert folder.call().ok


def test_an_edit_of_a_metric_scores_again_and_asks_no_model(folder: Folder) -> None:
    folder.write("tasks/qa/measures.py", UNIT)
    folder.write("tasks/qa/counting.py", AGGREGATOR)
    assert extended(folder).call(output_with_ts=False).ok
    before = stats(folder.url)["requests"]
    folder.write("tasks/qa/measures.py", UNIT.replace("<= self.most", "< 0"))
    assert folder.call(output_with_ts=False).ok
    assert folder.report()["results"]["accuracy"] == {"accuracy": 0.0}
    assert stats(folder.url)["requests"] == before


def test_a_broken_metric_is_named_with_its_line(folder: Folder) -> None:
    folder.write("tasks/qa/measures.py", UNIT + "\nnonsense\n")
    done = extended(folder).run()
    assert done.code == 2
    assert "NameError" in done.err
    assert "measures.py:" in done.err


# ---- the user's `sygra/` folder


def test_what_we_do_not_offer_comes_from_the_users_folder(folder: Folder) -> None:
    folder.write("sygra/__init__.py", "import torch\n")
    folder.write("sygra/recipes/polite/words.py", "PLEASE = 'please'\n")
    folder.write(
        "sygra/recipes/polite/code.py",
        """
        from sygra.core.graph.functions.lambda_function import LambdaFunction
        from sygra.recipes.polite import words
        from sygra.recipes.polite.words import PLEASE
        class Ask(LambdaFunction):
            @staticmethod
            def apply(node, state):
                return {"polite": f"{state['question']}", "said": words.PLEASE + PLEASE}
        """,
    )
    inner = {
        "nodes": {
            "say": {
                "node_type": "lambda",
                "lambda": "sygra.recipes.polite.code.Ask",
                "output_keys": ["polite", "said"],
            }
        },
        "edges": [{"from": "START", "to": "say"}, {"from": "say", "to": "END"}],
    }
    folder.write("sygra/recipes/polite/graph_config.yaml", yaml.safe_dump({"graph_config": inner}))
    folder.nodes["politely"] = {"node_type": "subgraph", "subgraph": "sygra.recipes.polite"}
    folder.nodes["ask"]["prompt"] = [{"user": "{polite}"}]
    folder.graph["graph_config"]["edges"][0] = {"from": "START", "to": "politely"}
    folder.graph["graph_config"]["edges"].append({"from": "politely", "to": "ask"})
    folder.graph["output_config"]["output_map"]["said"] = {"from": "said"}
    assert folder.call().ok
    assert {row["said"] for row in folder.output()} == {"pleaseplease"}


def test_two_folders_do_not_see_each_others_recipes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        file = tmp_path / name / "sygra/recipes/mine/code.py"
        file.parent.mkdir(parents=True)
        file.write_text(f"where = {name!r}\n")
    assert [
        Loader(tmp_path / name)("sygra.recipes.mine.code.where", "") for name in ("a", "b", "a")
    ] == ["a", "b", "a"]


def test_files_that_ours_stand_for_are_said(tmp_path: Path) -> None:
    for name in ("utils/utils.py", "utils/constants.py", "recipes/mine.py"):
        file = tmp_path / "sygra" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    (note,) = Loader(tmp_path).notes()
    assert (
        note
        == "Assay's own modules stand for 2 of your sygra folder: sygra/utils/constants.py, sygra/utils/utils.py"
    )


# ---- total failure


def test_when_every_record_fails_the_reasons_are_everywhere(folder: Folder) -> None:
    folder.write("tasks/qa/code.py", "def post(response):\n    raise ValueError('no such luck')\n")
    folder.nodes["ask"]["post_process"] = "tasks.qa.code.post"
    done = folder.run("--json")
    assert (done.code, done.result["ok"]) == (1, False)
    (failures,) = done.result["failures"]
    reason = "node 'ask': post (code.py:2): ValueError: no such luck"
    assert (failures["rows"], failures["errored"], failures["reasons"][0]["count"]) == (4, 4, 4)
    assert reason in failures["reasons"][0]["error"]
    status = json.loads((Path(done.result["folder"]) / "status.json").read_text())
    assert reason in status["errors"][0]
    shown = folder.run()
    assert shown.code == 1
    assert "error: every record failed" in shown.err
    assert reason in shown.words
    assert f"assay trace {done.result['folder']} q0" in shown.out
    listed = Shell(folder.base).call("ls", str(folder.out))
    assert "failed" in listed.out
    assert "no such luck" in listed.words
    report = json.loads(Path(shown.out.split("file: ")[2].split()[0]).read_text())[0][
        "evaluation_summary"
    ]
    assert report["error"] == "no record has a result in 'exact_match_result': 4 of 4 failed"
