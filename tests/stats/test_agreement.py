"""Agreement against scikit-learn, statsmodels, Krippendorff's published example, sums over pairs written out, and
resamples made by repeating items."""

import time
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa
from statsmodels.stats.proportion import proportion_confint

from assay.stats.agreement import Coefficient, Level, agreement

_ = np.nan
PUBLISHED = np.array(  # four coders, twelve units (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability)
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T
CORRECTED: list[Coefficient] = ["cohen_kappa", "fleiss_kappa", "krippendorff_alpha"]
LEVELS: list[Level] = ["nominal", "ordinal", "interval"]

votes = st.sampled_from([0.0, 0.25, 0.5, 1.0, np.nan])
tables = st.integers(2, 4).flatmap(
    lambda raters: st.lists(
        st.lists(votes, min_size=raters, max_size=raters), min_size=2, max_size=12
    ).map(np.array)
)


def distance(one: float, other: float, level: Level, pool: list[float]) -> float:
    """How far two votes lie apart, as Krippendorff writes it: for ranks, the votes from one to the other."""
    if level == "nominal":
        return float(one != other)
    if level == "interval":
        return (one - other) ** 2
    low, high = min(one, other), max(one, other)
    between = sum(low <= vote <= high for vote in pool)
    return (between - (pool.count(low) + pool.count(high)) / 2) ** 2


def alpha_by_pairs(table: Any, level: Level) -> float:
    units = [[vote for vote in row if not np.isnan(vote)] for row in table.tolist()]
    units = [unit for unit in units if len(unit) > 1]
    pool = [vote for unit in units for vote in unit]
    observed = sum(
        distance(one, other, level, pool) / (len(unit) - 1)
        for unit in units
        for one, other in permutations(unit, 2)
    ) / len(pool)
    expected = sum(distance(one, other, level, pool) for one, other in permutations(pool, 2))
    return 1 - observed / (expected / (len(pool) * (len(pool) - 1)))


def gwets_kappa(table: Any) -> float:
    """Fleiss' κ for unequal numbers of votes, as Gwet writes it."""
    units = [[vote for vote in row if not np.isnan(vote)] for row in table.tolist()]
    units = [unit for unit in units if unit]
    several = [unit for unit in units if len(unit) > 1]
    observed = np.mean(
        [np.mean([one == other for one, other in combinations(unit, 2)]) for unit in several]
    )
    classes = {vote for unit in units for vote in unit}
    by_chance = sum(
        np.mean([unit.count(one) / len(unit) for unit in units]) ** 2 for one in classes
    )
    return float((observed - by_chance) / (1 - by_chance))


@pytest.mark.parametrize(
    ("level", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorffs_published_example(level: Level, expected: float) -> None:
    found = agreement(PUBLISHED, level=level)
    assert found.value == pytest.approx(expected, abs=5e-4)
    assert (found.raters, found.answers, found.missing) == (4, 11, 7)


@pytest.mark.parametrize("level", LEVELS)
@settings(deadline=None, max_examples=50)
@given(table=tables)
def test_alpha_is_the_sum_over_pairs(level: Level, table: Any) -> None:
    found = agreement(table, level=level)
    if found.value is None:
        several = [row[np.isfinite(row)] for row in table if np.isfinite(row).sum() > 1]
        assert found.reason
        assert len({vote for row in several for vote in row.tolist()}) < 2
    else:
        assert found.value == pytest.approx(alpha_by_pairs(table, level), abs=1e-9)


@pytest.mark.parametrize(
    ("level", "weights"), [("nominal", None), ("ordinal", "linear"), ("interval", "quadratic")]
)
@settings(deadline=None, max_examples=50)
@given(pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=30))
def test_cohens_kappa_is_scikit_learns(
    level: Level, weights: str | None, pairs: list[tuple[int, int]]
) -> None:
    found = agreement(np.array(pairs, dtype=float), coefficient="cohen_kappa", level=level)
    if len({vote for pair in pairs for vote in pair}) > 1:
        first, second = zip(*pairs, strict=True)
        expected = cohen_kappa_score(first, second, weights=weights, labels=range(5))
        assert found.value == pytest.approx(expected, abs=1e-9)
    else:
        assert found.value is None
        assert "all votes are the same" in str(found.reason)


def test_several_raters_have_the_mean_of_all_pairs() -> None:
    table = np.random.default_rng(1).integers(0, 3, (40, 4)).astype(float)
    each = [
        cohen_kappa_score(table[:, one], table[:, other])
        for one, other in combinations(range(4), 2)
    ]
    assert agreement(table, coefficient="cohen_kappa").value == pytest.approx(np.mean(each))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=20))
def test_fleiss_kappa_is_statsmodels(rows: list[list[int]]) -> None:
    table = np.array(rows, dtype=float)
    found = agreement(table, coefficient="fleiss_kappa")
    if len(np.unique(table)) > 1:
        assert found.value == pytest.approx(fleiss_kappa(aggregate_raters(table)[0]), abs=1e-9)


def test_fleiss_kappa_with_missing_votes_is_gwets() -> None:
    assert agreement(PUBLISHED, coefficient="fleiss_kappa").value == pytest.approx(
        gwets_kappa(PUBLISHED)
    )
    assert gwets_kappa(PUBLISHED) != pytest.approx(
        agreement(PUBLISHED[:9], coefficient="fleiss_kappa").value
    )


def test_percent_is_the_mean_share_of_equal_pairs_with_a_wilson_interval() -> None:
    found = agreement(PUBLISHED, coefficient="percent")
    shares = [1, 1 / 2, 1, 1, 1, 0, 1, 1 / 2, 1, 1, 1]
    assert found.value == pytest.approx(np.mean(shares))
    assert (found.pairs, found.interval().method) == (
        55,
        "wilson_of_items; weak: fewer than 30 items",
    )
    unanimous = agreement(np.ones((30, 2)), coefficient="percent").interval()
    assert unanimous[:2] == pytest.approx(proportion_confint(30, 30, method="wilson"))


# ---- resamples


@pytest.mark.parametrize("coefficient", CORRECTED)
@pytest.mark.parametrize("level", LEVELS)
@settings(deadline=None, max_examples=25)
@given(table=tables, data=st.data())
def test_a_resample_is_the_coefficient_of_repeated_items(
    coefficient: Coefficient, level: Level, table: Any, data: st.DataObject
) -> None:
    item = np.array(
        data.draw(st.lists(st.integers(0, 4), min_size=len(table), max_size=len(table)))
    )
    found = agreement(table, item, coefficient=coefficient, level=level)
    if found.resampled is None:
        return
    counts = found.resampled.counts
    assert counts.sum() == len(set(item.tolist()))
    items, kind_of = sorted(set(item.tolist())), found.resampled.kind
    assert kind_of is not None
    by_kind = [
        [one for one, kind in zip(items, kind_of, strict=True) if kind == number]
        for number in np.flatnonzero(counts)
    ]
    assert [len(kind) for kind in by_kind] == counts[counts > 0].tolist()
    assert sorted(by_kind) == sorted(kinds_of(table, item))
    weights = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(by_kind), max_size=len(by_kind)))
    )
    again, numbers = [np.empty((0, table.shape[1]))], [np.empty(0, dtype=np.int64)]
    for kind, weight in zip(by_kind, weights.tolist(), strict=True):
        for _ in range(weight):
            again.append(table[item == kind[0]])
            numbers.append(np.full(len(again[-1]), len(again)))
    expected = agreement(
        np.vstack(again), np.concatenate(numbers), coefficient=coefficient, level=level
    ).value
    drawn = np.zeros_like(counts)
    drawn[counts > 0] = weights
    value = found.resampled.statistic(drawn[None, :])[0]
    assert value == pytest.approx(expected, abs=1e-9) if expected is not None else np.isnan(value)


def kinds_of(table: Any, item: Any) -> list[list[int]]:
    """The items that are equal in all their votes, kind by kind."""
    given_votes = np.where(np.isnan(table), -1, table)
    found: dict[tuple[Any, ...], list[int]] = {}
    for one in sorted(set(item.tolist())):
        found.setdefault(tuple(sorted(map(tuple, given_votes[item == one].tolist()))), []).append(
            one
        )
    return list(found.values())


def test_neither_order_nor_numbers_of_items_matter() -> None:
    random = np.random.default_rng(2)
    table, item = random.integers(0, 2, (60, 3)).astype(float), np.repeat(np.arange(20), 3)
    order = random.permutation(60)
    one = agreement(table, item).interval()
    assert agreement(table[order], (100 - item)[order]).interval() == one


def test_the_interval_is_near_the_bootstrap_over_items() -> None:
    random = np.random.default_rng(3)
    truth = random.random(40) < 0.5
    table = np.where(random.random((40, 3)) < 0.8, truth[:, None], ~truth[:, None]).astype(float)
    drawn = [gwets_kappa(table[random.integers(0, 40, 40)]) for _ in range(1500)]
    low, high, method = agreement(table, coefficient="fleiss_kappa").interval()
    assert (low, high) == pytest.approx(np.quantile(drawn, (0.025, 0.975)), abs=0.06)
    assert method == "jackknife"


def test_samples_of_one_item_are_one() -> None:
    random = np.random.default_rng(4)
    table = np.repeat(random.integers(0, 2, (30, 2)), 5, axis=0).astype(float)
    clustered, plain = (
        agreement(table, np.repeat(np.arange(30), 5)).interval(),
        agreement(table).interval(),
    )
    assert np.ptp(clustered[:2]) > 1.8 * np.ptp(plain[:2])  # type: ignore[arg-type]


@pytest.mark.parametrize("coefficient", CORRECTED)
def test_intervals_hold_the_truth(coefficient: Coefficient) -> None:
    random = np.random.default_rng(5)

    def draw(n: int) -> Any:
        truth = random.random(n) < 0.7
        return np.where(random.random((n, 3)) < 0.85, truth[:, None], ~truth[:, None]).astype(float)

    true = agreement(draw(200_000), coefficient=coefficient).value
    intervals = [agreement(draw(60), coefficient=coefficient).interval() for _ in range(250)]
    assert np.mean([low <= true <= high for low, high, _ in intervals]) > 0.9  # type: ignore[operator]


def test_a_hundred_thousand_answers_take_a_moment() -> None:
    random = np.random.default_rng(6)
    table, item = random.integers(0, 2, (100_000, 3)).astype(float), np.arange(100_000) // 2
    started = time.process_time()
    assert agreement(table, item).interval().method == "jackknife"
    assert time.process_time() - started < 2.0


# ---- what cannot be said


def test_what_has_no_value_says_why() -> None:
    assert agreement(np.array([[1.0, np.nan], [np.nan, 0.0]])).reason == "no answer has two votes"
    same = agreement(np.ones((5, 2)))
    assert (same.value, same.interval().method) == (None, "none: there is no value")
    perfect = agreement(np.repeat([[0.0], [1.0]], 2, axis=1))
    assert (perfect.value, perfect.interval().high) == (1.0, 1.0)
    assert perfect.interval().low < 0.5  # type: ignore[operator]
    many = np.random.default_rng(7).random((400, 2))
    assert "at the interval level" in str(agreement(many).reason)
    assert agreement(many, level="interval").value == pytest.approx(0, abs=0.15)
