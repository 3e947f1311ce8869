"""Scorers that raise, hang or return nonsense: their rows say so, the run finishes, and the counts are shown."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell

pytestmark = pytest.mark.slow
SCORERS = str(Path(__file__).with_name("bad_scorers.py"))
ERRORS = {
    "raises": "RuntimeError: the scorer broke",
    "exits": "SystemExit: 3",
    "hangs": "took longer than 0.5 s",
    "hangs_async": "too long",
    "returns_text": "found str",
    "returns_object": "found object",
    "returns_nan": "the score is nan",
    "returns_infinity": "the score is inf",
    "returns_none": "found NoneType",
    "returns_empty": "neither `passed` nor `score`",
    "returns_wrong_types": "`passed` must be true or false",
    "labels_no_list": "`labels` must be a list",
    "one_label_is_bad": "`result` must be an object",
}


def configured(shell: Shell, names: list[str]) -> None:
    methods = [
        {"name": name, "path": SCORERS, "function_name": name, "timeout": 0.5} for name in names
    ]
    shell.config |= {
        "evaluation_methods": methods,
        "metrics": [{"name": "pass_rate", "facets": ["label"]}],
    }


def rows_of(shell: Shell) -> dict[str, list[dict[str, Any]]]:
    rows = shell.read("evaluation_results.jsonl")
    return {
        name: [row for row in rows if row["scorer"] == name]
        for name in {row["scorer"] for row in rows}
    }


def test_every_failure_is_a_row_with_its_reason_and_a_count(shell: Shell) -> None:
    shell.rows = shell.rows[:2]
    configured(shell, [*ERRORS, "no_labels", "good"])
    result = shell.run()
    assert result.code == 1
    rows = rows_of(shell)
    for name, error in ERRORS.items():
        assert [row["outcome"] for row in rows[name]] == ["errored"] * 2, name
        assert all(error in row["error"] for row in rows[name]), rows[name][0]["error"]
        assert all(row["passed"] is None and row["score"] is None for row in rows[name])
    assert [row["outcome"] for row in rows["no_labels"]] == ["skipped"] * 2
    assert [(row["passed"], row["score"]) for row in rows["good"]] == [(True, 0.5)] * 2
    shown = {line.split()[0]: line.split() for line in result.out.splitlines() if line.strip()}
    for name in ERRORS:
        assert shown[name][-2:] == ["2", "errored"]
    assert shown["good"][-1] == "0"
    metrics = {row["label"]: row for row in shell.read("metrics.jsonl")}
    assert metrics["raises"]["value"] is None
    assert metrics["raises"]["errored_count"] == 2
    assert metrics["good"]["value"] == 1.0


def test_only_what_may_go_away_is_scored_again(shell: Shell) -> None:
    shell.rows = shell.rows[:1]
    configured(shell, ["raises", "hangs"])
    assert shell.run().code == 1
    before = {row["scorer"]: row["timestamp"] for row in shell.read("evaluation_results.jsonl")}
    assert shell.run().code == 1
    after = {row["scorer"]: row["timestamp"] for row in shell.read("evaluation_results.jsonl")}
    assert (after["raises"] == before["raises"], after["hangs"] > before["hangs"]) == (True, True)
    assert shell.run("--retry-errors").code == 1
    again = {row["scorer"]: row["timestamp"] for row in shell.read("evaluation_results.jsonl")}
    assert again["raises"] > after["raises"]
    assert (
        len(shell.keys("evaluation_results.jsonl"))
        == len(shell.lines("evaluation_results.jsonl"))
        == 2
    )


def test_details_that_are_no_json_fail_their_own_row_only(shell: Shell) -> None:
    configured(shell, ["no_json_value", "huge_number", "lone_surrogate", "good"])
    assert shell.run().code == 1
    rows = rows_of(shell)
    assert [row["outcome"] for row in rows["good"]] == ["scored"] * 4
    for name in ("no_json_value", "huge_number", "lone_surrogate"):
        assert len(rows[name]) == 4


def test_a_scorer_file_that_cannot_be_loaded_is_told_before_any_call(shell: Shell) -> None:
    shell.write("broken.py", "import no_such_module\n")
    shell.config["evaluation_methods"] = ["broken.py:f"]
    with shell.counted() as calls:
        result = shell.run()
    assert result.code == 2
    assert "no_such_module" in result.err
    assert "broken.py" in result.err
    assert calls["requests"] == 0
