"""The built-in metrics on small groups, through their functions."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from assay.metrics.mean import mean
from assay.metrics.pass_at_k import pass_at_k
from assay.metrics.pass_rate import pass_rate
from assay.registry import metric, parameters

from .rows import group


def test_every_metric_has_its_name_and_a_sentence() -> None:
    for name in metric.names():
        found = metric.get(name)
        if not found.__module__.startswith("assay."):
            continue  # registered by another test of this process
        assert found.__name__ == name
        assert found.__doc__


def test_the_seeds_six_rows() -> None:
    found = pass_at_k(group([1, 1, 1], [1, 1, 0]), k=1)
    assert found.value == pytest.approx(5 / 6)
    assert found.fields == {"pass_at_1": found.value, "k": 1}


def test_unbiased_where_blocks_are_noisy() -> None:
    blocks = group([1, 1, 0, 0])
    assert pass_at_k(blocks, k=2).value == pytest.approx(5 / 6)
    assert pass_at_k(blocks, k=2, num_trials=2, estimator="trials").value == 0.5
    auto = pass_at_k(blocks, k=2, num_trials=2)
    assert (auto.value, auto.fields["pass_at_k_trials"]) == (pytest.approx(5 / 6), 0.5)


@pytest.mark.parametrize(("aggregation", "expected"), [("median", 0.5), ("max", 1.0), ("min", 0.0)])
def test_trials_where_the_aggregation_needs_them(aggregation: str, expected: float) -> None:
    found = pass_at_k(group([1, 0, 0], [1, 1, 0]), k=1, num_trials=3, aggregation=aggregation)  # type: ignore[arg-type]
    assert found.value == expected
    assert found.per_item is None
    assert aggregation in str(found.reason)


def test_more_k_than_samples_is_null_with_a_reason() -> None:
    found = pass_at_k(group([1, 1, 1], [1, 1]), k=3)
    assert found.value is None
    assert found.reason == "k = 3, but an item has 2 samples"


def test_too_few_samples_for_the_trials_warn() -> None:
    found = pass_at_k(group([1, 1, 0], [0, 1, 0]), k=1, num_trials=16)
    assert found.value == pytest.approx(0.5)
    assert found.fields["effective_num_trials"] == 3
    assert "16 trials of 1 need 16 samples" in found.fields["warning"]


@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=4, max_size=4), min_size=1, max_size=6)
)
def test_trials_of_one_sample_have_the_unbiased_mean(items: list[list[float]]) -> None:
    made = group(*items)
    by_trials = pass_at_k(made, k=1, num_trials=4, estimator="trials")
    assert by_trials.value == pytest.approx(pass_at_k(made, k=1).value)
    assert by_trials.per_item == pytest.approx(pass_at_k(made, k=1).per_item)


def test_mean_and_pass_rate_weigh_rows_equally() -> None:
    made = group([1, 1, 1, 1], [0])
    for found in (mean(made), pass_rate(made)):
        assert found.value == pytest.approx(0.8)
        assert found.per_item is not None
        assert found.per_item.mean() == pytest.approx(0.8)
    assert pass_rate(made).fields == {"passed_count": 4, "total_count": 5}


def test_the_page_about_metrics_names_every_metric_and_parameter() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    for name in metric.names():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert [each for each in parameters(metric.get(name)) if f"`{each}`" not in row] == []
