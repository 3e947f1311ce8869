"""`assay export --format every-eval-ever`: records that the schema takes, with the numbers of the rows."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import assay
from assay.errors import UserError
from tests.analysis.rows import evaluation
from tests.formats.every_eval_ever.schema import INSTANCE, RECORD

Row = dict[str, Any]


def exported(
    folder: Path, target: Path, **params: Any
) -> tuple[dict[str, tuple[Row, list[Row]]], list[str]]:
    """By model and collection: the record and its samples, each as the schema and the datastore want it."""
    notes = assay.export(folder, "every-eval-ever", output=target, params=params)
    records: dict[str, tuple[Row, list[Row]]] = {}
    for file in sorted(target.glob("data/*/*/*/*.json")):
        record = json.loads(file.read_text())
        Draft202012Validator(RECORD).validate(record)
        samples: list[Row] = []
        if detailed := record.get("detailed_evaluation_results"):
            content = (target / detailed["file_path"]).read_bytes()
            assert file.with_name(f"{file.stem}_samples.jsonl") == target / detailed["file_path"]
            assert sha256(content).hexdigest() == detailed["checksum"]
            samples = [json.loads(line) for line in content.splitlines()]
            assert len(samples) == detailed["total_rows"]
        for sample in samples:
            Draft202012Validator(INSTANCE).validate(sample)
            assert sample["evaluation_id"] == record["evaluation_id"]
            assert sample["model_id"] == record["model_info"]["id"]
        records[f"{record['model_info']['name']} {file.parts[-4]}"] = record, samples
    return records, notes


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    items = [
        {"id": f"q{n}", "data": {"question": f"What is {n} + {n}?"}, "ground_truth": str(2 * n)}
        for n in range(30)
    ]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    config: Row = {
        "dataset": str(tmp_path / "sums.jsonl"),
        "models": [
            {"name": "acme/small", "type": "demo", "params": {"skill": 0.5}},
            {"name": "large", "type": "demo", "params": {"skill": 0.9}},
        ],
        "prompt_templates": {"short": "{{question}}", "long": "{{question}} Only the number."},
        "sample_params": {"temperature": 0.7, "max_tokens": 20, "num_samples": 3},
        "evaluation_methods": ["exact_match"],
        "metrics": [
            {"name": "mean", "type": "mean", "facets": ["model_name", "prompt_template"]},
            {"name": "pass@2", "type": "pass_at_k", "params": {"k": 2}, "facets": ["model_name"]},
            {"name": "all", "type": "mean"},
            {"name": "latency", "type": "latency", "facets": ["model_name"]},
        ],
        "output_dir": str(tmp_path / "out"),
    }
    assay.run(config)
    return tmp_path / "out"


def test_a_record_for_each_model_with_its_numbers(demo: Path, tmp_path: Path) -> None:
    records, notes = exported(demo, tmp_path / "eee", organization="We", relationship="third_party")
    assert list(records) == ["acme/small sums", "large sums"]
    assert any("1 metric rows are of several models" in note for note in notes)
    rows = [json.loads(line) for line in (demo / "metrics.jsonl").read_text().splitlines()]
    record, samples = records["acme/small sums"]
    assert record["model_info"]["id"] == "acme/small"
    assert record["source_metadata"]["source_organization_name"] == "We"
    assert [result["evaluation_name"] for result in record["evaluation_results"]] == [
        *("sums.long", "sums.short"),
        *("sums", "sums"),
    ]
    *results, latency = record["evaluation_results"]
    assert latency["metric_config"]["lower_is_better"] is True
    assert "max_score" not in latency["metric_config"], "seconds are not a share"
    for result in results:
        name, own = result["metric_config"]["metric_name"], result["score_details"]["details"]
        matching = [
            row
            for row in rows
            if row["metric_name"] == name and row.get("model_name") == "acme/small"
        ]
        row = next(
            row for row in matching if row.get("prompt_template") == own.get("prompt_template")
        )
        uncertainty = result["score_details"]["uncertainty"]
        assert result["score_details"]["score"] == row["value"]
        assert uncertainty["num_samples"] == row["used_sample_count"]
        assert [uncertainty["confidence_interval"][key] for key in ("lower", "upper", "confidence_level")] == [
            row["ci_low"], row["ci_high"], 0.95,
        ]  # fmt: skip
        assert result["generation_config"]["generation_args"]["temperature"] == 0.7
        assert result["generation_config"]["generation_args"]["max_tokens"] == 20
        assert result["metric_config"]["max_score"] == 1
    short = record["evaluation_results"][1]
    assert short["generation_config"]["generation_args"]["prompt_template"] == "{{question}}"
    assert (
        "prompt_template"
        not in record["evaluation_results"][2]["generation_config"]["generation_args"]
    )
    by_item: dict[str, list[float]] = {}
    for sample in samples:
        if sample["evaluation_result_id"] == short["evaluation_result_id"]:
            by_item.setdefault(sample["sample_id"], []).append(sample["evaluation"]["score"])
    means = [mean(scores) for scores in by_item.values()]
    assert mean(means) == pytest.approx(short["score_details"]["score"])
    error = short["score_details"]["uncertainty"]["standard_error"]["value"]
    assert error == pytest.approx(stdev(means) / len(means) ** 0.5)


def test_a_sample_has_its_question_and_its_answer(demo: Path, tmp_path: Path) -> None:
    records, _ = exported(demo, tmp_path / "eee")
    record, samples = records["large sums"]
    assert record["model_info"]["id"] == "unknown/large"
    sample = next(sample for sample in samples if sample["sample_id"] == "q7")
    assert sample["input"]["raw"] == "What is 7 + 7?"
    assert sample["input"]["reference"] == ["14"]
    recipe = b'{"raw":"What is 7 + 7?","reference":["14"]}'
    assert sample["sample_hash"] == sha256(recipe).hexdigest()
    response = next(
        row
        for row in map(json.loads, (demo / "responses.jsonl").read_text().splitlines())
        if (row["item_id"], row["model_name"], row["prompt"])
        == ("q7", "large", sample["input"]["formatted"])
    )
    assert sample["output"]["raw"] == [response["response"]]
    assert sample["token_usage"]["total_tokens"] == response["total_tokens"]


def test_equal_rows_give_equal_files(demo: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        exported(demo, tmp_path / name)
    files = sorted(
        file.relative_to(tmp_path / "first") for file in (tmp_path / "first").rglob("*.json*")
    )
    assert len(files) == 4
    for file in files:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


def test_without_samples_there_are_only_records(demo: Path, tmp_path: Path) -> None:
    records, _ = exported(
        demo, tmp_path / "eee", samples=False, developer="acme", availability="open_weights"
    )
    assert [samples for _, samples in records.values()] == [[], []]
    assert [record["model_info"]["id"] for record, _ in records.values()] == [
        "acme/large",
        "acme/small",
    ]
    assert not [*(tmp_path / "eee").rglob("*_samples.jsonl")]


# ---- rows as benchmarks have them


def save(folder: Path, **files: Iterable[Mapping[str, Any]]) -> Path:
    folder.mkdir()
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def metric_row(benchmark: str, value: float, **more: Any) -> Row:
    row: Row = {
        "metric_name": "lm",
        "metric_type": "some.aggregate",
        "facets": ["model_name", "benchmark"],
    }
    row |= {
        "model_name": "m",
        "benchmark": benchmark,
        "label": "acc,none",
        "value": value,
        "stderr": 0.25,
    }
    return (
        row
        | {
            "ci_low": 0.0,
            "ci_high": 1.0,
            "ci_level": 0.95,
            "ci_method": "wilson",
            "used_sample_count": 2,
        }
        | more
    )


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    items = [
        {
            "id": "a",
            "data": {"doc": {"q": 1}, "choices": ["x", 2]},
            "ground_truth": 1,
            "metadata": {"benchmark": "one"},
        },
        {
            "id": "b",
            "data": {"doc": {"q": 2}},
            "ground_truth": ["x", "y"],
            "metadata": {"benchmark": "two"},
        },
        {
            "id": "c",
            "data": {"doc": {"q": 3}},
            "ground_truth": None,
            "metadata": {"benchmark": "two"},
        },
    ]
    labels = [
        evaluation("a", True, label="acc,none"),
        evaluation("b", "errored", label="acc,none"),
        evaluation("c", "unparsed", label="acc,none", error=None),
    ]
    metrics = [
        metric_row("one", 1.0, errored_count=0),
        metric_row("two", 0.0, errored_count=1, unparsed_count=1),
        metric_row("group", 0.5, stderr="N/A"),
        metric_row("two", 7.5, label="perplexity,none", lower_is_better=True),
        metric_row("three", None),  # type: ignore[arg-type]
    ]
    return save(tmp_path / "rows", items=items, evaluation_results=labels, metrics=metrics)


def test_a_record_for_each_benchmark_and_group(benchmarks: Path, tmp_path: Path) -> None:
    records, _ = exported(benchmarks, tmp_path / "eee")
    assert list(records) == ["m group", "m one", "m two"]
    (one, first), (two, second) = records["m one"], records["m two"]
    result = one["evaluation_results"][0]
    assert result["metric_config"]["metric_id"] == "accuracy"
    assert result["metric_config"]["metric_parameters"] == {"filter": "none"}
    assert result["score_details"]["uncertainty"]["standard_error"]["value"] == 0.25
    assert (
        "standard_error"
        not in records["m group"][0]["evaluation_results"][0]["score_details"]["uncertainty"]
    )
    assert two["evaluation_results"][0]["score_details"]["details"]["errored_count"] == "1"
    perplexity = two["evaluation_results"][1]["metric_config"]
    assert perplexity["lower_is_better"] is True
    assert "max_score" not in perplexity
    assert first[0]["input"]["choices"] == ["x", "2"]
    assert [sample["error"] for sample in second] == ["it failed", "unparsed"]
    assert [sample["input"]["reference"] for sample in second] == [["x", "y"], []]
    assert [sample["evaluation"] for sample in second] == [{"score": 0.0, "is_correct": False}] * 2


def test_a_folder_is_needed_and_nobodys_file_is_replaced(benchmarks: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="several files"):
        assay.export(benchmarks, "every_eval_ever")
    exported(benchmarks, tmp_path / "eee")
    record = next((tmp_path / "eee").rglob("*.json"))
    record.write_text("mine")
    with pytest.raises(UserError, match="did not write"):
        exported(benchmarks, tmp_path / "eee")
    assert record.read_text() == "mine"
    with pytest.raises(UserError, match="there are no metrics"):
        assay.export(
            save(tmp_path / "none", items=[{"id": "a"}]), "every-eval-ever", output=tmp_path / "x"
        )
