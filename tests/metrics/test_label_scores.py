"""Labels by verdict, and steps by their first pass, against their definitions written down plainly."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from assay.metrics.label_scores import ACTUAL, PREDICTED, label_scores
from assay.metrics.step_efficiency import step_efficiency

from .rows import group

WORKED = [
    ("Music", "Music", 1.0),
    ("Music", "music", 1.0),
    ("Politics", "Music", 0.0),
    ("Politics", "Politics", 1.0),
    ("Other", "Politics", 0.0),
    ("Other", "Other", 1.0),
]


def labelled(cases: list[tuple[Any, Any, float]]) -> Any:
    columns = {ACTUAL: [case[0] for case in cases], PREDICTED: [case[1] for case in cases]}
    return group(*([case[2]] for case in cases), columns=columns)


def test_the_verdict_says_what_is_right() -> None:
    found = label_scores(labelled(WORKED))
    assert (
        found.value
        == found.fields["average_f1"]
        == pytest.approx(2 * 0.75 * (2 / 3) / (0.75 + 2 / 3))
    )
    assert found.fields["precision_per_label"] == {
        "Music": 0.5,
        "music": 1.0,
        "Politics": 0.5,
        "Other": 1.0,
    }
    assert found.fields["recall_per_label"] == {"Music": 1.0, "Politics": 0.5, "Other": 0.5}
    assert found.fields["f1_per_label"]["music"] == 0.0
    assert label_scores(labelled(WORKED), statistic="precision").value == 0.75
    assert label_scores(labelled(WORKED), statistic="recall").value == pytest.approx(2 / 3)
    assert found.per_item is None


def test_a_side_without_a_label_counts_nowhere() -> None:
    found = label_scores(labelled([("a", None, 0.0), (None, "a", 1.0), (1, 1, 1.0)]))
    assert found.fields["precision_per_label"] == {"a": 1.0, "1": 1.0}
    assert found.fields["recall_per_label"] == {"a": 0.0, "1": 1.0}
    nothing = label_scores(labelled([(None, None, 1.0)]))
    assert nothing.value is None
    assert "no row has" in str(nothing.reason)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=5), min_size=1, max_size=6),
    st.floats(0, 1),
)
def test_step_efficiency(items: list[list[float]], penalty: float) -> None:
    found = step_efficiency(group(*items), penalty=penalty)
    values = [
        max(0.0, 1 - penalty * scores.index(1.0)) if 1.0 in scores else 0.0 for scores in items
    ]
    assert found.per_item is not None
    assert found.per_item.tolist() == pytest.approx(values)
    assert found.value == pytest.approx(np.mean(values))
    assert found.fields["total_steps"] == len(items)
    assert found.fields["first_attempt_correct"] == sum(scores[0] == 1.0 for scores in items)
    assert found.fields["never_correct"] == sum(1.0 not in scores for scores in items)


def test_a_field_can_count_the_retries() -> None:
    made = group([0.0, 1.0], [1.0, 0.0], columns={"turn": [3, 2, 4, None]})
    found = step_efficiency(made, penalty=0.1, retry="turn")
    assert found.per_item is not None
    assert found.per_item.tolist() == pytest.approx([0.8, 0.6])
    assert found.fields["avg_retries_when_correct"] == 3.0


@pytest.mark.parametrize("statistic", ["precision", "recall", "f1"])
def test_the_averages_have_intervals(statistic: str) -> None:
    from assay.stats.resampling import statistic_interval

    random = np.random.default_rng(3)
    true, guess = (random.choice(["a", "b", "c"], 90).tolist() for _ in range(2))
    scores = [[float(random.random() < 0.6) for _ in range(2)] for _ in range(45)]
    made = group(*scores, columns={PREDICTED: [None, *guess[1:]], ACTUAL: true})
    found = label_scores(made, statistic=statistic)
    assert found.resampled is not None
    assert found.resampled.statistic(found.resampled.counts[None, :])[0] == pytest.approx(
        found.value
    )
    low, high, method = statistic_interval(found.resampled)
    assert low is not None
    assert high is not None
    assert low < found.value < high
    assert (high - low, method) == (pytest.approx(0.2, abs=0.08), "jackknife")
