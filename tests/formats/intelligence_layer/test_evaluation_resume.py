"""An evaluation that was stopped goes on; one that is finished is never taken for a new one."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from assay.formats.intelligence_layer.evaluation import (
    Example,
    FileEvaluationRepository,
    InMemoryEvaluationRepository,
    SingleOutputEvaluationLogic,
)
from assay.formats.intelligence_layer.logics import identity_of
from tests.formats.intelligence_layer.worlds import (
    FAIL_IN_EVALUATION,
    Correct,
    Longer,
    World,
    pairs,
)
from tests.support import wait_for

TEXTS = [FAIL_IN_EVALUATION, "a", "b", "c", "d"]


class Stopping(SingleOutputEvaluationLogic[str, str, str, Correct]):
    """Stops everything at one input, as long as the file `stop` is there; `seen` is no part of what it is."""

    seen: list[str]

    def __init__(self, stop: Path, strict: bool = False) -> None:
        self.stop = str(stop)
        self.strict = strict

    def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Correct:
        type(self).seen.append(example.id)
        if example.input == "d" and Path(self.stop).exists():
            raise KeyboardInterrupt
        if example.input == FAIL_IN_EVALUATION:
            raise RuntimeError("cannot")
        return Correct(correct=output == example.expected_output)


@pytest.fixture(params=["memory", "files"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path / "root" if request.param == "files" else None)


@pytest.fixture
def stop(tmp_path: Path) -> Path:
    Stopping.seen = []
    (tmp_path / "stop").touch()
    return tmp_path / "stop"


def interrupted(world: World, stop: Path) -> str:
    """A run whose evaluation was stopped at the last of five examples, after a failure and three results."""
    run = world.ran(world.dataset(*TEXTS)).id
    evaluator = world.evaluator(Stopping(stop))
    evaluator.max_workers = 1
    with pytest.raises(KeyboardInterrupt):
        evaluator.evaluate_runs(run)
    assert Stopping.seen == ["e0", "e1", "e2", "e3", "e4"]
    Stopping.seen.clear()
    stop.unlink()
    return run


def test_what_was_stopped_goes_on_where_it_was(world: World, stop: Path) -> None:
    run = interrupted(world, stop)
    overview = world.evaluator(Stopping(stop)).evaluate_runs(run)
    assert Stopping.seen == ["e4"]
    assert (overview.successful_evaluation_count, overview.failed_evaluation_count) == (4, 1)
    results = world.evaluations.example_evaluations(overview.id, Correct)
    assert [each.example_id for each in results] == ["e0", "e1", "e2", "e3", "e4"]


def test_a_finished_evaluation_is_not_used_again(world: World, stop: Path) -> None:
    run = interrupted(world, stop)
    evaluator = world.evaluator(Stopping(stop))
    first, second = evaluator.evaluate_runs(run), evaluator.evaluate_runs(run)
    assert first.id != second.id
    assert len(Stopping.seen) == 1 + 5
    assert second.failed_evaluation_count == first.failed_evaluation_count == 1


@pytest.mark.parametrize("change", ["parameter", "num_examples", "skip", "run", "code"])
def test_other_work_begins_anew(world: World, stop: Path, change: str) -> None:
    class Other(Stopping):
        pass

    run = interrupted(world, stop)
    logic: Any = Stopping(stop, strict=change == "parameter")
    options: dict[str, Any] = {}
    if change == "num_examples":
        options = {"num_examples": 5}
    elif change == "skip":
        options = {"skip_example_on_any_failure": False}
    elif change == "run":
        run = world.ran(next(iter(world.datasets.dataset_ids()))).id
    elif change == "code":
        logic = Other(stop)
    assert world.evaluator(logic).evaluate_runs(run, **options).successful_evaluation_count == 4
    assert len(Stopping.seen) == 5


def test_names_and_labels_are_no_part_of_the_work(world: World, stop: Path) -> None:
    run = interrupted(world, stop)
    overview = world.evaluator(Stopping(stop)).evaluate_runs(run, description="again", labels={"x"})
    assert len(Stopping.seen) == 1
    assert (overview.description, overview.labels) == ("evaluator : again", {"x"})


def test_two_at_a_time_do_not_share_an_evaluation(world: World, tmp_path: Path) -> None:
    meeting = threading.Barrier(2, timeout=20)

    class Meeting(SingleOutputEvaluationLogic[str, str, str, Correct]):
        def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Correct:
            meeting.wait()
            return Correct(correct=True)

    run = world.ran(world.dataset("a")).id
    found: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(world.evaluator(Meeting()).evaluate_runs(run).id)
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(found)) == 2


def test_an_evaluation_that_another_process_is_at_is_left_alone(tmp_path: Path) -> None:
    first, second = FileEvaluationRepository(tmp_path), FileEvaluationRepository(tmp_path)
    with first.open_evaluation("work") as one, second.open_evaluation("work") as other:
        assert one != other
    with second.open_evaluation("work") as again:
        assert again in (one, other)


def test_an_unfinished_evaluation_has_no_overview() -> None:
    repository = InMemoryEvaluationRepository()
    with repository.open_evaluation("work") as opened:
        assert repository.evaluation_overview(opened) is None
    assert list(repository.evaluation_overviews()) == []


def test_an_id_of_the_users_own_is_evaluated_once_until_the_work_changes(
    tmp_path: Path, stop: Path
) -> None:
    class Named(FileEvaluationRepository):
        def initialize_evaluation(self) -> str:
            return "mine"

    stop.unlink()
    world = World(tmp_path / "root")
    world.evaluations = Named(tmp_path / "root")
    run = world.ran(world.dataset(*TEXTS)).id
    for _ in range(2):
        overview = world.evaluator(Stopping(stop)).evaluate_runs(run)
        assert overview.id == "mine"
        assert (overview.successful_evaluation_count, overview.failed_evaluation_count) == (4, 1)
        assert len(Stopping.seen) == 5
    assert world.evaluator(Stopping(stop, strict=True)).evaluate_runs(run).id == "mine"
    assert len(Stopping.seen) == 10
    assert len(world.evaluations.example_evaluations("mine", Correct)) == 5


def test_only_what_failed_is_evaluated_again_when_asked(world: World, stop: Path) -> None:
    run = interrupted(world, stop)
    evaluator = world.evaluator(Stopping(stop))
    first = evaluator.evaluate_runs(run)
    Stopping.seen.clear()
    again = evaluator.evaluate_runs(run, retry_errors=True)
    assert (again.id, Stopping.seen) == (first.id, ["e0"])
    assert (again.successful_evaluation_count, again.failed_evaluation_count) == (4, 1)
    other = world.ran(next(iter(world.datasets.dataset_ids()))).id
    assert evaluator.evaluate_runs(other, retry_errors=True).id != first.id


def test_earlier_evaluations_are_part_of_an_incremental_one(world: World) -> None:
    dataset = world.dataset("a", "b")
    runs = [world.run(name, dataset, {"e0": name, "e1": name}) for name in ("x", "y", "z")]
    first = world.comparing(Longer()).evaluate_runs(*runs[:2])
    logic = Longer()
    logic.set_previous_run_output_ids([{"x", "y"}])
    assert identity_of(logic) != identity_of(Longer())
    added = world.comparing(Longer()).evaluate_additional_runs(
        "z", previous_evaluation_ids=[first.id]
    )
    whole = world.comparing(Longer()).evaluate_runs(*runs)
    assert len({first.id, added.id, whole.id}) == 3


class Client:
    def __init__(self, model: str) -> None:
        self.model = model
        self.lock = threading.Lock()

    def ask(self) -> None: ...


class Judging(Longer):
    def __init__(self, part: Any) -> None:
        super().__init__()
        self.part = part


def above(least: int) -> Any:
    return lambda value: value > least


@pytest.mark.parametrize(
    ("make", "make_other"),
    [
        (lambda: {"b", "a", "c"}, lambda: {"b", "a", "d"}),
        (lambda: Client("m"), lambda: Client("n")),
        (lambda: {"clients": [Client("m")]}, lambda: {"clients": [Client("n")]}),
        (lambda: np.arange(3), lambda: np.arange(3) + 1),
        (lambda: [Correct(correct=True)], lambda: [Correct(correct=False)]),
        (lambda: len, lambda: max),
        (lambda: above, lambda: pairs),
        (lambda: above(1), lambda: above(2)),
        (lambda: partial(above, 1), lambda: partial(above, 2)),
        (lambda: Client("m").ask, lambda: Client("n").ask),
    ],
)
def test_a_logic_is_told_apart_by_what_it_was_made_with(make: Any, make_other: Any) -> None:
    assert identity_of(Judging(make())) == identity_of(Judging(make()))
    assert identity_of(Judging(make())) != identity_of(Judging(make_other()))


def test_nothing_is_asked_that_is_no_data() -> None:
    mock = MagicMock()
    assert identity_of(Judging(mock)) == identity_of(Judging(mock))
    assert mock.mock_calls == []
    itself: Any = Judging(None)
    itself.part = {"me": itself}  # ends all the same
    assert identity_of(itself)


SCRIPT = """
    import sys
    from pathlib import Path
    from assay.formats.intelligence_layer.core import Task
    from assay.formats.intelligence_layer.evaluation import *

    root, hangs = Path(sys.argv[1]), sys.argv[2] == "hangs"

    class Same(Task[int, int]):
        def do_run(self, input: int, task_span) -> int:
            return input

    class Meet(EloEvaluationLogic[int, int, None]):
        def __init__(self, labels) -> None:
            super().__init__()
            self.labels = labels

        def grade(self, first, second, example) -> MatchOutcome:
            with open(root / "seen", "a") as file:
                file.write(f"{example.input}\\n")
            if hangs and example.input in (7, 20):
                import threading
                threading.Event().wait()
            return MatchOutcome.A_WINS

    datasets, runs = FileDatasetRepository(root), FileRunRepository(root)
    if hangs:
        examples = [Example(input=number, expected_output=None, id=f"{number:02}") for number in range(30)]
        datasets.create_dataset(examples, "numbers", id="numbers")
        for _ in range(2):
            Runner(Same(), datasets, runs, "same").run_dataset("numbers")
    ids = sorted(runs.run_overview_ids())
    evaluations = FileEvaluationRepository(root)
    evaluator = IncrementalEvaluator(datasets, runs, evaluations, "meet", Meet({"b", "a", "c"}), max_workers=3)
    overview = evaluator.evaluate_runs(*ids)
    print(overview.id, overview.successful_evaluation_count, overview.failed_evaluation_count)
"""


@pytest.mark.slow
def test_a_killed_evaluation_goes_on_in_a_new_process(tmp_path: Path) -> None:
    script = tmp_path / "meet.py"
    script.write_text(dedent(SCRIPT))
    root, seen = tmp_path / "root", tmp_path / "root" / "seen"
    command = [sys.executable, str(script), str(root)]
    first = subprocess.Popen(
        [*command, "hangs"], env={**os.environ, "PYTHONHASHSEED": "1"}, stdout=subprocess.DEVNULL
    )
    wait_for(lambda: seen.exists() and {"7", "20"} <= set(seen.read_text().split()), 30)
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    (unfinished,) = [path for path in (root / "evaluations").iterdir() if path.is_dir()]
    rows = unfinished / "evaluation_results.jsonl"
    assert FileEvaluationRepository(root).evaluation_overview_ids() == []
    whole, _, _ = rows.read_bytes().rpartition(
        b"\n"
    )  # a kill may tear a line where a page of the file ends
    done = {row["item_id"] for row in map(json.loads, whole.splitlines())}
    seen.unlink()
    second = subprocess.run(
        [*command, "ends"],
        env={**os.environ, "PYTHONHASHSEED": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert second.stdout.split() == [unfinished.name, "30", "0"]
    again = [f"{int(number):02}" for number in seen.read_text().split()]
    assert done
    assert sorted([*again, *done]) == [f"{number:02}" for number in range(30)]
    assert len(rows.read_bytes().splitlines()) == 30
    third = subprocess.run([*command, "ends"], capture_output=True, text=True, check=True)
    assert third.stdout.split()[0] != unfinished.name


@pytest.mark.slow
def test_progress_is_shown_to_a_terminal_only(tmp_path: Path) -> None:
    script = tmp_path / "meet.py"
    script.write_text(dedent(SCRIPT).replace("(7, 20)", "()"))
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, str(script), str(tmp_path / "a"), "hangs"],
        stderr=theirs,
        check=True,
        timeout=60,
    )
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "Running Task Same" in shown
    assert "Evaluating meet" in shown
    assert "30/30" in shown
    quiet = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "b"), "hangs"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert quiet.stderr == b""
