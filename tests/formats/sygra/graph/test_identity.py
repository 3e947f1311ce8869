"""What a graph's rows depend on, and what an edit costs: calls that were paid are never paid again."""

import copy
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.formats.sygra.graph import GraphTask, ModelUse
from assay.records import Item
from tests.formats.sygra.graph.graphs import Bench, chain, llm, mapped, node

ITEM = Item(id="a", data={"question": "2", "note": "n"})
SOURCE = chain(
    {
        "ask": llm(model={"name": "m", "parameters": {"temperature": 0.5}}),
        "units": node(
            "lambda",
            **{"lambda": "helpers_of_a_graph.Units"},
            golden_key="g",
            output_keys=["found"],
        ),
    },
    **mapped("id", "answer", "found"),
)
UNITS = """
from helpers_beside import SUFFIX

class Units:
    @staticmethod
    def apply(config, state):
        return {"found": state["answer"] + SUFFIX}
"""


class Folder:
    """Helpers in a folder that tests edit; each binding imports them anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bench = Bench()
        self.write(UNITS, "'!'")

    def write(self, units: str, suffix: str) -> None:
        (self.path / "helpers_of_a_graph.py").write_text(units)
        (self.path / "helpers_beside.py").write_text(f"SUFFIX = {suffix}\n")

    def load(self, dotted: str, where: str) -> Any:
        for name in ("helpers_of_a_graph", "helpers_beside"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        sys.dont_write_bytecode = True
        module, _, name = dotted.rpartition(".")
        return getattr(importlib.import_module(module), name)

    def task(self, source: Any = SOURCE, **options: Any) -> GraphTask:
        return self.bench.task(source, load=self.load, **options)

    def key(self, source: Any = SOURCE, **options: Any) -> bytes:
        return self.task(source, **options).prepare(ITEM).fingerprint


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Folder(tmp_path)
    for name in ("helpers_of_a_graph", "helpers_beside"):
        sys.modules.pop(name, None)


def edited(*path: Any, to: Any) -> Any:
    source = copy.deepcopy(SOURCE)
    place = source
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return source


def test_equal_graphs_do_equal_work(folder: Folder) -> None:
    assert folder.key() == folder.key(copy.deepcopy(SOURCE))
    assert folder.key({**SOURCE, "data_config": {"source": "elsewhere"}}) == folder.key()
    assert folder.key(where="other.yaml") == folder.key()


@pytest.mark.parametrize(
    "source",
    [
        edited("graph_config", "nodes", "ask", "prompt", 0, "user", to="{question}?"),
        edited("graph_config", "nodes", "ask", "model", "parameters", "temperature", to=0.6),
        edited("graph_config", "nodes", "units", "golden_key", to="other"),
        edited("graph_config", "edges", 1, "to", to="END"),
        edited("graph_config", "graph_properties", to={"chat_conversation": "multiturn"}),
        edited("output_config", "output_map", "found", to={"value": 1}),
        edited("schema_config", to={"fields": []}),
    ],
)
def test_what_changes_the_graph_changes_the_key(folder: Folder, source: Any) -> None:
    assert folder.key(source) != folder.key()


def test_code_and_models_are_in_the_key(folder: Folder) -> None:
    first = folder.key()
    folder.write(UNITS, "'?'")
    second = folder.key()
    folder.write(UNITS.replace("+ SUFFIX", "* 2"), "'?'")
    uses = {"m": ModelUse("m", identity={"model_name": "newer"})}
    assert len({first, second, folder.key(), folder.key(models=uses)}) == 4


def test_the_record_is_in_the_key(folder: Folder) -> None:
    task = folder.task()
    other = Item(id="a", data={"question": "2", "note": "other"})
    assert task.prepare(other).fingerprint != task.prepare(ITEM).fingerprint
    assert (
        task.prepare(Item(id="a", data=ITEM.data, ground_truth=1)).fingerprint
        == task.prepare(ITEM).fingerprint
    )


def test_an_edited_helper_runs_the_graph_again_and_pays_no_call(folder: Folder) -> None:
    bench = folder.bench
    records = [{"id": f"r{n}", "data": {"question": str(n)}} for n in range(6)]
    assay.DatasetRepository(bench.store).create(records, name="d", id="d")

    def found() -> list[Any]:
        assay.Runner(bench.store, models=bench.models).run("d", [folder.task()], id="run")
        rows = {row.item_id: row for row in assay.RunRepository(bench.store).responses("run")}
        return [rows[record["id"]].output["found"] for record in records]

    assert found() == [f"<{n}>!" for n in range(6)]
    assert len(bench.asked) == 6
    folder.write(UNITS, "'?'")
    assert found() == [f"<{n}>?" for n in range(6)]
    assert len(bench.asked) == 6


def test_samples_are_independent_calls(folder: Folder) -> None:
    bench = folder.bench
    rows = bench.run_task(folder.task(), {"question": "2"}, samples=3)
    assert len(bench.asked) == 3
    assert len({request.seed for request in bench.asked}) == 3
    assert [row.outcome for row in rows] == ["ok"] * 3


def test_the_plan_can_be_written_whatever_the_yaml_held() -> None:
    import datetime

    source = chain(
        {
            "f": node(
                "lambda",
                **{"lambda": "f"},
                when=datetime.date(2026, 1, 2),
                table={1: "a", False: "b"},
            )
        }
    )
    bench = Bench({"f": lambda config, state: {}})
    assert bench.run(source, {})[0].outcome == "ok"


def test_modules_of_the_helpers_own_package_are_in_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task folder's helper imports what it shares with others by its full name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    one = tmp_path / "tasks_of_test" / "one"
    one.mkdir(parents=True)
    shared = one.parent / "shared.py"
    (one / "task_executor.py").write_text(
        "from tasks_of_test.shared import SUFFIX\ndef units(config, state):\n    return {'found': SUFFIX}\n"
    )

    def key(text: str) -> bytes:
        shared.write_text(text)
        for name in [name for name in sys.modules if name.startswith("tasks_of_test")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        units = importlib.import_module("tasks_of_test.one.task_executor").units
        source = chain({"f": node("lambda", **{"lambda": "f"}, output_keys=["found"])})
        return Bench({"f": units}).task(source).prepare(ITEM).fingerprint

    assert key("SUFFIX = 1\n") != key("SUFFIX = 2\n")
    assert key("SUFFIX = 1\n") == key("SUFFIX = 1\n")
