"""promptfoo's evaluations are experiments like any other: imported, or read where they are."""

from pathlib import Path

from tests.cli.shell import Shell
from tests.formats.promptfoo.folder import LOGS, read
from tests.formats.verbs import read_by_every_verb

LOG = LOGS / "twelve.json"


def test_after_an_import(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    imported = shell.call("import", str(LOGS / "repeats.json"), "-o", "rows")
    assert imported.code == 0, imported.said
    item = read(LOG).items()[0]["id"]
    rows = read_by_every_verb(shell, tmp_path / "rows", item=item, label="contains")
    assert {(row["model_name"], row["label"]): row["value"] for row in rows} == {
        ("tiny", label): 1.0 for label in ("pass", "score", "contains", "short")
    }


def test_the_log_itself(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    compared = shell.call("compare", str(LOG), "--facet", "model_name", "--label", "pass", "--json")
    assert compared.code == 0, compared.said
    queried = shell.call(
        "sql", str(LOG), "select count(*) as n from responses where outcome = 'refused'", "--json"
    )
    assert queried.code == 0, queried.said
    assert "4" in queried.out
