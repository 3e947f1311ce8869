"""What EEN's rows say beside ours."""

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import UserError

ROWS = [
    {"id": f"q{n}", "question": f"{n} + 1", "answer": str(n + 1), "level": "ab"[n % 2]}
    for n in range(4)
]


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return {
        "dataset": ROWS,
        "models": ["demo:small"],
        "prompts": "{{question}}",
        "scorers": ["exact_match"],
        "output_dir": str(tmp_path / "out"),
    }


def read(config: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (Path(config["output_dir"]) / name).read_text().splitlines()
    ]


def test_metric_rows_have_the_fields_of_the_original(config: dict[str, Any]) -> None:
    def flagged(item: Any, response: Any) -> dict[str, Any]:
        return {"passed": True, "tp" if item.id in ("q0", "q1") else "fn": True}

    percentile = {"name": "middle", "type": "percentile", "params": {"percentile": 50}}
    rows = assay.run(**config, metrics=["mean", percentile]).metrics
    assert [row["sample_count"] for row in rows] == [4, 4]
    assert rows[1]["percentile_50"] == rows[1]["percentile_50.0"] == rows[1]["value"]
    config |= {"scorers": [flagged], "metrics": ["classification"]}
    (row,) = assay.run(**config).metrics
    counts = {
        name: row[name]
        for name in ("true_positives", "true_negatives", "false_positives", "false_negatives")
    }
    assert counts == {
        "true_positives": 2,
        "true_negatives": 0,
        "false_positives": 0,
        "false_negatives": 2,
    }


def test_evaluation_rows_carry_the_parameters_of_their_scorer(config: dict[str, Any]) -> None:
    params = {"normalize": "lower"}
    config["scorers"] = [
        {"name": "exact_match", "params": params},
        {"name": "plain", "type": "exact_match"},
    ]
    assay.run(
        **config, metrics=[{"name": "mean", "facets": ["metadata.evaluation.params.normalize"]}]
    )
    by_scorer = {row["scorer"]: row["metadata"] for row in read(config, "evaluation_results.jsonl")}
    assert by_scorer["exact_match"]["evaluation"] == {"params": params}
    assert "evaluation" not in by_scorer["plain"]


def test_one_label_twice_is_not_two_samples(config: dict[str, Any]) -> None:
    def twice(item: Any, response: Any) -> dict[str, Any]:
        labels = [
            {"label": "x", "result": {"passed": True}},
            {"label": "y", "result": {"passed": True}},
        ]
        return {"labels": [*labels, labels[0]]}

    config["scorers"] = [twice]
    result = assay.run(**config, metrics=["mean"])
    assert [row["errored_count"] for row in result.metrics] == [4]
    assert "the label 'x' twice" in result.failures[0].reasons[0].error
    assert result.failed == ["twice"]


def test_a_label_that_no_row_has_is_an_error(config: dict[str, Any]) -> None:
    def mine(item: Any, response: Any) -> dict[str, Any]:
        return {"label": "right", "passed": True}

    config["scorers"] = [mine]
    with pytest.raises(UserError, match="no row has the label 'rigth'"):
        assay.run(**config, metrics=[{"name": "mean", "labels": {"include": ["rigth"]}}])
    assert assay.run(**config, metrics=[{"name": "mean", "labels": {"include": ["rig*"]}}]).metrics


def test_the_label_as_a_facet(config: dict[str, Any]) -> None:
    config["scorers"] = ["exact_match", "contains"]
    rows = assay.run(**config, metrics=[{"name": "mean", "facets": ["label"]}]).metrics
    assert [(row["label"], row["sample_count"]) for row in rows] == [
        ("contains", 4),
        ("exact_match", 4),
    ]


@pytest.mark.parametrize(("first", "then"), [(1, 3), (3, 1)])
def test_rows_say_how_many_samples_the_plan_has_now(
    config: dict[str, Any], first: int, then: int
) -> None:
    config["prompts"] = '{{question}} "total_samples":7'
    assay.run(**config, samples=first)
    before = {row["key"]: row for row in read(config, "responses.jsonl")}
    assay.run(**config, samples=then)
    rows = read(config, "responses.jsonl")
    assert {row["total_samples"] for row in rows} == {then}
    assert len(rows) == 4 * then
    for row in rows:
        if row["key"] in before:
            assert before[row["key"]] | {"total_samples": then} == row
