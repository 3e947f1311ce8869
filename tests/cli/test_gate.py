"""`assay gate` as a process: exit codes, reports, and the pytest plugin."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from assay.analysis.compare.gate_calibration import Check
from assay.reports.compare import value_text
from tests.analysis.rows import counted, rows_of, save
from tests.cli.shell import Shell

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    save(tmp_path / "old", counted(160, 200))
    save(tmp_path / "new", counted(140, 200))
    return Shell(tmp_path)


@pytest.mark.parametrize(
    ("words", "code", "outcome"),
    [
        (("--min", "0.7"), 4, "inconclusive"),
        (("--min", "0.7", "--inconclusive", "pass"), 0, "inconclusive"),
        (("--min", "0.7", "--inconclusive", "fail"), 3, "inconclusive"),
        (("--min", "0.9"), 3, "failed"),
        (("--max-drop", "0.02", "--baseline", "old"), 3, "failed"),
        (("--max_drop", "0.2", "--baseline", "old", "--metric", "pass_rate"), 0, "passed"),
    ],
)
def test_exit_codes(shell: Shell, words: tuple[str, ...], code: int, outcome: str) -> None:
    ended = shell.call("gate", "new", *words)
    assert ended.code == code, ended.said
    assert f"gate: {outcome}" in ended.out


def test_reports(shell: Shell) -> None:
    (shell.folder / "summary.md").write_text("before\n")
    config = shell.write(
        "gates.yaml",
        """
        gates:
          - {min: 0.6}
          - {min: 0.9}
          - {max_drop: 0.1, baseline: old, facets: {model_name: m}}
        """,
    )
    words = ("-c", str(config), "--junit", "junit.xml", "--markdown", "summary.md", "--json")
    ended = shell.call("gate", "new", *words)
    assert ended.code == 3
    checks = json.loads(ended.out)["checks"]
    assert [check["outcome"] for check in checks] == ["passed", "failed", "inconclusive"]
    suite = ElementTree.fromstring((shell.folder / "junit.xml").read_bytes())
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    assert [[each.tag for each in case] for case in suite] == [
        ["system-out"],
        ["failure", "system-out"],
        ["error", "system-out"],
    ]
    assert suite[0][0].text == "0.700 (≥ 0.631), 200 items"
    summary = (shell.folder / "summary.md").read_text()
    assert summary.startswith("before\n### assay gate: failed\n")
    assert "| mean match | at least 0.9 | 0.700 |" in summary


def test_junit_takes_any_text(shell: Shell) -> None:
    save(shell.folder / "odd", counted(60, 90, label="<&\x00\ufffe'\""))
    assert shell.call("gate", "odd", "--min", "0.99", "--junit", "junit.xml").code == 3
    case = next(iter(ElementTree.fromstring((shell.folder / "junit.xml").read_bytes())))
    assert case.get("name") == "mean <&\\x00?'\": at least 0.99"


def test_mistakes_are_messages(shell: Shell) -> None:
    for words, said in {
        ("new",): "there is nothing to check",
        ("new", "--metric", "mean"): "--metric needs a bound",
        ("new", "--max-drop", "0.1"): "needs a baseline",
        ("new", "--max-drop", "0.1", "--baseline", "odl"): "did you mean 'old'",
        ("new", "--min", "0.5", "--markdown", "no/such/folder.md"): "the report cannot be written",
    }.items():
        ended = shell.call("gate", *words)
        assert ended.code in (1, 2), ended.said
        assert said in ended.words, ended.said


def test_the_pytest_plugin(shell: Shell) -> None:
    save(shell.folder / "few", rows_of({"a": True, "b": False}))
    shell.write(
        "test_quality.py",
        """
        def test_good(assay_gate):
            assert assay_gate("new", min=0.6).outcome == "passed"

        def test_bad(assay_gate):
            assay_gate("new", baseline="old", max_drop=0.02)

        def test_open(assay_gate):
            assay_gate("few", min=0.6)

        def test_skipped(assay_gate):
            assay_gate("few", min=0.6, inconclusive="skip")

        def test_wrong(assay_gate):
            assay_gate("nowhere", min=0.6)
        """,
    )
    plugin = ["-p", "no:assay", "-p", "assay.pytest_plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *plugin, "test_quality.py"]
    done = subprocess.run(command, cwd=shell.folder, capture_output=True, text=True, check=False)
    assert "3 failed, 1 passed, 1 skipped" in done.stdout, done.stdout
    assert "failed: mean match, drop of at most 0.02: -0.100" in done.stdout
    assert "inconclusive: mean match, at least 0.6" in done.stdout
    assert "there is no file or folder 'nowhere'" in done.stdout
    assert "Traceback" not in done.stdout


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"assay": "assay.pytest_plugin"}


@pytest.mark.parametrize(
    ("bound", "outcome", "shown"),
    [
        ("min", "passed", "0.900 (≥ 0.832~), weak: fewer than 30 items, 20 items"),
        ("min", "failed", "0.900 (≤ 0.832~), weak: fewer than 30 items, 20 items"),
        ("max", "passed", "0.900 (≤ 0.832~), weak: fewer than 30 items, 20 items"),
    ],
)
def test_the_bound_that_decided_is_shown(bound: Any, outcome: Any, shown: str) -> None:
    class Decided(Check, kw_only=True):
        bound_used: float | None = None

    check = Decided(
        name="mean",
        bound=bound,
        threshold=0.5,
        outcome=outcome,
        why="",
        value=0.9,
        low=0.7,
        high=0.97,
        items=20,
        label="x",
        ci_method="wilson_of_items; weak: fewer than 30 items",
        bound_used=0.832,
    )
    assert value_text(check) == shown
