"""Paired differences: oracles, exact enumeration, coverage and false alarms by seeded simulation, order."""

from functools import cache
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from assay.interfaces import FloatArray
from assay.stats.paired import (
    Differences,
    detectable_difference,
    equivalent,
    interval,
    significance,
)
from benchmarks.coverage import t_interval

REPEATS = 300


def most(share: float) -> int:
    """The most events of this chance among REPEATS: only one simulation in ten thousand has more."""
    return int(stats.binom.ppf(0.9999, REPEATS, share))


def simulated(
    random: np.random.Generator, n: int, p: float, q: float, shared: float, samples: int
) -> FloatArray:
    """Differences of two sides with pass rates p and q; `shared` is how much the items' difficulty explains."""
    difficulty = random.normal(size=(n, 1)) * shared**0.5

    def side(rate: float) -> FloatArray:
        noise = random.normal(size=(n, samples)) * (1 - shared) ** 0.5
        return (difficulty + noise < NormalDist().inv_cdf(rate)).mean(axis=1)

    return side(p) - side(q)


@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize(("n", "shared"), [(30, 0.6), (150, 0.0)])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.95, 0.95), (0.9, 0.8), (0.97, 0.93)])
def test_coverage_and_false_alarms(n: int, shared: float, samples: int, p: float, q: float) -> None:
    random = np.random.default_rng(17)
    alarms = too_high = too_low = 0
    for _ in range(REPEATS):
        found = Differences(simulated(random, n, p, q, shared, samples))
        low, high = interval(found)
        too_high += low > p - q
        too_low += high < p - q
        alarms += significance(found) < 0.05
    assert too_high + too_low <= most(0.05)
    # a gate errs on one side: it passes what is worse than the bound, or fails what is better
    assert max(too_high, too_low) <= most(0.025)
    if p == q:
        assert alarms <= most(0.05)


# ---- the verdict is the interval


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=7, max_size=7).filter(any),
    st.sampled_from(
        [(-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0), (-1.0, -0.9, 0, 0.1, 0.2, 3.0, 40.0)]
    ),
    st.floats(1e-9, 0.999),
)
def test_the_p_value_is_the_inverse_of_the_interval(
    counts: list[int], sizes: tuple[float, ...], alpha: float
) -> None:
    found = Differences(np.repeat(sizes, counts), 41.0, bounded=False)
    p = significance(found)
    for level, outside in ((1 - alpha, p < alpha), (1 - p * 1.001, True), (1 - p * 0.999, False)):
        if 1e-9 < level < 1 - 1e-12 and abs(p / (1 - level) - 1) > 1e-5 and found.mean:
            low, high = interval(found, level)
            assert (low > 0 or high < 0) == outside


@cache
def of_verdicts(n: int, gained: int, lost: int) -> Differences:
    return Differences(np.repeat([1.0, -1.0, 0.0], [gained, lost, n - gained - lost]))


def outcomes(n: int, up: float, down: float) -> list[tuple[int, int, float]]:
    """All numbers of gains and losses that are not next to impossible, with their chance."""
    found: list[tuple[int, int, float]] = []
    for gained in range(n + 1):
        chance = float(stats.binom.pmf(gained, n, up))
        losses = stats.binom.pmf(range(n - gained + 1), n - gained, down / (1 - up)) * chance
        found += [(gained, lost, each) for lost, each in enumerate(losses.tolist()) if each > 1e-9]
    return found


def mid_p(gained: int, lost: int) -> float:
    """McNemar's test as Fagerland, Lydersen and Laake (2013) recommend it."""
    if gained == lost:
        return 1.0
    most, changed = max(gained, lost), gained + lost
    return float(2 * stats.binom.sf(most, changed, 0.5) + stats.binom.pmf(most, changed, 0.5))


def found_by(test: str, n: int, up: float, down: float, alpha: float = 0.05) -> float:
    return sum(
        chance
        for gained, lost, chance in outcomes(n, up, down)
        if (mid_p(gained, lost) if test == "mid-p" else significance(of_verdicts(n, gained, lost)))
        < alpha
    )


@pytest.mark.parametrize(
    ("n", "up", "down", "power"),
    [(200, 0.03, 0.0, 0.719), (100, 0.06, 0.01, 0.441), (100, 0.03, 0.0, 0.182)],
)
def test_verdicts_are_told_apart_as_by_mid_p_mcnemar(
    n: int, up: float, down: float, power: float
) -> None:
    assert found_by("interval", n, up, down) == pytest.approx(power, abs=0.001)
    assert found_by("mid-p", n, up, down) == pytest.approx(power, abs=0.001)


@pytest.mark.parametrize("n", [20, 50, 100])
@pytest.mark.parametrize("change", [0.02, 0.05, 0.1, 0.3])
def test_equal_verdicts_are_rarely_called_different(n: int, change: float) -> None:
    assert found_by("interval", n, change, change) <= 0.05
    assert found_by("interval", n, change, change, 0.05 / 10) <= 0.05 / 10


@pytest.mark.parametrize("pairs", [10, 45, 528])
@pytest.mark.parametrize(
    ("n", "up", "down"), [(100, 0.12, 0.01), (100, 0.25, 0.1), (500, 0.03, 0.0)]
)
def test_corrected_for_many_pairs_it_stays_close_to_mid_p(
    n: int, up: float, down: float, pairs: int
) -> None:
    """Without the light tails of changes of one size, 500 items of which 3 % gain lose a third of the power."""
    ours = found_by("interval", n, up, down, 0.05 / pairs)
    assert ours >= 0.83 * found_by("mid-p", n, up, down, 0.05 / pairs)


@pytest.mark.parametrize(
    ("n", "gained", "lost"),
    [
        (30, 7, 0),
        (30, 9, 1),
        (30, 12, 2),
        (100, 8, 0),
        (100, 12, 2),
        (100, 27, 10),
        (100, 42, 20),
        (500, 8, 0),
        (500, 27, 10),
        (500, 82, 50),
        (500, 203, 150),
    ],
)
def test_what_could_be_shown_is_found_4_times_in_5(n: int, gained: int, lost: int) -> None:
    """The power of the test in use at the difference that items of such a truth name."""
    shown = detectable_difference(of_verdicts(n, gained, lost), 0.05)
    assert shown == pytest.approx((gained - lost) / n, abs=0.6 / n)
    assert 0.77 <= found_by("interval", n, lost / n + shown, lost / n) <= 0.905


@pytest.mark.parametrize("n", [30, 60])
@pytest.mark.parametrize(("up", "down"), [(0.02, 0.0), (0.1, 0.05), (0.5, 0.3), (0.9, 0.01)])
def test_the_interval_of_verdicts_holds_the_truth(n: int, up: float, down: float) -> None:
    held = 0.0
    for gained, lost, chance in outcomes(n, up, down):
        low, high = interval(of_verdicts(n, gained, lost))
        held += chance * (low <= up - down <= high)
    assert held >= 0.94


# ---- shapes


def test_the_interval_of_many_changed_items_is_the_t_interval() -> None:
    values = np.random.default_rng(5).normal(0.1, 1, 3000)
    low, high = t_interval(values)
    assert interval(Differences(values, 8.0)) == pytest.approx((low, high), abs=1e-3)
    assert interval(Differences(np.round(values, 1), 8.0)) == pytest.approx((low, high), abs=5e-3)
    expected = stats.ttest_1samp(values, 0).pvalue
    assert significance(Differences(values, 8.0)) == pytest.approx(expected, rel=0.1)


def test_a_few_gains_prove_nothing() -> None:
    """Four gains and no loss among 100 items: by the exact test p is 0.125, by mid-p 0.0625."""
    found = Differences(np.array([1.0] * 4 + [0.0] * 96))
    low, high = interval(found)
    assert low <= 0 < found.mean == 0.04 < high
    assert significance(found) == pytest.approx(0.0625, abs=0.015)


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_items_without_a_change_leave_room_for_one(n: int) -> None:
    low, high = interval(Differences(np.zeros(n)))
    assert low == pytest.approx(-high, abs=0.4 / n)
    assert 1 / n < high < 5 / n
    assert significance(Differences(np.zeros(n))) == 1.0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([-1.0, -0.3, 0.0, 0.1 + 0.2, 0.75]), min_size=1, max_size=50),
    st.randoms(),
)
def test_order_does_not_matter(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = (Differences(np.array(each)) for each in (values, shuffled))
    assert interval(first) == interval(second)
    assert significance(first) == significance(second)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_the_interval_holds_the_mean_and_keeps_the_scale(values: list[float]) -> None:
    found = Differences(np.array(values))
    low, high = interval(found)
    assert -1 <= low <= found.mean <= high <= 1


def test_plain_differences_survive_the_correction_for_528_pairs() -> None:
    """Holm's correction needs p-values below 0.0001; 10,000 resamples know none."""
    random = np.random.default_rng(9)
    differences = Differences(random.binomial(4, 0.7, 100) / 4 - random.binomial(4, 0.5, 100) / 4)
    p = significance(differences)
    expected = stats.ttest_1samp(np.repeat(differences.values, differences.counts), 0).pvalue
    assert 528 * p < 0.02
    assert np.log(p) == pytest.approx(np.log(expected), rel=0.15)


# ---- equivalence


def test_differences_are_not_shrunk() -> None:
    values = np.array([0.2] * 10 + [0.4] * 10)
    found = Differences(values)
    low, high = interval(found)
    assert found.mean == pytest.approx(0.3)
    assert (low + high) / 2 == pytest.approx(0.3, abs=0.01)


SPARSE = {
    "changes of verdicts": lambda random, n: simulated(random, n, 0.97, 0.92, 0.6, 1),
    "changes of shares": lambda random, n: simulated(random, n, 0.97, 0.92, 0.6, 4),
    "rare losses": lambda random, n: -(random.random(n) < 0.05).astype(float),
    "graded": lambda random, n: random.normal(0.05, 0.1, n).round(2),
}


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("n", [20, 60, 150])
def test_a_difference_at_the_margin_is_rarely_called_equivalent(kind: str, n: int) -> None:
    random = np.random.default_rng(10)
    called = [equivalent(Differences(SPARSE[kind](random, n)), 0.05) < 0.05 for _ in range(REPEATS)]
    assert sum(called) <= most(0.055)


def test_equivalence_of_plain_differences_is_that_of_two_t_tests() -> None:
    from statsmodels.stats.weightstats import ttost_paired

    random = np.random.default_rng(3)
    first = random.normal(0.5, 0.2, 200)
    second = first + random.normal(0.02, 0.1, 200)
    expected = float(ttost_paired(first, second, -0.04, 0.04)[0])
    assert equivalent(Differences(first - second), 0.04) == pytest.approx(expected, rel=0.1)


SKEWED = {
    "lopsided": lambda random, n: np.where(random.random(n) < 0.9, 0.1, -0.9),
    "lognormal": lambda random, n: random.lognormal(0, 1, n) - np.exp(0.5),
}


@pytest.mark.parametrize(
    ("kind", "n", "misses"),
    [("lopsided", 50, 0.05), ("lognormal", 20, 0.09), ("lognormal", 50, 0.07)],
)
def test_skewed_differences_of_equal_sides_are_not_told_apart(
    kind: str, n: int, misses: float
) -> None:
    """Flipping their signs would call equal means different in 10 % of such data, a t test in up to 14 %."""
    random = np.random.default_rng(12)
    alarms = [
        significance(Differences(SKEWED[kind](random, n), 9.0, bounded=False)) < 0.05
        for _ in range(REPEATS)
    ]
    assert sum(alarms) <= most(misses)


def test_what_few_items_cannot_tell_is_said_to_be_weak() -> None:
    """Seven small gains look certain; the eighth item may lose all of them."""
    few = Differences(np.array([0.1, 0.11, 0.12, 0.1, 0.09, 0.1, 0.13, 0.1]))
    assert significance(few) < 0.01
    assert few.weakness == "; weak: fewer than 30 items"
    rare = np.array([0.3, 0.1, -0.2, 0.1] + [0.0] * 46)
    assert Differences(rare).weakness == "; weak: fewer than 5 items changed"
    assert Differences(np.sign(rare)).weakness == ""  # verdicts cannot change by more
    assert Differences(np.array([0.1] * 45 + [-0.9] * 5)).weakness == ""
