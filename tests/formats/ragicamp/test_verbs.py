"""What RAGiCamp's evaluator and import leave behind is an experiment like any other."""

from pathlib import Path
from typing import Any

import pytest

from assay.formats.ragicamp.evaluation import compare_agents
from tests.cli.shell import Shell
from tests.formats.ragicamp.evaluating import OTHER, WORKED, Agent, Questions, written
from tests.formats.verbs import read_by_every_verb

METRICS = ["exact_match", "f1"]


@pytest.fixture
def outputs(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """The results of two agents in `outputs`."""
    agents = [Agent("first"), Agent("second", {**WORKED, OTHER: "nobody"})]
    return compare_agents(agents, Questions(), METRICS, tmp_path / "outputs/x.json")


def test_after_the_evaluator(tmp_path: Path, outputs: dict[str, dict[str, Any]]) -> None:
    shell = Shell(tmp_path)
    folders = [tmp_path / "outputs/.assay/natural_questions" / name for name in outputs]
    for (name, result), folder in zip(outputs.items(), folders, strict=True):
        rows = read_by_every_verb(shell, folder, item="0", label="f1")
        assert {row["label"]: row["value"] for row in rows if row["label"] in METRICS} == {
            metric: result[metric] for metric in METRICS
        }
        summary = written(tmp_path / "outputs", f"{name}_summary.json")
        assert summary["overall_metrics"] == {metric: result[metric] for metric in METRICS}
    compared = shell.call("compare", *map(str, folders), "--label", "f1", "--json")
    assert compared.code == 0, compared.said


def test_after_an_import(tmp_path: Path, outputs: dict[str, dict[str, Any]]) -> None:
    shell = Shell(tmp_path)
    imported = shell.call("import", "outputs", "--from", "ragicamp", "-o", "rows")
    assert imported.code == 0, imported.said
    rows = read_by_every_verb(shell, tmp_path / "rows", item="0", label="f1")
    found = {(row["model_name"], row["label"]): row["value"] for row in rows}
    assert {key: found[key] for key in found if key[1] in METRICS} == {
        (agent, metric): result[metric] for agent, result in outputs.items() for metric in METRICS
    }
    compared = shell.call("compare", "rows", "--facet", "model_name", "--label", "f1", "--json")
    assert compared.code == 0, compared.said
