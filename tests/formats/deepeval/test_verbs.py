"""deepeval's test runs are experiments like any other: imported, or read where they are."""

import shutil
from pathlib import Path

from tests.cli.shell import Shell
from tests.formats.deepeval.folder import LOGS
from tests.formats.verbs import read_by_every_verb

TINY, LARGE = (str(LOGS / f"test_run_{name}.json") for name in ("tiny", "large"))


def test_after_an_import(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    imported = shell.call("import", LARGE, "-o", "rows")
    assert imported.code == 0, imported.said
    rows = read_by_every_verb(shell, tmp_path / "rows", item="sum-2-3", label="pass")
    assert {row["label"]: row["value"] for row in rows}["pass"] == 7 / 12


def test_the_runs_themselves(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    compared = shell.call("compare", LARGE, TINY, "--label", "pass", "--json")
    assert compared.code == 0, compared.said
    shutil.copytree(LOGS, tmp_path / "logs")
    queried = shell.call(
        "sql", "logs/test_run_large.json", "select count(*) as n from responses", "--json"
    )
    assert queried.code == 0, queried.said
    assert "12" in queried.out
