"""The first executor by itself: what it refuses, what becomes of failures, what stops it."""

import asyncio
from typing import Any

import pytest

import assay
from assay.engine.calls.stop import Stop
from assay.engine.run.plan import Selection
from assay.errors import Interrupted, LaneError, RunFailed, TransientError, UserError
from assay.interfaces import Completion, Limits, Request, Store

ROWS = [{"id": f"q{i}", "data": f"{i}"} for i in range(5)]


@pytest.fixture
def store() -> Store:
    store = assay.MemoryStore()
    assay.DatasetRepository(store).create(ROWS, name="d", id="d")
    return store


def responses(store: Store, id: str = "r") -> dict[tuple[str, int], Any]:
    return {
        (row.item_id, row.sample_index): row for row in assay.RunRepository(store).responses(id)
    }


def double(data: str) -> str:
    return data * 2


class Flaky:
    """A model that fails as told, by the text of the prompt."""

    name = "flaky"
    identity: dict[str, Any] = {"type": "flaky"}

    def __init__(self, failures: dict[str, Exception]) -> None:
        self.failures = failures
        self.calls = 0

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        text = request.messages[0]["content"]
        if text in self.failures:
            raise self.failures[text]
        return Completion(text=f"={text}", total_tokens=3)

    async def close(self) -> None: ...


def flaky_task(failures: dict[str, Exception]) -> Any:
    return assay.prompt_task(assay.prompt.get("jinja")("{{data}}", name="p"), Flaky(failures))


def test_rows_have_every_field(store: Store) -> None:
    manifest = assay.Runner(store).run("d", [flaky_task({})], 2, id="r", name="first")
    assert (manifest.planned, manifest.counts, manifest.complete, manifest.name) == (
        10,
        {"ok": 10},
        True,
        "first",
    )
    row = responses(store)["q3", 1]
    assert (row.sample_id, row.total_samples, row.prompt, row.response) == (
        "q3_sample_1",
        2,
        "3",
        "=3",
    )
    assert (row.model_name, row.task, row.outcome, row.error, row.total_tokens) == (
        "flaky",
        "flaky/p",
        "ok",
        None,
        3,
    )
    assert {"model_id", "prompt_template", "sampling", "finish_reason", "response_id"} <= set(
        row.metadata
    )


def test_nothing_to_run_is_refused(store: Store) -> None:
    task = assay.function_task(double)
    with pytest.raises(UserError, match="nothing to run"):
        assay.Runner(store).run("d", [])
    with pytest.raises(UserError, match="no dataset 'e'"):
        assay.Runner(store).run("e", [task])
    with pytest.raises(UserError, match="two tasks are called 'double'"):
        assay.Runner(store).run("d", [task, task])


def test_without_an_id_a_run_is_named_by_its_plan(store: Store) -> None:
    task = assay.function_task(double)
    first, again = assay.Runner(store).run("d", [task]), assay.Runner(store).run("d", [task])
    other = assay.Runner(store).run("d", [task], 2)
    assert first.id == again.id != other.id
    assert sorted(assay.RunRepository(store).ids()) == sorted([first.id, other.id])


def test_failures_are_rows_and_the_transient_ones_are_tried_again(store: Store) -> None:
    failures: dict[str, Exception] = {"1": TransientError("503"), "2": ZeroDivisionError("x")}
    runner = assay.Runner(store, default_limits=Limits(max_retries=0))
    manifest = runner.run("d", [flaky_task(failures)], id="r")
    assert manifest.counts == {"ok": 3, "errored": 2, "transient": 1}
    rows = responses(store)
    assert (rows["q1", 0].error, rows["q1", 0].error_kind) == ("503", "transient")
    assert (rows["q2", 0].error, rows["q2", 0].error_kind) == (
        "ZeroDivisionError: x (test_run.py, line 48: raise self.failures[text])",
        "permanent",
    )
    assert (rows["q2", 0].prompt, rows["q2", 0].response) == ("2", "")
    mended = flaky_task({})
    assert runner.run("d", [mended], id="r").counts == {"ok": 4, "errored": 1}
    assert mended.model.calls == 1
    assert runner.run("d", [mended], id="r", retry_errors=True).counts == {"ok": 5}
    assert mended.model.calls == 2


def leaving(data: str) -> str:
    raise SystemExit(3)


def hanging(data: str) -> str:
    import threading

    if data == "2":
        threading.Event().wait(5)
    return data


def test_user_code_that_leaves_or_hangs_costs_its_row(store: Store) -> None:
    assert assay.Runner(store).run("d", [assay.function_task(leaving)], id="l").counts == {
        "errored": 5
    }
    assert "SystemExit: 3" in responses(store, "l")["q0", 0].error
    runner = assay.Runner(store, task_timeout=0.1)
    assert runner.run("d", [assay.function_task(hanging)], id="h").counts == {
        "ok": 4,
        "errored": 1,
        "transient": 1,
    }
    assert "took longer than 0.1 s" in responses(store, "h")["q2", 0].error


def test_a_stopped_lane_fails_the_run_and_writes_no_error_rows(store: Store) -> None:
    with pytest.raises(RunFailed, match="no such model"):
        assay.Runner(store, default_limits=Limits(1)).run(
            "d", [flaky_task({"2": LaneError("no such model")})], id="r"
        )
    assert {row.outcome for row in responses(store).values()} == {"ok"}
    manifest = store.manifest("run", "r")
    assert manifest is not None
    assert not manifest.complete
    assert assay.Runner(store).run("d", [flaky_task({})], id="r").complete


def test_a_selection_narrows_what_runs(store: Store) -> None:
    tasks = [assay.function_task(double, name=name) for name in ("a", "b")]
    chosen = Selection(tasks=frozenset({"a"}), items=2)
    manifest = assay.Runner(store).run("d", tasks, 2, id="r", selection=chosen)
    assert (manifest.planned, manifest.counts, manifest.complete) == (20, {"ok": 4}, False)
    assert assay.Runner(store).run("d", tasks, 2, id="r").counts == {"ok": 20}


def test_a_request_to_stop_keeps_what_is_done(store: Store) -> None:
    async def go() -> None:
        stop = Stop()

        async def task(data: str) -> str:
            if data == "2":
                stop.request()
            return data

        runner = assay.Runner(store, default_limits=Limits(1), stop=stop)
        with pytest.raises(Interrupted, match="every finished row is kept"):
            await runner.run_async("d", [assay.function_task(task)], id="r")

    asyncio.run(go())
    assert set(responses(store)) == {("q0", 0), ("q1", 0), ("q2", 0)}


def test_in_a_running_loop_too(store: Store) -> None:
    async def notebook() -> Any:
        return assay.Runner(store).run("d", [assay.function_task(double)], id="r")

    assert asyncio.run(notebook()).counts == {"ok": 5}


def test_seeds_depend_on_the_runs_seed_and_the_rows_address(store: Store) -> None:
    async def seed(data: str, context: Any) -> int:
        return context.seed

    def seeds(own: int, id: str) -> dict[tuple[str, int], int]:
        assay.Runner(store, seed=own).run("d", [assay.function_task(seed)], 2, id=id)
        return {address: row.output for address, row in responses(store, id).items()}

    first = seeds(1, "a")
    assert len(set(first.values())) == 10
    assert seeds(1, "b") == first
    assert not set(seeds(2, "c").values()) & set(first.values())


def test_fresh_sets_rows_aside(store: Store) -> None:
    calls: list[str] = []

    def counted(data: str) -> str:
        calls.append(data)
        return data

    task = assay.function_task(counted)
    assay.Runner(store).run("d", [task], id="r")
    assay.Runner(store, fresh=True).run("d", [task], id="r")
    assert len(calls) == 10
    assert (
        len(list(store.log("run", "r").scan()))
        == len(list(store.log("run", "r", "superseded").scan()))
        == 5
    )
