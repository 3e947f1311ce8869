"""Answers that failed are beside the predictions, with their reason: what the document's snippets loop over has numbers
alone, and no file is larger than it must be."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import assay
from assay.engine.experiment.imports.results import import_results
from assay.errors import UserError
from assay.formats.ragicamp.evaluation import Evaluator
from tests.cli.shell import Shell
from tests.formats.ragicamp.evaluating import MOON, OTHER, WORKED, Agent, Questions, written
from tests.formats.ragicamp.test_export import FLAKY, export, load
from tests.support import Lab

ROOT = Path(__file__).parents[3]
OWN = ("question_id", "question", "prediction", "metrics", "metadata")
HEAD = ("agent_name", "dataset_name", "timestamp", "num_examples")


MOODY = f"""
def moody(response, ground_truth):
    if response == {WORKED[OTHER]!r}:
        raise ZeroDivisionError("nobody knows")
    return 0.5
"""


def evaluate(folder: Path) -> dict[str, Any]:
    """One answer that fails, one whose metric fails, one that is whole."""
    agent = Agent(answers={**WORKED, MOON: RuntimeError("out of memory")})
    with TemporaryDirectory() as place:
        file = Path(place, "moody.py")
        file.write_text(MOODY)
        metrics = ["exact_match", "f1", f"{file}:moody"]
        Evaluator(agent, Questions(), metrics, folder / "any.json").evaluate()
    return written(folder, "gemma_2b_baseline_predictions.json")


def test_failed_answers_have_a_reason_and_are_counted(tmp_path: Path) -> None:
    found = evaluate(tmp_path)
    assert [row["question_id"] for row in found["predictions"]] == ["2"]
    reasons = {row["question_id"]: row["error"].partition(" (")[0] for row in found["failed"]}
    assert reasons == {
        "0": "RuntimeError: out of memory",
        "1": "moody: ZeroDivisionError: nobody knows",
    }
    summary = written(tmp_path, "gemma_2b_baseline_summary.json")
    for file in (found, summary):
        assert (file["num_examples"], file["num_failed"]) == (1, 2)
    assert summary["metric_statistics"]["f1"]["count"] == 2, "the answer that has an F1 counts"
    assert summary["metric_statistics"]["moody"]["errors"] == 2


def snippets() -> Iterator[str]:
    """The document's way to load results and to look at each, in our words."""
    yield """
summary = json.loads(Path("gemma_2b_baseline_summary.json").read_text())
print(f"{summary['overall_metrics']['f1']:.4f}")
print(f"{summary['metric_statistics']['f1']['min']:.2f} {summary['metric_statistics']['f1']['max']:.2f}")
"""
    yield """
predictions = json.loads(Path("gemma_2b_baseline_predictions.json").read_text())
for pred in predictions['predictions']:
    for name in ('f1', 'exact_match', 'moody'):
        if pred['metrics'][name] < 0.3:
            print(pred['question'], pred['prediction'])
assert len(predictions['predictions']) == predictions['num_examples']
"""


@pytest.mark.parametrize("snippet", list(snippets()))
def test_the_documents_loops_never_meet_null(
    snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(snippet, {"json": json, "Path": Path})


def test_failed_answers_are_imported_as_failed(tmp_path: Path) -> None:
    evaluate(tmp_path / "files")
    (found,) = import_results(tmp_path / "files", tmp_path / "back")
    assert found.responses == {"errored": 1, "ok": 2}
    assert found.evaluations == {"errored": 4, "scored": 5}
    rows = {}
    for line in (tmp_path / "back/responses.jsonl").read_text().splitlines():
        rows[json.loads(line)["item_id"]] = json.loads(line)
    assert rows["0"]["outcome"] == "errored"
    assert rows["0"]["error"].startswith("RuntimeError: out of memory")
    assert (rows["1"]["outcome"], rows["1"]["error"]) == ("ok", None)
    labels = [
        json.loads(line)
        for line in (tmp_path / "back/evaluation_results.jsonl").read_text().splitlines()
    ]
    (moody,) = (row for row in labels if (row["item_id"], row["label"]) == ("1", "moody"))
    assert moody["outcome"] == "errored"
    assert moody["error"].startswith("ZeroDivisionError: nobody knows")
    by_label = {row["label"]: row for row in assay.aggregate(tmp_path / "back").metrics}
    assert by_label["f1"]["value"] == 0.5
    assert (by_label["f1"]["used_sample_count"], by_label["f1"]["errored_count"]) == (2, 1)
    assert all(line.equal for line in found.headlines)
    export(tmp_path / "back", tmp_path / "again")
    assert [row["question_id"] for row in load_again(tmp_path)["failed"]] == ["0", "1"]


def load_again(folder: Path) -> dict[str, Any]:
    return load(folder / "again/gemma_2b_baseline_predictions.json")


def test_files_of_ours_that_have_failed_answers_among_the_predictions(tmp_path: Path) -> None:
    """As Assay wrote them before: a marked text, metrics that are null, rows of ours beside."""
    old = {
        "agent_name": "a", "dataset_name": "d", "timestamp": "2025-10-30T15:30:45+00:00",
        "num_examples": 3, "num_errors": 1, "model_name": "m", "prompt_template": "t",
        "task": "m/t", "sample_index": 0, "total_samples": 1,
        "predictions": [
            {
                "question_id": "0", "question": "?", "prediction": "[ERROR: boom]",
                "metrics": {"f1": None}, "metadata": {"model_id": "m"},
                "outcome": "errored", "error": "boom",
                "response": {"key": "k0", "error_kind": "transient"},
                "evaluations": [{"metric": "f1", "key": "e0", "error": "boom"}],
            },
            {
                "question_id": "1", "question": "!", "prediction": "x", "metrics": {"f1": 0.25},
                "metadata": {"model_id": "m", "sampling": {"temperature": 0.5}},
                "response": {"key": "k1", "cost": 0.5},
                "evaluations": [{"metric": "f1", "passed": False, "key": "e1"}],
            },
            {
                "question_id": "2", "question": "!!", "prediction": "y",
                "metrics": {"f1": None}, "metadata": {},
            },
        ],
    }  # fmt: skip
    (tmp_path / "files").mkdir()
    (tmp_path / "files/a_predictions.json").write_text(json.dumps(old))
    (found,) = import_results(tmp_path / "files", tmp_path / "back")
    assert found.responses == {"errored": 1, "ok": 2}
    assert found.evaluations == {"errored": 2, "scored": 1}
    rows = [
        json.loads(line) for line in (tmp_path / "back/responses.jsonl").read_text().splitlines()
    ]
    assert [(row["key"], row["error"], row["cost"]) for row in rows[:2]] == [
        ("k0", "boom", None),
        ("k1", None, 0.5),
    ]
    assert {row["metadata"]["prompt_template"] for row in rows} == {"t"}
    export(tmp_path / "back", tmp_path / "again")
    again = load(tmp_path / "again/m_predictions.json")
    assert (again["num_examples"], again["num_failed"]) == (1, 2)


WORDS = ["moon", "river", "last", "anyone", "house", "the", "rising", "capital", "who", "played"]


class ManyQuestions:
    """Questions and answers as long as those of Natural Questions, which have about nine and two words."""

    name = "natural_questions"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        draw = random.Random(1)
        for number in range(300):
            question = " ".join(draw.choices(WORDS, k=draw.randint(7, 12)))
            answers = [" ".join(draw.choices(WORDS, k=draw.randint(1, 4)))]
            yield {"id": f"nq_validation_{number}", "question": question, "answers": answers}


class Talker:
    name = "gemma_2b_baseline"

    def answer(self, question: str) -> str:
        if len(question) % 20 == 0:
            raise TimeoutError("the server did not answer within 30 seconds")
        return " ".join(question.split()[:: len(question) % 4 + 1])


def own_bytes(path: Path) -> int:
    """The size of a predictions file with the document's fields alone, and no metadata."""
    found = load(path)
    rows = [
        {**{name: row[name] for name in OWN}, "metadata": {}}
        for row in (*found["predictions"], *found["failed"])
    ]
    plain = {**{name: found[name] for name in HEAD}, "predictions": rows}
    return len(json.dumps(plain, indent=2).encode())


def test_the_files_are_hardly_larger_than_the_documents_fields(tmp_path: Path) -> None:
    Evaluator(Talker(), ManyQuestions(), ["exact_match", "f1"], tmp_path / "x.json").evaluate()
    path = tmp_path / "gemma_2b_baseline_predictions.json"
    assert 5 < load(path)["num_failed"] < 30
    assert path.stat().st_size <= 1.3 * own_bytes(path)


def test_so_are_those_of_a_config(shell: Shell) -> None:
    assert shell.call("run", str(ROOT / "examples/ragicamp/demo.yaml"), "-o", "out").code == 0
    assert shell.call("export", "out", "--format", "ragicamp", "-o", "rc").code == 0
    path = shell.folder / "rc/gemma_2b_baseline_predictions.json"
    assert load(path)["num_examples"] == 20
    assert path.stat().st_size <= 1.3 * own_bytes(path)


def test_a_skipped_label_is_no_failure(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.config["sample_params"] = {}
    code = "def only(item, response):\n    return [] if item.id == 'q1' else 1.0\n"
    file = lab.write("only.py", code)
    lab.config["evaluation_methods"] = ["exact_match", f"{file}:only"]
    lab.run()
    export(tmp_path / "out", tmp_path / "rc")
    found = load(tmp_path / "rc/calculator_predictions.json")
    assert (found["num_examples"], found["num_failed"]) == (4, 0)
    assert set(found["predictions"][1]["metrics"]) == {"exact_match"}
    (back,) = import_results(tmp_path / "rc", tmp_path / "back")
    assert back.evaluations == {"scored": 7, "skipped": 1}


def test_the_mean_of_samples_is_of_those_that_answered(tmp_path: Path) -> None:
    lab = Lab(tmp_path, items=4)
    lab.write("model.py", FLAKY.replace("answer", "calculator"))
    lab.config["max_retries"] = 0
    lab.run()
    export(tmp_path / "out", tmp_path / "rc", samples="mean")
    found = load(tmp_path / "rc/calculator_predictions.json")
    assert (found["num_examples"], found["num_failed"]) == (3, 1)
    assert "no threes" in found["failed"][0]["error"]
    assert "evaluations" not in found["failed"][0]


# ---- before a question is asked


def other_questions(folder: Path) -> None:
    rows = [{"id": "0", "question": "another", "expected_answer": "x"}]
    text = json.dumps({"dataset_name": "natural_questions", "questions": rows})
    (folder / "natural_questions_questions.json").write_text(text)


def other_predictions(folder: Path) -> None:
    text = json.dumps({"dataset_name": "natural_questions", "predictions": []})
    (folder / "gemma_2b_baseline_predictions.json").write_text(text)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (other_questions, "question '0' is 'another' in the file"),
        (other_predictions, "Assay did not write"),
    ],
)
def test_a_conflict_is_known_before_a_question_is_asked(
    spoil: Any, said: str, tmp_path: Path
) -> None:
    spoil(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.json")}
    agent = Agent()
    with pytest.raises(UserError, match=said):
        Evaluator(agent, Questions(), ["f1"], tmp_path / "any.json").evaluate()
    assert agent.asked == []
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.json")} == before


def test_a_conflict_of_a_configs_output_is_known_before_a_model_is_asked(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.config["outputs"] = [{"type": "ragicamp", "path": str(tmp_path / "rc")}]
    lab.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in lab.rows))
    assay.run(lab.config)
    calls = lab.calls()
    (tmp_path / "other").mkdir()
    rows = [{**row, "data": {"question": "7 + 7"}} for row in lab.rows]
    other = lab.write("other/items.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    changed = {**lab.config, "dataset": str(other)}
    with pytest.raises(UserError, match=r"question 'q0' is '0 \+ 1' in the file and '7 \+ 7' here"):
        assay.run({**changed, "output_dir": str(tmp_path / "new")})
    assert lab.calls() == calls
    with pytest.raises(UserError, match="question 'q0'"):
        assay.validate(changed)
