"""Corrected pass rates: identities, limits that are known intervals, and coverage where the truth is known."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from statsmodels.stats.proportion import proportion_confint

from assay.stats.correction import (
    Confusion,
    CorrectedRate,
    from_labels,
    prediction_powered,
    rogan_gladen,
    weighted_interval,
)
from assay.stats.intervals import item_contributions, item_weights, mean_interval

rates = st.floats(0.55, 0.99)
PASS_RATES = (0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
JUDGES = ((0.98, 0.98), (0.95, 0.8), (0.8, 0.9), (0.65, 0.65))  # sensitivity and specificity


def table(sensitivity: float, specificity: float, n: float = 1e9) -> Confusion:
    return Confusion(
        tp=n * sensitivity, fn=n * (1 - sensitivity), tn=n * specificity, fp=n * (1 - specificity)
    )


def powered(judged: Any, truth: Any, item: Any = None, weights: Any = None) -> CorrectedRate:
    """Labels that all weigh the same, each of an item of its own, where nothing else is said."""
    item = np.arange(len(truth)) if item is None else item
    return prediction_powered(
        judged, truth, item, np.ones(len(truth)) if weights is None else weights
    )


def holds(found: CorrectedRate, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


def judgements(random: Any, truth: Any, sensitivity: float, specificity: float) -> Any:
    right = random.random(truth.shape) < np.where(truth == 1, sensitivity, specificity)
    return np.where(right, truth, 1 - truth)


# ---- Rogan-Gladen


@given(rates, rates, st.floats(0, 1))
def test_known_errors_are_undone(sensitivity: float, specificity: float, truth: float) -> None:
    seen = truth * sensitivity + (1 - truth) * (1 - specificity)
    found = rogan_gladen(seen, 1e12, table(sensitivity, specificity))
    assert found.value == pytest.approx(truth, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((truth, truth), abs=1e-3)


@given(
    st.integers(0, 50), st.integers(50, 80), rates, rates, st.integers(5, 200), st.integers(5, 200)
)
def test_fails_mirror_passes(
    passes: int, n: int, sensitivity: float, specificity: float, positives: int, negatives: int
) -> None:
    one = Confusion(
        tp=positives * sensitivity,
        fn=positives * (1 - sensitivity),
        tn=negatives * specificity,
        fp=negatives * (1 - specificity),
    )
    other = Confusion(tp=one.tn, fn=one.fp, tn=one.tp, fp=one.fn)
    found, mirrored = rogan_gladen(passes / n, n, one), rogan_gladen(1 - passes / n, n, other)
    assert found.value is not None
    assert mirrored.value is not None
    assert found.value == pytest.approx(1 - mirrored.value, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-9)  # type: ignore[operator]
    assert found.low <= found.value <= found.high  # type: ignore[operator]


@pytest.mark.parametrize(("passes", "n"), [(0, 20), (7, 30), (99, 100)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_a_judge_that_never_errs_leaves_the_agresti_coull_interval(
    passes: int, n: int, level: float
) -> None:
    found = rogan_gladen(passes / n, n, table(1.0, 1.0, 1e12), level)
    expected = proportion_confint(passes, n, alpha=1 - level, method="agresti_coull")
    assert (found.low, found.high) == pytest.approx(np.clip(expected, 0, 1), abs=1e-6)


def test_what_cannot_be_corrected_says_why() -> None:
    assert "sensitivity 0.60 + specificity 0.40 is not above 1" in str(
        rogan_gladen(0.5, 99, table(0.6, 0.4)).reason
    )
    lone = rogan_gladen(0.5, 99, Confusion(tp=9, fp=0, fn=1, tn=0))
    assert (lone.value, lone.low) == (None, None)
    assert "people failed none" in str(lone.reason)
    assert "people passed none" in str(
        rogan_gladen(0.5, 99, Confusion(tp=0, fp=1, fn=0, tn=9)).reason
    )


def test_a_judge_hardly_better_than_chance_leaves_everything_open() -> None:
    found = rogan_gladen(0.5, 1000, Confusion(tp=6, fn=4, tn=5, fp=5))
    assert (found.low, found.high) == (0.0, 1.0)


@pytest.mark.parametrize("labels", [20, 50, 200])
@pytest.mark.parametrize("apart", [True, False])
def test_rogan_gladen_holds_the_truth(labels: int, apart: bool) -> None:
    """Labels of other answers, and of a part of the same ones, for all pass rates and judges."""
    random = np.random.default_rng(labels)
    covered: dict[tuple[float, float], list[bool]] = {}
    for rate in PASS_RATES:
        for sensitivity, specificity in JUDGES:
            truth = (random.random((400, 300)) < rate).astype(float)
            said = judgements(random, truth, sensitivity, specificity)
            labelled = slice(0, labels)
            if apart:
                known = (random.random((400, labels)) < rate).astype(float)
                verdicts = judgements(random, known, sensitivity, specificity)
            else:
                known, verdicts = truth[:, labelled], said[:, labelled]
            for at in range(400):
                cells = {
                    name: float(((known[at] == true) & (verdicts[at] == judged)).sum())
                    for name, true, judged in (
                        ("tp", 1, 1),
                        ("fp", 0, 1),
                        ("fn", 1, 0),
                        ("tn", 0, 0),
                    )
                }
                found = rogan_gladen(float(said[at].mean()), 300, Confusion(**cells))
                if found.value is not None:
                    covered.setdefault((rate, sensitivity), []).append(holds(found, rate))
    each = [np.mean(hits) for hits in covered.values() if len(hits) > 200]
    assert np.mean(each) > 0.94
    assert min(each) > 0.88


# ---- prediction-powered inference


@given(st.integers(0, 10_000), st.integers(3, 30), st.integers(1, 60))
def test_random_labels_give_the_formula_of_ppi(seed: int, labels: int, others: int) -> None:
    """Against the estimator as its authors write it, with labelled and other answers apart."""
    random = np.random.default_rng(seed)
    truth = random.random(labels + others)
    said = np.clip(truth + random.normal(0, 0.2, labels + others), 0, 1)
    found = powered(said, np.where(np.arange(labels + others) < labels, truth, np.nan))
    y, f, rest = truth[:labels], said[:labels], said[labels:]
    assert found.tuning is not None
    factor = found.tuning * others / (labels + others)
    assert found.value == pytest.approx(np.clip(y.mean() + factor * (rest.mean() - f.mean()), 0, 1))


def test_the_tuning_makes_the_variance_smallest() -> None:
    random = np.random.default_rng(1)
    truth = (random.random(4000) < 0.4).astype(float)
    said = judgements(random, truth, 0.8, 0.9)
    labelled = np.arange(4000) < 500
    found = powered(said, np.where(labelled, truth, np.nan))
    assert found.tuning == pytest.approx(np.cov(truth, said)[0, 1] / said.var(), abs=0.05)
    useless = (random.random(4000) < 0.5).astype(float)
    ignored = powered(useless, np.where(labelled, truth, np.nan))
    assert ignored.tuning == pytest.approx(0, abs=0.1)
    classic = powered(np.zeros(4000), np.where(labelled, truth, np.nan))
    assert classic.value == pytest.approx(truth[labelled].mean())
    widths = [one.high - one.low for one in (found, ignored, classic)]  # type: ignore[operator]
    assert widths[0] < 0.85 * widths[1]
    assert widths[1] == pytest.approx(widths[2], rel=0.02)


def test_all_answers_labelled_is_their_mean() -> None:
    truth = np.array([1.0, 1, 0, 1, 0, 0, 1, 1])
    found = powered(1 - truth, truth)
    assert (found.value, found.method) == (truth.mean(), "ppi")
    assert powered(truth, np.where(np.arange(8) == 1, truth, np.nan)).value is None


def test_labels_of_one_item_count_as_one() -> None:
    random = np.random.default_rng(2)
    truth = np.repeat((random.random(30) < 0.5).astype(float), 10)
    apart = powered(np.zeros(300), truth)
    together = powered(np.zeros(300), truth, np.repeat(np.arange(30), 10))
    assert together.value == apart.value
    assert together.high - together.low > 2.5 * (apart.high - apart.low)  # type: ignore[operator]


@pytest.mark.parametrize(("labels", "answers"), [(20, 300), (50, 200), (200, 600)])
def test_ppi_holds_the_truth(labels: int, answers: int) -> None:
    random = np.random.default_rng(labels)
    for rate in PASS_RATES:
        for sensitivity, specificity in JUDGES:
            truth = (random.random((250, answers)) < rate).astype(float)
            said = judgements(random, truth, sensitivity, specificity)
            known = np.where(np.arange(answers) < labels, truth, np.nan)
            hits = [holds(powered(*pair), rate) for pair in zip(said, known, strict=True)]
            assert np.mean(hits) > 0.9, (rate, sensitivity, specificity)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_chosen_labels_need_their_weights(rate: float) -> None:
    """Labels mostly where the judge errs: without weights the estimate is off, with them it holds."""
    random = np.random.default_rng(3)
    weighted, plain = [], []
    for _ in range(250):
        truth = (random.random(500) < rate).astype(float)
        doubtful = random.random(500) < 0.25
        said = np.where(random.random(500) < np.where(doubtful, 0.55, 0.97), truth, 1 - truth)
        chance = np.where(doubtful, 0.9, 0.1)
        known = np.where(random.random(500) < chance, truth, np.nan)
        weighted.append(holds(powered(said, known, weights=1 / chance), rate))
        plain.append(holds(powered(said, known), rate))
    assert np.mean(weighted) > 0.92
    assert np.mean(plain) < np.mean(weighted)


# ---- never wider than the labels alone


def width(found: Any) -> float:
    return found.high - found.low


@pytest.mark.parametrize(
    ("sensitivity", "specificity", "labels", "widest"),
    [(0.8, 0.6, 100, 0.18), (0.6, 0.55, 200, 0.135)],
)
def test_a_poor_judge_costs_nothing(
    sensitivity: float, specificity: float, labels: int, widest: float
) -> None:
    """Where Rogan-Gladen intervals are 0.49 and 0.81 wide."""
    random = np.random.default_rng(labels)
    item, ones = np.arange(500), np.ones(500)
    truth = (random.random((600, 500)) < 0.7).astype(float)
    said = judgements(random, truth, sensitivity, specificity)
    known = np.where(item < labels, truth, np.nan)
    pairs = list(zip(said, known, strict=True))
    found = [from_labels(judged, own, item, ones) for judged, own in pairs]
    alone = [weighted_interval(item[:labels], own[:labels], ones[:labels], 0.95) for own in known]
    assert np.mean([holds(one, 0.7) for one in found]) >= 0.93
    assert np.mean([width(one) for one in found]) < widest
    assert all(width(a) <= width(b) + 1e-12 for a, b in zip(found, alone, strict=True))
    assert {one.method for one in found} == {"ppi", "labels_wilson"}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 8),
            st.booleans(),
            st.sampled_from([0.0, 1.0, np.nan]),
            st.sampled_from([1.0, 4.0]),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_an_estimate_from_labels_has_a_width_within_0_and_1(rows: list[tuple[Any, ...]]) -> None:
    item, said, truth, weights = (np.array(column) for column in zip(*rows, strict=True))
    found = from_labels(said.astype(float), truth, item, weights)
    if len(np.unique(item[np.isfinite(truth)])) < 2:
        assert (found.value, found.low) == (None, None)
        return
    assert found.value is not None
    assert holds(found, found.value)
    assert 0 <= found.low < found.high <= 1  # type: ignore[operator]
    own = np.isfinite(truth)
    shares = np.ones(len(own)) if own.all() else weights
    alone = weighted_interval(item[own], truth[own], shares[own], 0.95)
    assert width(found) <= width(alone) + 1e-12


def test_where_every_answer_is_labelled_the_judge_does_not_matter() -> None:
    truth = np.array([1.0] * 15 + [0.0] * 5)
    item, weights = np.arange(20), np.linspace(1, 3, 20)
    found = from_labels(1 - truth, truth, item, weights)
    expected = mean_interval(truth, samples=20)
    assert (found.value, found.low, found.high) == (0.75, expected.low, expected.high)
    assert found.method == "labels_wilson"


def test_unequal_weights_are_no_variance() -> None:
    """Rows that weigh as their numbers give the interval that those rows have."""
    item = np.array([0, 1, 1, 2, 2, 2, 3, 4, 5, 5, 6, 7])
    values = np.array([1.0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1])
    found = weighted_interval(
        np.arange(8), values[[0, 1, 3, 6, 7, 8, 10, 11]], np.bincount(item), 0.95
    )
    per_item, weights = item_contributions(item, values), item_weights(item)
    expected = mean_interval(per_item, samples=12, scale=(0.0, 1.0), weights=weights)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    unweighted = mean_interval(per_item, samples=12, scale=(0.0, 1.0))
    assert width(found) != pytest.approx(width(unweighted), rel=0.01)


def test_weighted_labels_hold_the_truth() -> None:
    random = np.random.default_rng(5)
    hits: list[bool] = []
    for _ in range(500):
        truth = (random.random(60) < 0.9).astype(float)
        chance = np.where(random.random(60) < 0.3, 0.9, 0.2)
        own = random.random(60) < chance
        found = weighted_interval(np.arange(60)[own], truth[own], 1 / chance[own], 0.95)
        hits.append(found.low <= 0.9 <= found.high)  # type: ignore[operator]
    assert np.mean(hits) > 0.91
