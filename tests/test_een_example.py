"""EEN's complete example: it runs as printed, its rows have the fields that it lists, and the six
evaluation rows that it shows give the 0.83 that it shows."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import assay

EXAMPLE = Path(__file__).parents[1] / "examples/een"
TEMPLATE = "Solve the following problem: {{question}}"

# The "real response line" of EEN, in its order.
RESPONSE_FIELDS = [
    *("item_id", "sample_id", "sample_index", "total_samples", "model_name", "prompt", "response"),
    *("inference_time", "timestamp", "metadata", "error"),
    *("tokens_per_second", "total_tokens", "prompt_tokens", "completion_tokens"),
]
METADATA_FIELDS = ["model_id", "prompt_template", "sampling", "finish_reason", "response_id"]
EVALUATION_FIELDS = [
    *(
        "item_id",
        "sample_id",
        "sample_index",
        "label",
        "model_name",
        "passed",
        "score",
        "detailed_results",
    ),
    *("evaluation_time", "timestamp", "metadata"),
]
SHOWN = """\
{"item_id": "problem_1", "sample_id": "problem_1_sample_0", "sample_index": 0, "label": "exact_match", "passed": true, "score": 1.0}
{"item_id": "problem_1", "sample_id": "problem_1_sample_1", "sample_index": 1, "label": "exact_match", "passed": true, "score": 1.0}
{"item_id": "problem_1", "sample_id": "problem_1_sample_2", "sample_index": 2, "label": "exact_match", "passed": true, "score": 1.0}
{"item_id": "problem_2", "sample_id": "problem_2_sample_0", "sample_index": 0, "label": "exact_match", "passed": true, "score": 1.0}
{"item_id": "problem_2", "sample_id": "problem_2_sample_1", "sample_index": 1, "label": "exact_match", "passed": true, "score": 1.0}
{"item_id": "problem_2", "sample_id": "problem_2_sample_2", "sample_index": 2, "label": "exact_match", "passed": false, "score": 0.0}
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """The folder of the example after it ran."""
    shutil.copytree(EXAMPLE, tmp_path / "een")
    return Path(assay.run(tmp_path / "een/config.yaml", output_dir=str(tmp_path / "output")).folder)


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def test_responses_are_those_of_een(experiment: Path) -> None:
    responses = sorted(rows(experiment, "responses"), key=lambda row: row["sample_id"])
    assert [row["sample_id"] for row in responses] == [
        f"problem_{i}_sample_{n}" for i in (1, 2) for n in range(3)
    ]
    for row in responses:
        assert list(row)[: len(RESPONSE_FIELDS)] == RESPONSE_FIELDS
        assert list(row["metadata"]) == METADATA_FIELDS
        assert row["metadata"]["sampling"] == {"num_samples": 3}
        assert row["metadata"]["prompt_template"] == TEMPLATE
        assert row["total_samples"] == 3
        assert row["error"] is None
    assert responses[0]["prompt"] == "Solve the following problem: What is 2+2?"


def test_evaluations_are_those_of_een(experiment: Path) -> None:
    responses = {row["key"]: row for row in rows(experiment, "responses")}
    answers = {"problem_1": "4", "problem_2": "6"}
    evaluations = rows(experiment, "evaluation_results")
    assert len(evaluations) == 6
    for row in evaluations:
        response = responses[row["responses"][0]]
        assert list(row)[: len(EVALUATION_FIELDS)] == EVALUATION_FIELDS
        assert row["label"] == "exact_match"
        assert row["sample_id"] == response["sample_id"]
        assert row["metadata"] == response["metadata"]
        assert row["passed"] is (answers[row["item_id"]] in response["response"])
        assert row["score"] == float(row["passed"])


def test_metrics_are_those_of_een(experiment: Path) -> None:
    first, second = rows(experiment, "metrics")
    assert (first["metric_name"], second["metric_name"]) == ("pass@1", "pass@k")
    assert first["effective_num_trials"] == 3
    assert "16" in first["warning"]
    assert "warning" not in second
    for row in (first, second):
        shown = {
            "facets": ["metadata.model_id", "prompt_template"],
            "metadata.model_id": "model_1",
            "prompt_template": TEMPLATE,
            "label": "exact_match",
            "average_sample_count": 3,
            "total_sample_count": 6,
        }
        assert {key: row[key] for key in shown} == shown
        assert row["pass_at_k"] == pytest.approx(5 / 6)
    assert json.loads((experiment / "metrics.json").read_text()) == [first, second]


def test_the_six_rows_that_een_shows_give_its_number(tmp_path: Path) -> None:
    metadata = {"model_id": "model_1", "prompt_template": "template_2"}
    shown = [{**json.loads(line), "metadata": metadata} for line in SHOWN.splitlines()]
    (tmp_path / "evaluation_results.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in shown)
    )
    facets = ["metadata.model_id", "prompt_template"]
    metric = assay.bind_metric(name="pass@k", type="pass_at_k", facets=facets)
    (row,) = assay.Aggregator(assay.FlatStore(tmp_path)).aggregate(["shown"], [metric])
    assert round(row["pass_at_k"], 2) == 0.83
    expected = {
        "metric_name": "pass@k",
        "facets": facets,
        "metadata.model_id": "model_1",
        "prompt_template": "template_2",
        "label": "exact_match",
        "average_sample_count": 3,
        "total_sample_count": 6,
    }
    assert {key: row[key] for key in expected} == expected


def test_without_facets_the_rows_count_as_they_are_printed(tmp_path: Path) -> None:
    (tmp_path / "evaluation_results.jsonl").write_text(SHOWN)
    (row,) = assay.Aggregator(assay.FlatStore(tmp_path)).aggregate(
        ["shown"], [assay.bind_metric(type="pass_at_k")]
    )
    assert (row["facets"], row["label"], row["pass_at_k"]) == (
        [],
        "exact_match",
        pytest.approx(5 / 6),
    )
