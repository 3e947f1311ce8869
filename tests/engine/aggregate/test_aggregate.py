"""Aggregation through the public classes: numbers, counts, bounds, order, joins and bad input."""

import asyncio
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import BoundMetric, bind_metric
from assay.errors import UserError
from assay.interfaces import Group, Store, Values
from assay.records import Evaluation, Manifest
from assay.registry import Registry
from assay.stats.intervals import wilson
from assay.store.stores import FlatStore, MemoryStore

Row = dict[str, Any]


def put(store: Store, rows: Iterable[Row | Evaluation | bytes], id: str = "e") -> None:
    lines = [row if isinstance(row, bytes) else msgspec.json.encode(row) for row in rows]
    store.log("evaluation", id).append(b"".join(line + b"\n" for line in lines))


def aggregate(rows: Iterable[Row | Evaluation | bytes], *metrics: BoundMetric) -> list[Row]:
    store = MemoryStore()
    put(store, rows)
    return Aggregator(store).aggregate(["e"], metrics)


def row(item: str, passed: bool | None = True, sample: int = 0, **more: Any) -> Row:
    made = Evaluation(item_id=item, sample_index=sample, label="match", passed=passed)
    return {**msgspec.to_builtins(made), "score": None if passed is None else float(passed), **more}


PASS_RATE = bind_metric(name="rate", type="pass_rate")

# ---- the seed


def seed_rows() -> list[Row]:
    """The six evaluation rows that the seed prints, with the metadata that its facets name."""
    passes = {"problem_1": [True, True, True], "problem_2": [True, True, False]}
    return [
        {
            "item_id": item,
            "sample_id": f"{item}_sample_{index}",
            "sample_index": index,
            "label": "exact_match",
            "passed": passed,
            "score": float(passed),
            "metadata": {"model_id": "model_1", "prompt_template": "template_2"},
        }
        for item, results in passes.items()
        for index, passed in enumerate(results)
    ]


def test_the_seeds_six_rows_give_five_sixths() -> None:
    facets = ["metadata.model_id", "prompt_template"]
    params = {"k": 1, "num_trials": 16, "aggregation": "mean"}
    (found,) = aggregate(
        seed_rows(), bind_metric(name="pass@k", type="pass_at_k", facets=facets, params=params)
    )
    assert round(found["pass_at_k"], 2) == 0.83
    expected = {
        "metric_name": "pass@k",
        "metric_type": "pass_at_k",
        "facets": facets,
        "metadata.model_id": "model_1",
        "prompt_template": "template_2",
        "label": "exact_match",
        "value": found["pass_at_k"],
        "pass_at_1": found["pass_at_k"],
        "average_sample_count": 3,
        "total_sample_count": 6,
        "total_item_count": 2,
        "effective_num_trials": 3,
    }
    assert {key: found[key] for key in expected} == expected
    assert list(found)[:9] == [*list(expected)[:7], "pass_at_k", "pass_at_1"]


def test_no_facets_give_one_row_per_label() -> None:
    rows = [row("a"), row("b", False), row("a", label="C++"), row("b", label="a+b")]
    found = aggregate(rows, PASS_RATE)
    assert [(each["label"], each["value"], each["facets"]) for each in found] == [
        ("C++", 1.0, []),
        ("a+b", 1.0, []),
        ("match", 0.5, []),
    ]


def test_nothing_in_nothing_out() -> None:
    store = MemoryStore()
    store.put_manifest(Manifest(kind="evaluation", id="e"))
    assert (
        Aggregator(store).aggregate(
            ["e"], [PASS_RATE, bind_metric(type="mean", facets=["anything"])]
        )
        == []
    )


# ---- facets


def test_facet_values_keep_their_types_and_order() -> None:
    values = ["b", "a+b", True, 0, 0.0, False, None, 0.5, [1, "x"], {"b": 1, "a": 2}, "a", 10]
    rows = [row("i", metadata={"t": value}) for value in values] + [
        row("j", metadata={"t": {"a": 2, "b": 1}})
    ]
    found = aggregate(rows, bind_metric(type="pass_rate", facets=["metadata.t"]))
    shown = [each["metadata.t"] for each in found]
    expected = [None, False, True, 0.0, 0, 0.5, 10, "a", "a+b", "b", [1, "x"], {"a": 2, "b": 1}]
    assert list(map(repr, shown[:-1])) == list(map(repr, expected[:-1]))
    assert shown[-1] == expected[-1]
    assert found[-1]["total_sample_count"] == 2


def test_rows_of_two_schemas_in_one_file() -> None:
    rows = [
        row("a", metadata={"model_id": "m"}),
        row("b", metadata={}),
        row("c", **{"metadata.model_id": "m"}),
    ]
    found = aggregate(rows, bind_metric(type="pass_rate", facets=["metadata.model_id"]))
    assert [(each["metadata.model_id"], each["total_sample_count"]) for each in found] == [
        (None, 1),
        ("m", 2),
    ]


def test_a_facet_that_no_row_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"'metadata\.modelid' exists in no row") as error:
        aggregate(
            [row("a", metadata={"model_id": "m"})],
            bind_metric(type="mean", facets=["metadata.modelid"]),
        )
    assert "did you mean 'metadata.model_id'?" in error.value.fix


def joined_store() -> MemoryStore:
    store = MemoryStore()
    put(
        store,
        [
            row("a", responses=["0a"]),
            row("b", False, responses=["0b"]),
            row("a", sample=1, responses=["0c"]),
        ],
    )
    responses = [
        {"item_id": "a", "key": "0a", "finish_reason": "stop", "metadata": {"lane": 1}},
        {"item_id": "b", "key": "0b", "finish_reason": "length"},
        {"item_id": "a", "key": "0c", "finish_reason": "stop"},
    ]
    items = [
        {"id": "a", "data": {"topic": "sums"}},
        {"id": "b", "level": 3, "metadata": {"topic": "logic"}},
    ]
    store.log("run", "r").append(b"".join(msgspec.json.encode(each) + b"\n" for each in responses))
    store.log("dataset", "d").append(b"".join(msgspec.json.encode(each) + b"\n" for each in items))
    store.put_manifest(Manifest(kind="run", id="r", inputs=[{"kind": "dataset", "id": "d"}]))
    store.put_manifest(Manifest(kind="evaluation", id="e", inputs=[{"kind": "run", "id": "r"}]))
    return store


@pytest.mark.parametrize(
    ("facet", "expected"),
    [
        ("finish_reason", {"length": 0.0, "stop": 1.0}),
        ("lane", {None: 0.5, 1: 1.0}),
        ("topic", {"logic": 0.0, "sums": 1.0}),
        ("data.topic", {None: 0.0, "sums": 1.0}),
        ("level", {None: 1.0, 3: 0.0}),
    ],
)
def test_facets_come_from_responses_and_items(facet: str, expected: dict[Any, float]) -> None:
    found = Aggregator(joined_store()).aggregate(
        ["e"], [bind_metric(type="pass_rate", facets=[facet])]
    )
    assert {each[facet]: each["value"] for each in found} == expected


def test_a_facet_of_another_metric_does_not_split_this_one() -> None:
    by_topic, overall = (
        bind_metric(type="mean", facets=["topic", "finish_reason"]),
        bind_metric(type="mean"),
    )
    found = Aggregator(joined_store()).aggregate(["e"], [by_topic, overall])
    assert [each["total_sample_count"] for each in found] == [1, 2, 3]


# ---- failures


def failing_rows() -> list[Row]:
    outcomes = [
        "scored",
        "scored",
        "scored",
        "unparsed",
        "refused",
        "errored",
        "errored",
        "skipped",
    ]
    return [
        row(f"i{number}", number < 2 if name == "scored" else None, outcome=name)
        for number, name in enumerate(outcomes)
    ]


def test_policy_counts_and_bounds() -> None:
    (found,) = aggregate(failing_rows(), PASS_RATE)
    assert found["value"] == pytest.approx(2 / 5)
    assert found["value_if_missing_wrong"] == pytest.approx(2 / 7)
    assert found["value_if_missing_right"] == pytest.approx(4 / 7)
    names = ["total_sample", "used_sample", "scored", "unparsed", "refused", "errored", "skipped"]
    assert [found[f"{name}_count"] for name in names] == [8, 5, 3, 1, 1, 2, 1]
    assert found["policy"] == {"on_error": "exclude", "on_unparsed": "wrong", "on_refused": "wrong"}
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(wilson(2, 5))
    assert (found["ci_method"], found["ci_level"]) == ("wilson", 0.95)


def test_another_policy() -> None:
    policy = {"on_error": "wrong", "on_unparsed": "exclude", "on_refused": "exclude"}
    (found,) = aggregate(failing_rows(), bind_metric(type="mean", policy=policy))
    assert found["value"] == pytest.approx(2 / 5)
    assert found["value_if_missing_right"] == pytest.approx(4 / 7)
    with pytest.raises(UserError, match="policy"):
        bind_metric(type="mean", policy={"on_error": "ignore"})


def test_all_rows_errored() -> None:
    rows = [row("a", None, outcome="errored"), row("b", None, outcome="errored")]
    (found,) = aggregate(rows, PASS_RATE)
    assert (found["value"], found["errored_count"]) == (None, 2)
    assert (found["value_if_missing_wrong"], found["value_if_missing_right"]) == (0.0, 1.0)
    assert found["reason"] == "none of 2 rows counts under this policy"
    assert (found["ci_low"], found["ci_method"]) == (None, "none: there is no value")


def test_a_call_without_labels_makes_no_row() -> None:
    found = aggregate([row("a"), row("a", None, outcome="skipped", label="scorer")], PASS_RATE)
    assert [each["label"] for each in found] == ["match"]


def test_one_item_has_no_interval() -> None:
    (found,) = aggregate([row("a"), row("a", False, 1)], PASS_RATE)
    assert (found["value"], found["ci_low"], found["ci_high"]) == (0.5, None, None)
    assert found["ci_method"] == "none: an interval needs at least two items"


def test_scores_outside_the_unit_interval() -> None:
    rows = [
        row("a", score=5.0),
        row("b", score=-3.0),
        row("c", score=4.0),
        row("d", None, outcome="errored"),
    ]
    (found,) = aggregate(rows, bind_metric(type="mean"))
    assert (found["value"], found["ci_method"]) == (2.0, "hall; weak: fewer than 30 items")
    assert found["ci_low"] < -3
    assert (found["value_if_missing_wrong"], found["value_if_missing_right"]) == (0.75, 2.75)


# ---- foreign rows


def test_foreign_rows_count_by_what_they_have() -> None:
    foreign = [
        b'{"item_id": "a", "label": "l", "passed": true}',
        b'{"item_id": "b", "label": "l", "score": 0.25}',
        b'{"item_id": 3, "label": {"name": "l"}, "score": NaN}',
        b'{"item_id": "c", "label": "l", "score": -Infinity, "passed": true}',
        b'{"item_id": "d", "label": "l", "passed": false, "score": 0.0, "detailed_results": {"error": "KeyError"}}',
        b'{"item_id": "e", "label": "l"}',
        b"",
    ]
    (found,) = aggregate(foreign, bind_metric(type="mean"))
    assert (found["value"], found["scored_count"], found["errored_count"]) == (0.625, 2, 4)
    assert found["total_item_count"] == 6


@pytest.mark.parametrize("line", [b"{", b"[1]", b'{"passed": true}'])
def test_a_line_that_is_no_row_is_named(line: bytes) -> None:
    with pytest.raises(UserError) as error:
        aggregate([row("a"), line], PASS_RATE)
    assert "line 2" in error.value.where


# ---- order


def content(store: Store, id: str) -> bytes:
    return b"\n".join(line for _, line in store.log("aggregation", id).scan())


outcome_rows = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(0, 2), st.booleans(), st.sampled_from(["m", "n"])
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=30, deadline=None)
@given(outcome_rows, st.integers(0, 2**31))
def test_the_order_of_rows_changes_no_byte(
    drawn: list[tuple[str, int, bool, str]], seed: int
) -> None:
    rows = [
        row(item, passed, sample, key=f"{number:032x}", metadata={"model": model})
        for number, (item, sample, passed, model) in enumerate(drawn)
    ]
    metrics = [
        bind_metric(type="pass_at_k", params={"num_trials": 2, "estimator": "trials"}),
        bind_metric(type="mean", facets=["model"]),
        bind_metric(name="rows", function=first_key),
    ]
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    results: list[bytes] = []
    for each in (rows, shuffled):
        store = MemoryStore()
        put(store, each)
        Aggregator(store).aggregate(["e"], metrics, id="x")
        results.append(content(store, "x"))
    assert results[0] == results[1]


def first_key(evaluation_results: list[Row], facets: list[str]) -> Row:
    return {"value": len(evaluation_results), "keys": [each["key"] for each in evaluation_results]}


def test_several_evaluations_are_taken_together(tmp_path: Path) -> None:
    store = MemoryStore()
    put(store, [row("a"), row("b")], "one")
    put(store, [row("c", False)], "two")
    (found,) = Aggregator(store).aggregate(
        ["one", "two"], [bind_metric(name="rows", function=first_item)]
    )
    assert (found["value"], found["first"]) == (3.0, "a")


def first_item(results: list[Row]) -> Row:
    return {"n": len(results), "first": results[0]["item_id"]}


# ---- labels, custom functions, marks


def test_label_patterns() -> None:
    rows = [row("a", label=label) for label in ("C++", "clear", "correct", "a[1]")]
    for given_filter, expected in (
        ({"include": ["c*"]}, ["clear", "correct"]),
        ({"include": ["C++", "a[1]"]}, ["C++", "a[1]"]),
        ({"exclude": ["c*", "C++"]}, ["a[1]"]),
    ):
        found = aggregate(rows, bind_metric(type="mean", **given_filter))  # type: ignore[arg-type]
        assert [each["label"] for each in found] == expected
    with pytest.raises(UserError, match="include and exclude"):
        bind_metric(type="mean", include=["a"], exclude=["b"])


def test_labels_together_are_one_group() -> None:
    rows = [
        row("1", True, label="a"),
        row("2", False, label="b"),
        row("3", True, label="b"),
        row("4", label="c"),
    ]
    both = bind_metric(name="both", type="mean", include=["a", "b"], together="ab")
    each = bind_metric(name="each", type="mean")
    found = aggregate(rows, both, each)
    assert [
        (one["metric_name"], one["label"], one["value"], one["total_sample_count"]) for one in found
    ] == [
        ("both", "ab", pytest.approx(2 / 3), 3),
        ("each", "a", 1.0, 1),
        ("each", "b", 0.5, 2),
        ("each", "c", 1.0, 1),
    ]
    assert aggregate(rows, each, both) == [*found[1:], found[0]]
    with pytest.raises(UserError, match="no row has the label 'nothing'"):
        aggregate(rows, bind_metric(type="mean", include=["nothing"], together="ab"))


def test_a_custom_function_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def calculate_metric(evaluation_results, facets, **params):\n"
        "    assert isinstance(evaluation_results, list)\n"
        "    if evaluation_results[0]['metadata']['m'] == 'bad':\n"
        "        raise ValueError('no')\n"
        "    return {'share': sum(r['passed'] for r in evaluation_results) / params['by'], 'facets_seen': facets}\n"
    )
    rows = [
        row("a", metadata={"m": "bad"}),
        row("a", metadata={"m": "good"}),
        row("b", False, metadata={"m": "good"}),
    ]
    bound = bind_metric(
        name="share",
        type="custom",
        path="mine.py",
        base=tmp_path,
        params={"by": 2},
        facets=["metadata.m"],
    )
    bad, good = aggregate(rows, bound)
    assert (bad["value"], bad["error"]) == (
        None,
        "ValueError: no (mine.py, line 4: raise ValueError('no'))",
    )
    assert (good["value"], good["share"], good["facets_seen"]) == (0.5, 0.5, ["metadata.m"])
    assert good["ci_method"] == "none: the value is not a mean over items"


def test_a_list_result_gives_several_rows() -> None:
    def quantiles(results: list[Row], which: list[float]) -> list[Row]:
        return [{"value": q, "q": q} for q in which]

    found = aggregate(
        [row("a")], bind_metric(name="quantiles", function=quantiles, params={"which": [0.1, 0.9]})
    )
    assert [(each["metric_name"], each["q"], each["value"]) for each in found] == [
        ("quantiles", 0.1, 0.1),
        ("quantiles", 0.9, 0.9),
    ]


def test_bounds_of_a_custom_function_see_changed_rows() -> None:
    def share(results: list[Row]) -> float:
        return sum(each["passed"] for each in results) / len(results)

    (found,) = aggregate(
        [row("a"), row("b", None, outcome="errored")], bind_metric(name="share", function=share)
    )
    assert [
        found[key] for key in ("value", "value_if_missing_wrong", "value_if_missing_right")
    ] == [1.0, 0.5, 1.0]


@pytest.mark.parametrize("result", ["text", object(), {"a": object()}])
def test_nonsense_from_a_custom_function_is_an_error_row(result: Any) -> None:
    (found,) = aggregate([row("a")], bind_metric(name="odd", function=lambda results: result))
    assert found["value"] is None
    assert found["error"].startswith("TypeError")


def test_nan_from_a_custom_function_is_null_with_a_reason() -> None:
    (found,) = aggregate([row("a")], bind_metric(name="odd", function=lambda results: float("nan")))
    assert (found["value"], found["reason"]) == (None, "the metric returned no finite number")


def test_a_group_function_gets_the_columns_that_it_declares() -> None:
    @Registry("metric", "assay.metrics")(columns=["evaluation_time", "metadata.model_id"])
    def slowest(group: Group) -> Values:
        return Values(
            value=max(group.columns["evaluation_time"]),
            fields={"models": group.columns["metadata.model_id"]},
        )

    rows = [
        row("b", evaluation_time=2.0),
        row("a", evaluation_time=0.5, metadata={"model_id": "m"}),
    ]
    (found,) = aggregate(rows, bind_metric(function=slowest))
    assert (found["value"], found["models"]) == (2.0, ["m", None])


def test_binding_errors() -> None:
    with pytest.raises(UserError, match="unknown metric 'pass_at_kk'") as error:
        bind_metric(type="pass_at_kk")
    assert "did you mean 'pass_at_k'?" in error.value.fix
    with pytest.raises(UserError, match="no parameter 'kk'"):
        bind_metric(type="pass_at_k", params={"kk": 1})
    with pytest.raises(UserError, match="k"):
        bind_metric(type="pass_at_k", params={"k": 0})
    with pytest.raises(UserError, match="is not a metric"):
        bind_metric(function=lambda numbers: 1)
    with pytest.raises(UserError, match="no facet can have this name"):
        bind_metric(type="mean", facets=["value"])


# ---- what is stored


def test_both_files_and_the_manifest(tmp_path: Path) -> None:
    store = FlatStore(tmp_path / "x")
    put(store, [row("a"), row("b", False)], store.id)
    found = asyncio.run(
        Aggregator(store).aggregate_async([store.id], [PASS_RATE], id=store.id, name="a name")
    )
    lines = (tmp_path / "x" / "metrics.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line) for line in lines] == found
    assert msgspec.json.decode((tmp_path / "x" / "metrics.json").read_bytes()) == found
    manifest = store.manifest("aggregation", store.id)
    assert manifest is not None
    assert manifest.complete
    assert (manifest.name, manifest.counts) == ("a name", {"metrics": 1, "evaluations": 2})
    assert manifest.inputs[0]["id"] == store.id
    assert manifest.plan["metrics"][0]["type"] == "pass_rate"


def test_an_unknown_evaluation_is_refused() -> None:
    store = MemoryStore()
    store.put_manifest(Manifest(kind="evaluation", id="known"))
    with pytest.raises(UserError, match="there is no evaluation 'knwn'") as error:
        Aggregator(store).aggregate(["knwn"], [PASS_RATE])
    assert "known" in error.value.fix


def test_ten_thousand_groups() -> None:
    rows = [
        row(f"i{number % 3}", metadata={"g": f"g{number % 10_000}"}) for number in range(20_000)
    ]
    found = aggregate(rows, bind_metric(type="pass_at_k", facets=["g"]))
    assert len(found) == 10_000
    assert {each["total_sample_count"] for each in found} == {2}


def test_a_failure_counts_under_every_label_of_its_scorer() -> None:
    store = MemoryStore()
    log = store.log("evaluation", "e")
    rows = [
        {
            "item_id": "a",
            "label": "clear",
            "scorer": "judge",
            "passed": True,
            "score": 1.0,
            "outcome": "scored",
        },
        {
            "item_id": "a",
            "label": "correct",
            "scorer": "judge",
            "passed": False,
            "score": 0.0,
            "outcome": "scored",
        },
        {
            "item_id": "b",
            "label": "judge",
            "scorer": "judge",
            "passed": None,
            "score": None,
            "outcome": "errored",
        },
        {
            "item_id": "b",
            "label": "exact",
            "scorer": "exact",
            "passed": None,
            "score": None,
            "outcome": "errored",
        },
        {
            "item_id": "c",
            "label": "judge",
            "scorer": "judge",
            "passed": None,
            "score": None,
            "outcome": "unparsed",
        },
    ]
    log.append(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    found = Aggregator(store).aggregate(["e"], [bind_metric(name="mean", type="mean")])
    assert [
        (row["label"], row["value"], row["errored_count"], row["unparsed_count"]) for row in found
    ] == [
        ("clear", 0.5, 1, 1),
        ("correct", 0.0, 1, 1),
        ("exact", None, 1, 0),
    ]
