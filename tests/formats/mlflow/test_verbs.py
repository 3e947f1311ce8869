"""Imported results of MLflow are an experiment like any other, and verbs take the results directly."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.formats.mlflow.stores import table_of
from tests.formats.verbs import read_by_every_verb

LARGE, TINY = table_of("large").parents[1], table_of("tiny")


def test_after_an_import(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for name, place in (("large", LARGE), ("tiny", TINY)):
        imported = shell.call("import", str(place), "-o", str(tmp_path / "all" / name))
        assert imported.code == 0, imported.said
    rows = read_by_every_verb(shell, tmp_path / "all/large", item="capital-peru", label="right")
    assert [row["value"] for row in rows if row["label"] == "right"] == [pytest.approx(7 / 12)]
    compared = shell.call("compare", "all/tiny", "all/large", "--label", "right", "--json")
    assert compared.code == 0, compared.said


def test_the_results_themselves(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    compared = shell.call("compare", str(TINY), str(LARGE), "--label", "right", "--json")
    assert compared.code == 0, compared.said
    (pair,) = compared.result["pairs"]
    assert pair["difference"] == pytest.approx(0.25, abs=0.06)
    exported = shell.call("export", str(LARGE), "--table", "responses", "--format", "csv")
    assert exported.code == 0, exported.said
    assert "The answer is Lima." in exported.out
