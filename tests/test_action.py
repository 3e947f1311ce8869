"""The GitHub action: its script runs as a runner would run it, beside a `gh` that writes down what it is asked."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent

GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$GH_LOG"
[ -z "${GH_FAILS:-}" ] || exit 1
case "$*" in
  *--paginate*) cat "$GH_COMMENTS" 2>/dev/null ;;
  *body=@*) cp assay-comment.md "$GH_BODY" ;;
esac
exit 0
"""


class Runner:
    """A checkout with a config, and what a workflow gives the action's second step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        tools = folder / "bin"
        tools.mkdir()
        gh = tools / "gh"
        gh.write_text(GH)
        gh.chmod(0o755)
        assay = tools / "assay"
        assay.write_text(f'#!/usr/bin/env bash\nexec "{sys.executable}" -m assay "$@"\n')
        assay.chmod(0o755)
        rows = [
            {"id": str(n), "question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(30)
        ]
        (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        config = {"dataset": "items.jsonl", "models": [{"name": "m", "type": "demo", "skill": 0.9}]}
        config |= {
            "evaluation_methods": ["exact_match"],
            "metrics": ["mean"],
            "gates": [{"metric": "mean", "min": 0.2}],
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        self.inputs = {
            "CONFIG": "config.yaml",
            "FOLDER": "out",
            "BASELINE": "",
            "GATE": "",
            "INCONCLUSIVE": "exit",
        }
        self.inputs |= {"COMMENT": "true", "PULL_REQUEST": "7", "GITHUB_REPOSITORY": "org/repo"}
        files = {
            "GITHUB_OUTPUT": "outputs",
            "GITHUB_STEP_SUMMARY": "summary.md",
            "GH_LOG": "gh.log",
        }
        files |= {"GH_BODY": "body.md", "GH_COMMENTS": "comments"}
        self.inputs |= {name: str(folder / file) for name, file in files.items()}
        self.inputs["PATH"] = f"{tools}:{os.environ['PATH']}"

    def run(self, **inputs: str) -> int:
        environment = {**os.environ, **self.inputs, **inputs}
        command = ["bash", str(ROOT / "tools/action/gate.sh")]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )
        self.said = done.stdout + done.stderr
        return done.returncode

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_gate_that_passes_is_commented(runner: Runner) -> None:
    assert runner.run() == 0, runner.said
    assert "outcome=passed" in runner.read("outputs")
    body = runner.read("body.md")
    assert body.startswith("<!-- assay gate -->\n### assay gate: passed")
    assert "exact" in body
    assert runner.read("summary.md") == body
    assert "--method POST repos/org/repo/issues/7/comments" in runner.read("gh.log")


def test_the_comment_of_an_earlier_run_is_replaced(runner: Runner) -> None:
    (runner.folder / "comments").write_text("4711\n")
    assert runner.run() == 0, runner.said
    assert "--method PATCH repos/org/repo/issues/comments/4711" in runner.read("gh.log")
    assert "POST" not in runner.read("gh.log")


@pytest.mark.parametrize(
    ("gate", "more", "code", "outcome"),
    [
        ("--min 0.999", {}, 3, "failed"),
        ("--min 0.8", {}, 4, "inconclusive"),
        ("--min 0.8", {"INCONCLUSIVE": "pass"}, 0, "inconclusive"),
        ("--min nonsense", {}, 2, "error"),
    ],
)
def test_the_exit_code_is_that_of_the_gate(
    runner: Runner, gate: str, more: dict[str, str], code: int, outcome: str
) -> None:
    assert runner.run(GATE=gate, **more) == code, runner.said
    assert f"outcome={outcome}" in runner.read("outputs")


def test_a_run_that_fails_is_told(runner: Runner) -> None:
    assert runner.run(CONFIG="missing.yaml") == 2
    assert "outcome=error" in runner.read("outputs")
    assert "did not finish" in runner.read("body.md")
    assert "missing.yaml" in runner.read("body.md")


def test_a_baseline_is_compared(runner: Runner) -> None:
    assert runner.run(FOLDER="base") == 0
    assert runner.run(BASELINE="base", GATE="--max-drop 0.5") == 0, runner.said
    assert "<summary>What changed</summary>" in runner.read("body.md")
    assert runner.run(BASELINE="gone", GATE="--min 0.1") == 0, "a first run has no baseline yet"


def test_a_comment_that_may_not_be_written_fails_nothing(runner: Runner) -> None:
    assert runner.run(GH_FAILS="1") == 0
    assert "::warning::" in runner.said
    assert runner.run(COMMENT="false") == 0
    assert runner.run(PULL_REQUEST="") == 0


def test_inputs_are_never_commands(runner: Runner) -> None:
    runner.run(FOLDER="$(touch hacked)", GATE="--min 0; touch hacked", BASELINE="`touch hacked`")
    assert not (runner.folder / "hacked").exists()
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert all(
            name in step["env"]
            for name in _variables(step["run"])
            if not name.startswith("GITHUB_")
        )


def _variables(script: str) -> set[str]:
    import re

    return set(re.findall(r"\$\{?([A-Z_]+)", script))


def test_every_input_reaches_the_script() -> None:
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    used = json.dumps([step["env"] for step in action["runs"]["steps"]])
    assert [name for name in action["inputs"] if f"inputs.{name}" not in used] == []
    workflow: dict[str, Any] = yaml.safe_load(
        (ROOT / "examples/ci/github-actions.yaml").read_text()
    )
    (step,) = [
        step for step in workflow["jobs"]["gate"]["steps"] if "assay@" in step.get("uses", "")
    ]
    assert set(step["with"]) <= set(action["inputs"])
