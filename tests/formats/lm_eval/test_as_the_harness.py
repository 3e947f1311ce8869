"""Runs of Assay beside runs of lm-eval: the same requests, values, results and standard errors.

`expected/` has what lm-eval did (`make_fixtures.py`); here the same tasks are run against the same server. Tasks that
are run by their name alone are one experiment, the others are one each.
"""

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import assay
from assay.config import load
from assay.errors import UserError
from tests.formats.lm_eval.fake_answers import FakeServer
from tests.formats.lm_eval.sent import EOS, sent

HERE = Path(__file__).parent
ALIKE = 1e-9
OPTIONS = {
    "num_fewshot": "num_fewshot",
    "limit": "limit",
    "fewshot_random_seed": "seed",
    "system_instruction": "system_instruction",
    "gen_kwargs": "generation_kwargs",
    "fewshot_as_multiturn": "multiturn",
    "confirm_run_unsafe_code": "unsafe_code",
}
# options that we do not have
NOT_OURS = {"random_seed", "numpy_random_seed", "metadata", "predict_only", "model_args"}


def expected(folder: Path = HERE / "expected") -> dict[str, dict[str, Any]]:
    return {
        file.name.removesuffix(".json.gz"): json.loads(gzip.decompress(file.read_bytes()))
        for file in sorted(folder.glob("*.gz"))
    }


class Run:
    """What Assay made of tasks, in the shape of the fixtures."""

    def __init__(
        self,
        entries: list[dict[str, Any]],
        folder: Path,
        *,
        chat: bool = False,
        iterations: int = 2000,
    ) -> None:
        with FakeServer(always_stops=[EOS]) as server:
            model = {
                "type": "openai",
                "name": "fake",
                "endpoint": f"{server.url}/v1",
                "api": "chat" if chat else "completions",
            }
            config = load(
                {"name": "x", "benchmarks": entries, "models": [model], "output_dir": str(folder)}
            )
            metrics = [
                msgspec.structs.replace(
                    entry, params={**entry.params, "bootstrap_iters": iterations}
                )
                for entry in config.metrics
            ]
            self.failures = assay.run(msgspec.structs.replace(config, metrics=metrics)).failures
            self.requests = [json.loads(body) for body in server.bodies]
        self.folder = folder
        self.items = {row["id"]: row for row in self.rows("items")}
        self.values: dict[tuple[str, int], dict[str, Any]] = {}
        for row in self.rows("evaluation_results"):
            item = self.items[row["item_id"]]["metadata"]
            value = row["score"] if row["value"] is None else row["value"]
            value = row["error"] if row["outcome"] != "scored" else value
            self.values.setdefault((item["task"], item["document"]), {})[row["label"]] = value

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [
            json.loads(line) for line in (self.folder / f"{name}.jsonl").read_text().splitlines()
        ]

    def results(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {
            (row.get("benchmark", "").partition(" (")[0], row["label"]): row
            for row in self.rows("metrics")
        }


def options_of(fixture: dict[str, Any]) -> dict[str, Any]:
    return {
        ours: fixture["run"][theirs] for theirs, ours in OPTIONS.items() if theirs in fixture["run"]
    }


def entries_of(fixture: dict[str, Any]) -> list[dict[str, Any]]:
    run = fixture["run"]
    own = options_of(fixture)
    entries = [{"task": name, "include_path": str(HERE / "tasks"), **own} for name in run["tasks"]]
    for entry in entries:
        if samples := run.get("samples", {}).get(entry["task"]):
            entry["samples"] = samples
    return entries


def differences(fixture: dict[str, Any], run: Run) -> Iterator[str]:
    """Where a run of ours is not the harness's."""
    for task, documents in fixture["documents"].items():
        for place, document in enumerate(documents):
            number = (
                sorted(fixture["run"]["samples"][task])[place]
                if "samples" in fixture["run"]
                else document["doc_id"]
            )
            values = run.values.get((task, number), {})
            for name, filtered in document["filters"].items():
                for metric, value in filtered["metrics"].items():
                    ours = values.get(metric if name == "none" else f"{metric},{name}", "missing")
                    if not alike(value, ours):
                        yield f"{task}[{number}] {metric},{name}: {value!r:.200}, here {ours!r:.300}"
    results = run.results()
    for task, numbers in {
        **fixture["results"]["results"],
        **fixture["results"].get("groups", {}),
    }.items():
        for name, value in numbers.items():
            metric, comma, pipeline = name.partition(",")
            if not comma or metric.endswith("_stderr") or value in ("", " "):
                continue
            label = metric if pipeline == "none" else name
            row = results.get((task, label), {})
            error = numbers.get(f"{metric}_stderr,{pipeline}")
            if not alike(value, row.get("value", "missing")):
                yield f"{task} {name}: {value}, here {row.get('value', 'missing')} {row.get('error', '')}"
            if not alike(None if error == "N/A" else error, row.get("stderr")):
                yield f"{task} {name} stderr: {error}, here {row.get('stderr')}"


def alike(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, str) and theirs in ("NaN", "Infinity", "-Infinity"):
        theirs = None  # JSON lacks them
    if isinstance(theirs, bool | int | float) and isinstance(ours, bool | int | float):
        return math.isclose(theirs, ours, rel_tol=ALIKE, abs_tol=ALIKE)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(alike, theirs, ours))
    return theirs == ours


def assert_equal(fixtures: list[dict[str, Any]], run: Run) -> None:
    assert not [difference for fixture in fixtures for difference in differences(fixture, run)]
    bodies = [fixture["requests"] for fixture in fixtures]
    theirs = [sent(body) if isinstance(body, list) else body for body in bodies]
    ours = sent(run.requests)
    assert {*ours["generations"]} == {body for each in theirs for body in each["generations"]}
    assert {*ours["texts"]} >= {text for each in theirs for text in each["texts"]}  # and a probe


FIXTURES = expected()
EXPLAINED = {  # see docs/benchmarks.md
    "gen_aggregation_list": "an aggregation that gives no number",
    "gen_bypass": "a metric without values",
    "ll_target_column": "characters lost between context and continuation",
    "mc_delimiter_merge": "characters lost between context and continuation",
    "mc_inputs_template": "characters lost between context and continuation",
}
PLAIN = [
    name
    for name, fixture in FIXTURES.items()
    if fixture["run"].keys() <= {"tasks", "bootstrap_iters", "confirm_run_unsafe_code"}
    and fixture["run"]["tasks"] == [name]
    and "error" not in fixture
    and name not in EXPLAINED
]
# they see what was drawn before them
DRAWING = [name for name in PLAIN if "shuffle" in name or "repeats" in name]
GROUPS = [name for name in PLAIN if name not in FIXTURES[name]["documents"]]  # they share tasks
TOGETHER = [name for name in PLAIN if name not in DRAWING and name not in GROUPS]
ALONE = [
    name
    for name, fixture in FIXTURES.items()
    if name not in PLAIN
    and "error" not in fixture
    and not fixture["run"].keys() & NOT_OURS
    and name not in EXPLAINED
]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks' paths are relative to this folder; what they name on the hub is in the mirror."""
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("ASSAY_DATA", str(HERE / "shipped/data"))
    monkeypatch.delenv("ASSAY_TASKS", raising=False)


@pytest.mark.parametrize("part", range(4))
def test_tasks_by_their_names(part: int, tmp_path: Path) -> None:
    fixtures = [FIXTURES[name] for name in TOGETHER[part::4]]
    entries = [entry for fixture in fixtures for entry in entries_of(fixture)]
    assert_equal(fixtures, Run(entries, tmp_path / "run"))


@pytest.mark.parametrize("name", [*DRAWING, *GROUPS, *ALONE])
def test_a_run_of_its_own(name: str, tmp_path: Path) -> None:
    fixture = FIXTURES[name]
    chat = fixture["run"].get("model") == "local-chat-completions"
    run = Run(
        entries_of(fixture),
        tmp_path / "run",
        chat=chat,
        iterations=fixture["run"]["bootstrap_iters"],
    )
    assert_equal([fixture], run)


def test_most_of_what_was_made_is_compared() -> None:
    assert len(PLAIN) + len(ALONE) >= 250
    assert len(EXPLAINED) == 5


BEYOND = {  # what the harness cannot do, and Assay can
    "err_chat_likelihood": "a server with a chat API has another way to tell likelihoods",
    "err_empty_choice_first": "an empty choice is an error of its document",
    "err_empty_prompt": "a text may be empty",
}


@pytest.mark.parametrize(
    "name", [name for name in FIXTURES if "error" in FIXTURES[name] and name not in BEYOND]
)
def test_what_the_harness_refuses_is_told(name: str, tmp_path: Path) -> None:
    """As an error before anything is asked, or as errors of rows: never as a number."""
    fixture = FIXTURES[name]
    if fixture["run"].keys() & NOT_OURS:
        pytest.skip("an option that is not ours")
    chat = fixture["run"].get("model") == "local-chat-completions"
    try:
        run = Run(entries_of(fixture), tmp_path / "run", chat=chat)
    except UserError:
        return
    assert all(row["value"] is None for row in run.rows("metrics")) or run.failures
