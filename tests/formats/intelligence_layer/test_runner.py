"""Running a task over a dataset, on the engine, by the original's names."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any, Generic, TypeVar

import pydantic
import pytest

from assay.analysis.look.trace import trace
from assay.formats.intelligence_layer.core import (
    InMemoryTaskSpan,
    InMemoryTracer,
    SpanStatus,
    Task,
    TaskSpan,
    Tracer,
)
from assay.formats.intelligence_layer.evaluation import (
    Dataset,
    DatasetRepository,
    Example,
    ExampleOutput,
    FailedExampleRun,
    FileDatasetRepository,
    FileRunRepository,
    InMemoryDatasetRepository,
    InMemoryRunRepository,
    RecoveryData,
    Runner,
    RunOverview,
    RunRepository,
)
from assay.store.repositories import DatasetRepository as Datasets
from assay.store.stores import FolderStore
from tests.formats.intelligence_layer.labs import (
    FAILS,
    MAKE_DATASETS,
    MAKE_RUNS,
    ODD_IDS,
    Answering,
    Question,
    Reply,
)
from tests.support import wait_for

T = TypeVar("T")


class OwnDatasets(DatasetRepository):
    """A user's own repository: examples in a list."""

    def __init__(self, folder: Path) -> None:
        self.inside = InMemoryDatasetRepository()
        for name in (
            "create_dataset",
            "delete_dataset",
            "dataset",
            "dataset_ids",
            "example",
            "examples",
        ):
            setattr(self, name, getattr(self.inside, name))

    create_dataset = delete_dataset = dataset = dataset_ids = example = examples = None  # type: ignore[assignment]


class OwnRuns(RunRepository):
    """A user's own repository: everything in dicts."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.rows: dict[tuple[str, str], ExampleOutput[Any]] = {}
        self.overviews: dict[str, RunOverview] = {}
        self.unfinished: dict[str, RecoveryData] = {}
        self.tracers: dict[tuple[str, str], InMemoryTracer] = {}

    def store_run_overview(self, overview: RunOverview) -> None:
        self.overviews[overview.id] = overview

    def run_overview(self, run_id: str) -> RunOverview | None:
        return self.overviews.get(run_id)

    def run_overview_ids(self) -> Sequence[str]:
        return sorted(self.overviews)

    def store_example_output(self, example_output: ExampleOutput[Any]) -> None:
        self.rows[example_output.run_id, example_output.example_id] = example_output

    def example_output(
        self, run_id: str, example_id: str, output_type: type[T]
    ) -> ExampleOutput[T] | None:
        return self.rows.get((run_id, example_id))

    def example_outputs(self, run_id: str, output_type: type[T]) -> Iterable[ExampleOutput[T]]:
        return [self.rows[key] for key in sorted(self.rows) if key[0] == run_id]

    def example_output_ids(self, run_id: str) -> Sequence[str]:
        return [example_id for own, example_id in sorted(self.rows) if own == run_id]

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        return self.tracers.get((run_id, example_id))

    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        return self.tracers.setdefault((run_id, example_id), InMemoryTracer())

    def finished_examples(self, tmp_hash: str) -> RecoveryData | None:
        return self.unfinished.get(tmp_hash)

    def _create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None:
        self.unfinished[tmp_hash] = RecoveryData(run_id=run_id)

    def _temp_store_finished_example(self, tmp_hash: str, example_id: str) -> None:
        self.unfinished[tmp_hash].finished_examples.append(example_id)

    def _delete_temporary_run_data(self, tmp_hash: str) -> None:
        self.unfinished.pop(tmp_hash, None)


class World:
    """Repositories with a dataset, and a runner of the task `Answering` on them."""

    def __init__(self, datasets: Any, runs: Any) -> None:
        self.datasets, self.runs = datasets, runs
        self.task = Answering()
        self.runner = Runner(self.task, datasets, runs, "answering")

    def dataset(self, *texts: str, ids: Sequence[str] = ()) -> str:
        named = zip(ids or [f"e{number}" for number in range(len(texts))], texts, strict=True)
        examples = [
            Example(input=Question(text=text), expected_output=len(text), id=id)
            for id, text in named
        ]
        return self.datasets.create_dataset(examples, "questions", id="dataset").id

    def outputs(self, run: RunOverview) -> dict[str, Any]:
        return {each.example_id: each.output for each in self.runs.example_outputs(run.id, Reply)}


DATASETS: dict[str, Callable[[Path], Any]] = {**MAKE_DATASETS, "own": OwnDatasets}
RUNS: dict[str, Callable[[Path], Any]] = {**MAKE_RUNS, "own": OwnRuns}


PAIRS = [("memory", "memory"), ("files", "files"), ("own", "own"), ("memory", "files")]


@pytest.fixture(params=PAIRS, ids="-".join)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    datasets, runs = request.param
    return World(DATASETS[datasets](tmp_path), RUNS[runs](tmp_path))


@pytest.fixture
def files(tmp_path: Path) -> World:
    return World(FileDatasetRepository(tmp_path), FileRunRepository(tmp_path))


@pytest.fixture
def memory() -> World:
    return World(InMemoryDatasetRepository(), InMemoryRunRepository())


# ---- what holds wherever datasets and runs are kept


def test_every_example_has_an_output_or_a_failure(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    run = world.runner.run_dataset(
        world.dataset("hi", FAILS, "hello"), labels={"l"}, metadata={"k": 1}
    )
    assert (run.successful_example_count, run.failed_example_count) == (2, 1)
    assert (run.dataset_id, run.description, run.labels, run.metadata) == (
        "dataset",
        "answering",
        {"l"},
        {"k": 1},
    )
    assert run.start <= run.end
    assert world.runs.run_overview(run.id) == run
    outputs = world.outputs(run)
    assert outputs["e0"] == Reply(text="HI", length=2)
    assert outputs["e2"] == Reply(text="HELLO", length=5)
    first, *rest = outputs["e1"].error_message.splitlines()
    assert first == "RuntimeError: asked to fail"
    assert any("in do_run" in line for line in rest)
    assert capsys.readouterr().out == 'FAILED RUN: example "e1", RuntimeError: "asked to fail"\n'


def test_a_failed_example_has_its_trace(world: World) -> None:
    run = world.runner.run_dataset(world.dataset("hi", FAILS))
    good, bad = world.runs.example_outputs(run.id, Reply)
    assert (good.example_id, good.output) == ("e0", Reply(text="HI", length=2))
    assert isinstance(bad.output, FailedExampleRun)
    (failed,) = world.runs.failed_example_outputs(run.id, Reply)
    assert failed.example_id == "e1"
    (span,) = world.runs.example_tracer(run.id, "e1").export_for_viewing()
    assert (span.name, span.status) == ("Answering", SpanStatus.ERROR)


@pytest.mark.parametrize(("wanted", "ran"), [(None, 4), (0, 4), (1, 1), (3, 3), (9, 4)])
def test_the_first_examples_by_id_are_run(world: World, wanted: int | None, ran: int) -> None:
    world.dataset("d", "a", "c", "b", ids=["4", "10", "3", "2"])
    run = world.runner.run_dataset("dataset", num_examples=wanted)
    assert list(world.outputs(run)) == ["10", "2", "3", "4"][:ran]
    assert run.successful_example_count == ran


def test_an_error_can_stop_the_run_which_then_goes_on(world: World) -> None:
    world.dataset("a", "b", FAILS, "c", "d")
    with pytest.raises(RuntimeError, match="asked to fail"):
        world.runner.run_dataset("dataset", abort_on_error=True, max_workers=1, description="mine")
    assert world.task.seen == ["a", "b", FAILS]
    recovery = world.runs.finished_examples(world.runner._run_hash("dataset", "mine"))
    assert recovery.finished_examples == ["e0", "e1"]
    assert world.runs.run_overview(recovery.run_id) is None
    run = world.runner.run_dataset(
        "dataset", description="mine", resume_from_recovery_data=True, max_workers=1
    )
    assert world.task.seen == ["a", "b", FAILS, FAILS, "c", "d"]
    assert run.id == recovery.run_id
    assert (run.successful_example_count, run.failed_example_count) == (4, 1)
    assert list(world.outputs(run)) == ["e0", "e1", "e2", "e3", "e4"]
    assert world.runs.finished_examples(world.runner._run_hash("dataset", "mine")) is None
    assert run.description == "answering : mine"


def test_a_resumed_run_has_as_many_examples_as_were_asked_for(world: World) -> None:
    world.dataset("a", FAILS, "b")
    with pytest.raises(RuntimeError):
        world.runner.run_dataset("dataset", num_examples=2, abort_on_error=True, max_workers=1)
    run = world.runner.run_dataset("dataset", num_examples=2, resume_from_recovery_data=True)
    assert list(world.outputs(run)) == ["e0", "e1"]
    assert (run.successful_example_count, run.failed_example_count) == (1, 1)


def test_without_resuming_a_run_begins_anew(world: World) -> None:
    world.dataset("a", FAILS)
    with pytest.raises(RuntimeError):
        world.runner.run_dataset("dataset", abort_on_error=True, max_workers=1)
    first = world.runs.finished_examples(world.runner._run_hash("dataset", "")).run_id
    run = world.runner.run_dataset("dataset")
    assert run.id != first
    assert world.task.seen.count("a") == 2
    # there is nothing to go on with
    again = world.runner.run_dataset("dataset", resume_from_recovery_data=True)
    assert again.id not in (first, run.id)


def test_bad_input_leaves_nothing_behind(world: World) -> None:
    with pytest.raises(ValueError, match="nowhere"):
        world.runner.run_dataset("nowhere")
    assert world.runs.finished_examples(world.runner._run_hash("nowhere", "")) is None
    world.datasets.create_dataset(
        [Example(input={"txt": "q"}, expected_output=1)], "wrong", id="wrong"
    )
    with pytest.raises(pydantic.ValidationError):
        world.runner.run_dataset("wrong")
    assert world.runs.finished_examples(world.runner._run_hash("wrong", "")) is None
    world.dataset("a")
    with pytest.raises(ValueError, match="max_workers"):
        world.runner.run_dataset("dataset", max_workers=0)
    assert world.task.seen == []


def test_an_empty_dataset_is_a_run(world: World) -> None:
    run = world.runner.run_dataset(world.dataset())
    assert (run.successful_example_count, run.failed_example_count) == (0, 0)
    assert world.outputs(run) == {}


def test_ids_are_any_text(world: World) -> None:
    run = world.runner.run_dataset(world.dataset(*ODD_IDS, ids=ODD_IDS))
    assert world.outputs(run) == {
        id: Reply(text=id.upper(), length=len(id)) for id in sorted(ODD_IDS)
    }
    assert run.successful_example_count == len(ODD_IDS)


@pytest.mark.parametrize("workers", [1, 3])
def test_as_many_run_at_once_as_are_allowed(world: World, workers: int) -> None:
    together, now, most, lock = threading.Barrier(workers), [0], [0], threading.Lock()

    class Meeting(Task[Question, str]):
        def do_run(self, input: Question, task_span: TaskSpan) -> str:
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            together.wait(10)  # passes only if so many run at once
            with lock:
                now[0] -= 1
            return input.text

    world.dataset(*"abcdef")
    run = Runner(Meeting(), world.datasets, world.runs, "").run_dataset(
        "dataset", max_workers=workers
    )
    assert (run.successful_example_count, most) == (6, [workers])


def test_tracers(world: World) -> None:
    world.dataset("a", "b")
    given = InMemoryTracer()
    both = world.runner.run_dataset("dataset", given)
    assert len(given.entries) == 2
    assert all(isinstance(entry, InMemoryTaskSpan) for entry in given.entries)
    tracer = world.runs.example_tracer(both.id, "e0")
    (own,) = tracer.export_for_viewing()
    theirs = next(span for span in given.export_for_viewing() if span.start_time == own.start_time)
    assert [event.message for event in theirs.events] == ["question"]
    assert (own.end_time, own.status) == (theirs.end_time, theirs.status)
    assert own.attributes.input in ({"text": "a"}, Question(text="a"))
    only = world.runner.run_dataset("dataset", given, trace_examples_individually=False)
    assert len(given.entries) == 4
    assert world.runs.example_tracer(only.id, "e0") is None
    none = world.runner.run_dataset("dataset", trace_examples_individually=False)
    assert world.runs.example_tracer(none.id, "e0") is None


# ---- outputs and types


def test_a_failure_of_a_task_that_gives_dicts_is_a_failure(files: World) -> None:
    class Dicts(Task[Question, dict]):  # type: ignore[type-arg]
        def do_run(self, input: Question, task_span: TaskSpan) -> dict:  # type: ignore[type-arg]
            if input.text == FAILS:
                raise RuntimeError("x")
            return {"error_message": "no failure"}

    runner = Runner(Dicts(), files.datasets, files.runs, "dicts")
    run = runner.run_dataset(files.dataset("a", FAILS))
    assert (run.successful_example_count, run.failed_example_count) == (1, 1)
    fresh = FileRunRepository(files.runs._folder.parent)
    assert [each.example_id for each in fresh.failed_example_outputs(run.id, dict)] == ["e1"]
    assert [each.output for each in fresh.successful_example_outputs(run.id, dict)] == [
        {"error_message": "no failure"}
    ]


def test_what_json_cannot_hold_and_what_ends_programs_are_failures(world: World) -> None:
    class Odd(Task[Question, Any]):
        def do_run(self, input: Question, task_span: TaskSpan) -> Any:
            return threading.Lock() if input.text == "lock" else sys.exit("bye")

    run = Runner(Odd(), world.datasets, world.runs, "odd").run_dataset(
        world.dataset("lock", "exit")
    )
    assert run.failed_example_count == 2
    messages = [
        each.output.error_message.splitlines()[0]
        for each in world.runs.example_outputs(run.id, Any)
    ]
    assert messages[0].startswith("TypeError: ")
    assert messages[1] == "SystemExit: bye"


def test_types_come_from_do_run(memory: World) -> None:
    assert memory.runner.input_type() is Question
    assert memory.runner.output_type() is Reply

    class Untyped(Task[Any, Any]):
        def do_run(self, input, task_span):  # type: ignore[no-untyped-def]
            return None

    class Nothing(Task[int, None]):
        def do_run(self, input: int, task_span: TaskSpan) -> None:
            return None

    class Echo(Task[T, T], Generic[T]):
        def do_run(self, input: T, task_span: TaskSpan) -> T:
            return input

    class EchoNumbers(Echo[int]):
        pass

    runner = Runner(Untyped(), memory.datasets, memory.runs, "untyped")
    with pytest.raises(TypeError, match="input_type"):
        runner.input_type()
    with pytest.raises(TypeError, match="output_type"):
        runner.output_type()
    assert Runner(Nothing(), memory.datasets, memory.runs, "").output_type() is None
    echo = Runner(EchoNumbers(), memory.datasets, memory.runs, "")
    assert (echo.input_type(), echo.output_type()) == (int, int)


def test_a_task_may_give_nothing(world: World) -> None:
    class Nothing(Task[Question, None]):
        def do_run(self, input: Question, task_span: TaskSpan) -> None:
            return None

    run = Runner(Nothing(), world.datasets, world.runs, "").run_dataset(world.dataset("a"))
    assert [each.output for each in world.runs.example_outputs(run.id, type(None))] == [None]


# ---- what was run already


def test_a_run_is_known_by_its_metadata_and_its_runner(world: World) -> None:
    assert not world.runner.run_is_already_computed({"model": "a"})
    run = world.runner.run_dataset(
        world.dataset("a"), metadata={"model": "a", "t": 1}, description="x"
    )
    world.runner.run_dataset("dataset")
    assert world.runner.run_is_already_computed({"t": 1.0, "model": "a"})
    assert world.runner.run_is_already_computed({"model": "a", "t": 1}, dataset_id=run.dataset_id)
    assert not world.runner.run_is_already_computed({"model": "a", "t": 1}, dataset_id="other")
    assert not world.runner.run_is_already_computed({"model": "b", "t": 1})
    assert not world.runner.run_is_already_computed({})
    other = Runner(world.task, world.datasets, world.runs, "another runner")
    assert not other.run_is_already_computed({"model": "a", "t": 1})


# ---- the engine behind it


def test_rows_are_the_engine_s_and_traces_are_shown(files: World) -> None:
    run = files.runner.run_dataset(files.dataset("hi", FAILS))
    root = files.runs._folder.parent
    found = trace(root, "e0")
    (sample,) = found.samples
    assert sample.response["task"] == "Answering"
    assert sample.response["metadata"]["model_id"] == "Answering"
    (span,) = sample.spans
    assert (span["name"], span["data"]["output"]) == ("Answering", {"text": "HI", "length": 2})
    manifest = FolderStore(root).manifest("run", run.id)
    assert manifest is not None
    assert manifest.complete
    assert manifest.inputs[0]["id"] == "dataset"
    assert manifest.inputs[0]["digest"] == FolderStore(root).manifest("dataset", "dataset").digest  # type: ignore[union-attr]
    assert list((root / "runs").glob("*.tmp")) == []


def test_a_run_in_a_notebook_whose_loop_runs(memory: World) -> None:
    memory.dataset("a")

    async def cell() -> RunOverview:
        return memory.runner.run_dataset("dataset")

    assert asyncio.run(cell()).successful_example_count == 1


def test_a_dataset_of_the_command_line_and_one_of_the_original(files: World) -> None:
    root = files.runs._folder.parent
    rows = [{"id": id, "data": {"text": id}} for id in ("b", "a", "c")]
    Datasets(FolderStore(root)).create(rows, name="core", id="core")
    run = files.runner.run_dataset("core", num_examples=2)
    assert list(files.outputs(run)) == ["a", "b"]
    folder = root / "datasets" / "theirs"
    folder.mkdir()
    (folder / "theirs.json").write_text(Dataset(id="theirs", name="t").model_dump_json())
    (folder / "theirs.jsonl").write_text(
        '{"input":{"text":"x"},"expected_output":null,"id":"1","metadata":null}'
    )
    assert files.outputs(files.runner.run_dataset("theirs")) == {"1": Reply(text="X", length=1)}


def test_repositories_that_change_what_they_keep_are_asked(tmp_path: Path) -> None:
    class Half(InMemoryDatasetRepository):
        def examples(self, *arguments: Any, **keywords: Any) -> Any:
            return [
                example
                for example in super().examples(*arguments, **keywords)
                if example.id != "e0"
            ]

    class Spying(FileRunRepository):
        stored: list[str] = []

        def store_example_output(self, example_output: ExampleOutput[Any]) -> None:
            self.stored.append(example_output.example_id)
            super().store_example_output(example_output)

    world = World(Half(), Spying(tmp_path))
    run = world.runner.run_dataset(world.dataset("a", "b", FAILS))
    assert sorted(Spying.stored) == ["e1", "e2"] == list(world.outputs(run))
    assert (run.successful_example_count, run.failed_example_count) == (1, 1)


def test_an_edited_parameter_does_not_go_on_with_other_outputs(files: World) -> None:
    class Repeating(Task[Question, str]):
        def __init__(self, times: int, memory: list[str]) -> None:
            self._times, self._memory = times, memory

        def do_run(self, input: Question, task_span: TaskSpan) -> str:
            self._memory.append(input.text)
            if len(self._memory) == 2:
                raise RuntimeError("once")
            return input.text * self._times

    memory: list[str] = []
    files.dataset("a", "b", "c")

    def runner(times: int) -> Runner[Question, str]:
        return Runner(Repeating(times, memory), files.datasets, files.runs, "repeating")

    with pytest.raises(RuntimeError):
        runner(2).run_dataset("dataset", abort_on_error=True, max_workers=1)
    assert runner(2)._run_hash("dataset", "") != runner(3)._run_hash("dataset", "")
    run = runner(2).run_dataset("dataset", resume_from_recovery_data=True, max_workers=1)
    assert memory == ["a", "b", "b", "c"]
    assert [each.output for each in files.runs.example_outputs(run.id, str)] == ["aa", "bb", "cc"]


SCRIPT = """
    import sys, threading, os
    from pathlib import Path
    from assay.formats.intelligence_layer.core import Task, TaskSpan
    from assay.formats.intelligence_layer.evaluation.dataset.domain import Example
    from assay.formats.intelligence_layer.evaluation.dataset.file_dataset_repository import FileDatasetRepository
    from assay.formats.intelligence_layer.evaluation.run.file_run_repository import FileRunRepository
    from assay.formats.intelligence_layer.evaluation.run.runner import Runner

    root, hangs = Path(sys.argv[1]), sys.argv[2] == "hangs"

    class Doubling(Task[int, int]):
        def do_run(self, input: int, task_span: TaskSpan) -> int:
            with open(root / "seen", "a") as file:
                file.write(f"{input}\\n")
            if hangs and input == 20:
                threading.Event().wait()
            if input == 7 and hangs:
                raise RuntimeError("only the first time")
            return 2 * input

    datasets = FileDatasetRepository(root)
    if datasets.dataset("numbers") is None:
        examples = (Example(input=n, expected_output=2 * n, id=f"{n:02}") for n in range(30))
        datasets.create_dataset(examples, "numbers", "numbers")
    runner = Runner(Doubling(), datasets, FileRunRepository(root), "doubling")
    run = runner.run_dataset("numbers", description="once", max_workers=2, resume_from_recovery_data=True)
    print(run.id, run.successful_example_count, run.failed_example_count)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_in_a_new_process(tmp_path: Path) -> None:
    script = tmp_path / "doubling.py"
    script.write_text(dedent(SCRIPT))
    seen = tmp_path / "seen"
    command = [sys.executable, str(script), str(tmp_path)]
    first = subprocess.Popen(
        [*command, "hangs"], env={**os.environ, "PYTHONHASHSEED": "1"}, stdout=subprocess.PIPE
    )
    wait_for(lambda: seen.exists() and len(seen.read_text().split()) >= 30, 30)
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    first.stdout.close()  # type: ignore[union-attr]
    (note,) = (tmp_path / "runs").glob("*.tmp")
    (unfinished,) = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    assert FileRunRepository(tmp_path).run_overview_ids() == []
    second = subprocess.run(
        [*command, "ends"],
        env={**os.environ, "PYTHONHASHSEED": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    run_id, successful, failed = second.stdout.split()
    assert (run_id, successful, failed) == (unfinished.name, "30", "0")
    again = set(map(int, seen.read_text().split()[30:]))
    assert {7, 20} <= again <= {7, 20, 29}  # the last may have been under way
    assert not note.exists()
    outputs = FileRunRepository(tmp_path).example_outputs(run_id, int)
    assert [each.output for each in outputs] == [2 * number for number in range(30)]
