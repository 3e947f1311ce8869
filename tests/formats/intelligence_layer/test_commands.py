"""What the commands show of a repository that was filled by the original's names."""

from pathlib import Path

import pytest

from assay.formats.intelligence_layer.core import Task, TaskSpan
from assay.formats.intelligence_layer.evaluation import Runner
from tests.cli.shell import Shell
from tests.formats.intelligence_layer.worlds import FAIL_IN_EVALUATION, Longer, World


class Short(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        return input


class Long(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        return input * 3


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "root")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_an_item_is_followed_from_the_dataset_to_its_result(world: World, shell: Shell) -> None:
    run = world.ran(world.dataset("a", FAIL_IN_EVALUATION))
    evaluation = world.evaluator().evaluate_runs(run.id)
    for folder in ("root", f"root/evaluations/{evaluation.id}"):
        # a stored error has its traceback, which nothing else may show: hence --debug
        good, bad = shell.call("trace", folder, "e0"), shell.call("trace", folder, "e1", "--debug")
        assert "ground_truth: A\n" in good.out
        assert "response: A\n" in good.out
        assert "label evaluation: passed, score 1\n" in good.out
        assert 'value: {"correct":true}\n' in good.out
        assert "label evaluation: errored\n" in bad.out
        assert "cannot judge" in bad.out
    assert shell.call("trace", "root", "e7").code != 0


def test_matches_are_followed_and_ranked_by_what_ran(world: World, shell: Shell) -> None:
    dataset = world.dataset("a", "b", "c")
    tasks = [Short(), Long(), Short()]
    runs = [Runner(task, world.datasets, world.runs, "r").run_dataset(dataset).id for task in tasks]
    evaluation = world.comparing(Longer()).evaluate_runs(*runs)
    folder = f"root/evaluations/{evaluation.id}"
    shown = shell.call("trace", folder, "e1").out
    assert shown.count("  match evaluation") == 3
    assert shown.count(f"{runs[1]} wins\n") == 4  # two matches, each with its one seat
    by_run, by_model = (
        shell.call("rank", folder, "--json"),
        shell.call("rank", folder, "--by", "model_name", "--json"),
    )
    assert all(run in by_run.out for run in runs)
    assert '"Long"' in by_model.out
    assert '"Short"' in by_model.out
    assert not any(run in by_model.out for run in runs)
