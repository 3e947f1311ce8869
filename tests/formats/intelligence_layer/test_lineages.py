"""Lineages of an evaluation: examples, outputs and results, joined by id."""

from pathlib import Path

import pytest

from assay.formats.intelligence_layer.evaluation import FailedExampleEvaluation
from tests.formats.intelligence_layer.test_evaluation import See
from tests.formats.intelligence_layer.worlds import FAIL_IN_EVALUATION, FAIL_IN_TASK, World


@pytest.fixture(params=["memory", "files"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path / "root" if request.param == "files" else None)


def test_evaluation_lineages_join_all_outputs_in_the_order_of_the_runs(world: World) -> None:
    dataset = world.dataset("a", "b")
    world.run("late", dataset, {"e0": "A2", "e1": "B2"}, minutes=5)
    world.run("early", dataset, {"e0": "A1", "e1": "B1"})
    evaluator = world.evaluator(See())
    overview = evaluator.evaluate_runs("late", "early")
    lineages = list(evaluator.evaluation_lineages(overview.id))
    assert [[output.output for output in lineage.outputs] for lineage in lineages] == [
        ["A1", "A2"],
        ["B1", "B2"],
    ]
    assert [lineage.evaluation.example_id for lineage in lineages] == ["e0", "e1"]


def test_examples_without_a_result_have_no_lineage(world: World) -> None:
    run = world.ran(world.dataset("a", FAIL_IN_TASK, FAIL_IN_EVALUATION))
    evaluator = world.evaluator()
    overview = evaluator.evaluate_runs(run.id)
    lineages = list(evaluator.evaluation_lineages(overview.id))
    assert [lineage.example.id for lineage in lineages] == ["e0", "e2"]
    assert lineages[1].example.input == FAIL_IN_EVALUATION
    assert [output.run_id for output in lineages[1].outputs] == [run.id]
    assert isinstance(lineages[1].evaluation.result, FailedExampleEvaluation)


def test_an_unknown_evaluation_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="nothing"):
        list(world.evaluator().evaluation_lineages("nothing"))
