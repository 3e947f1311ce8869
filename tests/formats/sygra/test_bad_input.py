"""Every bad input that the issue names: a clear error with its place before anything is spent, or in the record."""

from collections.abc import Callable
from typing import Any

import pytest

from assay.errors import UserError
from assay.server import stats
from tests.formats.sygra.folder import Folder

Edit = Callable[[Folder], Any]


def unknown_node_type(folder: Folder) -> None:
    folder.nodes["ask"]["node_type"] = "lmm"


def edge_to_nowhere(folder: Folder) -> None:
    folder.graph["graph_config"]["edges"][1]["to"] = "unit_metric"


def no_such_import(folder: Folder) -> None:
    folder.nodes["ask"]["post_process"] = "tasks.qa.missing.Post"


def no_such_class(folder: Folder) -> None:
    folder.write("tasks/qa/code.py", "class Psot: ...\n")
    folder.nodes["ask"]["post_process"] = "tasks.qa.code.Post"


def params_null(folder: Folder) -> None:
    folder.nodes["unit_metrics"]["unit_metrics_map"][0]["params"] = None


def two_metrics_of_one_name(folder: Folder) -> None:
    folder.nodes["unit_metrics"]["unit_metrics_map"].append(
        {"name": "exact_match", "params": {"key": "other"}}
    )


def unknown_unit_metric(folder: Folder) -> None:
    folder.nodes["unit_metrics"]["unit_metrics_map"][0]["name"] = "exact_mtach"


def no_graph(folder: Folder) -> None:
    del folder.graph["graph_config"]


def no_edges(folder: Folder) -> None:
    folder.graph["graph_config"]["edges"] = []


def oasst(folder: Folder) -> None:
    folder.graph["output_config"]["oasst_mapper"] = {"required": "yes", "type": "sft"}


def servicenow(folder: Folder) -> None:
    folder.graph["data_config"]["source"] = {"type": "servicenow", "table": "incident"}


def empty_dataset(folder: Folder) -> None:
    folder.records = []


def not_a_list(folder: Folder) -> None:
    folder.records = {"rows": 1}


def not_json(folder: Folder) -> None:
    folder.records = "[{"


def unknown_model(folder: Folder) -> None:
    folder.nodes["ask"]["model"]["name"] = "evla_model"


def no_such_post_processor(folder: Folder) -> None:
    folder.graph["graph_post_process"] = ["tasks.eval.utils.MetricCollator"]


def post_processor_without_process(folder: Folder) -> None:
    folder.write("tasks/qa/code.py", "class Mine: ...\n")
    folder.graph["graph_post_process"] = ["tasks.qa.code.Mine"]


def post_processor_of_other_parameters(folder: Folder) -> None:
    folder.write(
        "tasks/qa/code.py",
        "class Mine:\n    def __init__(self, k): ...\n    def process(self, a, b): ...\n",
    )
    folder.graph["graph_post_process"] = [{"processor": "tasks.qa.code.Mine", "params": {"z": 1}}]


def golden_key_of_no_record(folder: Folder) -> None:
    folder.nodes["unit_metrics"]["golden_key"] = "answr"


def no_golden_key_for_their_own_utils(folder: Folder) -> None:
    folder.write(
        "tasks/eval/utils.py",
        "from assay.formats.sygra.eval_utils import *\nclass UnitMetrics(UnitMetrics): ...\n",
    )
    del folder.nodes["unit_metrics"]["golden_key"]


def predicted_key_that_is_no_name(folder: Folder) -> None:
    folder.nodes["unit_metrics"]["predicted_key"] = ["predicted_answer"]


def column_of_no_record(folder: Folder) -> None:
    folder.aggregators.append(
        {
            "name": "f1_score",
            "params": {"predicted_key": "a", "golden_key": "b"},
            "unit_metrics_results": ["exact_mtch_result"],
        }
    )


def column_of_a_variable_that_nothing_sets(folder: Folder) -> None:
    folder.graph["output_config"]["output_map"]["exact_match_result"] = {"from": "exact_match"}


def column_without_an_output_map(folder: Folder) -> None:
    del folder.graph["output_config"]
    folder.nodes["unit_metrics"]["output_keys"] = ["exact_match"]


def unknown_schema_type(folder: Folder) -> None:
    folder.graph["schema_config"] = {"fields": [{"name": "answer", "type": "strng"}]}


def list_of_keys_without_post_process(folder: Folder) -> None:
    folder.nodes["ask"]["output_keys"] = ["predicted_answer"]


@pytest.mark.parametrize(
    ("edit", "said", "where"),
    [
        (
            unknown_node_type,
            "unknown node type 'lmm'",
            "graph_config.yaml: graph_config.nodes.ask.node_type",
        ),
        (edge_to_nowhere, "'unit_metric'", "graph_config.edges[1]"),
        (no_such_import, "'tasks.qa.missing.Post'", "graph_config.nodes.ask.post_process"),
        (no_such_class, "did you mean 'Psot'", "graph_config.nodes.ask.post_process"),
        (params_null, "params", "graph_config.nodes.unit_metrics.unit_metrics_map"),
        (two_metrics_of_one_name, "two unit metrics are called 'exact_match'", "unit_metrics_map"),
        (unknown_unit_metric, "did you mean 'exact_match'", "unit_metrics_map"),
        (no_graph, "there is no graph_config", "graph_config.yaml"),
        (no_edges, "the graph has no edges", "graph_config.edges"),
        (oasst, "oasst_mapper is not offered", "output_config.oasst_mapper"),
        (servicenow, "ServiceNow", "data_config.source"),
        (empty_dataset, "empty", "data_config.source"),
        (not_a_list, "list", "data.json"),
        (not_json, "JSON", "data.json"),
        (unknown_model, "the model 'evla_model' is not described", "models.yaml"),
        (
            no_such_post_processor,
            "did you mean 'MetricCollatorPostProcessor'",
            "graph_post_process[0].processor",
        ),
        (post_processor_without_process, "no method `process", "graph_post_process[0]"),
        (post_processor_of_other_parameters, "cannot be made", "graph_post_process[0].params"),
        (golden_key_of_no_record, "did you mean 'answer'", "nodes.unit_metrics.golden_key"),
        (no_golden_key_for_their_own_utils, "golden_key is None", "nodes.unit_metrics.golden_key"),
        (predicted_key_that_is_no_name, "is ['predicted_answer']", "unit_metrics.predicted_key"),
        (
            column_of_no_record,
            "did you mean 'exact_match_result'",
            "[0].params.aggregator_metrics_map",
        ),
        (
            column_of_a_variable_that_nothing_sets,
            "valid: id, predicted_answer, question;",
            "[0].params",
        ),
        (column_without_an_output_map, "did you mean 'exact_match'", "[0].params"),
        (unknown_schema_type, "'strng'", "schema_config.fields[0].type"),
        (list_of_keys_without_post_process, "post_process", "graph_config.nodes.ask"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(
    folder: Folder, edit: Edit, said: str, where: str
) -> None:
    edit(folder)
    before = stats(folder.url)["requests"]
    with pytest.raises(UserError) as caught:
        folder.call()
    assert said in str(caught.value)
    assert where in str(caught.value)
    assert stats(folder.url)["requests"] == before
    assert not folder.files("output*.json")
    assert not folder.files(".assay/*/items.jsonl"), "what was refused is no experiment"


COLUMNS = {
    "only a later record has it": "tasks.eval.utils.MetricCollatorPostProcessor",
    "the collator makes it": "tasks.qa.own.Mine",
    "the generator makes it": "tasks.eval.utils.MetricCollatorPostProcessor",
}


@pytest.mark.parametrize("way", COLUMNS)
def test_a_column_that_a_record_could_have_is_not_refused(folder: Folder, way: str) -> None:
    folder.write(
        "tasks/qa/own.py",
        """
        from sygra.processors.output_record_generator import BaseOutputGenerator
        from tasks.eval.utils import MetricCollatorPostProcessor

        class Mine(MetricCollatorPostProcessor):
            def process(self, data, metadata):
                rows = [{"late": row["exact_match_result"]} for row in data]
                return super().process(rows, metadata)

        class Generator(BaseOutputGenerator):
            def generate(self, state):
                return {"id": state["id"], "late": state["exact_match_result"]}
        """,
    )
    if way == "only a later record has it":
        result = {"correct": True, "golden": {}, "predicted": {}}
        folder.records[3] |= {"late": result}
        folder.graph["output_config"]["output_map"]["late"] = {"from": "late"}
    elif way == "the generator makes it":
        folder.graph["output_config"]["generator"] = "tasks.qa.own.Generator"
    folder.graph["graph_post_process"][0]["processor"] = COLUMNS[way]
    folder.aggregators[0]["unit_metrics_results"] = ["late"]
    result = folder.call(output_with_ts=False)
    assert result.ok
    (processed,) = result.processed
    assert processed.report is not None
    assert list(processed.report["results"].values()) == [{"accuracy": 1.0}]


def test_a_mistake_is_no_traceback_and_exit_code_2(folder: Folder) -> None:
    unknown_node_type(folder)
    done = folder.run()
    assert done.code == 2
    assert "did you mean 'llm'" in done.err
    unknown = folder.run(task="qaa")
    assert unknown.code == 2
    assert "did you mean 'tasks.qa'" in unknown.err


# ---- what only a record shows


def looping(folder: Folder, code: str, path_map: dict[str, str]) -> list[dict[str, Any]]:
    folder.write("tasks/qa/code.py", code)
    folder.nodes["count"] = {
        "node_type": "lambda",
        "lambda": "tasks.qa.code.count",
        "output_keys": ["n"],
    }
    folder.graph["graph_config"]["edges"] = [
        {"from": "START", "to": "count"},
        {"from": "count", "condition": "tasks.qa.code.further", "path_map": path_map},
        {"from": "ask", "to": "unit_metrics"},
        {"from": "unit_metrics", "to": "END"},
    ]
    folder.graph["output_config"]["output_map"]["n"] = {"from": "n"}
    folder.call()
    return folder.output()


COUNT = "def count(config, state): return {'n': (state.get('n') or 0) + 1}\n"


def test_a_condition_that_returns_an_unknown_branch(folder: Folder) -> None:
    rows = looping(folder, COUNT + "def further(state): return 'sideways'\n", {"ask": "ask"})
    assert all("'sideways'" in row["error"] and "ask" in row["error"] for row in rows)
    assert [row["id"] for row in rows] == ["q0", "q1", "q2", "q3"]


def test_an_endless_loop_ends(folder: Folder) -> None:
    rows = looping(
        folder, COUNT + "def further(state): return 'count'\n", {"count": "count", "ask": "ask"}
    )
    assert all("100 steps" in row["error"] for row in rows)


def test_a_self_loop_runs(folder: Folder) -> None:
    code = COUNT + "def further(state): return 'ask' if state['n'] > 4 else 'count'\n"
    rows = looping(folder, code, {"count": "count", "ask": "ask"})
    assert [row["n"] for row in rows] == [5, 5, 5, 5]
    assert all(row["exact_match_result"]["correct"] for row in rows)
