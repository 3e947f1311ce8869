"""The other tools really run: their side of the "Coming from …" pages, against the server of `peers.py`. What each says
of its own run is what was planned, what the import of its logs gives, and what the logs in the repository give."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.formats.imports import Brought, bring
from tests.formats.installed import needed
from tests.formats.mlflow import stores

pytestmark = [pytest.mark.peers, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
# labels and metrics that are other ones in each run
DRAWN = {"latency", "task_duration", "boostrap_std"}
STOPPED = "large-all-questions.test.v0"  # OpenAI evals ends it at a failure, wherever its other threads are


class Peer(NamedTuple):
    """`planned` is the number of `label` and `metric` for the model that is called large, `own` the code with which the
    tool reads it from what it wrote in `log`."""

    log: str
    label: str
    metric: str
    planned: float
    own: str
    where: dict[str, str] = {}


# Of twelve questions seven are answered rightly, one wrongly; one is refused, one cut off, one rejected, one fails.
PEERS = {
    "inspect_ai": Peer(
        "large.eval",
        "includes",
        "accuracy",
        14 / 22,  # two epochs, without failures
        "from inspect_ai.log import read_eval_log\n"
        "log = read_eval_log('large.eval', header_only=True)\n"
        "print(log.results.scores[0].metrics['accuracy'].value)",
    ),
    "lm_eval": Peer(
        "plain/large",
        "exact_match,last-word",
        "mean",
        7 / 10,  # without the two at which it ends
        "import glob, json\n"
        "[file] = glob.glob('plain/large/results_*.json')\n"
        "print(json.load(open(file))['results']['questions']['exact_match,last-word'])",
        {"benchmark": "questions"},
    ),
    "promptfoo": Peer(
        "twelve.json",
        "pass",
        "pass_rate",
        7 / 12,
        "import json\n"
        "[own] = [each['metrics'] for each in json.load(open('twelve.json'))['results']['prompts'] "
        "if each['provider'] == 'large']\n"
        "print(own['testPassCount'] / (own['testPassCount'] + own['testFailCount'] + own['testErrorCount']))",
        {"model_name": "large", "prompt_template": "plain"},
    ),
    "deepeval": Peer(
        "test_run_large.json",
        "Contains",
        "mean",
        7 / 9,  # neither without an answer nor with an empty one
        "from deepeval.test_run.test_run import TestRun\n"
        "run = TestRun.load(open('test_run_large.json'))\n"
        "[scores] = [each.scores for each in run.metrics_scores if each.metric == 'Contains']\n"
        "print(sum(scores) / len(scores))",
    ),
    "evalscope": Peer(
        "large",
        "accuracy",
        "score",
        0.6364,  # 7 / 11, without the one that failed, in its four digits
        "from evalscope.report import Report\nprint(Report.from_json('large/reports/large/sums.json').score)",
        {"dataset": "sums"},
    ),
    "openai_evals": Peer(
        "match_large.jsonl",
        "match",
        "accuracy",
        7 / 8,  # without the four at which it ends
        "import json\n"
        "[report] = [json.loads(line)['final_report'] for line in open('match_large.jsonl') if 'final_rep' in line]\n"
        "print(report['accuracy'])",
    ),
    "mlflow": Peer(
        "mlruns",
        "right",
        "mean",
        7 / 12,
        "import mlflow\n"
        "mlflow.set_tracking_uri('file:./mlruns')\n"
        "runs = mlflow.search_runs(search_all_experiments=True, filter_string='params.model = \"large\"')\n"
        "[value] = runs['metrics.right/v1/mean']\n"
        "print(value)",
    ),
    "pydantic_evals": Peer(
        "large.json",
        "RightAnswer",
        "assertions",
        7 / 10,  # without the two that raise
        "import json\nprint(json.load(open('averages.json'))['large']['assertions'])",  # of `EvaluationReport.averages`
    ),
}


@pytest.mark.parametrize("name", PEERS)
def test_a_tool_that_runs_anew_gives_the_numbers_of_the_logs(name: str, tmp_path: Path) -> None:
    peer, made, stored = PEERS[name], tmp_path / "made", HERE / name / "logs"
    run_tool(name, tmp_path)
    said = run([python_of(name), "-c", peer.own], made)
    assert float(said.split()[-1]) == pytest.approx(peer.planned, abs=1e-12)
    for place, logs in (("new", made), ("old", stored)):
        (large,) = [
            each
            for each in bring(logs / peer.log, tmp_path / place)
            if "tiny" not in each.result.dataset
        ]
        headline = large.headline(peer.label, peer.metric, **peer.where)
        assert (headline.theirs, headline.equal) == (pytest.approx(peer.planned), True)
        assert headline.ours == pytest.approx(
            peer.planned, abs=1e-4 if name == "evalscope" else 1e-12
        )
    assert facts(all_of(name, made, tmp_path / "all-new")) == facts(
        all_of(name, stored, tmp_path / "all-old")
    )


def run_tool(name: str, folder: Path) -> None:
    """Make the logs of a tool in `folder/made`."""
    words = [needed(name, name)] if name == "promptfoo" else []
    run([python_of(name), HERE / name / "make_logs.py", *words, folder / "made"], folder)


def python_of(name: str) -> Path:
    return Path(sys.executable) if name == "promptfoo" else needed(name)


def run(command: list[Any], folder: Path) -> str:
    """What a command prints."""
    own = {"MLFLOW_ALLOW_FILE_STORE": "true", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES"}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def all_of(name: str, logs: Path, folder: Path) -> list[Brought]:
    """What all logs give; what MLflow left in a database and in its file store is put back first."""
    found = bring(logs, folder)
    if name == "mlflow":
        database = stores.database(folder, stores.tables(logs))
        found += [
            *bring(database, folder / "of-database"),
            *bring(stores.store(folder, logs), folder / "of-store"),
        ]
    return found


def facts(several: list[Brought]) -> list[Any]:
    """What does not change from run to run: how many answers of which outcome, and all numbers."""
    return sorted(
        [
            [
                each.result.agents,
                each.result.items,
                each.result.responses,
                each.result.evaluations,
                numbers(each),
            ]
            for each in several
            if each.result.dataset != STOPPED
        ],
        key=str,
    )


def numbers(brought: Brought) -> list[Any]:
    return [
        (each.label, each.metric, each.where, each.equal)
        + (
            ()
            if {each.label, each.metric} & DRAWN
            else (each.theirs, each.ours, each.failed, each.with_failures)
        )
        for each in brought.result.headlines
    ]
