"""Classification against scikit-learn."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn import metrics as oracle

from assay.metrics.classification import ACTUAL, FLAGS, PREDICTED, classification
from assay.stats.intervals import mean_interval
from assay.stats.resampling import statistic_interval

from .rows import Row, group

classes = st.sampled_from(["cat", "dog", "a+b"])


def rows(actual: list[Any], predicted: list[Any]) -> list[Row]:
    return [
        {
            "item_id": f"i{number:03}",
            "passed": one == other,
            "detailed_results": {"expected": one, "predicted": other},
        }
        for number, (one, other) in enumerate(zip(actual, predicted, strict=True))
    ]


@pytest.mark.filterwarnings("ignore")  # scikit-learn warns of classes that were never predicted
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(classes, classes), min_size=1, max_size=30))
def test_every_number_is_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    actual, predicted = [one for one, _ in pairs], [other for _, other in pairs]
    found = classification(rows(actual, predicted), [], positive="cat")
    names = sorted({*actual, *predicted})
    expected = {
        "accuracy": oracle.accuracy_score(actual, predicted),
        "balanced_accuracy": oracle.balanced_accuracy_score(actual, predicted),
        "mcc": oracle.matthews_corrcoef(actual, predicted),
        "precision": oracle.precision_score(
            actual, predicted, labels=["cat"], average="macro", zero_division=0
        ),
        "recall": oracle.recall_score(
            actual, predicted, labels=["cat"], average="macro", zero_division=0
        ),
        "f1": oracle.f1_score(actual, predicted, labels=["cat"], average="macro", zero_division=0),
    }
    if len(names) > 1:
        expected["kappa"] = oracle.cohen_kappa_score(actual, predicted)
    for average in ("macro", "micro", "weighted"):
        sums = oracle.precision_recall_fscore_support(
            actual, predicted, average=average, zero_division=0
        )
        for name, value in zip(("precision", "recall", "f1"), sums, strict=False):
            expected[f"{average}_{name}"] = value
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    matrix = oracle.confusion_matrix(actual, predicted, labels=names)
    assert [
        [found["confusion_matrix"][one][other] for other in names] for one in names
    ] == matrix.tolist()
    each = oracle.precision_recall_fscore_support(actual, predicted, labels=names, zero_division=0)
    for name, *values in zip(names, *each, strict=True):
        assert list(found["classes"][name].values()) == pytest.approx(values)


def test_no_prediction_is_wrong_and_no_class() -> None:
    found = classification(rows(["a", "a", "b", None], ["a", None, "b", "b"]), [])
    assert (found["accuracy"], found["recall" if "recall" in found else "macro_recall"]) == (
        2 / 3,
        0.75,
    )
    assert found["confusion_matrix"] == {
        "a": {"a": 1, "b": 0, "null": 1},
        "b": {"a": 0, "b": 1, "null": 0},
    }
    assert (found["sample_count"], found["ignored_count"], found["total_count"]) == (3, 1, 4)


def test_flags() -> None:
    flags = ["tp", "tp", "tp", "tn", "tn", "fp", "fn", None]
    made = [
        {
            "item_id": str(n),
            "passed": flag in ("tp", "tn"),
            "detailed_results": {flag: True} if flag else {},
        }
        for n, flag in enumerate(flags)
    ]
    found = classification(made, [], statistic="f1")
    assert [found[name] for name in ("tp", "tn", "fp", "fn", "ignored_count")] == [3, 2, 1, 1, 1]
    assert (found["precision"], found["recall"], found["specificity"]) == (
        0.75,
        0.75,
        pytest.approx(2 / 3),
    )
    assert found["value"] == found["f1"] == 0.75


def test_classes_keep_their_types_and_trials_their_number() -> None:
    made = [
        {**row, "item_id": "i", "sample_index": n}
        for n, row in enumerate(rows([1, True, "1"], [1, 1, "1"]))
    ]
    assert classification(made, [])["accuracy"] == pytest.approx(2 / 3)
    assert classification(made, [], num_trials=1)["sample_count"] == 1


def test_what_is_missing_is_said() -> None:
    assert (
        "no row has 'label_of'"
        in classification(rows(["a"], ["a"]), [], actual="label_of")["reason"]
    )
    assert (
        classification(rows(["a"], ["b"]), [], statistic="f1")["reason"]
        == "f1 needs the parameter `positive`"
    )


STATISTICS = ["balanced_accuracy", "macro_f1", "micro_f1", "weighted_f1", "mcc", "kappa"]
OF_ONE_CLASS = ["precision", "recall", "f1", "specificity"]


@pytest.mark.parametrize("statistic", [*STATISTICS, *OF_ONE_CLASS])
def test_every_statistic_has_an_interval(statistic: str) -> None:
    """Its statistic of the items themselves is the value, and its ends are near those of the bootstrap over items."""
    random = np.random.default_rng(7)
    true = random.integers(0, 3, 120)
    guess = np.where(random.random(120) < 0.7, true, random.integers(0, 3, 120))
    nothing: list[Any] = [None] * 120
    flags = {f"detailed_results.{flag}": nothing for flag in FLAGS}
    columns = {PREDICTED: guess.tolist(), ACTUAL: true.tolist(), **flags}
    made = group(*([1.0, 1.0] for _ in range(60)), columns=columns)
    found = classification(
        made, statistic=statistic, positive=1 if statistic in OF_ONE_CLASS else None
    )
    if found.resampled is None:
        assert found.per_item is not None
        assert found.items is not None
        assert len(found.per_item) == len(np.unique(found.items))
        low, high, _ = mean_interval(
            found.per_item, weights=found.weights, samples=len(found.items), scale=(0.0, 1.0)
        )
        change = found.transform or float
        assert change(float(found.per_item.mean())) == pytest.approx(found.value)
        assert low is not None
        assert high is not None
        low, high = change(low), change(high)
    else:
        assert found.resampled.counts.sum() == 60
        assert found.resampled.statistic(found.resampled.counts[None, :])[0] == pytest.approx(
            found.value
        )
        low, high, method = statistic_interval(found.resampled)
        assert method == "jackknife"

    def of(chosen: np.ndarray) -> float:
        at = np.concatenate([2 * chosen, 2 * chosen + 1])
        return float(_value(statistic, true[at], guess[at]))

    drawn = [of(random.integers(0, 60, 60)) for _ in range(400)]
    assert (low, high) == pytest.approx(tuple(np.quantile(drawn, (0.025, 0.975))), abs=0.05)


def _value(statistic: str, true: np.ndarray, guess: np.ndarray) -> float:
    if statistic == "specificity":
        return oracle.recall_score(true != 1, guess != 1)
    if statistic in ("precision", "recall", "f1"):
        return getattr(oracle, f"{statistic}_score")(true == 1, guess == 1)
    names = {
        "mcc": "matthews_corrcoef",
        "kappa": "cohen_kappa_score",
        "balanced_accuracy": "balanced_accuracy_score",
    }
    if statistic in names:
        return getattr(oracle, names[statistic])(true, guess)
    return oracle.f1_score(true, guess, average=statistic.removesuffix("_f1"))
