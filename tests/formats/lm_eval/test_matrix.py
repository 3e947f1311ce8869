"""The page that says what runs: its totals agree, and a sample of tasks does what it says."""

import random
import re
from pathlib import Path

import pytest

from assay.formats.lm_eval.tasks import task_keys
from assay.formats.lm_eval.tasks.index import index
from assay.formats.lm_eval.tasks.task_keys import definition

PAGE = Path(__file__).parents[3] / "docs/benchmarks_matrix.md"
TABLES = [
    [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in part.splitlines()
        if line.startswith("| ")
    ][1:]
    for part in re.split(r"\n(?=\| (?:output type|reason) )", PAGE.read_text())[1:]
]


def numbers(table: list[list[str]], column: int = 1) -> list[int]:
    return [int(row[column]) for row in table]


def test_totals() -> None:
    types, kinds, details = TABLES
    at = next(place for place, row in enumerate(types) if row[0] == "**all**")
    for column in range(1, 5):
        assert sum(numbers(types[:at], column)) == int(types[at][column])
    tasks, load, bind, run = map(int, types[at][1:])
    assert tasks == 13_093
    assert sum(numbers(kinds)) == sum(numbers(details)) == tasks - run
    assert sum(numbers(kinds, 2)) == load - run
    assert sum(numbers(kinds, 3)) == bind - run


def test_goals() -> None:
    types = TABLES[0]
    tasks, load, bind, run = map(int, next(row for row in types if row[0] == "**all**")[1:])
    assert min(load, bind) / tasks >= 0.98
    assert run / tasks >= 0.9
    without_reason = [int(row[1]) for row in TABLES[1] if row[0].startswith("no rows were found")]
    assert sum(without_reason) / tasks < 0.01


@pytest.mark.benchmarks
@pytest.mark.parametrize("part", range(8))
def test_a_sample_runs(part: int) -> None:
    from tools.benchmark_matrix.trial import try_task

    tasks = [
        entry
        for entry in index().entries.values()
        if entry.kind == "task" and not entry.unsupported
    ]
    chosen = random.Random(part).sample(tasks, 25)
    outcomes = {
        entry.name: try_task(definition(task_keys.load(Path(entry.file)), entry.file, {}), {})[:2]
        for entry in chosen
    }
    stopped = {name: outcome for name, outcome in outcomes.items() if outcome[0] != "runs"}
    assert len(stopped) <= 1, stopped  # fewer than 1 in 100 need rows that are not found
