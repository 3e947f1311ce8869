"""The lambda node of unit metrics, and the report: its shape in both dialects, its statuses, its sound numbers."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import regex
from hypothesis import given, settings, strategies as st
from sklearn import metrics as oracle

from assay.errors import UserError
from assay.formats.sygra.eval_utils import (
    MetricCollatorPostProcessor,
    UnitMetrics,
    parse_response_as_json,
    result_columns,
)
from assay.formats.sygra.metric import dialect
from assay.formats.sygra.metrics import (
    AggregatorMetricRegistry,
    BaseAggregatorMetric,
    BaseMetricMetadata,
    UnitMetricResult,
)
from assay.formats.sygra.metrics.counting import AccuracyMetric
from assay.stats.intervals import wilson

WORKED = [
    ("Music", "Music", True),
    ("Music", "music", True),
    ("Politics", "Music", False),
    ("Politics", "Politics", True),
    ("Other", "Politics", False),
    ("Other", "Other", True),
]
BOTH = {"predicted_key": "text", "golden_key": "text"}
FAILED = {"id": "lost", "exact_match_result": None, "error": "the server did not answer"}


def record(
    id: Any, golden: Any, predicted: Any, correct: bool, column: str = "exact_match_result"
) -> dict[str, Any]:
    return {
        "id": id,
        column: {
            "correct": correct,
            "golden": {"text": golden},
            "predicted": {"text": predicted},
            "metadata": {},
        },
    }


def records(column: str = "exact_match_result") -> list[dict[str, Any]]:
    return [record(number, *case, column) for number, case in enumerate(WORKED)]


def entry(name: str, column: str | None = "exact_match_result", **more: Any) -> dict[str, Any]:
    return {"name": name, **({} if column is None else {"unit_metrics_results": [column]}), **more}


def report(data: Any, *entries: Any, **params: Any) -> dict[str, Any]:
    (found,) = MetricCollatorPostProcessor(aggregator_metrics_map=list(entries), **params).process(
        data, {}
    )
    assert json.loads(json.dumps(found)) == found
    return found


# ---- dialects


def test_the_older_dialect() -> None:
    found = report(
        records(),
        entry("accuracy", params={"key": "text"}),
        entry("precision", params={"predicted_key": "text"}),
        entry("recall", params={"golden_key": "text"}),
        entry("f1_score", params=BOTH),
        entry("pass@k", params={"k": 2}),
    )
    assert list(found["evaluation_summary"])[:2] == ["total_records", "status"]
    assert found["evaluation_summary"] == {
        "total_records": 6,
        "status": "success",
        "scored": 6,
        "failed": 0,
        "unscored": 0,
    }
    assert list(found["results"]) == ["accuracy", "precision", "recall", "f1_score", "pass@k"]
    assert found["results"]["accuracy"] == {"accuracy": pytest.approx(4 / 6)}
    assert list(found["results"]["f1_score"]) == ["average_f1_score", "f1_score_per_class"]
    assert found["results"]["f1_score"]["average_f1_score"] == pytest.approx(0.70588, abs=5e-6)
    assert found["results"]["pass@k"] == {"pass@k": pytest.approx(1 - 1 / 15)}


def test_the_newer_dialect() -> None:
    found = report(
        records("exact_match"),
        entry("accuracy", "exact_match"),
        entry("pass@k", "exact_match", params={"k": 2}),
    )
    summary = found["evaluation_summary"]
    assert list(summary)[:3] == ["total_records", "timestamp", "status"]
    assert time.strptime(summary["timestamp"], "%Y-%m-%d %H:%M:%S")
    assert list(found["results"]) == ["exact_match-accuracy", "exact_match-pass@k"]
    assert list(found["results"]["exact_match-pass@k"]) == ["pass@1", "pass@2"]


def test_the_dialect_can_be_chosen() -> None:
    assert list(report(records(), entry("accuracy"), report_keys="field")["results"]) == [
        "exact_match_result-accuracy"
    ]
    newer = report(records("exact_match"), entry("accuracy", "exact_match"), report_keys="name")
    assert list(newer["results"]) == ["accuracy"]
    assert "timestamp" not in newer["evaluation_summary"]


def test_what_tells_the_dialects_apart() -> None:
    assert dialect(["exact_match_result"]) == "name"
    assert dialect(["exact_match_result", "exact_match"]) == "field"
    assert dialect([]) == "name"


def test_two_columns_of_one_aggregator_do_not_hide_one_another() -> None:
    data = [
        {**one, **two} for one, two in zip(records(), records("fuzzy_match_result"), strict=True)
    ]
    data[2]["fuzzy_match_result"]["correct"] = True
    found = report(
        data,
        entry("accuracy"),
        entry("accuracy", "fuzzy_match_result"),
        entry("pass@k", params={"k": 1}),
    )
    assert found["results"] == {
        "exact_match_result-accuracy": {"accuracy": pytest.approx(4 / 6)},
        "fuzzy_match_result-accuracy": {"accuracy": pytest.approx(5 / 6)},
        "pass@k": {"pass@k": pytest.approx(4 / 6)},
    }


# ---- statuses


def test_no_data() -> None:
    empty = {"evaluation_summary": {"total_records": 0, "status": "no_data"}, "results": {}}
    assert report([], entry("accuracy")) == empty
    assert report(iter(()), entry("accuracy", "exact_match")) == empty


def test_a_name_alone_is_an_entry() -> None:
    found = report(records(), "accuracy", unit_metrics_results="exact_match_result")
    assert found["results"] == {"accuracy": {"accuracy": pytest.approx(4 / 6)}}


def test_no_aggregators() -> None:
    found = report([*records(), FAILED])
    assert found["results"] == {}
    assert found["evaluation_summary"] == {
        "total_records": 7,
        "status": "success",
        "scored": 6,
        "failed": 1,
        "unscored": 0,
    }


NOTHING = "no record has a result in 'exact_match_result'"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([FAILED, FAILED], f"{NOTHING}: 2 of 2 failed"),
        ([{"id": 1, "exact_match_result": None}], NOTHING),
    ],
)
def test_records_without_a_result_are_fatal_and_no_zero(data: list[Any], error: str) -> None:
    found = report(data, entry("accuracy"), entry("pass@k", params={"k": 1}))
    summary = found["evaluation_summary"]
    assert found["results"] == {}
    assert (summary["status"], summary["error"], summary["scored"]) == ("fatal_error", error, 0)


def test_a_column_without_a_result_is_no_zero_beside_one_that_has_some() -> None:
    found = report(
        [{**each, "b_result": None} for each in records()],
        entry("accuracy"),
        entry("pass^k", "b_result", params={"k": 1}),
    )
    assert list(found["results"]) == ["accuracy"]
    assert found["evaluation_summary"]["errors"] == {
        "pass^k": "no record has a result in 'b_result'"
    }


def test_statuses_are_those_of_the_document() -> None:
    """`success`, `no_data`, and `fatal_error` with an `error` string, whatever goes wrong."""
    wrong = [
        entry("accuracy", "nope"),
        entry("nope"),
        entry("precision"),
        entry("pass@k", params={"k": 9}),
    ]
    runs = [
        ([], [entry("accuracy")]),
        (records(), [entry("accuracy")]),
        (["text"], [entry("accuracy")]),
    ]
    runs += [(records(), [entry("accuracy"), each]) for each in wrong] + [
        ([FAILED], [entry("accuracy")])
    ]
    for data, metrics in runs:
        summary = report(data, *metrics)["evaluation_summary"]
        expected = (
            "no_data"
            if not data
            else "success"
            if len(metrics) == 1 and data == records()
            else "fatal_error"
        )
        assert summary["status"] == expected
        assert isinstance(summary.get("error"), str) == (expected == "fatal_error")


def test_an_aggregator_twice_on_one_column_keeps_both() -> None:
    found = report(
        records(),
        *(entry("pass@k", params={"k": k}) for k in (1, 3, 1)),
        entry("accuracy"),
        entry("accuracy"),
    )
    assert list(found["results"]) == ["pass@k(k=1)", "pass@k(k=3)", "accuracy"]
    assert found["results"]["pass@k(k=1)"] != found["results"]["pass@k(k=3)"]
    assert {"pass@k(k=1)", "pass@k(k=3)"} <= found["sound"]["exact_match_result"].keys()
    long = report(
        records(), *(entry("pass@k", params={"k": k}) for k in (1, 3)), report_keys="field"
    )
    assert list(long["results"]) == [
        "exact_match_result-pass@k(k=1)",
        "exact_match_result-pass@k(k=3)",
    ]


def test_aggregators_that_read_other_metadata_are_told_apart() -> None:
    copied = {"step_id": "turn"}
    found = report(
        steps(),
        entry("step_efficiency", "step_match"),
        entry("step_efficiency", "step_match", metadata=copied),
    )
    assert len(found["results"]) == 2


def test_failed_records_are_counted_and_enter_no_metric() -> None:
    found = report([FAILED, *records(), FAILED], entry("accuracy"))
    assert found["results"]["accuracy"] == {"accuracy": pytest.approx(4 / 6)}
    counts = {
        name: found["evaluation_summary"][name]
        for name in ("total_records", "scored", "failed", "unscored")
    }
    assert counts == {"total_records": 8, "scored": 6, "failed": 2, "unscored": 0}
    sound = found["sound"]["exact_match_result"]["accuracy"]
    assert (sound["value_if_missing_wrong"], sound["value_if_missing_right"]) == (4 / 8, 6 / 8)


def test_a_field_called_error_is_no_failure_where_there_is_a_result() -> None:
    found = report([{**each, "error": "E42"} for each in records()], entry("accuracy"))
    assert (found["evaluation_summary"]["scored"], found["evaluation_summary"]["failed"]) == (6, 0)


def test_results_that_are_null_or_missing_are_left_out_and_counted() -> None:
    data = [record(1, "a", "a", True), {"id": 2, "exact_match_result": None}, {"id": 3}]
    found = report(data, entry("accuracy"))
    assert found["results"]["accuracy"] == {"accuracy": 1.0}
    assert found["evaluation_summary"]["total_records"] == 3
    assert found["evaluation_summary"]["unscored"] == 2


def test_a_missing_column_is_named_with_those_there_are() -> None:
    found = report([{"exact_match": {"correct": True}}], entry("accuracy", "nope"))
    text = "Missing unit metric results field 'nope' in data. Available columns: ['exact_match']"
    assert found["results"] == {}
    assert found["evaluation_summary"]["status"] == "fatal_error"
    assert found["evaluation_summary"]["error"] == text
    assert found["evaluation_summary"]["total_records"] == 1
    assert "timestamp" not in found["evaluation_summary"]
    assert "sound" not in found
    found = report(records(), entry("accuracy", None))
    assert "field 'text' in data" in found["evaluation_summary"]["error"]
    found = report(records(), entry("accuracy", None), unit_metrics_results="exact_match_result")
    assert found["results"] == {"accuracy": {"accuracy": pytest.approx(4 / 6)}}


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (entry("f1"), "Aggregator metric 'f1' not found in registry."),
        (entry("pass@k", params={"k": -2}), "PassAtKMetric: Expected `int` >= 0"),
        (entry("precision"), "PrecisionMetric: Object missing required field `predicted_key`"),
        (
            entry("recall", params=None),
            "`params` of the aggregator metric 'recall' is null: leave it out or write {}",
        ),
        (
            entry("pass^k", "no_result", params={"k": 2}),
            "Missing unit metric results field 'no_result'",
        ),
        (entry("pass@k", params={"k": 9}), "k = 9, but there are 6 results"),
        (entry("step_efficiency", metadata={"step_id": 3}), "Expected `str`, got `int`"),
    ],
)
def test_one_that_fails_leaves_the_others_alone(bad: dict[str, Any], text: str) -> None:
    found = report(records(), entry("accuracy"), bad, entry("pass_at_k", params={"k": 1}))
    summary = found["evaluation_summary"]
    assert summary["status"] == "fatal_error"
    assert summary["error"].startswith(text)
    assert list(summary["errors"]) == [bad["name"]]
    assert summary["errors"][bad["name"]].startswith(text)
    assert list(found["results"]) == ["accuracy", "pass_at_k"]


def test_a_malformed_result_fails_its_column_only() -> None:
    data = [
        {**each, "b_result": {"correct": True, "golden": {}, "predicted": {}}} for each in records()
    ]
    data[3]["exact_match_result"] = {"correct": True, "golden": "text"}
    found = report(data, entry("accuracy"), entry("pass@k", "b_result", params={"k": 1}))
    errors = found["evaluation_summary"]["errors"]
    assert errors == {"accuracy": "exact_match_result of record 3: golden must be a dictionary"}
    assert found["results"] == {"pass@k": {"pass@k": 1.0}}
    assert list(found["sound"]) == ["b_result"]


def test_records_that_are_none() -> None:
    found = report([*records(), "text"], entry("accuracy"))
    assert found["evaluation_summary"] == {
        "total_records": 6,
        "status": "fatal_error",
        "error": "record 6 is not an object but str",
    }


# ---- metadata that is copied from columns


def steps() -> list[dict[str, Any]]:
    """Two steps, one always right and one always wrong, three tries each."""
    return [
        {
            "mission": "m",
            "turn": turn,
            "retry": f"retry_{retry}",
            **record(None, "x", "x", turn == 0, "step_match"),
        }
        for turn in range(2)
        for retry in range(3)
    ]


COPIED = {"mission_id": "mission", "step_id": "turn", "retry_id": "retry"}


def test_metadata_is_copied_and_the_records_stay_as_they_were() -> None:
    data = steps()
    before = json.dumps(data)
    found = report(data, entry("step_efficiency", "step_match", metadata=COPIED))
    assert json.dumps(data) == before
    assert found["results"]["step_match-step_efficiency"] == {
        "step_efficiency": 0.5,
        "total_steps": 2,
        "first_attempt_correct": 1,
        "retry_correct": 0,
        "never_correct": 1,
        "avg_retries_when_correct": 0.0,
    }
    nowhere = {"mission_id": "no", "step_id": "such"}
    found = report(data, entry("step_efficiency", "step_match", metadata=nowhere))
    assert found["results"]["step_match-step_efficiency"]["total_steps"] == 1


def test_a_problem_is_a_step_of_a_mission() -> None:
    found = report(
        steps(),
        entry("pass@k", "step_match", params={"k": 3}, metadata=COPIED),
        entry("pass^k", "step_match", params={"k": 3}, metadata=COPIED),
        entry("step_efficiency", "step_match", metadata=COPIED),
    )
    assert found["results"]["step_match-pass@k"]["pass@3"] == pytest.approx(0.95)
    sound = found["sound"]["step_match"]
    assert sound["pass@k"]["pass@3"]["value"] == sound["pass^k"]["pass^3"]["value"] == 0.5
    assert (sound["pass@k"]["pass@3"]["problems"], sound["pass@k"]["pass@3"]["attempts"]) == (2, 6)
    assert sound["step_efficiency"]["value"] == 0.5
    assert sound["accuracy"]["ci_method"] == "wilson_of_items; weak: fewer than 30 items"


# ---- sound numbers


def test_sound_accuracy_has_wilsons_interval() -> None:
    sound = report(records(), entry("accuracy"))["sound"]["exact_match_result"]["accuracy"]
    assert sound["value"] == pytest.approx(4 / 6)
    assert (sound["ci_low"], sound["ci_high"]) == pytest.approx(wilson(4, 6))
    assert (sound["ci_method"], sound["ci_level"], sound["problems"]) == ("wilson", 0.95, 6)


def test_attempts_with_the_same_id_are_one_problem() -> None:
    data = [record(number // 2, "a", "a", number % 4 < 2) for number in range(8)]
    found = report(data, entry("pass@k", params={"k": 2}))
    assert found["results"]["pass@k"]["pass@k"] == pytest.approx(1 - 6 / 28)
    assert found["sound"]["exact_match_result"]["pass@k"]["pass@2"]["value"] == 0.5
    single = report(records(), entry("pass@k", params={"k": 2}))["sound"]["exact_match_result"][
        "pass@k"
    ]["pass@2"]
    assert single["value"] is None
    assert single["reason"] == "k = 2, but an item has 1 samples"


@pytest.mark.filterwarnings("ignore")  # scikit-learn warns of classes that were never predicted
@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcd")), min_size=1, max_size=20)
)
def test_sound_classes_are_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    data = [record(number, one, other, one == other) for number, (one, other) in enumerate(pairs)]
    sound = report(data, entry("f1_score", params=BOTH))["sound"]["exact_match_result"][
        "classification"
    ]
    actual, said = [one for one, _ in pairs], [other for _, other in pairs]
    for average in ("macro", "micro", "weighted"):
        expected = oracle.f1_score(actual, said, average=average, zero_division=0)
        assert sound[f"{average}_f1"] == pytest.approx(expected)
    low, high = sound["macro_f1_interval"]["ci_low"], sound["macro_f1_interval"]["ci_high"]
    assert (low is None) if len(pairs) < 2 else (0 <= low <= high <= 1)
    names = sorted({*actual, *said})
    matrix = oracle.confusion_matrix(actual, said, labels=names).tolist()
    assert [
        [sound["confusion_matrix"][one].get(other, 0) for other in names] for one in names
    ] == matrix
    assert {name: each["support"] for name, each in sound["classes"].items()} == {
        name: actual.count(name) for name in names
    }


def test_the_interval_of_the_mean_f1_needs_independent_records() -> None:
    data = [record(number, *case) for number in range(20) for case in WORKED]
    several = report(data, entry("f1_score", params=BOTH))["sound"]["exact_match_result"][
        "classification"
    ]
    assert several["macro_f1_interval"]["ci_method"] == "none: a problem has several attempts"
    for number, each in enumerate(data):
        each["id"] = number
    sound = report(data, entry("f1_score", params=BOTH))["sound"]["exact_match_result"][
        "classification"
    ]
    interval = sound["macro_f1_interval"]
    assert interval["ci_method"] == "jackknife"
    assert 0.55 < interval["ci_low"] < sound["macro_f1"] < interval["ci_high"] < 0.75


def test_spellings_that_counted_as_right_are_one_class() -> None:
    found = report(records(), entry("precision", params={"predicted_key": "text"}))
    sound = found["sound"]["exact_match_result"]["classification"]
    assert "music" in found["results"]["precision"]["precision_per_class"]
    assert sound["classes"]["Music"] == {
        "precision": pytest.approx(2 / 3),
        "recall": 1.0,
        "f1": 0.8,
        "support": 2,
    }
    assert sound["macro_f1"] == pytest.approx((0.8 + 0.5 + 2 / 3) / 3)
    assert sound["confusion_matrix"]["Politics"] == {"Music": 1, "Politics": 1}
    apart = [record(1, "A", "A", True), record(2, "a", "A", False), record(3, "a", "a", True)]
    sound = report(apart, entry("f1_score", params=BOTH))["sound"]["exact_match_result"][
        "classification"
    ]
    assert list(sound["classes"]) == ["A", "a"]
    own = [record(1, "A", "a", True), record(2, "a", "a", True)]
    sound = report(own, entry("f1_score", params=BOTH))["sound"]["exact_match_result"][
        "classification"
    ]
    assert sound["confusion_matrix"] == {"A": {"a": 1}, "a": {"a": 1}}, (
        "a true label is a class of its own"
    )


def test_free_answers_are_no_classes() -> None:
    data = [record(number, f"answer {number}", "x", False) for number in range(1500)]
    found = report(data, entry("recall", params={"golden_key": "text"}), entry("accuracy"))
    assert len(found["results"]["recall"]["recall_per_class"]) == 1500
    reason = found["sound"]["exact_match_result"]["classification"]["reason"]
    assert reason == "more than 1,000 different labels are answers, not classes"
    missing = report(data, entry("recall", params={"golden_key": "other"}))["sound"][
        "exact_match_result"
    ]
    assert missing["classification"] == {"reason": "no record has the golden key 'other'"}


# ---- a user's own aggregators


class Spread(BaseAggregatorMetric):
    def validate_config(self) -> None: ...

    def get_metadata(self) -> BaseMetricMetadata:
        return BaseMetricMetadata(
            name="spread", display_name="Spread", description="What it was given"
        )

    def calculate(self, results: list[UnitMetricResult]) -> dict[str, Any]:
        assert type(results) is list
        if self.config.get("fail"):
            raise ZeroDivisionError
        return {
            "golden": [result.golden["text"] for result in results],
            "type": self.config.get("type"),
        }


class TwiceAccuracy(AccuracyMetric):
    def calculate(self, results: Any) -> dict[str, Any]:
        return {"accuracy": 2 * super().calculate(results)["accuracy"]}


@pytest.fixture
def _own() -> Iterator[None]:
    AggregatorMetricRegistry.register("spread", Spread)
    AggregatorMetricRegistry.register("twice", TwiceAccuracy)
    yield
    AggregatorMetricRegistry.unregister("spread")
    AggregatorMetricRegistry.unregister("twice")


@pytest.mark.usefixtures("_own")
def test_own_aggregators_get_a_list() -> None:
    import numpy as np

    found = report(
        iter([*records(), FAILED]),
        entry("spread", params={"type": np.float64(0.5)}),
        entry("twice"),
    )
    assert found["results"] == {
        "spread": {
            "golden": ["Music", "Music", "Politics", "Politics", "Other", "Other"],
            "type": 0.5,
        },
        "twice": {"accuracy": pytest.approx(8 / 6)},
    }
    found = report(records(), entry("spread", params={"fail": True}), entry("accuracy"))
    assert found["evaluation_summary"]["errors"] == {"spread": "ZeroDivisionError"}
    found = report(records(), entry("spread", params={"type": object()}), entry("accuracy"))
    assert found["evaluation_summary"]["errors"] == {
        "spread": "the payload holds object, which is not a JSON value"
    }


# ---- size


def test_a_hundred_thousand_records_take_little_memory() -> None:
    """Records come one at a time and none is kept: four aggregators and the sound numbers in a few bytes each."""
    code = """if True:
        import resource
        from assay.formats.sygra.eval_utils import MetricCollatorPostProcessor
        def records(count):
            for n in range(count):
                yield {"id": f"r{n}", "text": "x" * 1000, "exact_match_result": {"correct": n % 3 == 0,
                       "golden": {"text": "a"}, "predicted": {"text": "ab"[n % 2]}, "metadata": {}}}
        column = {"unit_metrics_results": "exact_match_result"}
        keys = {"predicted_key": "text", "golden_key": "text"}
        names = ("accuracy", "precision", "recall", "f1_score")
        collator = MetricCollatorPostProcessor([{"name": name, "params": keys, **column} for name in names])
        collator.process(records(1000), {})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        (found,) = collator.process(records(100_000), {})
        assert found["evaluation_summary"]["scored"] == 100_000, found
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    grown = int(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
    )
    assert grown < 20_000, f"{grown} KB"


# ---- unit metrics as a node


def node(*metrics: Any, output_keys: Any = ()) -> dict[str, Any]:
    return {
        "golden_key": "answer",
        "predicted_key": "predicted_answer",
        "unit_metrics_map": list(metrics),
        "output_keys": output_keys,
    }


EXACT = {"name": "exact_match", "params": {"key": "text"}}


@pytest.mark.parametrize(
    ("declared", "written"),
    [
        (["exact_match_result"], {"exact_match_result"}),
        (["exact_match"], {"exact_match"}),
        ("exact_match_result", {"exact_match_result"}),
        ([], {"exact_match", "exact_match_result"}),
    ],
)
def test_where_unit_metrics_write(declared: Any, written: set[str]) -> None:
    state = {"answer": "Paris", "predicted_answer": "paris "}
    found = UnitMetrics.apply(node(EXACT, output_keys=declared), state)
    assert found is state
    assert found.keys() - {"answer", "predicted_answer"} == written
    result = UnitMetricResult.from_dict(found[next(iter(written))])
    assert result.correct is True
    assert (result.golden, result.predicted) == ({"text": "Paris"}, {"text": "paris "})


def test_what_unit_metrics_refuse() -> None:
    with pytest.raises(KeyError, match="golden_key: the state has no 'answer'"):
        UnitMetrics.apply(node(EXACT), {"predicted_answer": "x"})
    with pytest.raises(ValueError, match="the unit metrics need `golden_key`"):
        UnitMetrics.apply({"unit_metrics_map": [EXACT]}, {})
    assert UnitMetrics.apply(node(), {"answer": 1, "predicted_answer": 1}) == {
        "answer": 1,
        "predicted_answer": 1,
    }


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        (
            [{"name": "exact_match", "params": None}],
            "`params` of the unit metric 'exact_match' is null",
        ),
        ([EXACT, {"name": "exact_match"}], "two unit metrics are called 'exact_match'"),
        ([{"name": "fuzy_match"}], "did you mean 'fuzzy_match'?"),
        ([{"name": "fuzzy_match", "params": {"threshold": 2}}], "FuzzyMatchMetric"),
        ([{}], "Unit metric '' not found"),
        (["fuzzy"], "Unit metric 'fuzzy' not found"),
    ],
)
def test_bad_unit_metrics_are_found_before_a_run(metrics: list[Any], text: str) -> None:
    with pytest.raises(UserError) as caught:
        result_columns(node(*metrics), "graph_config.yaml: unit_metrics")
    assert text in str(caught.value)
    with pytest.raises((KeyError, ValueError)):
        UnitMetrics.apply(node(*metrics), {"answer": 1, "predicted_answer": 1})
    assert result_columns(node(EXACT)) == {"exact_match_result": "", "exact_match": ""}


# ---- JSON in answers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, None),
        ("", None),
        ("no json", None),
        ('{"a": 1}', {"a": 1}),
        ("[1, 2]", {"value": [1, 2]}),
        ("7", {"value": 7}),
        (7, {"value": 7}),
        ('Here:\n```json\n{"a": {"b": 2}}\n```', {"a": {"b": 2}}),
        ('{bad} {"a": 1}', None),
        ('{"a": "}"} x', None),
        ({"a": 1}, None),
        ('{ {"a": 1}', {"a": 1}),
        ('} {"a": 1} {', {"a": 1}),
        ("[" * 100_000, None),
        ("{" * 100_000, None),
    ],
)
def test_parse_response_as_json(text: Any, found: Any) -> None:
    assert parse_response_as_json(text) == found


@settings(deadline=None)
@given(st.text(st.sampled_from('{}"a:1 '), max_size=16))
def test_braces_are_found_as_a_recursive_pattern_finds_them(text: str) -> None:
    def expected() -> Any:
        try:
            found = json.loads(text)
        except ValueError:
            match = regex.search(r"\{(?:[^{}]|(?R))*\}", text)
            try:
                found = json.loads(match[0]) if match else None
            except ValueError:
                return None
            if match is None:
                return None
        return found if isinstance(found, dict) else {"value": found}

    assert parse_response_as_json(text) == expected()
