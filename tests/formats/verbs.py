"""Every verb that reads an experiment, on a folder that a format's command has left behind."""

from pathlib import Path
from typing import Any

from tests.cli.shell import Shell


def read_by_every_verb(
    shell: Shell, folder: Path, *, item: str, label: str
) -> list[dict[str, Any]]:
    """Run them all on the folder; returns the metric rows that `assay aggregate` makes anew."""
    place = str(folder)
    listed = shell.call("ls", str(folder.parent), "--json")
    assert listed.code == 0, listed.said
    assert folder.name in listed.out
    queried = shell.call(
        "sql", place, "select count(*) as n from evaluations where outcome = 'scored'", "--json"
    )
    assert queried.code == 0, queried.said
    traced = shell.call("trace", place, item)
    assert traced.code == 0, traced.said
    assert item in traced.out
    exported = shell.call("export", place, "--table", "evaluations", "--format", "csv")
    assert exported.code == 0, exported.said
    assert exported.out.startswith("item_id,")
    gated = shell.call(
        "gate", place, "--metric", "mean", "--label", label, "--min", "0", "--point", "--json"
    )
    assert gated.code == 0, gated.said
    aggregated = shell.call("aggregate", place, "--json")
    assert aggregated.code == 0, aggregated.said
    return aggregated.result["metrics"]
