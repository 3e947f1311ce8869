"""What a metric is called, and when its interval is that of a share."""

import numpy as np
import pytest

from assay.engine.aggregate.measure import bind_metric
from assay.interfaces import Group, Values
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
    if made["ci_method"].startswith("cluster_t"):
        width = made["ci_high"] - made["ci_low"]
        assert width == pytest.approx(abs(times) * 2 * 1.96 * np.sqrt(0.09 / 40), rel=0.1)
