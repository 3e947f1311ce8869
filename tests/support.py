"""What tests of the whole engine share: an experiment in a folder, and what a run of it did."""

import asyncio
import json
import selectors
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import assay
from assay.engine.experiment.experiment import Result
from assay.threads import run_blocking

T = TypeVar("T")
COUNTED = {"run", "evaluate"}


class Lab:
    """A folder with a dataset and a config that tests edit; every call of the model is a line in `paid`."""

    def __init__(self, folder: Path, items: int = 4) -> None:
        self.folder = folder
        self.rows: list[dict[str, Any]] = [
            {
                "id": f"q{i}",
                "data": {"question": f"{i} + 1", "note": "n"},
                "ground_truth": {"answer": str(i + 1)},
            }
            for i in range(items)
        ]
        self.paid = folder / "paid.txt"
        self.write(
            "model.py",
            f"""
            import threading
            lock = threading.Lock()

            def calculator(prompt):
                with lock, open({str(self.paid)!r}, "a") as file:
                    file.write("x\\n")
                return str(eval(prompt.split("What is")[-1].split("?")[0]))
            """,
        )
        self.config: dict[str, Any] = {
            "name": "lab",
            "dataset": str(folder / "items.jsonl"),
            "models": [self.model("calculator")],
            "prompt_templates": {"plain": "What is {{question}}?"},
            "sample_params": {"temperature": 0.5, "num_samples": 2},
            "evaluation_methods": ["exact_match", {"name": "contains", "type": "contains"}],
            "metrics": [{"name": "pass@1", "facets": ["metadata.model_id", "prompt_template"]}],
            "output_dir": str(folder / "out"),
        }

    def model(self, name: str, **more: Any) -> dict[str, Any]:
        path = str(self.folder / "model.py")
        return {"name": name, "type": "python", "path": path, "function_name": "calculator", **more}

    def write(self, name: str, text: str) -> Path:
        """A file of the lab, its text dedented."""
        from textwrap import dedent

        path = self.folder / name
        path.write_text(dedent(text))
        return path

    def run(self, **options: Any) -> "Done":
        self.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in self.rows))
        paid = self.calls()
        experiment = assay.experiment(self.config, **options)
        result = run_blocking(experiment.run)
        ran = sum(lane.done for lane in experiment.progress.of("run"))
        scored = {
            lane.name: lane.done for lane in experiment.progress.of("evaluate") if not lane.calls
        }
        return Done(result, ran, scored, self.calls() - paid)

    def calls(self) -> int:
        return self.paid.read_text().count("x") if self.paid.exists() else 0

    def read(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / "out" / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Done:
    """What one run did: cells run, scorer calls by scorer, model calls paid."""

    def __init__(self, result: Result, ran: int, scored: dict[str, int], paid: int) -> None:
        self.result = result
        self.ran = ran
        self.scored = scored
        self.paid = paid

    @property
    def rows(self) -> tuple[int, int]:
        return self.ran, sum(self.scored.values())


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    """A row less what the clock put into it."""
    clock = {"inference_time", "timestamp", "tokens_per_second", "evaluation_time", "response_id"}
    return {key: value for key, value in row.items() if key not in clock}


def wait_for(condition: Any, seconds: float = 10.0) -> None:
    """Return as soon as the condition holds; fail if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.005)


class VirtualClock(selectors.SelectSelector):
    """Passes the time that an event loop would wait, at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everybody waits and nothing is going to happen"
        self.now += max(0.0, timeout)
        return super().select(0)

    def monotonic(self) -> float:
        return self.now

    time = monotonic


def in_virtual_time(make: Callable[[VirtualClock], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a loop that never waits; lanes see the same clock."""
    clock = VirtualClock()
    loop = asyncio.SelectorEventLoop(clock)
    loop.time = clock.monotonic  # type: ignore[method-assign]
    with (
        mock.patch("assay.engine.calls.lanes.time", clock),
        mock.patch("assay.engine.calls.pace.time", clock),
    ):
        try:
            return loop.run_until_complete(make(clock))
        finally:
            loop.close()
