"""What `assay mixeval` leaves behind is an experiment like any other, and its metrics are the numbers in the table."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.formats.mixeval.folder import VERSION
from tests.formats.mixeval.folders import write_both, write_model
from tests.formats.verbs import read_by_every_verb

ANSWERS = {
    "first": (["Oslo", "It is Bergen.", "8"], ["B", "**A**", "no idea"]),
    "second": (["?", "Oslo", "9"], ["C"] * 3),
}
JUDGE = "def wise(prompt):\n    return '[[0.3]]' if 'reference' in prompt else '[[B]]'\n"
SHORT = "def short(response, ground_truth):\n    return {'label': 'brief', 'result': {'score': len(response) / 9}}\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    write_both(tmp_path)
    for model, (free, choice) in ANSWERS.items():
        write_model(tmp_path, model, free, choice)
    (tmp_path / "wise.py").write_text(JUDGE)
    (tmp_path / "short.py").write_text(SHORT)
    return Shell(tmp_path)


def mixeval(shell: Shell, *words: str) -> dict[str, Any]:
    """The result of a command, which has no problems."""
    ended = shell.call("mixeval", *words, "--data", "data", "--json")
    assert ended.code == 0, ended.said
    return ended.result["scored"][0]


def check(
    shell: Shell, folder: Path, scored: dict[str, Any], models: list[str], label: str
) -> None:
    """The metric rows that `assay aggregate` makes hold what the command reported."""
    reported = {
        (one["model"], one["label"]): one for one in scored["scores"] if one["model"] in models
    }
    made = read_by_every_verb(shell, folder, item="free-form/0", label=label)
    rows = {(row["model_name"], row["label"]): row for row in made if row["metric_name"] == "score"}
    assert rows.keys() == reported.keys()
    for key, row in rows.items():
        cells = reported[key]["cells"]
        assert (row["value"], row["ci_low"], row["ci_high"]) == tuple(
            cells["overall"][n] for n in ("value", "low", "high")
        )
        assert row["cells"] == cells
        assert row["compatible"] == reported[key]["compatible"]


def test_after_a_run(shell: Shell) -> None:
    scored = mixeval(shell, "run", "-m", "demo:small", "-m", "demo:large", "-o", "out")
    folder = shell.folder / "out/mixeval" / VERSION
    check(shell, folder, scored, ["small", "large"], "rule")
    for row in shell.call("aggregate", str(folder), "--json").result["metrics"]:
        scores = {(one["model"], one["label"]): one["cells"] for one in scored["scores"]}
        if row["metric_name"] == "score":
            cells = scores[row["model_name"], row["label"]]
            assert row["value"] == cells["overall"]["value"], row
        elif "benchmark_name" in row:  # the mean of `rule` is over multiple choice alone
            cells = scores[row["model_name"], "rule-compat+rule"]
            assert row["value"] == cells[row["benchmark_name"]]["value"], row
    compared = shell.call(
        "compare", str(folder), "--facet", "model_name", "--label", "rule", "--json"
    )
    assert compared.code == 0, compared.said


@pytest.mark.parametrize(
    ("label", "parsers"),
    [
        ("rule", []),
        ("judge_choice", ["--parser", "judge", "--judge", "wise.py:wise"]),
        ("brief", ["--free-form-parser", "short.py:short", "--multi-choice-parser", "rule-compat"]),
    ],
)
def test_after_scoring_files(shell: Shell, label: str, parsers: list[str]) -> None:
    scored = mixeval(shell, "score", "responses", "-o", "out", *parsers)
    folders = [shell.folder / "out" / model / "mixeval" / VERSION for model in ANSWERS]
    for model, folder in zip(ANSWERS, folders, strict=True):
        check(shell, folder, scored, [model], label)
    compared = shell.call("compare", *map(str, folders), "--label", label, "--json")
    assert compared.code == 0, compared.said


@pytest.mark.parametrize(
    ("label", "parsers"),
    [
        ("rule-compat", []),
        ("rule-compat+rule", []),
        ("judge", ["--parser", "judge", "--judge", "wise.py:wise"]),
    ],
)
def test_the_score_can_be_gated(shell: Shell, label: str, parsers: list[str]) -> None:
    scored = mixeval(shell, "score", "responses/first", "-o", "out", *parsers)
    (cells,) = (one["cells"] for one in scored["scores"] if one["label"] == label)
    words = [
        "gate",
        str(shell.folder / "out/first/mixeval" / VERSION),
        "--metric",
        "score",
        "--label",
        label,
        "--json",
    ]
    assert "weak" in shell.call(*words, "--min", "0.05").result["checks"][0]["why"]
    ended = shell.call(*words, "--min", "0.05", "--allow-weak")
    check = ended.result["checks"][0]
    whole = cells["overall"]
    assert (check["value"], check["low"], check["high"]) == (
        whole["value"],
        whole["low"],
        whole["high"],
    )
    assert ended.code == 0, ended.said
    assert shell.call(*words, "--min", "0.9999").code in (3, 4)
    named = shell.call(*words[:4], "--label", "gone", "--min", "0.5")
    assert named.code == 2, named.said
