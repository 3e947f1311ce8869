"""What a metric is called, and when its interval is that of a share."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from statsmodels.stats.proportion import proportion_confint

from assay.engine.aggregate.measure import Sample, bind_metric, measure
from assay.interfaces import Group, Scale, Values
from assay.store.table.labels import OUTCOMES
from tests.engine.aggregate.test_aggregate import aggregate, row


def double(group: Group, *, times: float = 2.0) -> Values:
    """A mean over items that a pass rate cannot reach."""
    per_item = times * np.asarray(group.score)
    return Values(value=float(per_item.mean()), per_item=per_item)


def test_a_function_has_its_own_name_unless_it_is_given_one() -> None:
    plain, named = bind_metric(function=double), bind_metric(name="twice", function=double)
    assert (plain.name, plain.type) == ("double", "double")
    assert (named.name, named.type) == ("twice", "twice")


@pytest.mark.parametrize("times", [0.5, 1.0, 1.2, 1.9, 3.0, -1.0])
def test_only_a_value_from_0_to_1_has_the_interval_of_a_share(times: float) -> None:
    """One above 1 is the mean of something else, even where all scores are 0 or 1."""
    rows = [row(str(number), passed=number % 10 > 0) for number in range(40)]
    (made,) = aggregate(rows, bind_metric(function=double, params={"times": times}))
    assert made["value"] == pytest.approx(0.9 * times)
    assert made["ci_low"] <= made["value"] <= made["ci_high"]
    assert made["ci_method"].startswith("wilson") is (0 < times <= 1)
    if made["ci_method"].startswith("hall"):
        width, usual = made["ci_high"] - made["ci_low"], abs(times) * 3.92 * np.sqrt(0.09 / 40)
        assert usual < width < 1.5 * usual  # one end is moved, because failures are rare


# ---- declared scales


def scored(
    scores: list[float | None], scale: Scale | None, samples: int = 1, lower: bool = False
) -> Sample:
    """Rows of scores only, `samples` for each item; None is an answer that failed."""
    known = np.array([score is not None for score in scores])
    return Sample(
        label="l",
        facets={},
        item=(np.arange(len(scores)) // samples).astype(np.int32),
        sample=(np.arange(len(scores)) % samples).astype(np.int32),
        passed=np.full(len(scores), -1, np.int8),
        score=np.array([0.0 if score is None else score for score in scores]),
        outcome=np.where(known, 0, OUTCOMES.index("errored")).astype(np.int8),
        load=list,
        scale=scale,
        lower_is_better=lower,
    )


def interval(
    scores: list[float], scale: Scale | None, metrics: Scale | None = None
) -> tuple[Any, Any, str]:
    """Of the mean; `metrics` is the scale that a config gives to the metric itself."""
    (made,) = measure(bind_metric(type="mean", scale=metrics), scored([*scores], scale))
    return made["ci_low"], made["ci_high"], made["ci_method"]


def test_twelve_fives_of_five() -> None:
    low, _ = proportion_confint(12, 12, method="wilson")
    expected = (pytest.approx(1 + 4 * low), 5.0, "scaled_wilson")
    assert interval([5.0] * 12, (1, 5)) == expected
    assert interval([5.0] * 12, None, (1, 5)) == expected
    assert interval([5.0] * 12, (0, 100), (1, 5)) == expected  # the metric's wins
    assert interval([5.0] * 12, None)[0] is None
    assert interval([1.0] * 12, (1, 5)) == (1.0, pytest.approx(5 - 4 * low), "scaled_wilson")


def test_rewards_of_minus_one_and_one() -> None:
    assert interval([1.0] * 30, (-1, 1)) == (pytest.approx(0.773, abs=5e-4), 1.0, "scaled_wilson")
    low, high = proportion_confint(20, 30, method="wilson")
    assert interval([1.0] * 20 + [-1.0] * 10, (-1, 1)) == (
        pytest.approx(2 * low - 1),
        pytest.approx(2 * high - 1),
        "scaled_wilson",
    )


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=40),
    st.floats(-50, 50),
    st.floats(0.5, 50),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_an_interval_moves_with_its_scale(unit: list[float], least: float, width: float) -> None:
    """The same answers on another scale have the same interval, on that scale."""
    unit = [round(value, 6) for value in unit]
    plain = interval(unit, (0, 1))
    moved = interval([least + width * value for value in unit], (least, least + width))
    assert moved[2].removeprefix("scaled_") == plain[2]
    assert moved[0] == pytest.approx(least + width * plain[0], abs=1e-4 * width)
    assert moved[1] == pytest.approx(least + width * plain[1], abs=1e-4 * width)
    assert least <= moved[0] <= moved[1] <= least + width


OUTSIDE = "; weak: some scores lie outside the declared scale"


def test_scores_outside_the_declared_scale() -> None:
    """A label that was paid for is not lost: its interval is made as if nothing was declared, and says so."""
    scores = [4.0, 5.0] * 20 + [7.0]
    low, high, method = interval(scores, (1, 5))
    assert (low, high) == interval(scores, None)[:2]
    assert method == f"hall{OUTSIDE}"
    assert interval([-1.0, -2.0] * 20, (0, None))[2].endswith(OUTSIDE)
    assert interval([9.0] * 40, (1, 5))[0] is None


def test_items_with_unequal_samples_lie_within_their_scale() -> None:
    """Their contributions to the mean may lie outside, and the scores do not."""
    made = scored([5.0] * 9 + [1.0], (1, 5))
    made.item = np.array([0] * 9 + [1], np.int32)
    made.sample = np.array([*range(9), 0], np.int32)
    (row_,) = measure(bind_metric(type="mean"), made)
    assert OUTSIDE not in row_["ci_method"]
    assert 1 <= row_["ci_low"] < 4.6 < row_["ci_high"] <= 5


def test_missing_rows_have_the_ends_of_the_scale() -> None:
    cases: list[tuple[Scale | None, bool, float, float]] = [
        ((1, 5), False, 1, 5),
        ((1, 5), True, 5, 1),
        ((-1, 4), False, -1, 4),
        (None, False, 0, 4),
        ((None, 10), False, 0, 10),
        ((2, None), False, 2, 4),
    ]
    for scale, lower, wrong, right in cases:
        (made,) = measure(bind_metric(type="mean"), scored([2.0, 4.0, None], scale, lower=lower))
        bounds = made["value_if_missing_wrong"], made["value_if_missing_right"]
        assert bounds == (pytest.approx((6 + wrong) / 3), pytest.approx((6 + right) / 3)), scale
    (made,) = measure(bind_metric(type="mean"), scored([-2.0, -4.0, None], (None, 0)))
    assert made["value_if_missing_right"] == -2  # no logarithm of a probability is above 0


def spent(group: Group) -> Values:
    """Not about right and wrong: the label's scale is not that of its values."""
    return Values(value=3.0, per_item=np.array([2.0, 4.0] * 20))


spent.__assay__ = {"kind": "metric", "name": "spent", "verdicts": False}  # type: ignore[attr-defined]


def test_a_metric_that_is_not_about_scores_does_not_have_their_scale() -> None:
    rows = [row(str(number)) for number in range(40)]
    (made,) = aggregate(rows, bind_metric(function=spent))
    made_of_label = measure(bind_metric(function=spent), scored([1.0] * 40, (0, 1)))
    assert made["ci_method"] == made_of_label[0]["ci_method"] == "hall"


def test_a_pass_rate_is_better_when_higher_whatever_its_label() -> None:
    """So what an unseen failure could do is at the low end."""
    made = [
        msgspec.structs.replace(
            scored([0.0] * 60, (0, None), samples=2, lower=lower), passed=np.ones(60, np.int8)
        )
        for lower in (False, True)
    ]
    first, second = (measure(bind_metric(type="pass_rate"), each)[0] for each in made)
    assert (first["ci_low"], first["ci_high"]) == (second["ci_low"], second["ci_high"])
    assert first["ci_high"] == 1
