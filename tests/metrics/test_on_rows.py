"""Every built-in can be called on a list of dicts, as the first seed's interface says, and agrees with the engine."""

from typing import Any

import msgspec
import pytest

from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import bind_metric
from assay.registry import metric
from assay.store.stores import MemoryStore

from .rows import Row, rows

PARAMS: dict[str, dict[str, Any]] = {
    "pass_at_k": {"k": 2},
    "best_of_k": {"k": 2},
    "percentile": {"percentile": 40},
    "elo": {"player": "x"},
    "auroc": {"actual": "passed"},
}
STREAMED = ("ttft", "time_between_tokens", "generation_speed")


def all_rows() -> list[Row]:
    details = [{"expected": "a", "predicted": answer} for answer in ("a", "b", "a", None, "a", "c")]
    made = rows([1.0, 0.0], [0.5, 0.0], [1.0, 0.25], detailed_results=details)
    return [{**row, "outcome": "scored", "metadata": {"model_id": "m"}} for row in made]


def rows_for(name: str) -> list[Row]:
    """Rows that a metric has a value for: some need a panel's votes, or matches in both seats."""
    made = all_rows()
    if name == "agreement":
        return [
            {**row, "detailed_results": {"votes": {"a": at % 2, "b": at // 4}}}
            for at, row in enumerate(made)
        ]
    if name == "corpus_score":
        counts = {"measure": "ter", "options": {}, "references": 1}
        return [
            {**row, "detailed_results": {"corpus": {**counts, "counts": [at, 8]}}}
            for at, row in enumerate(made)
        ]
    if name in ("perplexity", "bits_per_byte", "brier_score", "calibration_error", "entropy"):
        lengths = {"words": 3, "bytes": 20, "characters": 19, "tokens": 5}
        choice = {"brier": 0.5, "confidence": 0.75, "entropy": 0.25}
        return [
            {**row, "detailed_results": {"logprob": -2.0 - at, **lengths, **choice}}
            for at, row in enumerate(made)
        ]
    if name in ("elo", "win_rate", "seat_consistency", "position_bias"):
        return [{**row, "players": ["x", "y"], "seat": seat} for row in made for seat in (0, 1)]
    return made


@pytest.mark.parametrize("name", metric.names())
def test_called_on_rows_it_says_what_the_engine_says(name: str) -> None:
    function, params, given = metric.get(name), PARAMS.get(name, {}), rows_for(name)
    responses = [
        {
            **row,
            "metadata": {**row["metadata"], "stream": dict.fromkeys(STREAMED, 1.0 + at)},
            "inference_time": 0.5 + at,
            "total_tokens": 10 * at,
            "prompt_tokens": at,
            "cost": 0.25,
        }
        for at, row in enumerate(given)
    ]
    store = MemoryStore()
    store.log("run", "r").append(b"".join(msgspec.json.encode(row) + b"\n" for row in responses))
    store.log("evaluation", "e").append(b"".join(msgspec.json.encode(row) + b"\n" for row in given))
    bound = bind_metric(type=name, params=params, facets=["metadata.model_id"])
    (expected,) = Aggregator(store).aggregate(["e"], [bound], runs=["r"])
    found = function(list(reversed(responses)), ["metadata.model_id"], **params)
    assert function(evaluation_results=responses, facets=[], **params) == found
    # rows alone bring no calibration
    assert (found["value"] is None) == (name == "corrected_pass_rate")
    assert {key: expected[key] for key in found} == found
    assert found[name] == found["value"]


def test_rows_that_do_not_count() -> None:
    mean = metric.get("mean")
    given = [
        {"item_id": "a", "score": 0.5},
        {"item_id": "b", "passed": True},
        {"item_id": "c", "passed": None, "outcome": "unparsed"},
        {"item_id": "d", "error": "KeyError"},
        {"item_id": "e", "outcome": "skipped"},
    ]
    assert mean(given, [])["value"] == 0.5
    assert mean(given[3:], []) == {"value": None, "mean": None, "reason": "none of 2 rows counts"}
    assert mean([], [])["value"] is None


def test_a_null_keeps_its_reason() -> None:
    found = metric.get("pass_at_k")(all_rows(), [], k=3)
    assert (found["value"], found["pass_at_3"], found["k"]) == (None, None, 3)
    assert found["reason"] == "k = 3, but an item has 2 samples"
