"""Assay's commands on what the Intelligence Layer's steps leave: the same as on any other folder."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from assay.formats.intelligence_layer.core import Task, TaskSpan
from assay.formats.intelligence_layer.evaluation import MatchesAggregationLogic, Runner
from tests.cli.shell import Shell
from tests.formats.intelligence_layer.worlds import FAIL_IN_EVALUATION, FAIL_IN_TASK, Longer, World

TEXTS = ["a", "b", "c", "d", FAIL_IN_TASK]


class Careless(Task[str, str]):
    """Right but for one text."""

    def do_run(self, input: str, task_span: TaskSpan) -> str:
        return input if input == "b" else input.upper()


class Folders:
    """A repository root with two runs, an evaluation of each, one of both together, and aggregations."""

    def __init__(self, root: Path) -> None:
        self.world = world = World(root)
        self.dataset = world.dataset(*TEXTS)
        self.good = world.ran(self.dataset).id
        self.bad = (
            Runner(Careless(), world.datasets, world.runs, "careless").run_dataset(self.dataset).id
        )
        self.evaluations = [
            world.evaluator().evaluate_runs(run).id for run in (self.good, self.bad)
        ]
        self.matches = world.comparing(Longer()).evaluate_runs(self.good, self.bad).id
        self.aggregation = world.aggregator().aggregate_evaluation(self.evaluations[1]).id
        self.ranking = (
            world.aggregator(MatchesAggregationLogic()).aggregate_evaluation(self.matches).id
        )

    @property
    def paths(self) -> list[str]:
        return [f"root/evaluations/{id}" for id in self.evaluations]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "root")


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_ls_lists_every_artefact_of_a_root_with_its_metrics(folders: Folders, shell: Shell) -> None:
    listed = shell.call("ls", "root")
    assert listed.code == 0
    for kind, ids in (
        ("datasets", [folders.dataset]),
        ("runs", [folders.good, folders.bad]),
        ("evaluations", [*folders.evaluations, folders.matches]),
        ("aggregations", [folders.aggregation, folders.ranking]),
    ):
        for id in ids:
            (line,) = [line for line in listed.out.splitlines() if f"{kind}/{id}" in line]
            assert "complete" in line
    assert "share 0.800, count 5.000" in listed.out
    players = (f"scores.{run}.elo 1500.000" for run in (folders.good, folders.bad))
    assert any(player in listed.out for player in players)
    alone = shell.call("ls", f"root/aggregations/{folders.aggregation}")
    assert "share 0.800" in alone.out


def test_compare_pairs_two_evaluations_by_example(folders: Folders, shell: Shell) -> None:
    compared = shell.call("compare", *folders.paths)
    assert compared.code == 0
    assert "label evaluation" in compared.out
    assert 'e1: 1 → 0: "B" → "b"' in compared.words
    assert "share 4 items" in compared.words


def test_gate_decides_on_an_evaluation(folders: Folders, shell: Shell) -> None:
    good, bad = folders.paths
    assert shell.call("gate", good, "--min", "0.9", "--point").code == 0
    failed = shell.call("gate", bad, "--min", "0.9", "--point")
    assert failed.code == 3
    assert "mean evaluation" in failed.out
    assert shell.call("gate", bad, "--baseline", good, "--max-drop", "0.1", "--point").code == 3


def test_sql_asks_rows_and_metrics(folders: Folders, shell: Shell) -> None:
    good, _ = folders.paths
    asked = shell.call(
        "sql", good, "select item_id, passed, score, outcome from evaluations order by 1", "--json"
    )
    found = [
        (row["item_id"], row["passed"], row["score"], row["outcome"]) for row in rows(asked.out)
    ]
    scored = [(f"e{number}", True, 1.0, "scored") for number in range(4)]
    assert found == [*scored, ("e4", None, None, "skipped")]
    where = f"root/aggregations/{folders.aggregation}"
    asked = shell.call(
        "sql", where, "select metric_name, value, scored_count from metrics", "--json"
    )
    assert rows(asked.out) == [
        {"metric_name": "share", "value": 0.8, "scored_count": 5},
        {"metric_name": "count", "value": 5.0, "scored_count": 5},
    ]
    asked = shell.call(
        "sql", f"root/runs/{folders.good}", "select count(*) as n from responses", "--json"
    )
    assert rows(asked.out) == [{"n": 5}]


def test_trace_follows_an_example_in_a_root_and_in_an_evaluation(
    folders: Folders, shell: Shell
) -> None:
    for folder in ("root", folders.paths[1]):
        shown = shell.call("trace", folder, "e1")
        assert shown.code == 0
        assert "response: b\n" in shown.out
        assert "label evaluation: failed, score 0\n" in shown.out
        assert 'value: {"correct":false}\n' in shown.out


def test_export_writes_rows_and_metrics(folders: Folders, shell: Shell) -> None:
    exported = shell.call("export", folders.paths[1], "-t", "evaluations", "-f", "csv")
    table = list(csv.DictReader(io.StringIO(exported.out)))
    assert {row["item_id"]: row["score"] for row in table} == {
        "e0": "1.0",
        "e1": "0.0",
        "e2": "1.0",
        "e3": "1.0",
        "e4": "1.0",
    }
    exported = shell.call(
        "export", f"root/aggregations/{folders.ranking}", "-t", "metrics", "-f", "jsonl"
    )
    values = {row["metric_name"]: row["value"] for row in rows(exported.out)}
    assert values[f"scores.{folders.good}.num_matches"] == 4.0
    assert len(values) == 8


def test_aggregate_computes_assays_metrics_from_logics_results(
    folders: Folders, shell: Shell
) -> None:
    config = shell.write(
        "metrics.yaml", "metrics: [{name: pass_rate}, {name: mean, facets: [source]}]\n"
    )
    made = shell.call("aggregate", *folders.paths, "-c", str(config), "-o", "together", "--json")
    assert made.code == 0, made.said
    found = [
        (row["metric_name"], row["value"])
        for row in rows((shell.folder / "together/metrics.jsonl").read_text())
    ]
    assert found[0] == ("pass_rate", pytest.approx(8 / 9))
    assert sorted(found[1:]) == [("mean", 0.8), ("mean", 1.0)]


def test_rank_takes_matches_that_the_engine_wrote(folders: Folders, shell: Shell) -> None:
    ranked = shell.call(
        "rank", f"root/evaluations/{folders.matches}", "--by", "model_name", "--method", "win-rate"
    )
    assert ranked.code == 0, ranked.said
    assert "Upper" in ranked.out
    assert "Careless" in ranked.out


def test_rows_have_content_keys_and_name_their_responses(
    folders: Folders, shell: Shell, tmp_path: Path
) -> None:
    """The same work in another evaluation has the same keys; a match names the two responses that met."""
    again = folders.world.evaluator().evaluate_runs(folders.good).id
    read = [
        rows((tmp_path / "root/evaluations" / id / "evaluation_results.jsonl").read_text())
        for id in (folders.evaluations[0], again, folders.matches)
    ]
    first, second, matches = ({row["item_id"]: row for row in each} for each in read)
    assert {id: row["key"] for id, row in first.items()} == {
        id: row["key"] for id, row in second.items()
    }
    responses = {
        run: {
            row["item_id"]: row["key"]
            for row in rows((tmp_path / f"root/runs/{run}/responses.jsonl").read_text())
        }
        for run in (folders.good, folders.bad)
    }
    for id in ("e0", "e1", "e2", "e3"):
        assert first[id]["responses"] == [responses[folders.good][id]]
        assert matches[id]["responses"] == [
            responses[run][id] for run in sorted((folders.good, folders.bad))
        ]
        assert matches[id]["players"] == sorted((folders.good, folders.bad))


def test_failures_of_the_logic_are_errors_for_the_commands(tmp_path: Path, shell: Shell) -> None:
    world = World(tmp_path / "root")
    run = world.ran(world.dataset("a", "b", FAIL_IN_EVALUATION))
    evaluation = world.evaluator().evaluate_runs(run.id).id
    gated = shell.call("gate", f"root/evaluations/{evaluation}", "--min", "0.1", "--point")
    assert gated.code == 4
    assert "1 of 3 rows" in gated.words
