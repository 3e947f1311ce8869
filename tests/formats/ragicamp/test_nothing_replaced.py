"""What RAGiCamp's files and the experiment say stays as it is: batch values, policy, level, questions, errors."""

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.engine.experiment.imports.results import import_results
from assay.errors import UserError
from tests.formats.ragicamp import generations
from tests.formats.ragicamp.generations import AGENT
from tests.formats.ragicamp.test_export import export, load
from tests.support import Lab


def summary_of(source: Path, tmp_path: Path) -> dict[str, Any]:
    import_results(source, tmp_path / "out")
    export(tmp_path / "out", tmp_path / "rc")
    return load(tmp_path / f"rc/{AGENT}_summary.json")


def test_imported_batch_values_are_not_replaced(tmp_path: Path) -> None:
    generations.three_files(tmp_path / "src")
    file = tmp_path / f"src/{AGENT}_summary.json"
    file.write_text(
        json.dumps({**load(file), "overall_metrics": {"f1": 0.61, "corpus_bleu": 17.5}})
    )
    summary = summary_of(tmp_path / "src", tmp_path)
    assert (summary["overall_metrics"]["f1"], summary["overall_metrics"]["corpus_bleu"]) == (
        0.61,
        17.5,
    )
    assert summary["metric_statistics"]["f1"]["mean"] == pytest.approx(0.6)


def test_new_scores_do_not_get_the_imported_batch_values(tmp_path: Path) -> None:
    generations.three_files(tmp_path / "src")
    import_results(tmp_path / "src", tmp_path / "out")
    config = {"evaluation_methods": [{"name": "f1", "type": "contains"}], "metrics": ["mean"]}
    assay.evaluate(tmp_path / "out", config=config)
    export(tmp_path / "out", tmp_path / "rc")
    summary = load(tmp_path / f"rc/{AGENT}_summary.json")
    assert summary["overall_metrics"]["f1"] == summary["metric_statistics"]["f1"]["mean"] != 0.6


@pytest.mark.parametrize(
    ("on_error", "mean", "shown"), [("exclude", 1.0, None), ("wrong", 0.75, 0.0)]
)
def test_the_experiments_policy_and_level(
    tmp_path: Path, on_error: str, mean: float, shown: float | None
) -> None:
    lab = Lab(tmp_path)
    lab.write(
        "model.py",
        "def calculator(prompt):\n    assert '3 + 1' not in prompt\n    return str(eval(prompt[8:-1]))\n",
    )
    lab.config |= {
        "sample_params": {},
        "policy": {"on_error": on_error},
        "ci_level": 0.8,
        "max_retries": 0,
    }
    lab.run()
    export(tmp_path / "out", tmp_path / "rc")
    statistics = load(tmp_path / "rc/calculator_summary.json")["metric_statistics"]["exact_match"]
    assert (statistics["mean"], statistics["ci_level"], statistics["errors"]) == (mean, 0.8, 1)
    (failed,) = load(tmp_path / "rc/calculator_predictions.json")["failed"]
    assert failed["metrics"]["exact_match"] == shown


def test_a_changed_question_is_a_conflict_that_is_named(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.run()
    export(tmp_path / "out", tmp_path / "rc")
    before = {path.name: path.read_bytes() for path in (tmp_path / "rc").iterdir()}
    lab.rows[2]["data"]["question"] = "2 + 2"
    lab.run()
    with pytest.raises(UserError, match=r"question 'q2' is '2 \+ 1' in the file and '2 \+ 2' here"):
        export(tmp_path / "out", tmp_path / "rc")
    assert {path.name: path.read_bytes() for path in (tmp_path / "rc").iterdir()} == before
    export(tmp_path / "out", tmp_path / "rc", dataset="other")


def test_changed_answers_are_named(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.run()
    export(tmp_path / "out", tmp_path / "rc")
    lab.rows[2]["ground_truth"] = {"answer": "9"}
    lab.run()
    assert (
        "items_questions.json had other answers to 'q2'"
        in export(tmp_path / "out", tmp_path / "rc")[0]
    )
    assert export(tmp_path / "out", tmp_path / "rc") == []


@pytest.mark.parametrize("text", ["[ERROR: boom [1]]", "[ERROR: [ERROR: boom [1]]]"])
def test_an_error_is_marked_once(tmp_path: Path, text: str) -> None:
    generations.three_files(tmp_path / "src", said=["Paris", text, "Paris"])
    import_results(tmp_path / "src", tmp_path / "out")
    rows = [
        json.loads(line) for line in (tmp_path / "out/responses.jsonl").read_text().splitlines()
    ]
    assert rows[1]["error"] == "boom [1]"
    export(tmp_path / "out", tmp_path / "rc")
    (failed,) = load(tmp_path / f"rc/{AGENT}_predictions.json")["failed"]
    assert (failed["prediction"], failed["error"]) == ("", "boom [1]")


def test_the_documents_loops_over_a_summary_survive_null(tmp_path: Path) -> None:
    """A metric that has no value at all is absent, as in RAGiCamp."""
    generations.three_files(tmp_path / "src")
    file = tmp_path / f"src/{AGENT}_predictions.json"
    predictions = load(file)
    for row in predictions["predictions"]:
        row["metrics"]["bleurt"] = None
    file.write_text(json.dumps(predictions))
    summary = summary_of(tmp_path / "src", tmp_path)
    assert [f"{name}: {value:.4f}" for name, value in summary["overall_metrics"].items()][
        -1
    ] == "f1: 0.6000"
    assert {
        name: f"{of['min']:.2f} - {of['max']:.2f}"
        for name, of in summary["metric_statistics"].items()
    } == {
        "exact_match": "0.00 - 1.00",
        "f1": "0.00 - 1.00",
    }
