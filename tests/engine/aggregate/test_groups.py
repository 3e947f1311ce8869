"""What a row's verdict is, under which labels it counts, and how many rows a group should have."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.engine.aggregate.measure import NO_VERDICT, bind_metric
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
