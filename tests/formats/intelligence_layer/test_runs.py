"""Where runs are kept: one contract for memory and files, and what files do by themselves."""

import json
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from assay.formats.intelligence_layer.core import (
    InMemoryTaskSpan,
    InMemoryTracer,
    SpanStatus,
)
from assay.formats.intelligence_layer.evaluation import (
    ExampleOutput,
    FailedExampleRun,
    FileRunRepository,
    InMemoryRunRepository,
    RecoveryData,
    RunOverview,
    RunRepository,
    SuccessfulExampleOutput,
)
from assay.records import Manifest, Response
from assay.store.repositories import RunRepository as Runs
from assay.store.stores import FolderStore
from tests.formats.intelligence_layer.labs import (
    MAKE_RUNS,
    ODD_IDS,
    Question,
    QuestionData,
    QuestionStruct,
)


@pytest.fixture(params=MAKE_RUNS)
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> RunRepository:
    return MAKE_RUNS[request.param](tmp_path)


def overview(id: str, **more: Any) -> RunOverview:
    start = datetime(2024, 5, 22, 9, 43, 37, 428758, UTC)
    given: dict[str, Any] = {
        "dataset_id": "dataset",
        "id": id,
        "start": start,
        "end": start + timedelta(seconds=1.5),
        "failed_example_count": 1,
        "successful_example_count": 2,
        "description": "a run",
    }
    return RunOverview(**given | more)


def output(example_id: str, value: Any, run_id: str = "run") -> ExampleOutput[Any]:
    return ExampleOutput(run_id=run_id, example_id=example_id, output=value)


# ---- outputs


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (None, type(None)),
        ("text", str),
        ("", str),
        ("null", str),
        ("null", str | None),
        (None, str | None),
        (0, int),
        (False, bool),
        ([], list[int]),
        ({}, dict[str, int]),
        ({"error_message": "no failure"}, dict[str, str]),
        (Question(text="q"), Question),
        (QuestionData("q"), QuestionData),
        (QuestionStruct("q"), QuestionStruct),
        (Question(text="q"), Question | None),
    ],
)
def test_an_output_comes_back_as_it_was(repository: RunRepository, value: Any, type: Any) -> None:
    stored = output("e", value)
    repository.store_example_output(stored)
    assert repository.example_output("run", "e", type) == stored
    assert list(repository.example_outputs("run", type)) == [stored]
    assert list(repository.successful_example_outputs("run", type)) == [stored]


@pytest.mark.parametrize("type", [str, dict, dict[str, str], Any, Question, type(None)])
def test_a_failure_is_a_failure_whatever_the_type(repository: RunRepository, type: Any) -> None:
    stored = output("e", FailedExampleRun(error_message="it broke"))
    repository.store_example_output(stored)
    assert repository.example_output("run", "e", type) == stored
    assert list(repository.failed_example_outputs("run", type)) == [stored]
    assert list(repository.successful_example_outputs("run", type)) == []


def test_successes_and_failures_apart(repository: RunRepository) -> None:
    repository.store_example_output(output("1", FailedExampleRun(error_message="x")))
    repository.store_example_output(output("2", {"error_message": "x"}))
    assert [each.example_id for each in repository.failed_example_outputs("run", dict)] == ["1"]
    assert [each.example_id for each in repository.successful_example_outputs("run", dict)] == ["2"]


def test_a_dict_is_read_as_a_model_and_a_wrong_type_is_refused(repository: RunRepository) -> None:
    repository.store_example_output(output("e", {"text": "q"}))
    assert repository.example_output("run", "e", Question) == output("e", Question(text="q"))
    repository.store_example_output(output("none", None, "other"))
    with pytest.raises(pydantic.ValidationError):
        repository.example_output("other", "none", str)
    with pytest.raises(pydantic.ValidationError):
        next(iter(repository.example_outputs("other", str)))


def test_outputs_are_sorted_by_example(repository: RunRepository) -> None:
    for example_id in ("9", "10", "1"):
        repository.store_example_output(output(example_id, int(example_id)))
    assert repository.example_output_ids("run") == ["1", "10", "9"]
    assert [each.output for each in repository.example_outputs("run", int)] == [1, 10, 9]


def test_a_later_output_takes_the_place_of_an_earlier_one(repository: RunRepository) -> None:
    for value in (1, FailedExampleRun(error_message="x"), 3):
        repository.store_example_output(output("a", value))
        repository.store_example_output(output("b", 0))
    assert list(repository.example_outputs("run", int)) == [output("a", 3), output("b", 0)]


def test_ids_are_any_text(repository: RunRepository, tmp_path: Path) -> None:
    for run_id in ODD_IDS:
        repository.store_run_overview(overview(run_id))
        for example_id in ODD_IDS:
            repository.store_example_output(output(example_id, example_id, run_id))
    assert repository.run_overview_ids() == sorted(ODD_IDS)
    for run_id in ODD_IDS:
        assert repository.example_output_ids(run_id) == sorted(ODD_IDS)
        for example_id in ODD_IDS:
            assert repository.example_output(run_id, example_id, str) == output(
                example_id, example_id, run_id
            )
    assert not (tmp_path / "up").exists()


def test_an_unknown_run_is_a_warning_and_nothing(repository: RunRepository) -> None:
    repository.store_example_output(output("e", 1))
    assert repository.example_output("run", "unknown", int) is None
    with pytest.warns(UserWarning, match="'unknown'"):
        assert repository.example_output("unknown", "e", int) is None
    with pytest.warns(UserWarning, match="'unknown'"):
        assert list(repository.example_outputs("unknown", int)) == []
    with pytest.warns(UserWarning, match="'unknown'"):
        assert repository.example_output_ids("unknown") == []
    with pytest.warns(UserWarning, match="'unknown'"):
        assert list(repository.failed_example_outputs("unknown", int)) == []
    assert repository.run_overview("unknown") is None
    assert repository.example_tracer("unknown", "e") is None


def test_threads_store_side_by_side(repository: RunRepository) -> None:
    def store(start: int) -> None:
        for number in range(start, start + 25):
            repository.store_example_output_parallel("hash", output(str(number), number))

    threads = [threading.Thread(target=store, args=(start,)) for start in range(0, 100, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each.output for each in repository.example_outputs("run", int)} == set(range(100))


# ---- overviews


def test_overviews_come_back_sorted(repository: RunRepository) -> None:
    stored = [overview(id, labels={"l", id}, metadata={"k": [1, None]}) for id in ("b", "a", "c")]
    for each in stored:
        repository.store_run_overview(each)
    assert repository.run_overview("b") == stored[0]
    assert repository.run_overview_ids() == ["a", "b", "c"]
    assert list(repository.run_overviews()) == sorted(stored, key=lambda each: each.id)


def test_an_overview_may_be_stored_again(repository: RunRepository) -> None:
    repository.store_run_overview(overview("run"))
    repository.store_run_overview(overview("run", description="better"))
    found = repository.run_overview("run")
    assert found is not None
    assert found.description == "better"


def test_a_run_without_examples_exists(repository: RunRepository) -> None:
    repository.store_run_overview(
        overview("run", failed_example_count=0, successful_example_count=0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(repository.example_outputs("run", int)) == []
        assert repository.example_output("run", "e", int) is None


def test_outputs_alone_are_no_overview(repository: RunRepository) -> None:
    repository.store_run_overview(overview("other"))
    repository.store_example_output(output("e", 1))
    assert repository.run_overview("run") is None
    assert repository.run_overview_ids() == ["other"]


def test_overviews_are_frozen_and_hashed_by_their_id() -> None:
    one, same = overview("a"), overview("a", description="other")
    assert hash(one) == hash(same)
    assert len({one, overview("a"), overview("b")}) == 2
    with pytest.raises(AttributeError):
        one.id = "b"  # type: ignore[misc]
    fresh = overview("x")
    fresh.labels.add("l")
    assert overview("y").labels == set()
    assert "Failed example count = 1\nSuccessful example count = 2\n" in str(one)


def test_outputs_print_as_lines() -> None:
    assert str(output("e", "[b]text")) == 'Example ID=e\nRelated Run ID=run\nOutput="[b]text"\n'
    shown = str(SuccessfulExampleOutput(run_id="run", example_id="e", output=1))
    assert shown == 'Run ID = run\nExample ID = e\nOutput = "1"\n'


def test_a_failure_has_type_message_and_traceback() -> None:
    try:
        raise KeyError("k")
    except KeyError as error:
        failed = FailedExampleRun.from_exception(error)
    first, *rest = failed.error_message.splitlines()
    assert first == "KeyError: 'k'"
    assert any("raise KeyError" in line for line in rest)


# ---- traces


def test_a_trace_is_found_again(repository: RunRepository) -> None:
    tracer = repository.create_tracer_for_example("run", "example")
    task = tracer.task_span("task", Question(text="q"), datetime(2024, 1, 1, 1, 1, 1, 5, UTC))
    with task.span("step") as step:
        step.log("note", Question(text="n"))
    task.record_output({"a": [1]})
    task.end()
    found = repository.example_tracer("run", "example")
    assert found is not None
    assert found.context == tracer.context
    assert found.export_for_viewing() == tracer.export_for_viewing()
    plain = partial(msgspec.to_builtins, enc_hook=lambda model: model.model_dump())
    expected = plain(tracer.export_for_viewing())
    del tracer, task, found, step
    stored = repository.example_tracer("run", "example")
    assert stored is not None
    assert plain(stored.export_for_viewing()) == expected
    assert repository.example_tracer("run", "other") is None


def test_a_trace_in_memory_has_the_objects_themselves() -> None:
    repository, question = InMemoryRunRepository(), Question(text="q")
    with repository.create_tracer_for_example("run", "e").task_span("task", question) as span:
        span.record_output(question)
    found = repository.example_tracer("run", "e")
    assert type(found) is InMemoryTracer
    (entry,) = found.entries
    assert isinstance(entry, InMemoryTaskSpan)
    assert entry.input is question
    assert entry.output is question


def test_of_two_attempts_the_last_trace_counts(repository: RunRepository) -> None:
    for number in range(2):
        tracer = repository.create_tracer_for_example("run", "e")
        with tracer.task_span("task", number):
            pass
        tracer.span("second root").end()
    del tracer
    found = repository.example_tracer("run", "e")
    assert found is not None
    spans = found.export_for_viewing()
    assert [span.name for span in spans] == ["task", "second root"]
    assert spans[0].attributes.input == 1  # type: ignore[union-attr]


def test_a_span_that_was_never_ended_stays_open(repository: RunRepository) -> None:
    tracer = repository.create_tracer_for_example("run", "e")
    root = tracer.span("root")
    root.span("open").log("m", 1)
    root.status_code = SpanStatus.ERROR
    root.end()
    del tracer, root
    found = repository.example_tracer("run", "e")
    assert isinstance(found, InMemoryTracer)
    (outer,) = found.entries
    inner = next(entry for entry in outer.entries if isinstance(entry, InMemoryTracer))  # type: ignore[union-attr]
    assert outer.status_code is SpanStatus.ERROR  # type: ignore[union-attr]
    with pytest.raises(RuntimeError, match="open"):
        inner.export_for_viewing()


# ---- unfinished runs


def test_what_is_finished_is_remembered_until_it_is_deleted(repository: RunRepository) -> None:
    assert repository.finished_examples("hash") is None
    repository.create_temporary_run_data("hash", "run")
    repository.create_temporary_run_data("other/../hash", "other")
    for example_id in ("b", "a"):
        repository.temp_store_finished_example("hash", example_id)
    assert repository.finished_examples("hash") == RecoveryData(
        run_id="run", finished_examples=["b", "a"]
    )
    assert repository.finished_examples("other/../hash") == RecoveryData(run_id="other")
    repository.create_temporary_run_data("hash", "newer")
    assert repository.finished_examples("hash") == RecoveryData(
        run_id="newer", finished_examples=[]
    )
    for _ in range(2):
        repository.delete_temporary_run_data("hash")
    assert repository.finished_examples("hash") is None


def test_the_rows_say_what_is_finished(repository: RunRepository) -> None:
    repository.create_temporary_run_data("hash", "run")
    repository.store_example_output(output("ok", 1))
    repository.store_example_output(output("failed", FailedExampleRun(error_message="x")))
    assert repository.finished_examples("hash") == RecoveryData(
        run_id="run", finished_examples=["ok"]
    )


def test_another_object_may_go_on(tmp_path: Path) -> None:
    FileRunRepository(tmp_path).create_temporary_run_data("hash", "run")
    fresh = FileRunRepository(tmp_path)
    fresh.store_example_output_parallel("hash", output("e", 1))
    fresh.temp_store_finished_example("hash", "f")
    assert FileRunRepository(tmp_path).finished_examples("hash") == RecoveryData(
        run_id="run", finished_examples=["f", "e"]
    )
    fresh.delete_temporary_run_data("hash")
    assert list(tmp_path.glob("runs/*.tmp")) == []


# ---- files


def test_files_are_ours(tmp_path: Path) -> None:
    repository = FileRunRepository(tmp_path)
    repository.store_example_output(output("a.1", {"n": 1}))
    repository.store_example_output(output("b", FailedExampleRun(error_message="it broke")))
    repository.store_run_overview(overview("run"))
    store = FolderStore(tmp_path)
    good, bad = Runs(store).responses("run")
    assert (good.item_id, good.output, good.response, good.outcome) == (
        "a.1",
        {"n": 1},
        '{"n":1}',
        "ok",
    )
    assert (bad.item_id, bad.error, bad.outcome, bad.error_kind) == (
        "b",
        "it broke",
        "errored",
        "permanent",
    )
    assert good.key
    assert good.key != bad.key
    manifest = store.manifest("run", "run")
    assert manifest is not None
    assert manifest.inputs == [{"kind": "dataset", "id": "dataset"}]
    assert (manifest.name, manifest.counts, manifest.complete) == (
        "a run",
        {"ok": 2, "errored": 1},
        True,
    )


def test_what_another_process_stores_is_seen(tmp_path: Path) -> None:
    mine, theirs = FileRunRepository(tmp_path), FileRunRepository(tmp_path)
    mine.store_example_output(output("a", 1))
    assert mine.example_output_ids("run") == ["a"]
    theirs.store_example_output(output("b", 2))
    assert mine.example_output("run", "b", int) == output("b", 2)
    theirs.store_example_output(output("a", 3))  # rewrites the file
    assert mine.example_output("run", "a", int) == output("a", 3)
    assert [each.output for each in mine.example_outputs("run", int)] == [3, 2]


def test_a_root_without_runs(tmp_path: Path) -> None:
    repository = FileRunRepository(tmp_path / "new" / "root")
    with pytest.raises(FileNotFoundError):
        repository.run_overview_ids()
    with pytest.raises(FileNotFoundError):
        list(repository.run_overviews())
    assert repository.run_overview("run") is None
    assert repository.finished_examples("hash") is None
    with pytest.warns(UserWarning, match="no run"):
        assert repository.example_output("run", "e", int) is None
    assert repository.example_tracer("run", "e") is None
    assert list((tmp_path / "new" / "root").iterdir()) == []
    assert InMemoryRunRepository().run_overview_ids() == []


def test_the_folders_of_the_original_are_read(tmp_path: Path) -> None:
    stored = overview("their run", labels={"l"}, metadata={"k": 1})
    outputs = tmp_path / "runs" / "their run" / "output"
    (outputs / "deep").mkdir(parents=True)
    (outputs.parent / "trace").mkdir()
    (tmp_path / "runs" / "their run.json").write_text(stored.model_dump_json(indent=2))
    rows = {"b": {"text": "q"}, "a": {"error_message": "RuntimeError: x"}, "deep/c": {"text": "r"}}
    for id, value in rows.items():
        row = {"run_id": "their run", "example_id": id, "output": value}
        (outputs / f"{id}.json").write_text(json.dumps(row, indent=2))
    (outputs.parent / "trace" / "b.jsonl").write_text("{}\n")
    repository = FileRunRepository(tmp_path)
    repository.store_run_overview(overview("ours"))
    assert repository.run_overview_ids() == ["ours", "their run"]
    assert repository.run_overview("their run") == stored
    assert repository.example_output_ids("their run") == ["a", "b", "deep/c"]
    found = {
        each.example_id: each.output for each in repository.example_outputs("their run", Question)
    }
    assert found == {
        "a": FailedExampleRun(error_message="RuntimeError: x"),
        "b": Question(text="q"),
        "deep/c": Question(text="r"),
    }
    failed = repository.failed_example_outputs("their run", dict)
    assert [each.example_id for each in failed] == ["a"]
    assert repository.example_output("their run", "unknown", Question) is None
    with pytest.warns(UserWarning, match="traces of the original are not read"):
        assert repository.example_tracer("their run", "b") is None
    assert repository.trace_counts("their run") == (0, 1)
    assert repository.example_tracer("their run", "a") is None
    assert repository.example_tracer("their run", "../../their run") is None
    repository.store_run_overview(stored)
    for id in ("a", "d"):  # one that is replaced, and a new one
        repository.store_example_output(
            ExampleOutput(run_id="their run", example_id=id, output=Question(text="new"))
        )
    for reader in (repository, FileRunRepository(tmp_path)):
        found = {
            each.example_id: each.output.text
            for each in reader.example_outputs("their run", Question)
        }
        assert found == {"a": "new", "b": "q", "deep/c": "r", "d": "new"}


def test_runs_of_the_command_line_are_read(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    rows = [
        Response(item_id="a", response="text"),
        Response(item_id="a", sample_index=1, response="again"),
    ]
    rows += [
        Response(item_id="b", response=""),
        Response(item_id="c", outcome="errored", error="lost"),
    ]
    store.log("run", "core").append(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    inputs = [{"kind": "dataset", "id": "d"}]
    counts = {"ok": 3, "errored": 1}
    core = Manifest(
        kind="run", id="core", started=1.5, ended=2.5, complete=True, counts=counts, inputs=inputs
    )
    store.put_manifest(core)
    store.put_manifest(Manifest(kind="run", id="unfinished", started=1.5, ended=2.5))
    repository = FileRunRepository(tmp_path)
    assert repository.run_overview_ids() == ["core"]
    found = repository.run_overview("core")
    assert found is not None
    assert (found.dataset_id, found.failed_example_count, found.successful_example_count) == (
        "d",
        1,
        3,
    )
    assert found.end - found.start == timedelta(seconds=1)
    assert [each.output for each in repository.example_outputs("core", str)] == [
        "text",
        "",
        FailedExampleRun(error_message="lost"),
    ]
    other = msgspec.json.encode(Response(item_id="a", task="another", response="x"))
    store.log("run", "core").append(other + b"\n")
    with pytest.raises(ValueError, match="several rows"):
        list(repository.example_outputs("core", str))


@pytest.mark.parametrize("kind", MAKE_RUNS)
def test_threads_that_read_a_run_at_once_all_see_it_whole(kind: str, tmp_path: Path) -> None:
    writing = MAKE_RUNS[kind](tmp_path)
    for number in range(300):
        writing.store_example_output(
            ExampleOutput(run_id="run", example_id=f"{number:03}", output="x")
        )
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            runs = FileRunRepository(tmp_path / "root") if kind == "files" else writing
            runs._places.clear()
            with ThreadPoolExecutor(4) as pool:
                found = pool.map(lambda _, runs=runs: len(runs.example_output_ids("run")), range(4))
                assert list(found) == [300] * 4
    finally:
        sys.setswitchinterval(before)
