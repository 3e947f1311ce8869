"""What a row's verdict is, under which labels it counts, and how many rows a group should have."""

import json
from typing import Any

import numpy as np
import pytest

from assay.engine.aggregate.measure import bind_metric
from tests.engine.aggregate.test_aggregate import aggregate


@pytest.mark.parametrize(
    ("row", "passes", "score"),
    [
        ({"score": 0}, 0.0, 0.0),
        ({"score": 0.0}, 0.0, 0.0),
        ({"score": 0.01}, 1.0, 0.01),
        ({"score": 1}, 1.0, 1.0),
        ({"score": -1}, 0.0, -1.0),
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
    row: dict[str, Any], passes: float, score: float
) -> None:
    """A missing `passed` is a score above 0, and never one of 0; a missing score is 1 or 0 by `passed`."""
    metrics = [bind_metric(type=name) for name in ("pass_rate", "mean", "pass_at_k")]
    made = aggregate([{"item_id": "a", "label": "l", **row}], *metrics)
    assert [each["value"] for each in made] == [passes, pytest.approx(score), passes]
    assert [each["scored_count"] for each in made] == [1, 1, 1]


def test_a_zero_among_others_is_no_pass() -> None:
    rows = [{"item_id": str(number), "label": "l", "score": number % 4} for number in range(8)]
    (made,) = aggregate(rows, bind_metric(type="pass_rate"))
    assert made["value"] == np.mean([number % 4 > 0 for number in range(8)])
