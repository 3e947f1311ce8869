"""`assay run eval.yaml` leaves an experiment like any other."""

from pathlib import Path

from tests.cli.shell import Shell
from tests.formats.hf_eval.test_eval_yaml import TASK, changed, repository
from tests.formats.verbs import read_by_every_verb


def test_every_verb_reads_what_a_run_leaves(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    repository(tmp_path / "sums")
    ended = shell.call(
        "run", "sums/eval.yaml", "--set", "models=[demo:large]", "-o", "out/first", "--json"
    )
    assert ended.code == 0, ended.said
    rows = read_by_every_verb(shell, tmp_path / "out" / "first", item="3", label="match")
    assert [row["value"] for row in rows] == [ended.result["metrics"][0]["value"]]
    second = shell.call(
        "run",
        "sums/eval.yaml",
        "--set",
        "models=[demo:large]",
        "-o",
        "out/second",
        "--limit",
        "20",
        "--json",
    )
    assert second.code == 0, second.said
    compared = shell.call("compare", "out/first", "out/second", "--json")
    assert compared.code == 0, compared.said
    assert compared.result["pairs"][0]["items"] == 20


def test_a_task_is_named_behind_the_file(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    repository(tmp_path / "sums", TASK, changed(id="strict", scorers=[{"name": "exact"}]))
    several = shell.call("validate", "sums/eval.yaml", "--set", "models=[demo:small]")
    assert several.code == 2
    assert "there are 2 tasks" in several.said
    ended = shell.call(
        "run", "sums/eval.yaml:strict", "--set", "models=[demo:small]", "-o", "out", "--json"
    )
    assert ended.code == 0, ended.said
    assert {row["label"] for row in ended.result["metrics"]} == {"exact"}
    missing = shell.call("run", "sums/other.yaml:strict", "--set", "models=[demo:small]")
    assert missing.code == 2
    assert "cannot be read" in missing.said
