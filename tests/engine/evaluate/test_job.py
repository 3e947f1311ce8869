"""An evaluation that is stopped says so as long as anything is left; and a row knows how long its call took."""

import asyncio
import time
from typing import Any

import pytest

import assay
from assay.engine.calls.stop import Stop
from assay.errors import Interrupted
from assay.interfaces import Store
from tests.engine.evaluate.test_evaluate import ROWS, double


def stored(count: int) -> Store:
    store = assay.MemoryStore()
    assay.DatasetRepository(store).create(ROWS[:count], name="d", id="d")
    assay.Runner(store).run("d", [assay.function_task(double)], id="r")
    return store


def evaluate(store: Store, scorer: Any, stop: Stop | None = None) -> Any:
    evaluator = assay.Evaluator(store, stop=stop, grace=0.01)
    return evaluator.evaluate(["r"], [assay.bind_scorer(scorer, name="s")], id="e")


@pytest.mark.parametrize("count", [1, 6])
def test_a_stop_while_the_last_call_is_in_flight_is_an_interruption(count: int) -> None:
    store, stop = stored(count), Stop()

    async def hangs(item: Any, response: Any) -> bool:
        if item.id != f"q{count - 1}":
            return True
        stop.request()
        await asyncio.sleep(3600)
        return True

    with pytest.raises(Interrupted, match="every finished row is kept"):
        evaluate(store, hangs, stop)
    rows = list(assay.EvaluationRepository(store).evaluations("e"))
    assert f"q{count - 1}" not in {row.item_id for row in rows}
    assert not assay.EvaluationRepository(store).get("e").complete


def test_a_stop_after_the_last_call_interrupts_nothing() -> None:
    store, stop = stored(3), Stop()
    seen: list[str] = []

    def last(item: Any, response: Any) -> bool:
        seen.append(item.id)
        if len(seen) == 3:
            stop.request()
        return True

    assert evaluate(store, last, stop).complete
    assert len(list(assay.EvaluationRepository(store).evaluations("e"))) == 3


@pytest.mark.parametrize("count", [1, 3])
def test_a_row_has_the_seconds_of_its_call(count: int) -> None:
    store = stored(count)

    def slow(item: Any, response: Any) -> bool:
        time.sleep(0.03)
        return True

    evaluate(store, slow)
    rows = list(assay.EvaluationRepository(store).evaluations("e"))
    assert len(rows) == count
    assert all(row.evaluation_time >= 0.03 for row in rows)


def test_async_calls_are_in_flight_together() -> None:
    store = stored(6)
    waiting: list[str] = []
    everybody: list[asyncio.Event] = []

    async def together(item: Any, response: Any) -> bool:
        everybody.extend([asyncio.Event()] if not everybody else [])
        waiting.append(item.id)
        if len(waiting) == 6:
            everybody[0].set()
        await asyncio.wait_for(everybody[0].wait(), 5)
        return True

    assert evaluate(store, together).counts == {"scored": 6}
