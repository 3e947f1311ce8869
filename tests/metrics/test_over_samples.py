"""Metrics over k samples against the enumeration of all subsets, and over rows against numpy."""

from itertools import combinations
from statistics import mean as average

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import hypergeom

from assay.engine.aggregate.measure import Sample, bind_metric, measure
from assay.metrics.best_of_k import best_of_k
from assay.metrics.count import count
from assay.metrics.majority_at_k import majority_at_k
from assay.metrics.max import max as highest
from assay.metrics.median import median
from assay.metrics.min import min as lowest
from assay.metrics.pass_at_k import pass_at_k
from assay.metrics.pass_hat_k import pass_hat_k
from assay.metrics.percentile import percentile
from assay.metrics.std import std
from assay.store.table.labels import OUTCOMES

from .rows import group

scores = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, -1.0, 3.0])
items = st.lists(st.lists(scores, min_size=3, max_size=6), min_size=1, max_size=5)


def subsets(given_items: list[list[float]], k: int) -> list[list[tuple[float, ...]]]:
    return [list(combinations(each, k)) for each in given_items]


@given(items, st.integers(1, 3))
def test_closed_forms_are_means_over_all_subsets(given_items: list[list[float]], k: int) -> None:
    made, drawn = group(*given_items), subsets(given_items, k)

    def expected(of_subset) -> float:  # type: ignore[no-untyped-def]
        return average(average(of_subset(subset) for subset in each) for each in drawn)

    def vote(subset: tuple[float, ...]) -> float:
        passes = sum(score > 0 for score in subset)
        return 0.5 if 2 * passes == k else float(2 * passes > k)

    assert pass_hat_k(made, k=k).value == pytest.approx(expected(lambda s: float(min(s) > 0)))
    assert pass_at_k(made, k=k).value == pytest.approx(expected(lambda s: float(max(s) > 0)))
    assert best_of_k(made, k=k).value == pytest.approx(expected(max))
    assert majority_at_k(made, k=k).value == pytest.approx(expected(vote))


@pytest.mark.parametrize("metric", [pass_hat_k, best_of_k, majority_at_k, pass_at_k])
def test_more_k_than_samples_is_null_with_a_reason(metric) -> None:  # type: ignore[no-untyped-def]
    found = metric(group([1, 1, 1], [1, 1]), k=3)
    assert (found.value, found.reason) == (None, "k = 3, but an item has 2 samples")


def test_many_samples_do_not_overflow() -> None:
    made = group([1.0] * 700 + [0.0] * 800)
    assert majority_at_k(made, k=501).value == pytest.approx(hypergeom.sf(250, 1500, 700, 501))
    assert 0 < pass_hat_k(made, k=5).value < 0.03
    assert best_of_k(made, k=1000).value == pytest.approx(1.0)


def test_answers_vote() -> None:
    answers = ["4", "4", "5", "5", "5", "4", None, "7", "8"]
    made = group([1, 1, 0], [0, 0, 1], [0, 1, 0], columns={"detailed_results.choice": answers})
    found = majority_at_k(made, answer="detailed_results.choice")
    assert found.per_item == pytest.approx([1.0, 0.0, 0.5])
    assert found.fields == {"k": 3}
    assert majority_at_k(made, k=1, answer="detailed_results.choice").per_item == pytest.approx(
        [1.0, 0.0, 0.0]
    )


@given(items)
def test_statistics_of_rows_are_numpys(given_items: list[list[float]]) -> None:
    made, flat = group(*given_items), np.array([score for each in given_items for score in each])
    assert median(made).value == np.median(flat)
    assert std(made).value == pytest.approx(flat.std(ddof=1))
    assert std(made, ddof=0).value == pytest.approx(flat.std())
    assert (lowest(made).value, highest(made).value) == (flat.min(), flat.max())
    assert percentile(made, percentile=30).value == np.percentile(flat, 30)
    assert count(made).value == len(flat)


def test_one_row_has_no_deviation() -> None:
    found = std(group([1.0]))
    assert (found.value, found.reason) == (None, "1 rows are too few for ddof = 1")
    assert percentile(group([1.0, 2.0])).fields == {
        "percentile_95.0": pytest.approx(1.95),
        "percentile_95": pytest.approx(1.95),
    }


# ---- samples that the policy leaves out


def rows_with_errors(*verdicts: str) -> Sample:
    """Items whose samples passed (+), failed (-) or are errors (e)."""
    item = np.repeat(np.arange(len(verdicts)), [len(each) for each in verdicts]).astype(np.int32)
    text = "".join(verdicts)
    passed = np.array([sign == "+" for sign in text])
    return Sample(
        label="l",
        facets={},
        item=item,
        sample=np.concatenate([np.arange(len(each)) for each in verdicts]).astype(np.int32),
        passed=passed,
        score=passed.astype(float),
        outcome=np.array(
            [OUTCOMES.index("errored" if sign == "e" else "scored") for sign in text], np.int8
        ),
        load=list,
    )


@pytest.mark.parametrize("name", ["pass_at_k", "pass_hat_k", "majority_at_k", "best_of_k"])
def test_an_errored_sample_does_not_make_it_null(name: str) -> None:
    bound = bind_metric(type=name, params={"k": 3})
    sample = rows_with_errors("+-e", "+--", "---", "+++", "++-", "--e", "++e")
    (row,) = measure(bound, sample)
    assert row["value_if_missing_wrong"] <= row["value"] <= row["value_if_missing_right"]
    assert row["value_if_missing_wrong"] < row["value_if_missing_right"]
    assert (row["short_item_count"], row["ci_low"] is not None) == (3, True)
    assert "fewer than 3 samples that count" in row["warning"]
    (short,) = measure(bound, rows_with_errors("+-", "+--"))
    assert short["reason"] == "k = 3, but an item has 2 samples"  # by design, not by accident
    (none,) = measure(bound, rows_with_errors("+-e", "--e"))
    assert none["value"] is None  # nothing says what a third sample would bring


def test_the_estimate_with_errors_has_no_bias() -> None:
    """Errors that strike at random leave pass@k where it was."""
    random = np.random.default_rng(6)
    chance = random.beta(0.5, 2, 4000)
    signs = np.where(random.random((4000, 4)) < chance[:, None], "+", "-")
    whole = measure(
        bind_metric(type="pass_at_k", params={"k": 4}), rows_with_errors(*map("".join, signs))
    )[0]["value"]
    struck = np.where(random.random((4000, 4)) < 0.1, "e", signs)
    kept = rows_with_errors(*map("".join, struck))
    found = measure(bind_metric(type="pass_at_k", params={"k": 4}), kept)[0]
    assert found["value"] == pytest.approx(whole, abs=0.01)
    assert found["value_if_missing_wrong"] < whole - 0.01
