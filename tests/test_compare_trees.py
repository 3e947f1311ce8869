"""The comparison of two trees: its bounds are those of the signed rank test, and a slower tree is called slower."""

import math
import random
from itertools import product

import pytest
from scipy.stats import wilcoxon

from benchmarks import compare_trees
from benchmarks.compare_trees import Estimate, estimate, verdict_of
from benchmarks.trees.workloads import WORKLOADS


@pytest.mark.parametrize("count", [6, 9, 15])
def test_the_bounds_are_what_the_test_does_not_reject(count: int) -> None:
    order = random.Random(count)
    ratios = [math.exp(order.gauss(0.1, 0.05)) for _ in range(count)]
    found = estimate(ratios)
    assert found.low <= found.ratio <= found.high
    assert found.level >= 0.95
    for bound, outwards in product((found.low, found.high), (False, True)):
        nudge = 1e-9 if (bound == found.high) == outwards else -1e-9
        p = wilcoxon(
            [math.log(ratio) - math.log(bound) - nudge for ratio in ratios], method="exact"
        ).pvalue
        assert bool(p <= 0.05) is outwards


def test_few_pairs_say_how_little_they_cover() -> None:
    found = estimate([1.1, 1.2, 1.3])
    assert (found.low, found.high) == pytest.approx((1.1, 1.3))
    assert found.level == 0.75
    assert estimate([1.1]).level == 0.0


def test_nine_equal_pairs_leave_no_room() -> None:
    assert estimate([1.0] * 9) == pytest.approx((1.0, 1.0, 1.0, 1 - 2 * 10 / 512))


@pytest.mark.parametrize(
    ("low", "high", "memory", "verdict"),
    [
        (1.06, 1.2, 1.0, "SLOWER"),
        (1.04, 1.2, 1.0, "unsure"),
        (0.9, 1.04, 1.06, "MORE MEMORY"),
        (0.9, 1.05, 1.05, "ok"),
    ],
)
def test_the_verdict(low: float, high: float, memory: float, verdict: str) -> None:
    assert verdict_of(Estimate(1.0, low, high, 0.96), memory) == verdict


def test_few_pairs_never_tell_that_a_tree_is_slower() -> None:
    assert verdict_of(estimate([1.5] * 5), 1.0) == "unsure"
    assert verdict_of(estimate([1.5] * 6), 1.0) == "SLOWER"


@pytest.mark.slow
def test_a_tree_is_as_fast_as_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Not a measurement: the commands run in both, and each has a line."""
    compare_trees.main([".", ".", "--pairs", "1", "--only", "help", "ragicamp_write"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["workload", "ragicamp_write", "help", "2"]


def test_a_folder_without_a_tree_is_refused(tmp_path: object) -> None:
    with pytest.raises(SystemExit, match="has no src/assay"):
        compare_trees.main([".", str(tmp_path)])


def test_workloads_have_names_of_their_own() -> None:
    names = [workload.name for workload in WORKLOADS]
    assert len(names) == len(set(names))
