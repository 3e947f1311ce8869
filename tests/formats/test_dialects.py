"""The dialects that Assay unifies: each is recognised by its own reader alone, and an experiment goes through any two
of them and comes back the same."""

from itertools import permutations
from pathlib import Path

import pytest

from assay.engine.experiment.imports.results import import_results
from assay.foreign import read_known
from tests.cli.shell import Shell
from tests.formats.exchanged import Rows, exported, read, rows_of, store, told
from tests.formats.mixeval.test_exchange import small
from tests.formats.verbs import read_by_every_verb

DIALECTS = ("intelligence_layer", "mixeval", "ragicamp")


def experiment() -> Rows:
    """Two models, both kinds of items, an item without an answer, a failure, a refusal; rows as a run leaves them."""
    items, responses, evaluations = small()
    for number, row in enumerate(responses):
        row.sample_id, row.task, row.timestamp, row.cost = (
            f"{row.item_id}_sample_0",
            row.model_name,
            1e9,
            0.25,
        )
        row.key, row.metadata = (
            f"{number:032x}",
            {"model_id": row.model_name, "prompt_template": "t"},
        )
    keys = {(row.model_name, row.item_id): row.key for row in responses}
    for number, label in enumerate(evaluations):
        label.key, label.responses = f"{number + 99:032x}", [keys[label.model_name, label.item_id]]
        label.detailed_results = {"explanation": "It says so."}
    return items, responses, evaluations


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_is_recognised_by_its_own_reader_alone(tmp_path: Path, dialect: str) -> None:
    store(tmp_path / "source", experiment())
    exported(tmp_path / "source", dialect, tmp_path / "files")
    assert [each.format for each in read_known(tmp_path / "files")] == [dialect]
    files = [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
    assert {each.format for file in files for each in read_known(file)} <= {dialect}


@pytest.mark.parametrize(("first", "second"), [*permutations(DIALECTS, 2)])
def test_every_pair_of_dialects(tmp_path: Path, first: str, second: str) -> None:
    source = store(tmp_path / "source", experiment())
    exported(source, first, tmp_path / "first", extras=True)
    (one,) = import_results(tmp_path / "first", tmp_path / "one")
    assert (one.format, one.rejected) == (first, 0)
    exported(tmp_path / "one", second, tmp_path / "second", extras=True)
    (foreign,) = read(tmp_path / "second", second)
    assert told(rows_of(foreign)) == told(experiment())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_verb_reads_what_was_imported_and_the_files_themselves(
    tmp_path: Path, dialect: str
) -> None:
    items, responses, evaluations = experiment()
    kept = [row for row in evaluations if row.outcome == "scored"]
    source = store(tmp_path / "source", (items, responses, kept))
    exported(source, dialect, tmp_path / "files")
    (imported,) = import_results(tmp_path / "files", tmp_path / "imported")
    assert all(line.equal is not False for line in imported.headlines)
    shell = Shell(tmp_path)
    made = read_by_every_verb(shell, tmp_path / "imported", item="q1", label="exact")
    assert {row["model_name"]: row["value"] for row in made} == {"m": 1.0, "n/o": 0.0}
    asked = shell.call("sql", "files", "select count(*) as n from responses", "--csv")
    assert (asked.code, asked.out.splitlines()[-1]) == (0, "5"), asked.said
