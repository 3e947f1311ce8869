"""`sygra.…` and `tasks.eval.utils` as helpers import them, and dotted names of a task's YAML."""

import importlib
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from assay.errors import UserError
from assay.formats.sygra import install
from assay.formats.sygra.modules import OFFERED, Loader

IN_A_FRESH_PROCESS = """
import sys
from assay.formats.sygra import install
install()
install()
{body}
"""


def fresh(body: str, folder: Path) -> str:
    """What a new interpreter prints: modules that another test imported must not help."""
    code = IN_A_FRESH_PROCESS.format(body=dedent(body))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("module", sorted(name for name in OFFERED if name.startswith("sygra.")))
def test_every_name_that_is_offered_is_there(module: str) -> None:
    install()
    found = importlib.import_module(module)
    home, names = OFFERED[module]
    for name in names:
        if name != "*":
            assert getattr(found, name) is getattr(importlib.import_module(home), name)
    assert [name for name in dir(found) if name[0] != "_"]


def test_the_imports_of_evaluation_tasks(tmp_path: Path) -> None:
    body = """
    from sygra.core.eval.metrics.unit_metrics.exact_match import ExactMatchMetric
    from sygra.core.eval.metrics.unit_metrics.unit_metric_registry import UnitMetricRegistry, unit_metric
    from sygra.core.eval.metrics.aggregator_metrics.aggregator_metric_registry import AggregatorMetricRegistry
    from sygra.core.graph.functions.edge_condition import EdgeCondition
    from sygra.core.graph.functions.lambda_function import LambdaFunction
    from sygra.core.graph.functions.node_processor import NodePostProcessorWithState, NodePreProcessor
    from sygra.core.graph.graph_postprocessor import GraphPostProcessor
    from sygra.core.graph.sygra_message import SygraMessage
    from sygra.core.graph.sygra_state import SygraState
    from sygra.logger.logger_config import logger
    from sygra.utils import constants, utils
    from tasks.eval.utils import MetricCollatorPostProcessor, UnitMetrics, parse_response_as_json
    print(constants.SYGRA_END, utils.current_task, UnitMetricRegistry.has_metric("exact_match"))
    print(issubclass(UnitMetrics, LambdaFunction), issubclass(MetricCollatorPostProcessor, GraphPostProcessor))
    """
    assert fresh(body, tmp_path) == "__end__ None True\nTrue True"


def test_nothing_heavy_comes_with_the_names(tmp_path: Path) -> None:
    body = """
    from sygra.core.graph.sygra_state import SygraState
    print(sorted({"torch", "langchain", "langgraph", "pandas", "datasets", "rich"} & set(sys.modules)))
    """
    assert fresh(body, tmp_path) == "[]"


def test_base_classes_are_abstract() -> None:
    install()
    from sygra.core.graph.functions.edge_condition import EdgeCondition  # type: ignore[import-not-found]

    with pytest.raises(TypeError):
        EdgeCondition()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from sygra.utils.utils import load_jsn", "'load_json'"),
        ("from sygra.core.graph.sygra_state import SygraStat", "did you mean 'SygraState'"),
        ("import sygra.workflow", "assay.formats.sygra.run"),
        ("from sygra import Workflow", "assay.formats.sygra.run"),
        (
            "import sygra.core.graph.functions.edge_conditions",
            "functions.edge_condition'",
        ),
        ("from tasks.eval.utils import UnitMetric", "did you mean 'UnitMetrics'"),
    ],
)
def test_what_is_not_offered_is_named_with_what_to_use(
    line: str, said: str, tmp_path: Path
) -> None:
    body = f"""
    try:
        {line}
    except ImportError as error:
        print(error)
    """
    printed = fresh(body, tmp_path)
    assert "does not offer" in printed
    assert said in printed


def test_an_executor_says_that_the_engine_runs_graphs() -> None:
    install()
    from sygra.core.base_task_executor import DefaultTaskExecutor  # type: ignore[import-not-found]

    with pytest.raises(UserError, match="cannot be run"):
        DefaultTaskExecutor({})


def test_messages_and_tools_of_langchain_stand_in_where_it_is_missing(tmp_path: Path) -> None:
    body = """
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    @tool
    def look(where: str): ...
    print(AIMessage("hello").content, look.__name__)
    """
    assert fresh(body, tmp_path) == "hello look"


def test_an_installed_langchain_is_found_first(tmp_path: Path) -> None:
    (tmp_path / "langchain_core").mkdir()
    (tmp_path / "langchain_core/__init__.py").write_text("")
    (tmp_path / "langchain_core/messages.py").write_text("AIMessage = 'the real one'\n")
    body = """
    sys.path.insert(0, "")
    from langchain_core.messages import AIMessage
    print(AIMessage)
    """
    assert fresh(body, tmp_path) == "the real one"


# ---- dotted names


def write(base: Path, name: str, text: str) -> None:
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))


def test_classes_functions_and_modules_are_found(tmp_path: Path) -> None:
    write(
        tmp_path,
        "tasks/mine/task_executor.py",
        "class One:\n    def apply(self): ...\ndef two(): ...\n",
    )
    load = Loader(tmp_path)
    assert load("tasks.mine.task_executor.One", "here").__name__ == "One"
    assert load("tasks.mine.task_executor.One.apply", "here").__name__ == "apply"
    assert load("tasks.mine.task_executor", "here").two.__name__ == "two"
    assert (
        load("tasks.eval.utils.UnitMetrics", "here").__module__ == "assay.formats.sygra.eval_utils"
    )
    assert load.notes() == []


def test_the_users_own_eval_utils_win_and_the_run_says_so(tmp_path: Path) -> None:
    write(tmp_path, "tasks/eval/utils.py", "class UnitMetrics:\n    mine = True\n")
    load = Loader(tmp_path)
    assert load("tasks.eval.utils.UnitMetrics", "here").mine
    assert load.notes() == ["tasks.eval.utils is your own tasks/eval/utils.py, not Assay's"]


def test_two_folders_do_not_see_each_others_tasks(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, "tasks/mine/code.py", f"where = {name!r}\n")
    assert [Loader(tmp_path / name)("tasks.mine.code.where", "") for name in ("a", "b", "a")] == [
        "a",
        "b",
        "a",
    ]


def test_edited_code_is_loaded_again(tmp_path: Path) -> None:
    write(tmp_path, "tasks/mine/code.py", "from tasks.mine.part import value\n")
    write(tmp_path, "tasks/mine/part.py", "value = 1\n")
    assert Loader(tmp_path)("tasks.mine.code.value", "") == 1
    write(tmp_path, "tasks/mine/part.py", "value = 'two'\n")
    assert Loader(tmp_path)("tasks.mine.code.value", "") == "two"


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("nowhere.at.all", "", "there is no module 'nowhere'"),
        ("tasks.mine.code.Missing", "class Mising: ...", "did you mean 'Mising'"),
        ("tasks.mine.code.A", "import no_such_package", "No module named 'no_such_package'"),
        ("tasks.mine.code.A", "raise ValueError('boom')", "ValueError: boom"),
        ("tasks.mine.code.A", "def f(:", "code.py:1"),
        ("tasks.mine.code.A", "from sygra.recipes import thing", "does not offer"),
        ("tasks.mine.code.A", "raise SystemExit(3)", "SystemExit: 3"),
        ("not a name", "", "not a dotted name"),
    ],
)
def test_what_cannot_be_imported_is_said_with_its_place(
    tmp_path: Path, name: str, code: str, said: str
) -> None:
    write(tmp_path, "tasks/mine/code.py", code)
    with pytest.raises(UserError) as caught:
        Loader(tmp_path)(name, "graph_config.yaml: nodes.ask.lambda")
    assert said in str(caught.value)
    assert "nodes.ask.lambda" in caught.value.where
