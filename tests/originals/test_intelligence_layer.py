"""The Intelligence Layer's own repository: folders that its code writes are imported and aggregated, and ours are read
by it. It needs its dependencies: those of this environment, or of `.venv` in the checkout."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell

pytestmark = pytest.mark.originals

NAMES = """
from pathlib import Path
from pydantic import BaseModel
from intelligence_layer.core import NoOpTracer, Task, TaskSpan
from intelligence_layer.evaluation import (
    AggregationLogic, Aggregator, Evaluator, Example, FileAggregationRepository, FileDatasetRepository,
    FileEvaluationRepository, FileRunRepository, Runner, SingleOutputEvaluationLogic,
)

class Mark(BaseModel):
    correct: bool

class Accuracy(BaseModel):
    accuracy: float
"""
WRITE = f"""{NAMES}
class Upper(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if not input:
            raise ValueError("nothing to do")
        return input.upper()

class Same(SingleOutputEvaluationLogic[str, str, str, Mark]):
    def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Mark:
        if output == "BAD":
            raise ValueError("cannot judge")
        return Mark(correct=output == example.expected_output)

class Mean(AggregationLogic[Mark, Accuracy]):
    def aggregate(self, evaluations) -> Accuracy:
        found = [each.correct for each in evaluations]
        return Accuracy(accuracy=sum(found) / len(found))

root = Path("theirs")
datasets, runs = FileDatasetRepository(root), FileRunRepository(root)
evaluations, aggregations = FileEvaluationRepository(root), FileAggregationRepository(root)
texts = {{"a": "A", "b": "B", "c": "x", "": "?", "bad": "?"}}
examples = [Example(input=text, expected_output=wanted) for text, wanted in texts.items()]
dataset = datasets.create_dataset(examples, "letters")
run = Runner(Upper(), datasets, runs, "upper").run_dataset(dataset.id)
found = Evaluator(datasets, runs, evaluations, "same", Same()).evaluate_runs(run.id)
Aggregator(evaluations, aggregations, "mean", Mean()).aggregate_evaluation(found.id)
print(run.id, found.id)
"""
READ = f"""{NAMES}
import json
from intelligence_layer.evaluation.evaluation.domain import FailedExampleEvaluation
from intelligence_layer.evaluation.run.domain import FailedExampleRun
root = Path("again")
evaluations, runs = FileEvaluationRepository(root), FileRunRepository(root)
told = []
for overview in evaluations.evaluation_overviews():
    results = evaluations.example_evaluations(overview.id, Mark)
    failed = sum(isinstance(each.result, FailedExampleEvaluation) for each in results)
    marks = [each.result.correct for each in results if isinstance(each.result, Mark)]
    outputs = [
        output.output
        for run in overview.run_overviews
        for output in runs.example_outputs(run.id, str)
    ]
    broken = sum(isinstance(each, FailedExampleRun) for each in outputs)
    told = [sorted(marks), failed, len(outputs), broken]
print(json.dumps(told))
"""


@pytest.fixture
def original(originals: Callable[[str], Path], tmp_path: Path) -> Callable[[str], str]:
    """Run code that imports the original's own package; skipped where that is impossible."""
    checkout = originals("intelligence_layer")
    own = checkout / ".venv/bin/python"
    python = str(own) if own.exists() else sys.executable
    around = {**os.environ, "PYTHONPATH": str(checkout / "src")}

    def run(code: str) -> str:
        words = [python, "-W", "ignore", "-c", code]
        done = subprocess.run(words, cwd=tmp_path, env=around, capture_output=True, text=True)
        if "ModuleNotFoundError" in done.stderr:
            pytest.skip(f"it cannot be imported: {done.stderr.splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    return run


def metrics_of(folder: Path) -> dict[str, Any]:
    (line,) = (folder / "metrics.jsonl").read_text().splitlines()
    return json.loads(line)


def test_its_folders_are_imported_and_aggregated(
    original: Callable[[str], str], tmp_path: Path
) -> None:
    run, evaluation = original(WRITE).split()
    shell = Shell(tmp_path)
    for number, path in enumerate(
        (".", f"evaluations/{evaluation}", f"evaluations/{evaluation}.json")
    ):
        folder = f"imported{number}"
        done = shell.call("import", f"theirs/{path}", "-o", folder)
        assert done.code == 0, done.said
        assert "items: 5" in done.out
        assert shell.call("aggregate", folder).code == 0
        row = metrics_of(tmp_path / folder)
        assert (row["model_name"], row["value"]) == (run, pytest.approx(2 / 3))
        counts = [row[f"{name}_count"] for name in ("scored", "errored", "skipped", "total_item")]
        assert counts == [3, 1, 1, 5]


def test_the_same_code_runs_here_and_what_is_exported_is_read_by_it(
    original: Callable[[str], str], tmp_path: Path
) -> None:
    code = WRITE.replace("from intelligence_layer.", "from assay.formats.intelligence_layer.")
    words = [sys.executable, "-c", code.replace('Path("theirs")', 'Path("ours")')]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shell = Shell(tmp_path)
    done = shell.call("export", "ours", "--format", "intelligence_layer", "-o", "again")
    assert done.code == 0, done.said
    marks, failed, outputs, broken = json.loads(original(READ))
    assert (marks, failed, outputs, broken) == ([False, True, True], 1, 5, 1)
