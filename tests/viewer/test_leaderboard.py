"""The leaderboard's numbers are the engine's, whoever computed them, and nothing is hidden or written."""

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import StoreError
from assay.viewer.experiments import Experiments
from tests.support import Lab
from tests.viewer.demo import ask, content, demo, rows_of

SAME = {
    "metric": "metric_name",
    "label": "label",
    "value": "value",
    "ci_low": "ci_low",
    "ci_high": "ci_high",
    "ci_level": "ci_level",
    "ci_method": "ci_method",
    "items": "total_item_count",
    "samples": "total_sample_count",
    "if_wrong": "value_if_missing_wrong",
    "if_right": "value_if_missing_right",
    "policy": "policy",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("boards")
    demo(folder / "demo")
    return folder


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A root with a copy of the experiment, to be changed."""
    shutil.copytree(root / "demo", tmp_path / "demo")
    return tmp_path


def same(shown: dict[str, Any], row: dict[str, Any]) -> None:
    assert {name: shown[name] for name in SAME} == {
        name: row[field] for name, field in SAME.items()
    }
    assert shown["planned"] == (row["planned_sample_count"] or row["total_sample_count"])
    assert shown["facets"] == {name: row[name] for name in row["facets"]}
    assert shown["counts"] == {
        name.removesuffix("_count"): row[name]
        for name in row
        if name.removesuffix("_count") in shown["counts"]
    }


def test_rows_are_the_stored_metrics(root: Path) -> None:
    page, rows = ask(root, "leaderboard"), rows_of(root / "demo", "metrics.jsonl")
    assert len(page["rows"]) == len(rows) == 8
    for shown, row in zip(page["rows"], rows, strict=True):
        same(shown, row)
        assert shown["experiment"] == "demo"
        assert shown["partial"] == ""
    assert page["facets"] == ["metadata.model_id", "prompt_template"]
    assert page["notes"] == []


def test_usage_is_the_sum_of_the_responses(root: Path) -> None:
    responses = rows_of(root / "demo", "responses.jsonl")
    for used in ask(root, "leaderboard")["usage"]:
        own = [row for row in responses if row["model_name"] == used["model"]]
        assert used["responses"] == len(own)
        assert used["completion_tokens"] == sum(row["completion_tokens"] for row in own)
        assert used["cost"] == sum(row["cost"] for row in own)


def test_an_evaluation_of_several_runs(root: Path, tmp_path: Path) -> None:
    """What they used is counted, and what they are made of is told."""
    demo(tmp_path / "other", models=[{"name": "x", "type": "demo"}], limit=5)
    metrics = [{"name": "mean", "type": "mean", "facets": ["model_name"]}]
    config = {"name": "both", "evaluation_methods": ["contains"], "metrics": metrics}
    assay.evaluate(
        [root / "demo", tmp_path / "other"], config, output_dir=str(tmp_path / "out" / "both")
    )
    page = ask(tmp_path / "out", "leaderboard")
    assert {used["model"]: used["responses"] for used in page["usage"]} == {
        "demo-large": 368,
        "demo-small": 368,
        "x": 40,
    }
    assert [row["cost"] for row in page["rows"]] == [0, 0, 0]
    sides = {"a": "both::model_name=demo-small", "b": "both::model_name=x"}
    model = next(
        each
        for each in ask(tmp_path / "out", "compare", **sides)["differences"]
        if each["what"] == "model"
    )
    assert '"name":"demo-small"' in model["a"]
    assert '"name":"x"' in model["b"]


def test_no_row_is_read(copy: Path) -> None:
    before = ask(copy, "leaderboard")["rows"]
    for name in ("responses.jsonl", "evaluation_results.jsonl", "items.jsonl"):
        (copy / "demo" / name).unlink()
    assert ask(copy, "leaderboard")["rows"] == before


def test_choices_are_facets_with_few_values(root: Path) -> None:
    choices = ask(root, "leaderboard")["choices"]
    assert {"metadata.model_id", "prompt_template", "metadata.kind", "metadata.level"} <= set(
        choices
    )
    assert not {"metadata.prompt_template", "question", "id", "metadata.finish_reason"} & set(
        choices
    )


def test_other_facets_are_computed_by_the_engine_and_stored_nowhere(
    root: Path, tmp_path: Path
) -> None:
    before = content(root)
    page = ask(root, "leaderboard", experiment=["demo"], facet=["kind", "model_name"])
    assert content(root) == before
    metrics = [
        {"name": name, "type": "pass_at_k", "params": {"k": k}, "facets": ["kind", "model_name"]}
        for name, k in (("pass@1", 1), ("pass@4", 4))
    ]
    result = assay.aggregate(root / "demo", metrics=metrics, output_dir=str(tmp_path / "again"))
    assert page["facets"] == ["kind", "model_name"]
    for shown, row in zip(page["rows"], result.metrics, strict=True):
        same(shown, row)
    standing = ask(
        root,
        "standing",
        experiment=["demo"],
        facet=["kind", "model_name"],
        metric="pass@1",
        label="exact_match",
    )
    assert [entry["facets"] for entry in standing["spent"]] == [
        row["facets"] for row in page["rows"] if row["metric"] == "pass@1"
    ]
    responses = rows_of(root / "demo", "responses.jsonl")
    kinds = {row["id"]: row["metadata"]["kind"] for row in rows_of(root / "demo", "items.jsonl")}
    for shown in standing["spent"]:
        times = sorted(
            row["inference_time"]
            for row in responses
            if kinds[row["item_id"]] == shown["facets"]["kind"]
            and row["model_name"] == shown["facets"]["model_name"]
        )
        middle = (times[len(times) // 2] + times[(len(times) - 1) // 2]) / 2
        assert shown["latency"] == pytest.approx(middle)
        assert shown["cost"] == 0


def test_a_facet_that_does_not_exist_is_a_note(root: Path) -> None:
    page = ask(root, "leaderboard", facet=["knid"])
    assert page["rows"] == []
    assert "the facet 'knid' exists in no row" in page["notes"][0]


def test_failures_stand_beside_the_value(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.write(
        "model.py",
        'def calculator(prompt):\n    if "2 + 1" in prompt:\n        raise ValueError("no")\n    return "1"\n',
    )
    lab.config["models"] = [lab.model("calculator")]
    lab.run()
    shown = ask(tmp_path, "leaderboard")["rows"][0]
    same(shown, lab.read("metrics.jsonl")[0])
    assert shown["counts"]["errored"] == 2
    assert shown["if_wrong"] < shown["value"] < shown["if_right"]
    by_item = ask(tmp_path, "leaderboard", facet=["model_name"])["rows"][0]
    assert (by_item["counts"], by_item["value"]) == (shown["counts"], shown["value"])


def test_where_less_is_better(tmp_path: Path) -> None:
    config = {"evaluation_methods": ["edit_similarity", {"name": "ter", "type": "ter"}]}
    config |= {
        "metrics": [
            {"type": "mean", "facets": ["model_name"]},
            {"type": "latency", "facets": ["model_name"]},
        ]
    }
    demo(tmp_path / "ter", **config)
    rows = ask(tmp_path, "leaderboard")["rows"]
    ways = {(row["metric"], row["label"]): row["lower_is_better"] for row in rows}
    assert ways["latency", "ter"]
    for label in ("edit_similarity", "ter"):
        assert (
            ways["mean", label]
            == assay.compare([tmp_path / "ter"], facet="model_name", label=label).lower_is_better
        )
    medians = [
        row["median"]
        for row in rows_of(tmp_path / "ter", "metrics.jsonl")
        if row["metric_name"] == "latency"
    ]
    assert {row["latency"] for row in rows} == set(medians)


def test_unfinished_and_changed_rows_are_told(copy: Path) -> None:
    file = copy / "demo" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["evaluation"] |= {"complete": False, "present": 100}
    file.write_text(json.dumps(manifest))
    page = ask(copy, "leaderboard")
    assert {row["partial"] for row in page["rows"]} == {"100 of 736 evaluations"}
    with (copy / "demo" / "evaluation_results.jsonl").open("a") as rows:
        rows.write("{}\n")
    assert (
        "its rows have changed since its metrics were computed"
        in ask(copy, "leaderboard")["notes"][0]
    )


def test_metrics_that_anybody_wrote_do_no_harm(copy: Path) -> None:
    hostile = {
        "metric_name": 7,
        "value": "high",
        "ci_low": True,
        "facets": "x",
        "policy": [],
        "total_item_count": "9",
    }
    (copy / "demo" / "metrics.jsonl").write_text(
        json.dumps(hostile) + "\nnot a row\n[]\n" + '{"metric_name":"m","value":NaN}\n'
    )
    first, second = ask(copy, "leaderboard")["rows"]
    assert (first["value"], first["items"], first["facets"]) == (None, 0, {})
    assert (second["metric"], second["value"]) == ("m", None)
    file = copy / "demo" / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(
        json.dumps(
            {**manifest, "aggregation": {**manifest["aggregation"], "plan": {"metrics": [7]}}}
        )
    )
    assert (
        "the manifest's plan cannot be read"
        in ask(copy, "leaderboard", facet=["kind"])["notes"][-1]
    )
    file.write_text(
        json.dumps({**manifest, "run": {**manifest["run"], "metadata": {"usage": "much"}}})
    )
    assert "demo is left out: the manifest cannot be read" in ask(copy, "leaderboard")["notes"][0]
    file.write_text("{")
    page = ask(copy, "leaderboard")
    assert page["rows"] == []
    assert "demo is left out: the manifest cannot be read" in page["notes"][0]
    with pytest.raises(StoreError, match="the manifest cannot be read"):
        ask(copy, "leaderboard", experiment=["demo"])


def test_two_who_ask_at_once_wait_for_one_answer(root: Path) -> None:
    experiments = Experiments([root])
    made: list[int] = []
    begun = threading.Barrier(4)

    def look() -> None:
        begun.wait()
        assert experiments.cached(("key",), ["demo"], lambda: made.append(1) or len(made)) == 1

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


def test_what_is_kept_ends_with_a_change_of_the_files(copy: Path) -> None:
    experiments = Experiments([copy])
    assert experiments.cached(("key",), ["demo"], lambda: 1) == 1
    assert experiments.cached(("key",), ["demo"], lambda: 2) == 1
    (copy / "demo" / "labels.jsonl").write_text("")
    assert experiments.cached(("key",), ["demo"], lambda: 3) == 3
    for number in range(100):
        experiments.cached(("key", number), [], lambda: 0)
    assert experiments.cached(("key",), ["demo"], lambda: 4) == 4
    before = experiments.source("demo")
    (copy / "demo" / "manifest.json").touch()
    assert experiments.source("demo") is not before
