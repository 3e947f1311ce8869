"""Lineages: joined by id, drawn as trees, laid out as frames; and the whole from a shell."""

import subprocess
import sys
from io import StringIO
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import BaseModel
from rich.console import Console

from assay.errors import UserError
from assay.formats.intelligence_layer.core import InMemoryTracer
from assay.formats.intelligence_layer.evaluation import (
    AggregationOverview,
    EvaluationLineage,
    Example,
    FailedExampleEvaluation,
    FileAggregationRepository,
    FileDatasetRepository,
    RepositoryNavigator,
    RunLineage,
    aggregation_overviews_to_pandas,
    evaluation_lineages_to_pandas,
    run_lineages_to_pandas,
)
from assay.formats.intelligence_layer.run_evaluation import main
from tests.formats.intelligence_layer.test_evaluation import See, Seen
from tests.formats.intelligence_layer.worlds import (
    FAIL_IN_EVALUATION,
    FAIL_IN_TASK,
    NOON,
    Correct,
    World,
)


@pytest.fixture(params=["memory", "files"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path / "root" if request.param == "files" else None)


def navigator(world: World) -> RepositoryNavigator:
    return RepositoryNavigator(world.datasets, world.runs, world.evaluations)


def shown(thing: Any) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(thing._rich_render())
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


# ---- runs


def test_run_lineages_join_examples_and_outputs(world: World) -> None:
    run = world.ran(world.dataset("a", "b", FAIL_IN_TASK))
    lineages = list(navigator(world).run_lineages(run.id, str, str, str))
    assert [lineage.example.id for lineage in lineages] == ["e0", "e1", "e2"]
    assert [lineage.output.output for lineage in lineages][:2] == ["A", "B"]
    assert all(lineage.output.example_id == lineage.example.id for lineage in lineages)
    single = navigator(world).run_lineage(run.id, "e1", str, str, str)
    assert single is not None
    assert (single.example, single.output) == (lineages[1].example, lineages[1].output)
    assert single.tracer is not None
    (span,) = single.tracer.export_for_viewing()
    assert span.name == "Upper"


def test_examples_without_an_output_have_no_lineage(world: World) -> None:
    run = world.ran(world.dataset("a", "b"), num_examples=1)
    found = navigator(world)
    assert [lineage.example.id for lineage in found.run_lineages(run.id, str, str, str)] == ["e0"]
    assert found.run_lineage(run.id, "e1", str, str, str) is None
    assert found.run_lineage(run.id, "nobody", str, str, str) is None


def test_unknown_runs_and_evaluations_are_refused(world: World) -> None:
    found = navigator(world)
    with pytest.raises(ValueError, match="no run 'nothing'"):
        list(found.run_lineages("nothing", str, str, str))
    with pytest.raises(ValueError, match="no run 'nothing'"):
        found.run_lineage("nothing", "e0", str, str, str)
    with pytest.raises(ValueError, match="no evaluation 'nothing'"):
        list(found.evaluation_lineages("nothing", str, str, str, Correct))
    with pytest.raises(ValueError, match="no evaluation 'nothing'"):
        found.evaluation_lineage("nothing", "e0", str, str, str, Correct)


def test_evaluations_need_their_repository(world: World) -> None:
    found = RepositoryNavigator(world.datasets, world.runs)
    with pytest.raises(ValueError, match="no evaluation repository"):
        list(found.evaluation_lineages("x", str, str, str, Correct))
    with pytest.raises(ValueError, match="no evaluation repository"):
        found.evaluation_lineage("x", "e", str, str, str, Correct)


# ---- evaluations


def test_evaluation_lineages_join_all_outputs_in_the_order_of_the_runs(world: World) -> None:
    dataset = world.dataset("a", "b")
    world.run("late", dataset, {"e0": "A2", "e1": "B2"}, minutes=5)
    world.run("early", dataset, {"e0": "A1", "e1": "B1"})
    overview = world.evaluator(See()).evaluate_runs("late", "early")
    lineages = list(navigator(world).evaluation_lineages(overview.id, str, str, str, Seen))
    assert [[output.output for output in lineage.outputs] for lineage in lineages] == [
        ["A1", "A2"],
        ["B1", "B2"],
    ]
    assert [lineage.evaluation.example_id for lineage in lineages] == ["e0", "e1"]
    assert [len(lineage.tracers) for lineage in lineages] == [2, 2]
    single = navigator(world).evaluation_lineage(overview.id, "e1", str, str, str, Seen)
    assert single is not None
    assert (single.outputs, single.evaluation) == (lineages[1].outputs, lineages[1].evaluation)


def test_examples_without_a_result_have_no_lineage(world: World) -> None:
    run = world.ran(world.dataset("a", FAIL_IN_TASK, FAIL_IN_EVALUATION))
    overview = world.evaluator().evaluate_runs(run.id)
    found = navigator(world)
    lineages = list(found.evaluation_lineages(overview.id, str, str, str, Correct))
    assert [lineage.example.id for lineage in lineages] == ["e0", "e2"]
    assert isinstance(lineages[1].evaluation.result, FailedExampleEvaluation)
    assert found.evaluation_lineage(overview.id, "e1", str, str, str, Correct) is None
    assert found.evaluation_lineage(overview.id, "nobody", str, str, str, Correct) is None


# ---- trees


def test_trees_show_example_output_and_evaluation() -> None:
    world = World(None)
    examples = [
        Example(
            input="in", expected_output="OUT", id="e1", metadata={"kind": "[bold]x[/bold]\x1b[2J"}
        )
    ]
    dataset = world.datasets.create_dataset(examples, "one").id
    world.run("r1", dataset, {"e1": "some text"})
    overview = world.evaluator(See()).evaluate_runs("r1")
    (run,) = navigator(world).run_lineages("r1", str, str, str)
    text = shown(run)
    assert [line.strip("│├└─ ") for line in text.splitlines()] == [
        "Run Lineage",
        "Example: e1",
        "Input",
        "in",
        "Expected Output",
        "OUT",
        "Metadata",
        "{'kind': '[bold]x[/bold]\\x1b[2J'}",
        "Output: r1",
        "some text",
    ]
    (evaluation,) = navigator(world).evaluation_lineages(overview.id, str, str, str, Seen)
    lines = [line.strip("│├└─ ") for line in shown(evaluation).splitlines()]
    assert lines[0] == "Run Lineage"
    assert lines[-5:] == [
        "Outputs",
        "Output: r1",
        "some text",
        f"Evaluation: {overview.id}",
        "outputs=['r1']",
    ]


def test_lineages_print_themselves_in_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    world = World(None)
    world.run("r1", world.dataset("a"), {"e0": "A"})
    overview = world.evaluator(See()).evaluate_runs("r1")
    for lineage in (
        *navigator(world).run_lineages("r1", str, str, str),
        *navigator(world).evaluation_lineages(overview.id, str, str, str, Seen),
    ):
        lineage._ipython_display_()
        assert "Example: e0" in capsys.readouterr().out


# ---- frames


def test_run_lineages_become_a_frame(world: World) -> None:
    run = world.ran(world.dataset("a", "b"))
    lineages = list(navigator(world).run_lineages(run.id, str, str, str))
    frame = run_lineages_to_pandas(lineages)
    assert frame.index.names == ["example_id", "run_id"]
    assert list(frame.columns) == ["input", "expected_output", "metadata", "output", "lineage"]
    assert list(frame.index) == [("e0", run.id), ("e1", run.id)]
    assert frame.output.to_list() == ["A", "B"]
    assert frame.lineage.to_list() == lineages


def test_evaluation_lineages_become_a_frame_with_a_row_for_each_output(world: World) -> None:
    dataset = world.dataset("a", "b")
    for name in ("r1", "r2"):
        world.run(name, dataset, {"e0": f"A {name}", "e1": f"B {name}"})
    overview = world.evaluator(See()).evaluate_runs("r1", "r2")
    lineages = list(navigator(world).evaluation_lineages(overview.id, str, str, str, Seen))
    frame = evaluation_lineages_to_pandas(lineages)
    assert frame.index.names == ["example_id", "evaluation_id", "run_id"]
    assert list(frame.columns) == [
        "input",
        "expected_output",
        "metadata",
        "output",
        "result",
        "tracer",
        "lineage",
    ]
    row = frame.loc[("e1", overview.id, "r2")]
    assert (row.output, row.result, row.lineage) == (
        "B r2",
        Seen(outputs=["r1", "r2"]),
        lineages[1],
    )
    assert len(frame) == 4


def test_nothing_becomes_an_empty_frame() -> None:
    assert run_lineages_to_pandas([]).index.names == ["example_id", "run_id"]
    assert len(evaluation_lineages_to_pandas([])) == 0
    assert len(aggregation_overviews_to_pandas([])) == 0


class Mean(BaseModel):
    score: float = 0.5
    value: float = 0.3


class SameFields(BaseModel):
    score: float = 0.5
    value: float = 0.3


class OtherFields(BaseModel):
    other: int = 1


def overview(statistics: Any, **metadata: Any) -> AggregationOverview[Any]:
    return AggregationOverview(
        evaluation_overviews=frozenset(),
        id="a",
        start=NOON,
        end=NOON,
        successful_evaluation_count=5,
        crashed_during_evaluation_count=3,
        description="d",
        statistics=statistics,
        metadata=metadata,
    )


def test_aggregations_become_a_frame() -> None:
    whole = aggregation_overviews_to_pandas(
        [overview(Mean())] * 2, unwrap_statistics=False, unwrap_metadata=False
    )
    assert len(whole) == 2
    assert set(whole.columns) == set(overview(Mean()).model_dump())
    unwrapped = aggregation_overviews_to_pandas(
        [overview(Mean(), model="m"), overview(Mean(), prompt={"n": 1})]
    )
    assert {"statistics", "metadata"} & set(unwrapped.columns) == set()
    assert unwrapped.score.to_list() == [0.5, 0.5]
    assert unwrapped.model[0] == "m"
    assert unwrapped.model.isna().to_list() == [False, True]
    assert unwrapped["prompt.n"].isna().to_list() == [True, False]


def test_different_statistics_are_refused_or_have_gaps() -> None:
    for other in (SameFields(), OtherFields()):
        with pytest.raises(ValueError, match="different types"):
            aggregation_overviews_to_pandas([overview(Mean()), overview(other)])
    mixed = aggregation_overviews_to_pandas(
        [overview(Mean()), overview(OtherFields())], strict=False
    )
    assert mixed.score.isna().to_list() == [False, True]
    assert mixed.other.isna().to_list() == [True, False]


def test_names_that_statistics_share_with_the_overview_are_kept_apart() -> None:
    frame = aggregation_overviews_to_pandas(
        [overview({"id": "inner", "count": 1}, description="mine")]
    )
    assert (frame["id"][0], frame["id_statistics"][0]) == ("a", "inner")
    assert (frame["description"][0], frame["description_metadata"][0]) == ("d", "mine")


def test_without_pandas_frames_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="pandas") as raised:
        run_lineages_to_pandas([])
    assert "assay-eval[frames]" in raised.value.fix


def test_lineages_can_be_made_by_hand() -> None:
    world = World(None)
    world.run("r", world.dataset("a"), {"e0": "A"})
    (found,) = navigator(world).run_lineages("r", str, str, str)
    tracer = InMemoryTracer()
    assert RunLineage(found.example, found.output).tracer is None
    assert RunLineage(found.example, found.output, tracer).tracer is tracer
    made = EvaluationLineage(found.example, [found.output], evaluation=None, tracers=[tracer])  # type: ignore[arg-type]
    assert made.outputs == [found.output]


# ---- all three steps from a shell

CODE = """
from pydantic import BaseModel
from assay.formats.intelligence_layer.core import Task, TaskSpan
from assay.formats.intelligence_layer.evaluation import AggregationLogic, Example, SingleOutputEvaluationLogic

class Echo(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        return input

class Needs(Echo):
    def __init__(self, a, b): ...

class Ignores(Echo):
    def __init__(self, client, *more, fast=True): ...

class Asks(Echo):
    def __init__(self, client):
        self._client = client

    def do_run(self, input: str, task_span: TaskSpan) -> str:
        return self._client.complete(input, "model")

class Client:
    def complete(self, request, model):
        return request

class Right(BaseModel):
    right: bool

class Same(SingleOutputEvaluationLogic[str, str, str, Right]):
    def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Right:
        return Right(right=output == example.expected_output)

class Share(BaseModel):
    share: float

class MeanRight(AggregationLogic[Right, Share]):
    def aggregate(self, evaluations):
        marks = [each.right for each in evaluations]
        return Share(share=sum(marks) / len(marks))
"""


@pytest.fixture
def shell(tmp_path: Path) -> list[str]:
    """The arguments for a dataset of one example and the code above, in a folder of their own."""
    (tmp_path / "own_code.py").write_text(dedent(CODE))
    examples = [Example(input="a", expected_output="a", id="e")]
    dataset = FileDatasetRepository(tmp_path / "data").create_dataset(examples, "one").id
    return [
        "--eval-logic=own_code.Same",
        "--aggregation-logic=own_code.MeanRight",
        f"--dataset-repository-path={tmp_path / 'data'}",
        f"--dataset-id={dataset}",
        f"--target-dir={tmp_path / 'target'}",
        "--description=from a shell",
    ]


def test_all_steps_run_from_a_shell(shell: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "assay.formats.intelligence_layer.evaluation.run_evaluation"]
    done = subprocess.run(
        [*command, *shell, "--task=own_code.Echo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    repository = FileAggregationRepository(tmp_path / "target")
    (found,) = repository.aggregation_overviews(dict)
    assert (found.successful_evaluation_count, found.statistics) == (1, {"share": 1.0})
    assert found.description == "from a shell"
    assert found.id in done.stdout
    wrong = subprocess.run(
        [*command, *shell, "--task=own_code.Nobody"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (wrong.returncode, "Traceback" in wrong.stderr) == (2, False)
    assert "'own_code.Nobody' cannot be imported" in wrong.stderr


def test_a_task_that_needs_arguments_is_named(
    shell: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="'Needs' cannot be made: it needs a, b"):
        main(["program", *shell, "--task=own_code.Needs"])


def test_a_task_that_takes_a_client_gets_one(
    shell: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The service's own, which is not made before it is asked, or the one that is named."""
    for name in ("AA_TOKEN", "CLIENT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    main(["program", *shell, "--task=own_code.Ignores"])
    assert "Successful example count = 1" in capsys.readouterr().out
    with pytest.raises(ZeroDivisionError):  # the logic has no result to aggregate
        main(["program", *shell, "--task=own_code.Asks"])
    assert "AA_TOKEN and CLIENT_URL is not set" in capsys.readouterr().out
    main(["program", *shell, "--task=own_code.Asks", "--client=own_code.Client"])
    assert "Successful example count = 1" in capsys.readouterr().out
