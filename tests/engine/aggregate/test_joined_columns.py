"""What metrics take from responses, items and plans: latency, tokens, cost, true classes, planned counts."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import bind_metric
from assay.records import Manifest
from assay.store.stores import MemoryStore
from tests.support import Lab

Row = dict[str, Any]


def store_of(
    evaluations: list[Row], responses: list[Row], items: list[Row] | None = None
) -> MemoryStore:
    store = MemoryStore()
    for kind, rows in (("evaluation", evaluations), ("run", responses), ("dataset", items or [])):
        store.log(kind, kind).append(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))  # type: ignore[arg-type]
    store.put_manifest(
        Manifest(kind="evaluation", id="evaluation", inputs=[{"kind": "run", "id": "run"}])
    )
    store.put_manifest(
        Manifest(kind="run", id="run", inputs=[{"kind": "dataset", "id": "dataset"}])
    )
    return store


def evaluation(item: str, key: str, **more: Any) -> Row:
    return {
        "item_id": item,
        "label": "l",
        "passed": True,
        "score": 1.0,
        "outcome": "scored",
        "responses": [key],
        **more,
    }


def response(item: str, key: str, **more: Any) -> Row:
    return {"item_id": item, "key": key, "response": "text", "outcome": "ok", **more}


def measured(store: MemoryStore, name: str, **more: Any) -> Row:
    (found,) = Aggregator(store).aggregate(["evaluation"], [bind_metric(type=name, **more)])
    return found


def test_a_response_counts_once_and_a_failed_one_does_not() -> None:
    store = store_of(
        [
            evaluation("a", "01"),
            evaluation("a", "01", scorer="second judge", label="also"),
            evaluation("b", "02", passed=False, outcome="unparsed"),
            evaluation("c", "03", passed=None, outcome="errored"),
            evaluation("d", "04", passed=None, outcome="errored"),
        ],
        [
            response(
                "a",
                "01",
                inference_time=0.25,
                cost=0.5,
                total_tokens=10,
                prompt_tokens=4,
                completion_tokens=6,
            ),
            response("b", "02", inference_time=0.75, cost=0.25, total_tokens=20),
            response("c", "03", inference_time=300.0, outcome="errored", error="timed out"),
            response("d", "04", inference_time=0.5, cost=None, total_tokens=None),
        ],
    )
    every = {"include": ["*"], "together": "all"}
    found = measured(store, "latency", **every)
    assert (found["value"], found["response_count"], found["max"], found["p95"]) == (
        0.5,
        3,
        0.75,
        pytest.approx(0.725),
    )
    assert (found["ci_method"], found["used_sample_count"]) == (
        "hall; weak: fewer than 30 items",
        3,
    )
    assert (
        found["value_if_missing_wrong"] is None
    )  # nobody knows how long the failed one would have taken
    tokens = measured(store, "tokens", **every)
    assert (tokens["value"], tokens["sum"], tokens["prompt_tokens"]) == (15.0, 30.0, 4)
    cost = measured(store, "cost", **every)
    assert (cost["sum"], cost["cost_per_pass"]) == (0.75, pytest.approx(0.375))


def test_without_responses_there_is_a_reason() -> None:
    found = measured(store_of([evaluation("a", "01"), evaluation("b", "02")], []), "latency")
    assert (found["value"], found["reason"]) == (
        None,
        "no response behind these rows has 'inference_time'",
    )


def test_foreign_responses_are_found_by_their_place_unless_they_disagree() -> None:
    rows = [
        evaluation("a", "") | {"responses": [], "sample_index": n, "model_name": "m"}
        for n in range(2)
    ]
    store = store_of(
        rows,
        [
            {"item_id": "a", "sample_index": 0, "model_name": "m", "inference_time": 2},
            {"item_id": "a", "sample_index": 1, "model_name": "m", "inference_time": 5.0},
            {"item_id": "a", "sample_index": 1, "model_name": "m", "inference_time": 7.0},
        ],
    )
    found = measured(store, "latency")
    assert (found["value"], found["response_count"]) == (2.0, 1)


def test_true_classes_from_the_items() -> None:
    rows = [
        evaluation(id, id, detailed_results={"choice": said})
        for id, said in (("0a", "A"), ("0b", "B"), ("0c", "A"))
    ]
    items = [
        {"id": "0a", "ground_truth": "A"},
        {"id": "0b", "ground_truth": "A"},
        {"id": "0c", "ground_truth": "B"},
    ]
    params = {
        "predicted": "detailed_results.choice",
        "actual": "item.ground_truth",
        "positive": "A",
    }
    found = measured(store_of(rows, [], items), "classification", params=params)
    assert found["confusion_matrix"] == {"A": {"A": 1, "B": 1}, "B": {"A": 1, "B": 0}}
    assert (found["value"], found["precision"], found["ci_method"]) == (
        pytest.approx(1 / 3),
        0.5,
        "wilson; weak: fewer than 5 items",
    )


def test_columns_of_rows_that_count_under_several_labels() -> None:
    rows = [
        evaluation("a", "01", scorer="judge", label="clear"),
        evaluation("a", "01", scorer="judge", label="right"),
        evaluation("b", "02", scorer="judge", label="judge", passed=None, outcome="unparsed"),
    ]
    store = store_of(
        rows, [response("a", "01", inference_time=1.0), response("b", "02", inference_time=3.0)]
    )
    found = Aggregator(store).aggregate(["evaluation"], [bind_metric(type="latency")])
    assert [(row["label"], row["value"]) for row in found] == [("clear", 2.0), ("right", 2.0)]


def test_planned_counts_by_what_tasks_are(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.config["models"].append(lab.model("second"))
    lab.config["metrics"] = [
        {"name": "all", "type": "mean"},
        {"name": "models", "type": "mean", "facets": ["metadata.model_id", "prompt_template"]},
        {"name": "topics", "type": "mean", "facets": ["note"]},
        {"name": "slow", "type": "latency", "facets": ["model_name"], "interval": "bootstrap"},
    ]
    rows = lab.run(limit=3).result.metrics
    planned = {
        row["metric_name"]: (row["planned_sample_count"], row["total_sample_count"]) for row in rows
    }
    assert planned == {"all": (16, 12), "models": (8, 6), "topics": (None, 12), "slow": (8, 6)}
    assert {row["ci_method"] for row in rows if row["metric_name"] == "slow"} == {
        "bootstrap; weak: fewer than 30 items"
    }


def test_the_numbers_of_items_and_responses_are_columns() -> None:
    seen: dict[str, Any] = {}

    def numbers(group: Any) -> float:
        seen.update(group.columns)
        return 0.0

    numbers.__assay__ = {"columns": ["item", "response", "item.level"]}  # type: ignore[attr-defined]
    store = store_of(
        [evaluation("gone", "z"), evaluation("b", "y"), evaluation("a", "x")],
        [response("b", "y"), response("a", "x")],
        [{"id": "a", "data": {"level": 7}}, {"id": "b", "data": {"level": 8}}],
    )
    Aggregator(store).aggregate(["evaluation"], [bind_metric(name="numbers", function=numbers)])
    rows = zip(seen["item"], seen["response"], seen["item.level"], strict=True)
    assert sorted(rows, key=str) == [(0, 1, 7), (1, 0, 8), (None, None, None)]
