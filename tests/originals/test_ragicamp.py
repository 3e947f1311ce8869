"""RAGiCamp's own repository at the commit of its document: the document's code on files that we wrote, its examples,
and its evaluator beside ours."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from assay.engine.experiment.imports.results import import_results
from assay.formats.ragicamp.evaluation import Evaluator, compare_agents
from tests.formats.ragicamp import generations
from tests.formats.ragicamp.evaluating import MOON, WORKED, Agent, AsyncAgent, Questions, written
from tests.formats.ragicamp.test_examples import converted

pytestmark = pytest.mark.originals
NAMES = ("gemma_2b_baseline", "gpt4_baseline", "rag_model")


@pytest.fixture
def checkout(originals: Callable[[str], Path]) -> Path:
    return originals("ragicamp")


@pytest.fixture
def snippets(checkout: Path) -> list[str]:
    """The Python of OUTPUT_STRUCTURE.md: loading, comparing, evaluating side by side, old files."""
    found = re.findall(r"```python\n(.*?)```", (checkout / "OUTPUT_STRUCTURE.md").read_text(), re.S)
    assert len(found) == 4
    return found


def run(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_loading_and_comparing_run_on_our_files(snippets: list[str], tmp_path: Path) -> None:
    failing = {**WORKED, MOON: RuntimeError("out of memory")}
    agents = [Agent(name, failing if name == NAMES[0] else WORKED) for name in NAMES]
    compare_agents(agents, Questions(), ["exact_match", "f1"], tmp_path / "outputs/any.json")
    shown = run(snippets[0], tmp_path)
    assert "Overall F1: 0.5000" in shown
    assert "Low F1: who knows" in shown
    assert all(name in run(snippets[1], tmp_path) for name in NAMES)


def test_its_async_evaluation_runs_here(
    snippets: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outputs").mkdir()
    code = snippets[2].replace("from ragicamp.", "from assay.formats.ragicamp.")
    names: dict[str, Any] = {"metrics": ["exact_match", "f1"], "dataset": Questions()}
    names |= {f"agent{number}": AsyncAgent(f"agent{number}") for number in (1, 2, 3)}
    monkeypatch.chdir(tmp_path)
    # its snippet awaits at the top, and names these as if they were there
    own = ", ".join(names)
    exec(f"async def main({own}):\n{indent(code, '    ')}\n    return results", names)
    results = asyncio.run(names["main"](*(names[name] for name in own.split(", "))))
    assert [result["f1"] for result in results] == [pytest.approx(0.6)] * 3
    assert written(tmp_path / "outputs", "natural_questions_questions.json")["num_questions"] == 3
    assert len(list((tmp_path / "outputs").glob("agent?_summary.json"))) == 3


def test_its_old_files_are_converted(snippets: list[str], tmp_path: Path) -> None:
    generations.five_files(tmp_path / "outputs")
    (old,) = (tmp_path / "outputs").glob("*_results.json")
    old.with_name("gemma2b_baseline_results.json").write_bytes(old.read_bytes())
    run(snippets[3], tmp_path)
    old.with_name("gemma2b_baseline_results.json").unlink()
    assert len(converted(tmp_path / "outputs", tmp_path / "new")) == 3


def test_its_examples_are_imported(checkout: Path, tmp_path: Path) -> None:
    (found,) = import_results(checkout / "examples/new_output_structure", tmp_path / "imported")
    assert (found.format, found.items, found.responses) == ("ragicamp", 3, {"ok": 3})
    assert found.evaluations == {"scored": 15}
    per_question = tmp_path / "old/example_per_question.json"
    per_question.parent.mkdir()
    per_question.write_bytes((checkout / "examples/example_per_question_output.json").read_bytes())
    (old,) = import_results(per_question, tmp_path / "scores")
    assert sum(old.evaluations.values()) > 0


ORIGINAL = """
import json, sys
from dataclasses import dataclass, field
from ragicamp.evaluation.evaluator import Evaluator
from ragicamp.metrics.exact_match import ExactMatchMetric, F1Metric

@dataclass
class Thing:
    id: str = ""
    question: str = ""
    answers: list = field(default_factory=list)
    answer: str = ""
    metadata: dict = field(default_factory=dict)

class Agent:
    name = "gemma_2b_baseline"
    answers = json.loads(sys.argv[1])
    def answer(self, question, **more):
        return Thing(answer=self.answers[question])

class Dataset(list):
    name = "natural_questions"

questions = Dataset(Thing(**row) for row in json.loads(sys.argv[2]))
Evaluator(Agent(), questions, [ExactMatchMetric(), F1Metric()]).evaluate(
    save_predictions=True, output_path="outputs/any.json"
)
"""


def test_its_evaluator_writes_what_ours_writes(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    rows = [
        {"id": each.id, "question": each.question, "answers": each.answers} for each in Questions()
    ]
    words = [sys.executable, "-c", ORIGINAL, json.dumps(WORKED), json.dumps(rows)]
    around = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(words, cwd=tmp_path, env=around, capture_output=True, text=True)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"RAGiCamp cannot be imported: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    metrics = ["exact_match", {"name": "f1", "params": {"normalize": False}}]
    Evaluator(Agent(), Questions(), metrics, tmp_path / "ours/any.json").evaluate()
    (theirs,) = import_results(tmp_path / "outputs", tmp_path / "imported")
    assert (theirs.responses, theirs.rejected) == ({"ok": 3}, 0)
    assert all(line.equal for line in theirs.headlines)
    for name in ("natural_questions_questions.json", "gemma_2b_baseline_predictions.json"):
        one, other = written(tmp_path / "outputs", name), written(tmp_path / "ours", name)
        assert one.keys() <= other.keys()
        lists = "questions" if "questions" in one else "predictions"
        assert one[lists] == other[lists]
    one, other = (
        written(tmp_path / folder, "gemma_2b_baseline_summary.json")
        for folder in ("outputs", "ours")
    )
    assert one["overall_metrics"] == pytest.approx(other["overall_metrics"])
    for metric, numbers in one["metric_statistics"].items():
        assert numbers == pytest.approx(
            {name: other["metric_statistics"][metric][name] for name in numbers}
        )
