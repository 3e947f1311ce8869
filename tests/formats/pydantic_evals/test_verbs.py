"""Imported results of pydantic-evals are an experiment like any other, and verbs take the results directly."""

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.formats.verbs import read_by_every_verb

LOGS = Path(__file__).parent / "logs"
LARGE, TINY = LOGS / "large.json", LOGS / "tiny.json"


def test_after_an_import(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps({**json.loads(LARGE.read_text()), "failures": []}))
    # a gate does not pass over failures
    imported = shell.call("import", str(whole), "-o", "all/whole")
    assert imported.code == 0, imported.said
    rows = read_by_every_verb(
        shell, tmp_path / "all/whole", item="capital-peru", label="RightAnswer"
    )
    assert [row["value"] for row in rows if row["label"] == "RightAnswer"] == [pytest.approx(0.7)]
    for name, place in (("large", LARGE), ("tiny", TINY)):
        imported = shell.call("import", str(place), "-o", f"all/{name}")
        assert imported.code == 0, imported.said
    compared = shell.call("compare", "all/tiny", "all/large", "--label", "RightAnswer", "--json")
    assert compared.code == 0, compared.said


def test_the_results_themselves(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    compared = shell.call("compare", str(TINY), str(LARGE), "--label", "RightAnswer", "--json")
    assert compared.code == 0, compared.said
    (pair,) = compared.result["pairs"]
    assert pair["difference"] == pytest.approx(0.25, abs=0.06)
    exported = shell.call("export", str(LARGE), "--table", "responses", "--format", "csv")
    assert exported.code == 0, exported.said
    assert "The answer is Lima." in exported.out
