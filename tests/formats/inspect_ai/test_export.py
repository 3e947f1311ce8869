"""Experiments as logs of inspect_ai: read again by our reader, and by inspect_ai itself where it is installed."""

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.analysis.look.export import export
from assay.errors import UserError
from assay.formats.inspect_ai.archive import Archive
from assay.formats.inspect_ai.reader import inspect_ai
from tests.convert_lab import content, make
from tests.formats.inspect_ai.lab import LOGS, cases, imported, rows
from tests.formats.installed import needed

KEPT = (
    "item_id",
    "sample_index",
    "total_samples",
    "model_name",
    "task",
    "response",
    "outcome",
    "error",
    "cost",
)
TOKENS = (
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "served_model",
    "prompt",
    "reasoning",
    "tool_calls",
)
OF_LABEL = (
    "item_id",
    "sample_index",
    "label",
    "scorer",
    "score",
    "passed",
    "outcome",
    "model_name",
)


def pick(several: list[dict[str, Any]], names: tuple[str, ...]) -> list[Any]:
    return sorted(json.dumps([row[name] for name in names]) for row in several)


def texts(row: dict[str, Any]) -> list[Any]:
    return [(each["role"], each["content"], each.get("tool_calls")) for each in row["messages"]]


@pytest.mark.parametrize(
    "name", ["large.eval", "tools.eval", "letters.eval", "limited.json", "cancelled.eval"]
)
def test_what_was_imported_comes_back(tmp_path: Path, name: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    imported(LOGS / name, first)
    export(first, "inspect_ai", output=tmp_path / "log.eval")
    imported(tmp_path / "log.eval", second)
    for table, fields in (
        ("responses.jsonl", (*KEPT, *TOKENS)),
        ("evaluation_results.jsonl", OF_LABEL),
    ):
        assert pick(rows(second, table), fields) == pick(rows(first, table), fields)
    pairs = zip(rows(first, "responses.jsonl"), rows(second, "responses.jsonl"), strict=True)
    assert all(texts(one) == texts(other) for one, other in pairs)
    items = {
        row["id"]: (row["data"], row.get("ground_truth"), row.get("metadata"))
        for row in rows(first, "items.jsonl")
    }
    assert items == {
        row["id"]: (row["data"], row.get("ground_truth"), row.get("metadata"))
        for row in rows(second, "items.jsonl")
    }
    assert all(headline.equal for headline in imported(tmp_path / "log.eval", second).headlines)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of our own with two models and three samples, one of which fails."""
    folder = tmp_path_factory.mktemp("own")
    items = [
        {"id": f"q/{number}", "question": f"What is {number} + 1?", "answer": str(number + 1)}
        for number in range(4)
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    config = {
        "name": "plus one",
        "dataset": str(folder / "items.jsonl"),
        "models": [{"name": "one", "type": "demo"}, {"name": "two", "type": "demo", "skill": 0.5}],
        "prompt_template": "{{question}}",
        "num_samples": 3,
        "evaluation_methods": ["exact_match", {"name": "contains"}],
        "output_dir": str(folder / "out"),
    }
    assay.run(config)
    return folder / "out"


def test_several_models_are_a_folder_and_one_experiment_again(own: Path, tmp_path: Path) -> None:
    notes = export(own, "inspect_ai", output=tmp_path / "logs")
    assert any("2 logs" in note for note in notes)
    assert len(list((tmp_path / "logs").glob("*.eval"))) == 2
    assert len(inspect_ai(tmp_path / "logs")) == 1
    result = imported(tmp_path / "logs", tmp_path / "again")
    assert result.agents == ["one", "two"]
    assert pick(rows(tmp_path / "again", "responses.jsonl"), KEPT) == pick(
        rows(own, "responses.jsonl"), KEPT
    )
    evaluations = "evaluation_results.jsonl"
    assert pick(rows(tmp_path / "again", evaluations), OF_LABEL) == pick(
        rows(own, evaluations), OF_LABEL
    )
    assert all(headline.equal for headline in result.headlines)
    assert len(result.headlines) == 4


def test_scorers_of_one_label_have_scores_and_numbers_of_their_own(tmp_path: Path) -> None:
    lab = make(tmp_path / "lab")
    notes = export(lab, "inspect_ai", output=tmp_path / "logs")
    assert "2 skipped answers are not in the log: inspect_ai has no such samples" in notes
    result = imported(tmp_path / "logs", tmp_path / "again")
    labels = {
        (row["label"], row["scorer"])
        for row in content(tmp_path / "again")["evaluation_results.jsonl"]
    }
    assert {("exact_match", "exact"), ("exact_match (judge (strict))", "judge (strict)")} < labels
    assert {headline.label for headline in result.headlines} == {label for label, _ in labels}
    assert all(headline.equal for headline in result.headlines)


def test_equal_rows_give_equal_files(own: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        export(own, "inspect_ai", output=tmp_path / name)
    files = [sorted((tmp_path / name).glob("*.eval")) for name in ("one", "two")]
    assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]


def test_nothing_of_others_is_replaced(tmp_path: Path) -> None:
    imported(LOGS / "letters.eval", tmp_path / "in")
    (tmp_path / "log.eval").write_text("precious")
    with pytest.raises(UserError, match="exists"):
        export(tmp_path / "in", "inspect_ai", output=tmp_path / "log.eval")
    with pytest.raises(UserError, match="writes a file"):
        export(tmp_path / "in", "inspect_ai")


def test_without_zstandard_members_are_deflated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(LOGS / "letters.eval", tmp_path / "in")
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    export(tmp_path / "in", "inspect_ai", output=tmp_path / "log.eval")
    with zipfile.ZipFile(tmp_path / "log.eval") as file:
        assert file.testzip() is None
        assert {info.compress_type for info in file.infolist()} == {zipfile.ZIP_DEFLATED}
    assert len(cases(tmp_path / "log.eval")) == 3


def test_an_archive_has_what_inspect_ai_looks_for(own: Path, tmp_path: Path) -> None:
    export(own, "inspect_ai", output=tmp_path / "logs")
    archive = Archive(tmp_path / "logs/one.eval")
    assert "samples/q/1_epoch_3.json" in archive.members
    assert {"header.json", "summaries.json", "reductions.json", "_journal/start.json"} <= set(
        archive.members
    )
    with archive:
        assert len(json.loads(archive.read(archive.members["summaries.json"]))) == 12
        reductions = json.loads(archive.read(archive.members["reductions.json"]))
    assert {len(each["samples"]) for each in reductions} == {4}


def test_a_transcript_is_written_and_not_read_back(own: Path, tmp_path: Path) -> None:
    export(own, "inspect_ai", output=tmp_path / "logs")
    with Archive(tmp_path / "logs/one.eval") as archive:
        sample = json.loads(archive.read(archive.members["samples/q/1_epoch_3.json"]))
    kinds = [event["event"] for event in sample["events"]]
    assert kinds == ["info", "model", *["span_begin", "score", "span_end"] * 2]
    assert sample["events"][1]["input"] == sample["messages"][:1]
    assert sample["events"][1]["output"]["completion"] == sample["messages"][1]["content"]
    assert {score["answer"] for score in sample["scores"].values()} == {
        sample["messages"][1]["content"]
    }
    assert [sample["events"][at]["score"] for at in (3, 6)] == list(sample["scores"].values())
    imported(tmp_path / "logs", tmp_path / "again")
    assert not (tmp_path / "again/traces.jsonl").exists()


def test_of_a_failure_the_error_is_in_the_transcript(tmp_path: Path) -> None:
    export(make(tmp_path / "lab"), "inspect_ai", output=tmp_path / "logs")
    with Archive(tmp_path / "logs/small.eval") as archive:
        sample = json.loads(archive.read(archive.members["samples/q1_epoch_2.json"]))
    assert [event["event"] for event in sample["events"]] == [
        "info",
        "error",
        "span_begin",
        "score",
        "span_end",
    ]
    assert sample["events"][1]["error"]["traceback_ansi"] == 'HTTP 500: "broken"'


READ = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
for path in sys.argv[1:]:
    log = read_eval_log(path)
    assert read_eval_log(path, header_only=True).results == log.results
    first = log.samples[0]
    assert read_eval_log_sample(path, first.id, first.epoch).id == first.id
    scores = log.results.scores
    metrics = {score.name: {name: metric.value for name, metric in score.metrics.items()} for score in scores}
    told = {"status": log.status, "samples": len(log.samples), "metrics": metrics, "model": log.eval.model}
    told["summaries"] = len(read_eval_log_sample_summaries(path))
    told["texts"] = sorted(sample.output.completion for sample in log.samples)
    print(json.dumps(told))
"""


@pytest.mark.peers
@pytest.mark.parametrize("name", ["large.eval", "tools.eval", "letters.eval", "cancelled.eval"])
def test_inspect_ai_reads_what_we_write(tmp_path: Path, name: str) -> None:
    result = imported(LOGS / name, tmp_path / "in")
    export(tmp_path / "in", "inspect_ai", output=tmp_path / "log.eval")
    paths = [str(LOGS / name), str(tmp_path / "log.eval")]
    done = subprocess.run(
        [needed("inspect_ai"), "-c", READ, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    theirs, ours = map(json.loads, done.stdout.splitlines())
    assert ours["texts"] == theirs["texts"]
    assert ours["samples"] == ours["summaries"] == sum(result.responses.values())
    if name != "tools.eval":  # whose labels have the scorer's name before the key
        assert ours["metrics"] == {
            label: {metric: pytest.approx(value) for metric, value in values.items()}
            for label, values in theirs["metrics"].items()
        }
    command = [needed("inspect_ai", "inspect"), "log", "dump", paths[1]]
    dumped = subprocess.run(command, capture_output=True, check=False)
    assert dumped.returncode == 0, dumped.stderr[-2000:]
    assert json.loads(dumped.stdout)["version"] == 2


@pytest.mark.peers
def test_inspect_ai_reads_any_rows(tmp_path: Path) -> None:
    export(make(tmp_path / "lab"), "inspect_ai", output=tmp_path / "logs")
    paths = sorted(map(str, (tmp_path / "logs").glob("*.eval")))
    done = subprocess.run(
        [needed("inspect_ai"), "-c", READ, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["samples"] for each in told] == [7, 7]
    assert all(each["metrics"]["exact_match (judge (strict))"]["mean"] == 0.25 for each in told)


@pytest.mark.peers
def test_inspect_ai_reads_experiments_of_ours(own: Path, tmp_path: Path) -> None:
    export(own, "inspect_ai", output=tmp_path / "logs")
    paths = sorted(map(str, (tmp_path / "logs").glob("*.eval")))
    done = subprocess.run(
        [needed("inspect_ai"), "-c", READ, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["model"] for each in told] == ["one", "two"]
    assert {each["samples"] for each in told} == {12}
