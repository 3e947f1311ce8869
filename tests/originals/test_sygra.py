"""The tasks of SyGra's checkout, with and without its `tasks/eval/utils.py`, over our records."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.server import Options, running
from tests.cli.shell import Ended, assay, surrounding

pytestmark = pytest.mark.originals
EXAMPLE = Path(__file__).parents[2] / "examples" / "sygra"
TASKS = {
    "eval/classification/simpleqa": {
        "exact_match-accuracy": 0.8,
        "exact_match-precision": 0.8,
        "exact_match-recall": 0.8333,
        "exact_match-f1_score": 0.8163,
    },
    "tasks.eval.question_answering.simpleqa": {
        "exact_match-accuracy": 0.6,
        "fuzzy_match-accuracy": 0.8,
    },
    "eval.agents.web_agents": {
        "tool_match-accuracy": 0.6667,
        "step_match-accuracy": 0.3333,
        "step_match-step_efficiency": 0.3333,
    },
}


@pytest.fixture(scope="module")
def answering() -> Iterator[str]:
    with running(Options(answers=f"{EXAMPLE / 'answers.py'}:answer")) as url:
        yield url


@pytest.fixture(params=["with its utils.py", "without it"])
def tree(originals: Callable[[str], Path], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of the checkout, with our own records where it has none."""
    checkout = originals("sygra")
    caches = shutil.ignore_patterns("__pycache__", ".assay")
    for name in ("tasks/eval", "sygra"):
        shutil.copytree(checkout / name, tmp_path / name, ignore=caches)
    shutil.copytree(EXAMPLE / "google", tmp_path / "google")
    records = "tasks/eval/agents/web_agents/chat_history_seed.json"
    shutil.copy(EXAMPLE / records, tmp_path / records)
    if request.param == "without it":
        (tmp_path / "tasks/eval/utils.py").unlink()
    return tmp_path


@pytest.mark.parametrize("task", TASKS)
def test_a_task_of_the_checkout(tree: Path, answering: str, task: str) -> None:
    environ = surrounding(
        COLUMNS="200",
        SYGRA_EVAL_MODEL_MODEL_TYPE="openai",
        SYGRA_EVAL_MODEL_MODEL="openai/mock",
        SYGRA_EVAL_MODEL_URL=answering,
        HF_HUB_OFFLINE="1",
    )

    def say(*words: str) -> Ended:
        done = assay(*words, folder=tree, environ=environ)
        assert done.code == 0, done.said
        return done

    say("sygra", "--task", task, "--num_records", "50", "--output_dir", "out", "-owt", "False")
    (report,) = json.loads((tree / "out/MetricCollatorPostProcessor.json").read_text())
    assert report["evaluation_summary"]["status"] == "success"
    (rows,) = (tree / "out/.assay").iterdir()
    measured = {row["metric_name"]: row for row in read(rows / "metrics.jsonl")}
    assert measured.keys() == report["results"].keys()
    for name, payload in report["results"].items():
        assert payload.items() <= measured[name].items()
    numbers = {name: round(measured[name]["value"], 4) for name in TASKS[task]}
    assert numbers == TASKS[task]
    before = (rows / "metrics.jsonl").read_bytes()
    name, value = next(iter(TASKS[task].items()))
    assert f"{name} {measured[name]['value']:.3f}" in say("ls", "out").words
    say("aggregate", str(rows))
    assert (rows / "metrics.jsonl").read_bytes() == before
    label = measured[name]["label"]
    say(
        "gate",
        str(rows),
        "--metric",
        name,
        "--label",
        label,
        "--min",
        f"{value - 0.001}",
        "--point",
    )
    items = [item["id"] for item in read(rows / "items.jsonl")]
    assert all(len(id) < 20 for id in items)
    assert items[-1] in say("trace", str(rows), items[-1]).out


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
