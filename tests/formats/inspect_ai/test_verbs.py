"""A log is an experiment like any other, imported or where it stands."""

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.formats.inspect_ai.lab import LOGS, imported
from tests.formats.verbs import read_by_every_verb


def test_an_imported_log_is_read_by_every_verb(tmp_path: Path) -> None:
    imported(LOGS / "letters.eval", tmp_path / "all/out")
    metrics = read_by_every_verb(Shell(tmp_path), tmp_path / "all/out", item="word", label="choice")
    (mean,) = (row for row in metrics if row["label"] == "choice")
    assert mean["value"] == pytest.approx(1 / 3)
    assert mean["unparsed_count"] == 1


def test_failures_bound_the_mean(tmp_path: Path) -> None:
    imported(LOGS / "large.eval", tmp_path / "out")
    aggregated = Shell(tmp_path).call("aggregate", str(tmp_path / "out"), "--json")
    (mean,) = (row for row in aggregated.result["metrics"] if row["label"] == "includes")
    assert mean["value"] == pytest.approx(14 / 22)
    assert mean["value_if_missing_wrong"] == pytest.approx(14 / 24)


def test_a_log_needs_no_import(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    counted = shell.call(
        "sql", str(LOGS / "tools.eval"), "select count(*) as n from evaluations", "--json"
    )
    assert counted.code == 0, counted.said
    assert '"n":4' in counted.out.replace(" ", "")
    compared = shell.call("compare", str(LOGS / "large.eval"), str(LOGS / "tiny.eval"), "--json")
    assert compared.code == 0, compared.said
    assert "includes" in compared.out


def test_spans_are_made_where_they_are_shown(tmp_path: Path) -> None:
    imported(LOGS / "tools.eval", tmp_path / "out")
    told = Shell(tmp_path).call("trace", str(tmp_path / "out"), "picture", "--json")
    assert told.code == 0, told.said
    (sample,) = json.loads(told.out)["samples"]
    names = [span["name"] for span in sample["spans"]]
    assert names[:5] == ["init", "solvers", "use_tools", "generate", "model mockllm/model"]
    assert "tool add" in names
    for number, span in enumerate(sample["spans"]):
        assert span["parent"] is None or span["parent"] < number
        assert span["end"] >= span["start"]
    calls = [span["data"] for span in sample["spans"] if span["name"].startswith("model ")]
    assert [len(call["input"]) for call in calls] == [1, 2]
    assert [call["earlier_messages"] for call in calls] == [0, 1]
    assert "attachment://" not in told.out
    assert "data:image/png;base64," in json.dumps(calls[0]["input"])


def test_verbs_call_a_log_as_the_user_does(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environ["ASSAY_CACHE_DIR"] = str(tmp_path / "cache")
    large, tiny = (str(LOGS / f"{name}.eval") for name in ("large", "tiny"))
    merged = shell.call("merge", large, tiny, "-o", "both", "--json")
    assert merged.code == 0, merged.said
    assert [part["path"] for part in merged.result["parts"]] == [large, tiny]
    compared = shell.call("compare", large, tiny, "--where", "model_name=nobody")
    assert compared.code == 2
    assert f"where: {large}" in compared.err
    assert str(tmp_path / "cache") not in compared.said


def test_the_config_of_an_import_says_nothing_about_a_run(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environ["ASSAY_CACHE_DIR"] = str(tmp_path / "cache")
    large, tiny = (str(LOGS / f"{name}.eval") for name in ("large", "tiny"))
    told = shell.call("diff", large, tiny, "--json")
    assert told.code == 0, told.said
    assert told.result["config"] is None
    config = {
        "name": "mine",
        "dataset": "q.jsonl",
        "models": ["demo:small"],
        "evaluation_methods": ["contains"],
    }
    (tmp_path / "q.jsonl").write_text(
        '{"id": "sum-2-3", "question": "What is 2 + 3?", "answer": "5"}\n'
    )
    (tmp_path / "mine.yaml").write_text(json.dumps(config))
    ran = shell.call("run", "mine.yaml", "-o", "mine", "--no-progress")
    assert ran.code == 0, ran.said
    own = shell.call("diff", "mine", large, "--json")
    assert own.code == 0, own.said
    assert own.result["config"] is None
    assert "sums has no config" in own.result["notes"]
