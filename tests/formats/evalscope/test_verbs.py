"""Imported results of evalscope are an experiment like any other, and verbs take the results directly."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.formats.verbs import read_by_every_verb

LOGS = Path(__file__).parent / "logs"
LARGE, TINY = LOGS / "large", LOGS / "tiny"


def test_after_an_import(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    # a gate does not pass over failures
    imported = shell.call(
        "import", str(LARGE / "reviews/large/sums_capitals.jsonl"), "-o", "all/whole"
    )
    assert imported.code == 0, imported.said
    rows = read_by_every_verb(shell, tmp_path / "all/whole", item="capital-peru", label="accuracy")
    assert [row["value"] for row in rows if row["label"] == "accuracy"] == [pytest.approx(1.0)]
    for name, place in (("large", LARGE), ("tiny", TINY)):
        imported = shell.call("import", str(place), "-o", f"all/{name}")
        assert imported.code == 0, imported.said
    compared = shell.call("compare", "all/tiny", "all/large", "--label", "accuracy", "--json")
    assert compared.code == 0, compared.said


def test_the_results_themselves(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    compared = shell.call("compare", str(TINY), str(LARGE), "--label", "accuracy", "--json")
    assert compared.code == 0, compared.said
    (pair,) = compared.result["pairs"]
    assert pair["difference"] == pytest.approx(0.25, abs=0.06)
    exported = shell.call("export", str(LARGE), "--table", "responses", "--format", "csv")
    assert exported.code == 0, exported.said
    assert "The answer is Lima." in exported.out
