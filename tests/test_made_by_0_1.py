"""Folders that 0.1 wrote (`tests/fixtures/make_0_1.py`) open, resume and are scored again, and nobody is paid for it.

Every test works on a copy: times of files differ from those that the manifests remember, so that no plan is recognised
by its digest alone; each row has to be found by its key. The server counts: a request is a payment.
"""

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.server import Options, running
from assay.server.process import stats
from tests.cli import shell
from tests.cli.shell import Ended
from tests.fixtures.make_0_1 import COMMANDS, FIXTURE, GRAPHS, HERE, SERVER

EXPERIMENTS = ("plain", "served", "agent", "judged", "pairs", "graph")
MIXEVAL = {"mixeval": "mixeval/mixeval/2026-01-01", "scores": "scores/elsewhere/mixeval/2026-01-01"}
FOLDERS = {name: f"made/{name}" for name in (*EXPERIMENTS, "partial", "looser", "imported")}
FOLDERS |= {name: f"made/{path}" for name, path in MIXEVAL.items()}
ROWS = {"responses": "responses.jsonl", "evaluations": "evaluation_results.jsonl"}
RESCORED = re.compile(rb'[^\n]*"scorer":"number"[^\n]*\n')  # numeric_match has a new version
ADDED = re.compile(rb',"(sample_count|percentile_\d+|(true|false)_(positives|negatives))":[\d.]+')
INTERVALS = re.compile(rb'"ci_(?:low|high|method)":(?:"[^"]*"|[^,}]*),?')  # 0.1 made those of graded scores too wide
CLOCK = {"timestamp", "evaluation_time", "inference_time"}


class Old:
    """A copy of what 0.1 left, and commands of this tree in it."""

    def __init__(self, here: Path, url: str) -> None:
        self.here = here
        self.url = url
        self.trusts = True  # 0.1 kept no record of the folders that it made
        shutil.copytree(FIXTURE / "sources", here, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(FIXTURE / "results", here, dirs_exist_ok=True)
        for path in here.rglob("*"):
            if path.is_file():
                path.write_text(path.read_text().replace(HERE, str(here)).replace(SERVER, url))

    def assay(self, *words: str, folder: str = ".", code: int = 0) -> Ended:
        environ = shell.surrounding(COLUMNS="200", ASSAY_FIXTURE_URL=self.url, SYGRA_EVAL_MODEL_URL=self.url)
        environ |= {"ASSAY_TRUST": "1"} if self.trusts else {}
        named = [word.replace(SERVER, self.url) for word in words]
        done = shell.assay(*named, folder=self.here / folder, environ=environ)
        assert done.code == code, done.said
        return done

    def paid(self, *words: str, folder: str = ".") -> int:
        """How many requests a command makes."""
        before = stats(self.url)["requests"]
        self.assay(*words, folder=folder)
        return stats(self.url)["requests"] - before

    def path(self, name: str) -> Path:
        return self.here / FOLDERS[name]

    def rows(self, name: str, table: str) -> list[dict[str, Any]]:
        path = self.path(name) / ROWS[table]
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def bytes(self, name: str) -> dict[str, bytes]:
        """The files of rows and numbers, without what 0.1 did not write, and without intervals."""
        files = (*ROWS.values(), "metrics.jsonl", "calls.jsonl", "items.jsonl")
        paths = (self.path(name) / file for file in files)
        return {
            path.name: INTERVALS.sub(b"", ADDED.sub(b"", RESCORED.sub(b"", path.read_bytes())))
            for path in paths
            if path.exists()
        }


@pytest.fixture(scope="session")
def counting() -> Iterator[str]:
    """Answers nothing that 0.1 stored: whoever asks gets other rows, and is counted."""
    with running(Options(skill=0.0, seed=99)) as url:
        yield url


@pytest.fixture
def old(tmp_path: Path, counting: str) -> Old:
    return Old(tmp_path / "here", counting)


def command(*beginning: str) -> list[str]:
    """The words by which 0.1 made a folder."""
    lines = (line.split() for line in COMMANDS.splitlines())
    return next(words for words in lines if words[: len(beginning)] == list(beginning))


def made(name: str) -> list[str]:
    return ["run", f"{name}.yaml", "-o", FOLDERS[name]]


def verdicts(rows: list[dict[str, Any]]) -> Counter[str]:
    """Evaluations without what the clock put into them, and whatever the words of their errors."""
    for row in rows:
        row["key"] = "" if row.get("scorer") == "number" else row["key"]
        row["metadata"].get("evaluation", {}).pop("params", None)  # 0.1 did not write them
        if not row["metadata"].get("evaluation", True):
            del row["metadata"]["evaluation"]
    kept = ({k: bool(v) if k == "error" else v for k, v in row.items() if k not in CLOCK} for row in rows)
    return Counter(json.dumps(row, sort_keys=True) for row in kept)


def test_no_path_of_a_machine_is_in_the_fixture() -> None:
    texts = {path: path.read_text() for path in FIXTURE.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert not [path for path, text in texts.items() if any(word in text for word in ("/tmp/", "/work/", "/root/"))]
    assert sum(len(text.encode()) for text in texts.values()) < 600_000


def test_all_folders_are_listed(old: Old) -> None:
    listed = {Path(row["folder"]).name: row for row in old.assay("ls", "made", "--json").events()}
    assert {name: listed[name]["state"] for name in EXPERIMENTS} == dict.fromkeys(EXPERIMENTS, "complete")
    assert listed["partial"]["state"] == "partial"
    for name in EXPERIMENTS:
        assert listed[name]["responses"] == len(old.rows(name, "responses"))
        assert listed[name]["values"]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_opens(old: Old, name: str) -> None:
    before = old.bytes(name)
    folder = FOLDERS[name]
    for table in ROWS:
        rows = old.rows(name, table)
        if rows:
            count = old.assay("sql", folder, f"select count(*) as n from {table}", "--json").result["n"]
            exported = old.assay("export", folder, "-t", table, "-f", "jsonl").out.splitlines()
            assert count == len(exported) == len(rows)
            assert Counter(json.loads(line)["key"] for line in exported) == Counter(row["key"] for row in rows)
    evaluations = old.rows(name, "evaluations")
    if name != "looser":  # its responses are those of another folder
        item = (evaluations or old.rows(name, "responses"))[0]["item_id"]
        shown = old.assay("trace", folder, item, "--json").result
        assert sum(len(sample["evaluations"]) for sample in shown["samples"]) + sum(
            len(match["evaluations"]) for match in shown["matches"]
        ) == sum(row["item_id"] == item for row in evaluations)
    assert old.bytes(name) == before


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_finished_experiment_resumes_without_a_call(old: Old, name: str) -> None:
    before = old.bytes(name)
    assert old.paid(*made(name)) == 0
    assert old.bytes(name) == before


def test_a_partial_experiment_asks_only_for_the_rest(old: Old) -> None:
    before = (old.path("partial") / "responses.jsonl").read_text()
    assert old.paid("run", "served.yaml", "-o", FOLDERS["partial"]) == 12 - 4
    assert (old.path("partial") / "responses.jsonl").read_text().startswith(before)
    assert len(old.rows("partial", "responses")) == 12


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_scoring_again_pays_nobody_and_gives_the_same_rows(old: Old, name: str) -> None:
    """All evaluations are made again, from the responses and from the judges' calls in the log."""
    before = old.bytes(name)
    rows = verdicts(old.rows(name, "evaluations"))
    (old.path(name) / "evaluation_results.jsonl").unlink()
    assert old.paid("evaluate", FOLDERS[name]) == 0
    assert verdicts(old.rows(name, "evaluations")) == rows
    assert old.bytes(name)["metrics.jsonl"] == before["metrics.jsonl"]


@pytest.mark.parametrize("name", [*EXPERIMENTS, "looser", "imported"])
def test_trust_is_asked_for_where_code_a_server_or_rows_elsewhere_would_be_used(old: Old, name: str) -> None:
    """0.1 kept no record of its folders: they are foreign, and looking at their own rows works all the same."""
    old.trusts = False
    asks = {"plain": "evaluate aggregate", "judged": "evaluate", "pairs": "evaluate", "looser": "export aggregate"}
    for verb in ("export", "aggregate", *(["evaluate"] if name in EXPERIMENTS else [])):
        refused = verb in asks.get(name, "").split()
        done = old.assay(verb, FOLDERS[name], *(["-f", "jsonl"] if verb == "export" else []), code=2 if refused else 0)
        assert ("--trust" in done.err) == refused, done.said


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in ("plain", "served")])
def test_an_edit_of_a_scorer_uses_the_calls_of_the_log(old: Old, name: str) -> None:
    edits = {
        "judged": "evaluation_methods.1.params.rule=mean",
        "pairs": "evaluation_methods.0.params.skip_on_any_failure=false",
        "agent": "evaluation_methods.0.params.normalize=squad",
        "graph": "evaluation_methods.0.params.normalize=squad",
    }
    assert old.paid(*made(name), "--set", edits[name]) == 0


@pytest.mark.parametrize("name", ["agent", "graph"])
def test_a_task_that_runs_again_finds_its_calls_in_the_log(old: Old, name: str) -> None:
    responses = [row["response"] for row in old.rows(name, "responses")]
    (old.path(name) / "responses.jsonl").unlink()
    assert old.paid(*made(name)) == 0
    assert Counter(row["response"] for row in old.rows(name, "responses")) == Counter(responses)


@pytest.mark.parametrize("name", [*EXPERIMENTS, "looser", "mixeval"])
def test_metrics_computed_again_are_the_same_bytes(old: Old, name: str) -> None:
    before = old.bytes(name)
    (old.path(name) / "metrics.jsonl").unlink()
    assert old.paid("aggregate", FOLDERS[name]) == 0
    assert old.bytes(name) == before


def test_experiments_compare_gate_and_rank(old: Old) -> None:
    compared = old.assay("compare", FOLDERS["plain"], "--facet", "model_name", "--label", "exact_match", "--json")
    assert {"large", "small"} <= set(compared.out.split('"'))
    old.assay("gate", FOLDERS["plain"], "--min", "0", "--label", "exact_match", "--point")
    ranked = old.assay("rank", FOLDERS["pairs"], "--label", "better", "--json").out
    assert all(f'"{name}"' in ranked for name in ("small", "middle", "large"))


def test_a_calibration_still_corrects(old: Old) -> None:
    """The judge's identity is still the one under which the calibration was kept."""
    old.assay("aggregate", FOLDERS["judged"])
    corrected = [row for row in metrics_of(old, "judged") if row["metric_name"] == "true passes"]
    assert [row["value"] is not None for row in corrected] == [True]


def metrics_of(old: Old, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (old.path(name) / "metrics.jsonl").read_text().splitlines()]


def test_a_stored_dataset_is_whole_and_serves(old: Old) -> None:
    assert "ok: quiz" in old.assay("dataset", "verify", "quiz", "--repository", "made/repository").out
    stored = f"dataset={{type: stored, name: quiz, repository: {old.here}/made/repository}}"
    before = old.bytes("served")
    assert old.paid(*made("served"), "--set", stored) == 0
    assert old.bytes("served") == before


def test_an_import_of_the_same_files_changes_nothing(old: Old) -> None:
    before = old.bytes("imported")
    old.assay(*command("import"))
    assert old.bytes("imported") == before
    assert "0.600" in old.assay("aggregate", FOLDERS["imported"]).out
    old.assay("export", FOLDERS["imported"], "--format", "ragicamp", "-o", "three_again")
    for path in (old.here / "three_files").glob("*_questions.json"):
        questions = json.loads((old.here / "three_again" / path.name).read_text())["questions"]
        assert questions == json.loads(path.read_text())["questions"]


def said(old: Old, what: str) -> Counter[str]:
    """What the verdicts say: a newer version of the reader gives them keys of its own."""
    return verdicts([{**row, "key": ""} for row in old.rows(what, "evaluations")])


def refuse_rule(old: Old, what: str, *words: str) -> None:
    """Free-form answers are no longer read by `rule`; labels that were so made still open."""
    before, told = old.bytes(what), said(old, what)
    refused = old.assay(*words, code=2).err
    assert "no longer read by `rule`" in refused
    assert "use --parser rule-compat or --parser judge --judge MODEL" in refused
    asked = "select count(*) as n from evaluations where label = 'rule' and item_id like 'free-form/%'"
    assert old.assay("sql", FOLDERS[what], asked, "--json").result["n"] == (6 if what == "mixeval" else 3)
    assert (old.bytes(what), said(old, what)) == (before, told)


def test_mixeval_runs_again_without_a_call(old: Old) -> None:
    before = old.bytes("mixeval")
    scores = {path: path.read_bytes() for path in (old.here / "made/mixeval").rglob("score*.json")}
    assert len(scores) == 4
    words = command("mixeval", "run")
    refuse_rule(old, "mixeval", *words)
    assert {path: path.read_bytes() for path in scores} == scores
    words[words.index("rule")] = "rule-compat"
    assert old.paid(*words) == 0
    after = old.bytes("mixeval")
    for made_anew in ("evaluation_results.jsonl", "metrics.jsonl"):
        del before[made_anew], after[made_anew]
    assert after == before


def test_mixeval_scores_again_without_a_call(old: Old) -> None:
    place = old.path("scores")
    refuse_rule(old, "scores", *command("mixeval", "score"), "--parser", "rule")
    score = json.loads((place / "score.json").read_bytes())
    before = Counter({row: count for row, count in said(old, "scores").items() if '"scorer": "rule"' not in row})
    assert old.paid(*command("mixeval", "score")) == 0
    assert before <= said(old, "scores")
    (place / "evaluation_results.jsonl").unlink()
    assert old.paid(*command("mixeval", "score")) == 0
    assert before <= said(old, "scores")
    assert json.loads((place / "score.json").read_bytes()) == pytest.approx(score, abs=1e-15)  # the last bit


@pytest.mark.parametrize("task", GRAPHS)
def test_a_graph_resumes_without_a_call(old: Old, task: str) -> None:
    place = old.here / "sygra/tasks" / task.replace(".", "/")
    reports = [place / "output.json", place / "MetricCollatorPostProcessor.json"]
    before = [json.loads(path.read_text()) for path in reports]
    for path in reports:
        path.unlink()
    words = ("sygra", "--task", task, "-n", GRAPHS[task], "-owt", "False", "-dm", "True")
    assert old.paid(*words, folder="sygra") == 0
    assert [without_times_and_intervals(json.loads(path.read_text())) for path in reports] == [
        without_times_and_intervals(made) for made in before
    ]


def without_times_and_intervals(value: Any) -> Any:
    if isinstance(value, dict):
        kept = [key for key in value if "time" not in key and not key.startswith("ci_") and key not in ("low", "high")]
        return {key: without_times_and_intervals(value[key]) for key in kept}
    return [without_times_and_intervals(inner) for inner in value] if isinstance(value, list) else value


def test_the_rows_of_a_graph_open(old: Old) -> None:
    (folder,) = (old.here / "sygra/tasks/eval/question_answering/simpleqa/.assay").iterdir()
    first = json.loads((folder / "responses.jsonl").read_text().splitlines()[0])
    assert old.assay("sql", str(folder), "select count(*) as n from responses", "--json").result["n"] == 3
    shown = old.assay("trace", str(folder), first["item_id"], "--json").result
    assert shown["samples"][0]["response"]["key"] == first["key"]
    assert shown["calls"]


@pytest.fixture
def library(old: Old, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The Intelligence Layer project's own module, in the copy; its work leaves lines in notes.txt."""
    monkeypatch.chdir(old.here)
    monkeypatch.syspath_prepend(str(old.here))
    import make_library

    yield make_library
    for name in ("make_library", "desk"):
        sys.modules.pop(name, None)


def notes(old: Old) -> list[str]:
    path = old.here / "notes.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_a_library_opens(old: Old, library: Any) -> None:
    desk = library.desk
    (dataset,) = desk.datasets.datasets()
    assert (dataset.id, dataset.name, set(dataset.labels)) == ("letters", "letters", {"post"})
    runs = {overview.description: overview for overview in desk.runs.run_overviews()}
    assert set(runs) == {"good", "bad"}
    assert [runs["good"].successful_example_count, runs["good"].failed_example_count] == [2, 1]
    evaluations = {overview.description: overview for overview in desk.evaluations.evaluation_overviews()}
    assert set(evaluations) == {"department", "closer"}
    evaluator = library.Evaluator(desk.datasets, desk.runs, desk.evaluations, "", library.RightDepartment())
    lineages = list(evaluator.evaluation_lineages(evaluations["department"].id))
    assert [lineage.evaluation.result.correct for lineage in lineages] == [True, True]
    assert [lineage.example.input.text for lineage in lineages] == ["the invoice is wrong", "it does not start"]
    aggregations = {each.description: each for each in desk.aggregations.aggregation_overviews(dict)}
    assert aggregations["accuracy"].statistics == {"accuracy": 1.0}
    assert aggregations["ranking"].statistics["scores"]["good"]["win_rate"] == 1.0
    assert not notes(old)


def test_the_rows_of_a_library_open(old: Old) -> None:
    (place,) = (
        path.parent
        for path in (old.here / "library/evaluations").glob("*/evaluation_results.jsonl")
        if '"players":["' in path.read_text()
    )
    assert old.assay("sql", str(place), "select count(*) as n from evaluations", "--json").result["n"] == 2
    assert old.assay("rank", str(place), "--json").result["matches"] == 2
    shown = old.assay("trace", "library", "a", "--json").result
    assert len(shown["samples"]) == 3
    assert len(old.assay("ls", "library", "--json").events()) >= 3


def test_a_killed_run_of_a_library_resumes(old: Old, library: Any) -> None:
    overview = library.run()
    assert notes(old) == ["run it does not start", "run "]
    assert (overview.successful_example_count, overview.failed_example_count) == (2, 1)


def test_a_killed_evaluation_of_a_library_resumes(old: Old, library: Any) -> None:
    overview = library.evaluation()
    assert notes(old) == ["evaluate b"]
    assert overview.successful_evaluation_count == 2


def test_a_library_is_aggregated_again(old: Old, library: Any) -> None:
    desk = library.desk
    marks = next(each for each in desk.evaluations.evaluation_overviews() if each.description == "department")
    aggregator = library.Aggregator(desk.evaluations, desk.aggregations, "again", library.MeanAccuracy())
    assert aggregator.aggregate_evaluation(marks.id).statistics.accuracy == 1.0
    assert not notes(old)
