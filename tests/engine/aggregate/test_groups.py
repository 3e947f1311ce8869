"""What a row's verdict is, under which labels it counts, and how many rows a group should have."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assay.engine.aggregate.measure import NO_VERDICT, bind_metric
from assay.store.table.labels import labels_apart
from tests.engine.aggregate.test_aggregate import aggregate


@pytest.mark.parametrize(
    ("row", "passes", "score"),
    [
        ({"score": 0}, 0.0, 0.0),
        ({"score": 0.0}, 0.0, 0.0),
        ({"score": 0.01}, None, 0.01),
        ({"score": 1}, 1.0, 1.0),
        ({"score": -1}, None, -1.0),
        ({"score": 0, "passed": None}, 0.0, 0.0),
        ({"passed": True}, 1.0, 1.0),
        ({"passed": False}, 0.0, 0.0),
        ({"passed": True, "score": None}, 1.0, 1.0),
        ({"passed": True, "score": 0}, 1.0, 0.0),
        ({"passed": False, "score": 0.9}, 0.0, 0.9),
    ],
    ids=json.dumps,
)
def test_a_foreign_row_counts_by_what_it_has(
    row: dict[str, Any], passes: float | None, score: float
) -> None:
    """A missing `passed` is a score of 1 or 0, and other scores are no verdict; a missing score is 1 or 0 by
    `passed`."""
    metrics = [bind_metric(type=name) for name in ("pass_rate", "mean", "pass_at_k")]
    made = aggregate([{"item_id": "a", "label": "l", **row}], *metrics)
    assert [each["value"] for each in made] == [passes, pytest.approx(score), passes]
    assert [each["scored_count"] for each in made] == [1, 1, 1]


PASSES = (
    "pass_rate pass_at_k pass_hat_k majority_at_k corrected_pass_rate label_scores step_efficiency"
)


@pytest.mark.parametrize("name", PASSES.split())
def test_a_label_that_is_only_a_score_has_no_passes(name: str) -> None:
    rows = [{"item_id": str(number), "label": "l", "score": number % 4} for number in range(8)]
    made, mean, count = aggregate(
        rows, bind_metric(type=name), bind_metric(type="mean"), bind_metric(type="count")
    )
    assert (made["value"], made["reason"], made["scored_count"]) == (None, f"l {NO_VERDICT}", 8)
    assert (made["value_if_missing_wrong"], made["value_if_missing_right"]) == (None, None)
    assert (mean["value"], count["value"], count["passed_count"]) == (1.5, 8, None)


@given(st.lists(st.tuples(st.sampled_from([True, False, None]), st.integers(0, 2)), min_size=1))
def test_scores_of_1_and_0_are_verdicts_and_others_are_not(
    rows: list[tuple[bool | None, int]],
) -> None:
    """Whatever the threshold, they would pass or not; stored verdicts count as stored."""
    stored = [
        {
            "item_id": str(at),
            "label": "l",
            "passed": passed,
            "score": score / 2 if passed is None else 0.5,
        }
        for at, (passed, score) in enumerate(rows)
    ]
    (made,) = aggregate(stored, bind_metric(type="pass_rate"))
    if any(passed is None and score == 1 for passed, score in rows):
        assert made["value"] is None
    else:
        verdicts = [score == 2 if passed is None else passed for passed, score in rows]
        assert made["value"] == np.mean(verdicts)


def test_a_custom_metric_sees_that_there_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def seen(evaluation_results, facets, **params):\n"
        "    return {'value': 1, 'said': {row['item_id']: row['passed'] for row in evaluation_results}}\n"
    )
    bound = bind_metric(type="custom", path="own.py", function_name="seen", base=tmp_path)
    rows = [
        {"item_id": "a", "label": "l", "score": 0.5},
        {"item_id": "b", "label": "l", "passed": True},
    ]
    rows.append(
        {"item_id": "c", "label": "l", "outcome": "unparsed", "passed": None, "score": None}
    )
    (made,) = aggregate(rows, bound)
    assert made["said"] == {"a": None, "b": True, "c": False}


# ---- two scorers, one label


def row(item: str, scorer: str, **more: Any) -> dict[str, Any]:
    return {
        "item_id": item,
        "label": "good",
        "scorer": scorer,
        "outcome": "scored",
        "score": 1.0,
        "passed": True,
    } | more


def test_a_label_of_two_scorers_is_two_labels() -> None:
    """As one, pass@2 would be 1 from one sample of an item."""
    rows = [
        row(item, scorer, passed=scorer == "a", score=float(scorer == "a"))
        for item in "xyz"
        for scorer in "ab"
    ]
    rows.append(row("w", "b", label="b", outcome="errored", passed=None, score=None))
    rate, at_2 = bind_metric(type="pass_rate"), bind_metric(type="pass_at_k", params={"k": 2})
    made = aggregate(rows, rate, at_2)
    assert [(each["label"], each["value"], each["errored_count"]) for each in made[:2]] == [
        ("good (a)", 1.0, 0),
        ("good (b)", 0.0, 1),
    ]
    assert [each["value"] for each in made[2:]] == [None, None]
    only = bind_metric(type="mean", include=["good (a)"])
    assert [each["value"] for each in aggregate(rows, only)] == [1.0]


@pytest.mark.parametrize(
    "rows",
    [
        [row("x", "a"), row("y", "b")],  # they share the items
        [row("x", "a"), row("x", "a", sample_index=1)],
        [row("x", "a"), row("x", "b", outcome="skipped", passed=None, score=None)],
        [row("x", "a", metadata={"model_id": "m"}), row("x", "b", metadata={"model_id": "n"})],
    ],
)
def test_scorers_of_different_answers_share_a_label(rows: list[dict[str, Any]]) -> None:
    facets = ["metadata.model_id"] if "metadata" in rows[0] else []
    assert {each["label"] for each in aggregate(rows, bind_metric(type="mean", facets=facets))} == {
        "good"
    }


@given(
    st.lists(
        st.tuples(st.sampled_from("lm"), st.sampled_from("ab"), st.booleans(), st.integers(0, 3)),
        max_size=12,
    )
)
def test_labels_are_told_apart_where_scorers_meet(rows: list[tuple[str, str, bool, int]]) -> None:
    given = list(
        dict.fromkeys(
            (label, scorer, "scored" if ok else "errored") for label, scorer, ok, _ in rows
        )
    )
    codes = np.array(
        [
            given.index((label, scorer, "scored" if ok else "errored"))
            for label, scorer, ok, _ in rows
        ],
        int,
    )
    answers = np.array([answer for *_, answer in rows], int)
    owners: dict[tuple[str, int], set[str]] = {}
    gave = {(label, scorer) for label, scorer, ok, _ in rows if ok}
    for label, scorer, _, answer in rows:
        if (label, scorer) in gave:
            owners.setdefault((label, answer), set()).add(scorer)
    shared = {label for (label, _), scorers in owners.items() if len(scorers) > 1}
    assert labels_apart(given, codes, answers) == [
        f"{label} ({scorer})" if label in shared and (label, scorer) in gave else label
        for label, scorer, _ in given
    ]


# ---- metrics that leave out rows themselves


def test_failed_rows_are_in_counts_and_bounds_of_what_metrics_leave_out() -> None:
    """Of ten, two errored: their confidence and latency are not known, whatever they would have been."""
    rows = [
        row(str(n), "a", passed=n < 6, detailed_results={"confidence": 0.5, "entropy": 1.0})
        for n in range(8)
    ]
    rows += [row(str(n), "a", outcome="errored", passed=None, score=None) for n in (8, 9)]
    for name in ("calibration_error", "entropy"):
        (made,) = aggregate(rows, bind_metric(type=name))
        assert (made["used_sample_count"], made["errored_count"], made["value"]) == (
            8,
            2,
            0.25 if "c" in name[:1] else 1.0,
        )
        assert (made["value_if_missing_wrong"], made["value_if_missing_right"]) == (None, None)
        (made,) = aggregate(rows[:8], bind_metric(type=name))
        assert (made["used_sample_count"], made["value_if_missing_wrong"]) == (8, made["value"])
    (rate,) = aggregate(rows, bind_metric(type="pass_rate"))
    assert (
        rate["used_sample_count"],
        rate["value_if_missing_wrong"],
        rate["value_if_missing_right"],
    ) == (8, 0.6, 0.8)
