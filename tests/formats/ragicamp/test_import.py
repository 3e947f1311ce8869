"""RAGiCamp's three files and its old five become the same items, responses and evaluations."""

import json
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.engine.experiment.imports.results import Imported, import_results
from assay.errors import UserError
from assay.registry import dataset
from assay.store.stores import FlatStore
from tests.formats.ragicamp import generations
from tests.formats.ragicamp.generations import (
    AGENT,
    ANSWERS,
    COUNT,
    DATASET,
    EXACT,
    F1,
    QUESTIONS,
    SAID,
)

SUFFIXES = (".json", "_metrics.json", "_metrics.txt", "_per_question.json", "_per_question.csv")
SUBSETS = list(chain.from_iterable(combinations(SUFFIXES, count) for count in range(1, 6)))


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def scores(folder: Path, label: str) -> dict[str, Any]:
    found = rows(folder, "evaluation_results.jsonl")
    return {row["item_id"]: row["score"] for row in found if row["label"] == label}


def imported(source: Path, folder: Path) -> Imported:
    (only,) = import_results(source, folder)
    return only


@pytest.mark.parametrize("name", ["five_files", "three_files"])
def test_both_generations_tell_the_same(tmp_path: Path, name: str) -> None:
    getattr(generations, name)(tmp_path / "src")
    out = tmp_path / "out"
    result = imported(tmp_path / "src", out)
    ids = [f"nq_{n}" for n in range(COUNT)]
    assert (result.dataset, result.agents, result.notes) == (DATASET, [AGENT], [])
    items = rows(out, "items.jsonl")
    assert [item["id"] for item in items] == ids
    assert [item["data"]["question"] for item in items] == QUESTIONS
    assert [item["ground_truth"] for item in items] == ANSWERS
    responses = rows(out, "responses.jsonl")
    assert [(row["item_id"], row["response"]) for row in responses] == list(
        zip(ids, SAID, strict=True)
    )
    assert {(row["model_name"], row["outcome"]) for row in responses} == {(AGENT, "ok")}
    assert {row["metadata"]["model_id"] for row in responses} == {AGENT}
    assert {row["timestamp"] for row in responses} == {1761838245.123456}
    assert scores(out, "f1") == dict(zip(ids, F1, strict=True))
    assert scores(out, "exact_match") == dict(zip(ids, EXACT, strict=True))


@pytest.mark.parametrize("name", ["raw", "later", "experiment"])
def test_later_generations_are_refused(tmp_path: Path, name: str) -> None:
    path = getattr(generations, name)(tmp_path / "src")
    for source in (tmp_path / "src", path):
        with pytest.raises(UserError, match="of a later RAGiCamp") as caught:
            imported(source, tmp_path / "out")
        assert str(caught.value.where).startswith(str(path.parent))
        assert "a CSV table of samples" in str(caught.value.fix)
    generations.three_files(tmp_path / "src")
    with pytest.raises(UserError, match="of a later RAGiCamp"):
        imported(tmp_path / "src", tmp_path / "out")
    with pytest.raises(UserError, match="of a later RAGiCamp"):
        list(dataset.get("ragicamp")(str(tmp_path / "src")))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["out_summary.json", "out_checkpoint.json", "a/questions.json"])
def test_any_file_of_a_later_generation_is_refused(tmp_path: Path, name: str) -> None:
    generations.three_files(tmp_path / "src")
    generations.later(tmp_path / "later")
    generations.experiment(tmp_path / "later", "a")
    path = tmp_path / "src" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes((tmp_path / "later" / name).read_bytes())
    with pytest.raises(UserError, match="of a later RAGiCamp") as caught:
        imported(tmp_path / "src", tmp_path / "out")
    assert caught.value.where == str(path)


def test_what_came_along_is_kept(tmp_path: Path) -> None:
    path = generations.three_files(tmp_path / "src")
    found = json.loads(path.read_text())
    found["predictions"][0] |= {"prompt": "Q", "steps": [{"timing_ms": 3.5}]}
    found["predictions"][0]["metadata"] = {"retrieved_docs": [{"doc_id": "d0"}]}
    path.write_text(json.dumps(found))
    imported(tmp_path / "src", tmp_path / "out")
    first = rows(tmp_path / "out", "responses.jsonl")[0]
    assert first["prompt"] == "Q"
    assert first["metadata"]["retrieved_docs"][0]["doc_id"] == "d0"
    assert first["metadata"]["steps"] == [{"timing_ms": 3.5}]
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert (
        manifest["run"]["metadata"]["ragicamp"]["overall_metrics"][AGENT] == generations.overall()
    )


@pytest.mark.parametrize("kept", SUBSETS, ids="+".join)
def test_any_subset_of_the_five_files(tmp_path: Path, kept: tuple[str, ...]) -> None:
    source, out = tmp_path / "src", tmp_path / "out"
    for suffix, path in generations.five_files(source).items():
        if suffix not in kept:
            path.unlink()
    if not {".json", "_per_question.json", "_per_question.csv"} & set(kept):
        with pytest.raises(UserError, match="nothing that can be imported"):
            imported(source, out)
        return
    result = imported(source, out)
    has_answers, has_scores = (
        ".json" in kept,
        bool({"_per_question.json", "_per_question.csv"} & set(kept)),
    )
    named = {".json", "_metrics.json", "_metrics.txt", "_per_question.json"} & set(kept)
    assert result.agents == [AGENT if named else "gemma2b_baseline_results"]
    assert result.items == COUNT
    responses = rows(out, "responses.jsonl")
    assert [row["response"] for row in responses] == (SAID if has_answers else [""] * COUNT)
    assert {row["outcome"] for row in responses} == {"ok" if has_answers else "skipped"}
    assert list(scores(out, "f1").values()) == (F1 if has_scores else [])


def test_lists_in_an_old_summary_go_to_their_questions(tmp_path: Path) -> None:
    generations.five_files(
        tmp_path / "src", bleurt=0.5, bleurt_scores=[0.25, 0.5, 0.75], individual_scores=[1.0]
    )
    result = imported(tmp_path / "src", tmp_path / "out")
    assert list(scores(tmp_path / "out", "bleurt").values()) == [0.25, 0.5, 0.75]
    assert "llm_judge_score" in result.notes[0], "a list of another length is not guessed at"
    assert scores(tmp_path / "out", "llm_judge_score") == {}


def test_old_scores_in_another_order(tmp_path: Path) -> None:
    path = generations.five_files(tmp_path / "src")["_per_question.json"]
    found = json.loads(path.read_text())
    found["per_question_metrics"].reverse()
    path.write_text(json.dumps(found))
    imported(tmp_path / "src", tmp_path / "out")
    assert list(scores(tmp_path / "out", "f1").values()) == F1


def test_an_error_has_no_answer(tmp_path: Path) -> None:
    said = ["[ERROR: out of memory]", "Paris", "wrong"]
    generations.three_files(tmp_path / "src", said=said)
    imported(tmp_path / "src", tmp_path / "out")
    error = rows(tmp_path / "out", "responses.jsonl")[0]
    assert (error["outcome"], error["error"], error["response"]) == ("errored", "out of memory", "")


def test_one_id_for_two_questions(tmp_path: Path) -> None:
    """Two folders number their own questions: what is asked tells them apart."""
    generations.three_files(tmp_path / "src/1", "first")
    path = generations.three_files(tmp_path / "src/2", "second")
    for file in path.parent.iterdir():
        file.write_text(file.read_text().replace(QUESTIONS[1], "who wrote faust"))
    result = imported(tmp_path / "src", tmp_path / "out")
    assert result.items == COUNT + 1
    by_agent: dict[str, list[str]] = {}
    for row in rows(tmp_path / "out", "responses.jsonl"):
        by_agent.setdefault(row["model_name"], []).append(row["item_id"])
    assert by_agent["first"] == ["nq_0", "nq_1", "nq_2"]
    assert by_agent["second"][1].startswith("nq_1~")
    assert by_agent["second"][::2] == ["nq_0", "nq_2"]


def test_old_predictions_only_add_what_the_new_ones_lack(tmp_path: Path) -> None:
    source = tmp_path / "src"
    for name, path in generations.five_files(source).items():
        if name != ".json":
            path.unlink()
    scored = generations.three_files(source)
    whole = json.loads(scored.read_text())
    whole["predictions"] = whole["predictions"][:2]
    scored.write_text(json.dumps(whole))
    imported(source, tmp_path / "out")
    assert [row["response"] for row in rows(tmp_path / "out", "responses.jsonl")] == SAID
    assert list(scores(tmp_path / "out", "f1")) == ["nq_0", "nq_1"]


def test_predictions_without_questions_and_questions_without_predictions(tmp_path: Path) -> None:
    source = tmp_path / "src"
    path = generations.three_files(source)
    generations.questions_file(source, 2)
    found = json.loads(path.read_text())
    del found["predictions"][0]
    path.write_text(json.dumps(found))
    result = imported(source, tmp_path / "out")
    assert result.items == COUNT
    assert any("1 predictions have no question" in note and "nq_2" in note for note in result.notes)
    assert any("1 questions have no prediction" in note for note in result.notes)
    assert rows(tmp_path / "out", "items.jsonl")[2]["data"] == {"question": QUESTIONS[2]}


def test_a_file_that_ends_before_its_first_answer_is_refused(tmp_path: Path) -> None:
    path = generations.three_files(tmp_path / "src")
    path.write_text(path.read_text()[: path.stat().st_size // 3])
    with pytest.raises(UserError, match="no response to import"):
        imported(tmp_path / "src", tmp_path / "out")


@pytest.mark.parametrize("share", [0.6, 0.75, 0.9, 0.999])
def test_a_half_written_file_gives_what_is_whole(tmp_path: Path, share: float) -> None:
    path = generations.three_files(tmp_path / "src")
    text = path.read_text()
    whole = text[: int(len(text) * share)]
    path.write_text(whole)
    result = imported(tmp_path / "src", tmp_path / "out")
    found = rows(tmp_path / "out", "responses.jsonl")
    entries = whole.count('"metadata": {')
    assert entries - 1 <= len(found) <= entries
    assert [row["response"] for row in found] == SAID[: len(found)]
    assert any("is not whole" in note for note in result.notes)
    run = FlatStore(tmp_path / "out").manifest("run", "out")
    assert run is not None
    assert (result.rejected, run.complete, run.planned) == (1, False, max(COUNT, len(found) + 1))


def test_what_others_write_into_json(tmp_path: Path) -> None:
    path = generations.three_files(tmp_path / "src", said=["x", None, {"answer": "Paris"}])
    text = path.read_text().replace(
        '"f1": 0.8', '"f1": NaN, "bleu": null, "judge": {"why": "so"}, "ok": true', 1
    )
    text = text.replace(
        '"tokens": 0', '"tokens": 123456789012345678901234567890, "half": "\\ud800"'
    )
    path.write_text("\ufeff" + text, encoding="utf-8")
    result = imported(tmp_path / "src", tmp_path / "out")
    found = rows(tmp_path / "out", "responses.jsonl")
    assert [row["response"] for row in found] == ["x", "", '{"answer": "Paris"}']
    assert [row["outcome"] for row in found] == ["ok", "skipped", "ok"]
    assert found[0]["metadata"]["tokens"] == 123456789012345678901234567890.0
    first = {
        row["label"]: row
        for row in rows(tmp_path / "out", "evaluation_results.jsonl")
        if row["item_id"] == "nq_0"
    }
    assert (first["f1"]["outcome"], first["bleu"]["outcome"]) == ("errored", "errored")
    assert first["judge"]["value"] == {"why": "so"}
    assert (first["ok"]["score"], first["ok"]["passed"]) == (1.0, True)
    assert "1 rows have metrics but no prediction" in result.notes[0]


def test_two_predictions_for_one_question_are_refused(tmp_path: Path) -> None:
    path = generations.three_files(tmp_path / "src")
    path.write_text(path.read_text().replace('"question_id": "nq_1"', '"question_id": "nq_0"'))
    text = path.read_text().replace(QUESTIONS[1], QUESTIONS[0])
    path.write_text(text)
    with pytest.raises(UserError, match="two predictions"):
        imported(tmp_path / "src", tmp_path / "out")


def test_again_does_nothing_and_a_change_is_read(tmp_path: Path) -> None:
    path = generations.three_files(tmp_path / "src")
    imported(tmp_path / "src", tmp_path / "out")
    before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "out").glob("*.jsonl")}
    imported(tmp_path / "src", tmp_path / "out")
    assert before == {
        file.name: file.stat().st_mtime_ns for file in (tmp_path / "out").glob("*.jsonl")
    }
    path.write_text(path.read_text().replace("Paris.", "Lyon!!"))
    imported(tmp_path / "src", tmp_path / "out")
    assert rows(tmp_path / "out", "responses.jsonl")[2]["response"] == "Lyon!!"


def test_rows_that_no_import_made_are_never_replaced(tmp_path: Path) -> None:
    generations.three_files(tmp_path / "src")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/responses.jsonl").write_text('{"item_id": "mine"}\n')
    with pytest.raises(UserError, match="no import has made"):
        imported(tmp_path / "src", tmp_path / "out")
    assert rows(tmp_path / "out", "responses.jsonl") == [{"item_id": "mine"}]


def test_imported_rows_are_scored_again_and_aggregated(tmp_path: Path) -> None:
    """The spec's worked numbers come out of the predictions."""
    generations.three_files(tmp_path / "src")
    out = tmp_path / "out"
    imported(tmp_path / "src", out)
    metrics = [{"name": name, "type": name, "facets": ["model_name"]} for name in ("mean", "std")]
    metrics[1]["params"] = {"ddof": 0}  # type: ignore[assignment]
    result = assay.evaluate(
        out,
        {
            "evaluation_methods": ["ragicamp.exact_match", "ragicamp.f1"],
            "metrics": metrics,
            "name": "again",
        },
    )
    found = {(row["label"], row["metric_name"]): row["value"] for row in result.metrics}
    assert found["ragicamp.exact_match", "mean"] == pytest.approx(1 / 3)
    assert found["ragicamp.f1", "mean"] == pytest.approx(0.6)
    assert found["ragicamp.exact_match", "std"] == pytest.approx(0.4714045208)
    assert found["ragicamp.f1", "std"] == pytest.approx(0.4320493799)
    again = imported(tmp_path / "src", out)
    assert "made by Assay" in again.notes[-1]
    assert len(rows(out, "evaluation_results.jsonl")) == 2 * COUNT


def test_several_datasets_get_a_folder_each(tmp_path: Path) -> None:
    generations.three_files(tmp_path / "src/one")
    path = generations.three_files(tmp_path / "src/two", agent="other")
    for file in path.parent.iterdir():
        file.write_text(file.read_text().replace(DATASET, "trivia/qa"))
    found = import_results(tmp_path / "src", tmp_path / "out")
    assert sorted(one.dataset for one in found) == [DATASET, "trivia/qa"]
    assert all(rows(Path(one.folder), "responses.jsonl") for one in found)
    assert len({one.folder for one in found}) == 2


def test_questions_are_a_dataset_of_a_config(tmp_path: Path) -> None:
    generations.three_files(tmp_path / "src")
    (tmp_path / "m.py").write_text("def answer(prompt):\n    return 'Paris'\n")
    config = {
        "dataset": {"type": "ragicamp", "path": str(tmp_path / "src")},
        "models": [
            {
                "name": "p",
                "type": "python",
                "path": str(tmp_path / "m.py"),
                "function_name": "answer",
            }
        ],
        "evaluation_methods": ["squad.exact_match"],
        "metrics": ["mean"],
        "output_dir": str(tmp_path / "out"),
    }
    result = assay.run(config)
    assert result.metrics[0]["value"] == pytest.approx(1 / 3)
    with pytest.raises(UserError, match="no dataset 'nq'"):
        assay.run({**config, "dataset": {**config["dataset"], "params": {"dataset": "nq"}}})  # type: ignore[dict-item]


@pytest.mark.parametrize("name", ["five_files", "three_files"])
def test_the_means_of_the_summary_come_from_the_rows(tmp_path: Path, name: str) -> None:
    getattr(generations, name)(tmp_path / "src")
    lines = {line.label: line for line in imported(tmp_path / "src", tmp_path / "out").headlines}
    assert {label: line.theirs for label, line in lines.items()} == generations.overall()
    for line in lines.values():
        assert line.equal
        assert line.where == {"model_name": AGENT}


def test_a_summary_that_says_something_else_is_told(tmp_path: Path) -> None:
    generations.three_files(tmp_path / "src")
    summary = tmp_path / f"src/{AGENT}_summary.json"
    summary.write_text(summary.read_text().replace(str(sum(F1) / COUNT), "0.9"))
    lines = {line.label: line for line in imported(tmp_path / "src", tmp_path / "out").headlines}
    assert (lines["f1"].theirs, lines["f1"].equal, lines["exact_match"].equal) == (0.9, False, True)


def test_fewer_predictions_than_their_file_says_are_a_part(tmp_path: Path) -> None:
    path = generations.three_files(tmp_path / "src")
    content = json.loads(path.read_text())
    content["predictions"].pop()
    path.write_text(json.dumps(content))
    result = imported(tmp_path / "src", tmp_path / "out")
    assert (result.planned, sum(result.responses.values())) == (COUNT, COUNT - 1)
