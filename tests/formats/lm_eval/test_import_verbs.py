"""Verbs on what lm-eval left: imported, and read as it is; and beside our own run of the same task."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.formats import peers
from tests.formats.lm_eval.logged import LOGS
from tests.formats.verbs import read_by_every_verb

LABEL = "exact_match,last-word"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_every_verb_reads_an_import(shell: Shell) -> None:
    ended = shell.call("import", str(LOGS / "plain/large"), "-o", "out/large", "--json")
    assert ended.code == 0, ended.said
    rows = read_by_every_verb(shell, shell.folder / "out/large", item="questions/3", label=LABEL)
    assert {row["label"]: row["value"] for row in rows} == {LABEL: 0.7, "exact_match,number": 0.5}


def test_a_verb_reads_the_log_as_it_is(shell: Shell) -> None:
    asked = "select count(*) as n from responses where response = ''"
    ended = shell.call("sql", str(LOGS / "plain/large"), asked, "--json")
    assert ended.code == 0, ended.said
    assert ended.result == {"n": 2}


def test_the_harness_numbers_are_measured_by_our_metrics(shell: Shell) -> None:
    """Perplexities, f1 and groups of imported rows, by the definitions of the tasks."""
    shell.environ["ASSAY_TASKS"] = str(LOGS / "tasks")
    assert shell.call("import", str(LOGS / "dummy"), "-o", "out").code == 0
    (shell.folder / "out/config.yaml").write_text(
        "name: x\nmetrics:\n- {name: benchmark, type: lm_eval.aggregate, facets: [model_name, benchmark],"
        " params: {bootstrap_iters: 200}}\n"
    )
    ended = shell.call("aggregate", "out", "--json")
    assert ended.code == 0, ended.said
    rows = {(row["benchmark"], row["label"]): row for row in ended.result["metrics"]}
    imported = shell.call("import", str(LOGS / "dummy"), "-o", "again", "--json").result
    checks = [check for check in imported["headlines"] if check["theirs"] is not None]
    assert len(checks) == 5
    for check in checks:
        row = rows[check["where"]["benchmark"], check["label"]]
        assert row["value"] == pytest.approx(check["theirs"])
        assert row["stderr"] == pytest.approx(check["theirs_stderr"])


def test_a_run_of_the_harness_and_our_own_compare_with_a_verdict(shell: Shell) -> None:
    """The same task, models and server: items are paired by their ids, and equal answers are equal."""
    server = peers.serve()
    (shell.folder / "questions.jsonl").write_text((LOGS / "questions.jsonl").read_text())
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        for model in ("large", "tiny"):
            words = ["-m", f"{model}@{address}", "--set", "models.*.api=completions", "-o", model]
            ended = shell.call("run", "questions", "--include-path", str(LOGS / "tasks"), *words)
            assert ended.code == 0, ended.said
    finally:
        server.shutdown()
        server.server_close()
    theirs = str(LOGS / "plain/large")
    same = shell.call("compare", theirs, "large", "--label", LABEL, "--json")
    assert same.code == 0, same.said
    (pair,) = same.result["pairs"]
    assert (pair["items"], pair["difference"]) == (10, 0)
    worse = shell.call("compare", theirs, "tiny", "--label", LABEL, "--json")
    (pair,) = worse.result["pairs"]
    assert pair["difference"] == pytest.approx(-0.3)
    assert pair["verdict"]
