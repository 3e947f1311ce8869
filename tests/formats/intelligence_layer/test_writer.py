"""The way out: what `assay export --format intelligence_layer` writes has the original's layout, and the way in: verbs
on such a folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.analysis.look.ls import ls
from assay.analysis.rank.rank import rank
from assay.api import export
from assay.errors import UserError
from assay.formats.intelligence_layer.evaluation import (
    AggregatedComparison,
    Example,
    FailedExampleEvaluation,
    FailedExampleRun,
    Matches,
    MatchesAggregationLogic,
    Runner,
)
from tests.cli.shell import Shell
from tests.formats.intelligence_layer.worlds import (
    FAIL_IN_EVALUATION,
    FAIL_IN_TASK,
    Accuracy,
    Correct,
    Longer,
    Upper,
    World,
)

OVERVIEWS = {  # the fields of the original's overviews
    "runs": {
        "dataset_id", "id", "start", "end", "failed_example_count", "successful_example_count", "description",
        "labels", "metadata",
    },
    "evaluations": {
        "run_overviews", "id", "start_date", "end_date", "successful_evaluation_count", "failed_evaluation_count",
        "description", "labels", "metadata",
    },
    "aggregations": {
        "evaluation_overviews", "id", "start", "end", "successful_evaluation_count", "crashed_during_evaluation_count",
        "description", "statistics", "labels", "metadata",
    },
}  # fmt: skip


class Library:
    """A repository with every kind of artefact, and ids that are not file names."""

    def __init__(self, root: Path) -> None:
        self.world = world = World(root)
        texts = {"a": "word", "b.1": "x", "b.2": "y", "c/d": FAIL_IN_TASK, "e": FAIL_IN_EVALUATION}
        examples = [
            Example(id=id, input=text, expected_output="WORD", metadata={"k": 1})
            for id, text in texts.items()
        ]
        world.datasets.create_dataset(
            examples, "words", id="words", labels={"l"}, metadata={"m": [1]}
        )
        runner = Runner(Upper(), world.datasets, world.runs, "upper")
        self.run, self.other = (
            runner.run_dataset("words", labels={name}).id for name in ("one", "two")
        )
        self.evaluation = world.evaluator().evaluate_runs(self.run, metadata={"e": 1}).id
        self.matches = world.comparing(Longer()).evaluate_runs(self.run, self.other).id
        self.aggregation = world.aggregator().aggregate_evaluation(self.evaluation).id
        self.ranking = (
            world.aggregator(MatchesAggregationLogic()).aggregate_evaluation(self.matches).id
        )


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "library")


@pytest.fixture
def original(library: Library, tmp_path: Path) -> Path:
    notes = export(tmp_path / "library", "intelligence_layer", output=tmp_path / "original")
    assert notes[0].startswith("1 dataset, 2 runs, 2 evaluations, 2 aggregations written to ")
    assert "3 ids are not file names to the original" in notes[1]
    return tmp_path / "original"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def content(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_the_files_are_those_of_the_original(library: Library, original: Path) -> None:
    assert sorted(path.name for path in original.iterdir()) == [
        "aggregations",
        "datasets",
        "evaluations",
        "runs",
    ]
    assert not list(original.rglob("manifest.json"))
    about = content(original / "datasets/words/words.json")
    assert about == {"id": "words", "name": "words", "labels": ["l"], "metadata": {"m": [1]}}
    lines = (original / "datasets/words/words.jsonl").read_text().split("\n")
    assert json.loads(lines[0]) == {
        "input": "word",
        "expected_output": "WORD",
        "id": "a",
        "metadata": {"k": 1},
    }
    assert len(lines) == 5
    for kind, fields in OVERVIEWS.items():
        files = list((original / kind).glob("*.json"))
        assert len(files) == 2
        for file in files:
            assert content(file).keys() == fields
            assert file.stem == content(file)["id"]
    nested = content(original / f"aggregations/{library.aggregation}.json")["evaluation_overviews"][
        0
    ]
    assert nested.keys() == OVERVIEWS["evaluations"]
    assert nested["run_overviews"][0].keys() == OVERVIEWS["runs"]


def test_each_example_has_a_file_whose_name_has_no_dot(library: Library, original: Path) -> None:
    outputs = list((original / "runs" / library.run / "output").iterdir())
    assert all(file.suffix == ".json" and "." not in file.stem for file in outputs)
    rows = {row["example_id"]: row for row in map(content, outputs)}
    assert rows.keys() == {"a", "b.1", "b.2", "c/d", "e"}
    assert rows["a"] == {"run_id": library.run, "example_id": "a", "output": "WORD"}
    assert rows["c/d"]["output"]["error_message"].startswith("RuntimeError: fail in task")
    assert content(original / "evaluations" / library.evaluation / "a.json") == {
        "evaluation_id": library.evaluation,
        "example_id": "a",
        "is_exception": False,
        "json_result": '{"correct":true}',
    }
    assert content(original / "evaluations" / library.evaluation / "e.json")["is_exception"] is True


def test_reading_it_gives_the_same_again(library: Library, original: Path) -> None:
    ours, theirs = library.world, World(original)
    assert [*theirs.datasets.datasets()] == [*ours.datasets.datasets()]
    assert [*theirs.datasets.examples("words", str, str)] == [
        *ours.datasets.examples("words", str, str)
    ]
    assert [*theirs.runs.run_overviews()] == [*ours.runs.run_overviews()]
    for run in (library.run, library.other):
        assert [*theirs.runs.example_outputs(run, str)] == [*ours.runs.example_outputs(run, str)]
    for id, kind in ((library.evaluation, Correct), (library.matches, Matches)):
        found = theirs.evaluations.example_evaluations(id, kind)
        assert found == ours.evaluations.example_evaluations(id, kind)
        assert theirs.evaluations.evaluation_overview(id).run_overviews == {  # type: ignore[union-attr]
            *ours.evaluations.evaluation_overview(id).run_overviews  # type: ignore[union-attr]
        }
    failed = theirs.evaluations.example_evaluation(library.evaluation, "e", Correct)
    assert isinstance(failed.result, FailedExampleEvaluation)  # type: ignore[union-attr]
    for id, kind in ((library.aggregation, Accuracy), (library.ranking, AggregatedComparison)):
        found, own = (world.aggregations.aggregation_overview(id, kind) for world in (theirs, ours))
        assert found.statistics == own.statistics  # type: ignore[union-attr]


def test_nothing_is_overwritten(library: Library, original: Path) -> None:
    source = original.with_name("library")
    assert export(source, "intelligence_layer", output=original)  # the same bytes
    file = original / f"runs/{library.run}.json"
    file.write_text("{}")
    with pytest.raises(UserError, match="another file of this name"):
        export(source, "intelligence_layer", output=original)
    assert file.read_text() == "{}"
    with pytest.raises(UserError, match="into itself"):
        export(source, "intelligence_layer", output=source)
    with pytest.raises(UserError, match="several files"):
        export(source, "intelligence_layer")


def test_an_experiment_is_runs_and_evaluations(tmp_path: Path) -> None:
    """Two models, one with two samples; a failed answer, a failed label, a match, and a label of nobody's answer."""
    out = tmp_path / "out"
    out.mkdir()
    item = {"id": "a", "data": {"question": "?"}, "ground_truth": "1"}
    answers: list[dict[str, Any]] = [
        {"model_name": "m.1", "key": "k0", "response": "1"},
        {
            "model_name": "m.1",
            "key": "k1",
            "sample_index": 1,
            "error": "lost",
            "outcome": "errored",
        },
        {"model_name": "n", "response": "2"},
    ]
    labels: list[dict[str, Any]] = [
        {"label": "exact", "responses": ["k0"], "score": 1.0, "passed": True},
        {"label": "judge", "responses": ["k0"], "outcome": "errored", "error": "no"},
        {
            "label": "exact",
            "responses": ["k1"],
            "outcome": "errored",
            "error": "the response failed",
        },
        {"label": "exact", "model_name": "n", "score": 0.0, "passed": False},
        {"label": "duel", "players": ["m.1", "n"], "score": 1.0},
        {"label": "exact", "model_name": "nobody", "score": 1.0},
    ]
    rows = {"responses": answers, "evaluation_results": labels}
    for name, each in rows.items():
        lines = [json.dumps({"item_id": "a", **row}) + "\n" for row in each]
        (out / f"{name}.jsonl").write_text("".join(lines))
    (out / "items.jsonl").write_text(json.dumps(item) + "\n")
    (out / "metrics.jsonl").write_text(json.dumps({"metric_name": "mean", "value": 0.5}) + "\n")
    notes = export(out, "intelligence_layer", output=tmp_path / "original")
    assert notes[0].startswith("1 dataset, 3 runs, 4 evaluations, 1 aggregation written to ")
    assert notes[1].startswith("1 evaluations are left out: it cannot be told which run")
    theirs = World(tmp_path / "original")
    (example,) = theirs.datasets.examples("out", dict[str, str], str)
    assert (example.id, example.input, example.expected_output) == ("a", {"question": "?"}, "1")
    runs = [run.id for run in theirs.runs.run_overviews()]
    outputs = {run: each.output for run in runs for each in theirs.runs.example_outputs(run, str)}
    assert outputs.pop("n") == "2"
    assert outputs.pop("m-1") == "1"
    assert [*outputs.values()] == [FailedExampleRun(error_message="lost")]
    results = {
        overview.id: theirs.evaluations.example_evaluations(overview.id, dict[str, Any])[0].result
        for overview in theirs.evaluations.evaluation_overviews()
    }
    assert results.pop("m-1-labels") == {"exact": 1.0, "error_message": "no"}
    assert results.pop("n-labels") == {"exact": 0.0}
    match = {"first_player": "m.1", "second_player": "n", "outcome": "a_wins"}
    assert {"comparison_evaluations": [match]} in results.values()
    assert FailedExampleEvaluation(error_message="the response failed") in results.values()
    (aggregation,) = theirs.aggregations.aggregation_overviews(dict[str, Any])
    assert aggregation.statistics == {"metrics": [{"metric_name": "mean", "value": 0.5}]}
    assert (
        aggregation.successful_evaluation_count,
        aggregation.crashed_during_evaluation_count,
    ) == (3, 1)


# ---- verbs on folders of the original


def test_ls_reads_the_overviews(library: Library, original: Path) -> None:
    listed = {Path(each.folder).name: each for each in ls(original)}
    ids = ("run", "other", "evaluation", "matches", "aggregation", "ranking")
    assert listed.keys() == {getattr(library, name) for name in ids}
    run = listed[library.run]
    assert (run.name, run.state, run.responses, run.planned, run.errors) == (
        "upper",
        "complete",
        5,
        5,
        1,
    )
    evaluation = listed[library.evaluation]
    assert (evaluation.evaluations, evaluation.label_errors) == (4, 1)
    assert listed[library.aggregation].values["count"] == (3.0, 3.0, 1)
    (original / "runs/notes.json").write_text("[1]")
    assert len(ls(original)) == len(listed)


def test_rank_reads_matches_and_writes_nothing(library: Library, original: Path) -> None:
    before = sorted(original.rglob("*"))
    ours = rank([original.with_name("library") / "evaluations" / library.matches], rounds=200)
    for path in (original / "evaluations" / library.matches, original):
        theirs = rank([path], rounds=200)
        assert theirs.standings == ours.standings
        assert (theirs.matches, theirs.items) == (4, 4)
    assert sorted(original.rglob("*")) == before


def test_other_verbs_read_it_too(
    library: Library, original: Path, tmp_path: Path, shell: Shell
) -> None:
    gate = shell.call(
        "gate", f"original/evaluations/{library.evaluation}", "--min", "0.1", "--point", "--json"
    )
    assert json.loads(gate.out)["checks"][0]["value"] == pytest.approx(1 / 3)
    export(original / "runs" / library.run, "jsonl", output=tmp_path / "rows.jsonl")
    rows = read_lines(tmp_path / "rows.jsonl")
    assert {row["model_name"] for row in rows} == {library.run}
    assert len(rows) == 5


def test_a_repository_with_two_datasets_must_be_narrowed(
    library: Library, original: Path, tmp_path: Path
) -> None:
    library.world.ran(library.world.dataset("other", id="more"))
    with pytest.raises(UserError, match="there are 3 experiments at") as raised:
        export(original.with_name("library"), "jsonl", output=tmp_path / "rows.jsonl")
    listed = raised.value.fix.splitlines()[1:]
    assert [line.split("/")[-2] for line in listed] == ["evaluations", "evaluations", "runs"]
