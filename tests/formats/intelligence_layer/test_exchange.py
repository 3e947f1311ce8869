"""Any experiment as the Intelligence Layer's files and back, and what the original left as an experiment."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from assay.api import export
from assay.engine.experiment.imports.results import import_results
from assay.errors import UserError
from tests.cli.shell import Shell
from tests.formats.exchanged import Rows, core, experiments, exported, read, rows_of, store, told
from tests.formats.intelligence_layer.test_writer import Library, library, original  # noqa: F401  (fixtures)
from tests.formats.verbs import read_by_every_verb

FORMAT = "intelligence_layer"


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments())
def test_what_is_written_is_read_again(rows: Rows) -> None:
    with TemporaryDirectory() as temporary:
        folder = store(Path(temporary, "source"), rows)
        exported(folder, FORMAT, Path(temporary, "files"))
        (foreign,) = read(Path(temporary, "files"), FORMAT)
        assert told(rows_of(foreign)) == told(rows)
        assert foreign.rejected == 0


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("layout", ["original", "library"])
def test_a_repository_is_one_experiment(library: Library, original: Path, layout: str) -> None:  # noqa: F811
    """Two runs, an evaluation of one, matches of both; three ids are not file names; nothing is written."""
    root = original.with_name(layout)
    before = files_in(root)
    (foreign,) = read(root, FORMAT)
    items, responses, evaluations = rows_of(foreign)
    assert (foreign.dataset, foreign.planned, foreign.rejected, foreign.notes()) == (
        "words",
        10,
        0,
        [],
    )
    assert {item.id for item in items} == {"a", "b.1", "b.2", "c/d", "e"}
    assert items[0].ground_truth == "WORD"
    assert items[0].metadata == {"k": 1}
    assert {row.model_name for row in responses} == {library.run, library.other}
    assert len({row.key for row in responses}) == 10
    (failed,) = [row for row in responses if row.item_id == "c/d" and row.model_name == library.run]
    assert failed.outcome == "errored"
    assert "fail in task" in str(failed.error)
    labels = {
        row.item_id: row for row in evaluations if row.players is None and row.outcome != "skipped"
    }
    assert {id: row.passed for id, row in labels.items()} == {
        "a": True,
        "b.1": False,
        "b.2": False,
        "e": None,
    }
    assert labels["e"].outcome == "errored"
    by_key = {row.key: row for row in responses}
    assert by_key[labels["a"].responses[0]].response == "WORD"
    matches = [row for row in evaluations if row.players is not None]
    assert {row.players for row in matches} == {tuple(sorted((library.run, library.other)))}
    assert len(matches) == 4
    numbers = {line.metric.rpartition(".")[2]: line for line in foreign.headlines()}
    assert numbers["count"].value == 3.0
    assert numbers["count"].reason
    assert files_in(root) == before


def test_traces_and_what_is_unfinished_are_counted_and_left(
    library: Library,  # noqa: F811
    original: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    for example in ("a", "e"):
        file = original / f"runs/{library.run}/trace/{example}.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}\n")
    about = json.loads((original / f"evaluations/{library.evaluation}.json").read_text())
    (original / "evaluations/asked.partial_json").write_text(json.dumps({**about, "id": "asked"}))
    (foreign,) = read(original, FORMAT)
    assert not any(case.spans for case in foreign.cases())
    assert foreign.notes() == [
        "1 evaluations were not finished and are left out: 'asked'",
        "2 traces are left where they are: those of the original are not read",
    ]
    notes = export(original, FORMAT, output=tmp_path / "again")
    assert notes[-2].startswith("2 traces are left out")
    assert notes[-1].startswith("1 evaluations without results are left out")
    notes = export(tmp_path / "library", FORMAT, output=tmp_path / "ours")
    assert notes[-1].startswith("10 traces are left out")


@pytest.mark.parametrize("suffix", ["", ".json"])
def test_one_run_or_one_evaluation(library: Library, original: Path, suffix: str) -> None:  # noqa: F811
    (foreign,) = read(original / f"runs/{library.other}{suffix}", FORMAT)
    _, responses, evaluations = rows_of(foreign)
    assert {row.model_name for row in responses} == {library.other}
    assert evaluations == []
    (foreign,) = read(original / f"evaluations/{library.evaluation}{suffix}", FORMAT)
    _, responses, evaluations = rows_of(foreign)
    assert {row.model_name for row in responses} == {library.run}
    assert Counter(row.outcome for row in evaluations) == {"scored": 3, "errored": 1, "skipped": 1}
    (skipped,) = (row for row in evaluations if row.outcome == "skipped")
    (failed,) = (row for row in responses if row.outcome == "errored")
    assert (skipped.item_id, skipped.responses) == (failed.item_id, [failed.key])


def test_the_folder_of_an_evaluation_is_imported_and_aggregated(
    library: Library,  # noqa: F811
    original: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That of the library and that of the original give the same, wherever one stands."""
    told: list[Any] = []
    shell = Shell(tmp_path)
    for number, root in enumerate(("library", "original")):
        folder = f"{root}/evaluations/{library.evaluation}"
        done = shell.call("import", folder, "-o", f"imported{number}")
        assert done.code == 0, done.said
        assert shell.call("aggregate", f"imported{number}").code == 0
        line = (tmp_path / f"imported{number}/metrics.jsonl").read_text()
        row = json.loads(line)
        told.append(
            [
                row[name]
                for name in (
                    "value",
                    "total_item_count",
                    "errored_count",
                    "skipped_count",
                )
            ]
        )
    assert told[0] == told[1]
    assert told[0][1:4] == [5, 1, 1]
    done = shell.call("aggregate", f"library/evaluations/{library.evaluation}")
    assert (done.code, "evaluation  mean" in done.out) == (0, True), done.said
    monkeypatch.chdir(tmp_path / "library" / "evaluations")
    for folder in (Path(library.evaluation), tmp_path / "library" / "runs" / library.run):
        assert read(folder, FORMAT) == [], "which is an experiment itself"


def test_datasets_are_experiments_of_their_own(library: Library) -> None:  # noqa: F811
    library.world.ran(library.world.dataset("other", id="more"))
    root = library.world.runs._folder.parent  # type: ignore[attr-defined]
    assert [foreign.dataset for foreign in read(root, FORMAT)] == ["more", "words"]


def test_results_with_several_numbers_and_several_evaluations_of_a_run(
    library: Library,  # noqa: F811
    original: Path,  # noqa: F811
) -> None:
    """Each number is a label; labels of two evaluations of one run are told apart by what these are called."""
    about = json.loads((original / f"evaluations/{library.evaluation}.json").read_text())
    about |= {"id": "second", "description": "graded"}
    (original / "evaluations/second.json").write_text(json.dumps(about))
    (original / "evaluations/second").mkdir()
    result = {"evaluation_id": "second", "example_id": "a", "is_exception": False}
    value = json.dumps({"bleu": 0.5, "good": True, "why": "x"})
    (original / "evaluations/second/a.json").write_text(
        json.dumps({**result, "json_result": value})
    )
    (foreign,) = read(original, FORMAT)
    evaluations = [row for row in rows_of(foreign)[2] if row.item_id == "a" and row.players is None]
    first = json.loads((original / f"evaluations/{library.evaluation}.json").read_text())[
        "description"
    ]
    found = {row.label: row.score for row in evaluations}
    assert found == {first: 1.0, "graded.bleu": 0.5, "graded.good": 1.0}
    assert len({row.key for row in evaluations}) == 3


def test_files_that_cannot_be_read_are_told(library: Library, original: Path) -> None:  # noqa: F811
    (original / "runs/notes.json").write_text("[1]")
    (original / f"runs/{library.run}/output/a.json").write_text("{")
    (original / f"evaluations/{library.evaluation}/a.json").write_text('{"example_id": "a"}')
    (foreign,) = read(original, FORMAT)
    _, responses, _ = rows_of(foreign)
    assert len(responses) == 9
    assert foreign.rejected == 2
    assert foreign.notes()[0].startswith("2 files cannot be read: ")
    (original / f"runs/{library.other}.json").write_text("{")
    with pytest.raises(UserError, match="an overview in this folder cannot be read"):
        read(original, FORMAT)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"runs/a.json": "{}"},
        {"runs/a.json": "{"},
        {"runs/a.json": '{"id": "a", "description": ""}'},
        {"evaluations/a.json": '["run_overviews"]'},
        {"a.json": '{"id": "a", "description": "", "dataset_id": "d"}'},
    ],
)
def test_what_is_not_the_originals_gives_nothing(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert read(tmp_path, FORMAT) == []
    for name in files:
        assert read(tmp_path / name, FORMAT) == []


def test_an_imported_repository_is_read_by_every_verb(
    library: Library,  # noqa: F811
    original: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    source = original / f"evaluations/{library.evaluation}"
    result = {"evaluation_id": library.evaluation, "example_id": "e", "is_exception": False}
    # without the failure
    (source / "e.json").write_text(json.dumps(result | {"json_result": '{"correct": false}'}))
    (imported,) = import_results(source, tmp_path / "imported")
    assert (imported.format, imported.items, imported.rejected) == (FORMAT, 5, 0)
    assert sum(imported.responses.values()) == 5
    shell = Shell(tmp_path)
    rows: list[dict[str, Any]] = read_by_every_verb(
        shell, tmp_path / "imported", item="a", label="evaluation"
    )
    assert rows[0]["value"] == 0.25
    (again,) = import_results(source, tmp_path / "imported")
    assert again.items == 5


def test_without_extras_the_core_is_kept(tmp_path: Path) -> None:
    from tests.formats.mixeval.test_exchange import small

    rows = small()
    for row in rows[1]:
        # the original has no word for it
        row.outcome = "ok" if row.outcome == "refused" else row.outcome
    store(tmp_path / "source", rows)
    exported(tmp_path / "source", FORMAT, tmp_path / "out", extras=False)
    (foreign,) = read(tmp_path / "out", FORMAT)
    found = rows_of(foreign)
    for row in found[2]:
        assert row.label == "evaluation"
        row.label = "exact"  # it has one result for an example, whose field is the label
    assert core(found) == core(rows)
