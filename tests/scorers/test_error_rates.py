"""Word and character error rates against a plain table, and the area under the ROC curve against scikit-learn."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import roc_auc_score

from assay.interfaces import Group, Score
from assay.metrics.auroc import ACTUAL, auroc
from assay.metrics.corpus_score import CORPUS, corpus_score
from assay.records import Item, Response
from assay.registry import scorer
from assay.text.error_rate import without_punctuation
from tests.metrics.rows import group
from tests.support import Lab

words = st.lists(st.sampled_from(["a", "b", "ba", "c"]), max_size=12)


def rate(name: str, answer: str, truth: Any, **params: Any) -> Score:
    return scorer.get(name)(
        Item(id="i", ground_truth=truth), Response(item_id="i", response=answer), **params
    )


def table(first: Any, second: Any) -> int:
    """Wagner and Fischer's, cell by cell."""
    row = list(range(len(second) + 1))
    for i, one in enumerate(first, 1):
        above, row = row, [i]
        for j, other in enumerate(second, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (one != other)))
    return row[-1]


@settings(deadline=None, max_examples=200)
@given(words, words)
def test_rates_are_those_of_the_table(answer: list[str], truth: list[str]) -> None:
    made = rate("wer", "  ".join(answer), "\n".join(truth))
    assert made.details["corpus"]["counts"] == [table(answer, truth), len(truth)]
    assert made.score == table(answer, truth) / max(1, len(truth))
    assert made.passed == (answer == truth)
    letters, wanted = " ".join(answer), " ".join(truth)
    made = rate("cer", f" {letters}", wanted)
    assert made.details["corpus"]["counts"] == [table(letters, wanted), len(wanted)]


@pytest.mark.parametrize(
    ("answer", "truth", "params", "expected"),
    [
        ("the cat sat", "the cat sat", {}, 0),
        ("the cat", "the cat sat", {}, 1 / 3),
        ("The cat, sat.", "the cat sat", {}, 1),
        ("The cat, sat.", "the cat sat", {"case_sensitive": False}, 2 / 3),
        ("The cat, sat.", "the cat sat", {"case_sensitive": False, "no_punct": True}, 0),
        ("a b c d", "a", {}, 3),
        ("one two", "", {}, 2),
        ("", "", {}, 0),
        ("a c", ["a b", "a c d"], {}, 1 / 3),
        ("<think>x y z</think>a b", "a b", {}, 0),
    ],
)
def test_cases(answer: str, truth: Any, params: dict[str, Any], expected: float) -> None:
    assert rate("wer", answer, truth, **params).score == pytest.approx(expected)


def test_a_threshold_is_the_greatest_rate_that_passes() -> None:
    assert [
        rate("wer", "a b x", "a b c", threshold=limit).passed for limit in (0.0, 0.3, 0.34)
    ] == [False, False, True]


def test_punctuation_inside_words_and_numbers_stays_and_vowel_signs_are_no_punctuation() -> None:
    text = "“Don't — pay 1,000.50 €, well-known (Mr. X)!” हिन्दी।"
    assert without_punctuation(text).split() == [
        "Don't",
        "pay",
        "1,000.50",
        "€",
        "well-known",
        "Mr",
        "X",
        "हिन्दी",
    ]


def test_texts_that_are_too_long_are_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"texts of 100,000 and 100,000 words are too long to compare word by word"
    ):
        rate("wer", "a " * 100_000, "b " * 100_000)


def test_the_rate_of_a_corpus_is_edits_over_lengths() -> None:
    answers = [("a b", "a b c d"), ("x", "a"), ("a b c", "a b c")]
    details = [rate("wer", *pair).details["corpus"] for pair in answers]
    made = corpus_score(group(*[[0.0]] * 4, columns={CORPUS: [*details, None]}))
    assert made.value == pytest.approx(3 / 8)
    assert made.fields == {"answer_count": 3, "ignored_count": 1, "measure": "wer"}
    assert made.resampled is not None
    assert made.resampled.statistic(np.array([[2, 0, 1]])) == pytest.approx([4 / 11])
    mixed = corpus_score(
        group([0.0], [0.0], columns={CORPUS: [details[0], rate("cer", "a", "b").details["corpus"]]})
    )
    assert mixed.reason == "the answers were scored with different options"


def scored(scores: list[float], actual: list[Any]) -> Group:
    return group(*[[score] for score in scores], columns={ACTUAL: actual})


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0]), st.booleans()),
        min_size=2,
        max_size=40,
    )
)
def test_the_area_is_scikit_learns(pairs: list[tuple[float, bool]]) -> None:
    scores, actual = [score for score, _ in pairs], [true for _, true in pairs]
    made = auroc(scored(scores, actual))
    if len(set(actual)) < 2:
        assert made.reason == "it needs cases of both classes in 'detailed_results.expected'"
        return
    assert made.value == pytest.approx(roc_auc_score(actual, scores), abs=1e-12)


def test_the_interval_draws_whole_items() -> None:
    random = np.random.default_rng(1)
    actual = [bool(value) for value in random.integers(0, 2, 200)]
    scores = [[float(random.normal(true)), float(random.normal(true))] for true in actual]
    made = auroc(group(*scores, columns={ACTUAL: [true for true in actual for _ in range(2)]}))
    assert made.interval is not None
    assert made.value is not None
    low, high, method = made.interval
    assert method == "newcombe"
    assert 0.5 < low < made.value < high < 0.9
    twice = group(
        *[[one, one] for one, _ in scores], columns={ACTUAL: [t for t in actual for _ in "ab"]}
    )
    once = group(*[[one] for one, _ in scores], columns={ACTUAL: actual})
    assert auroc(twice).interval == pytest.approx(auroc(once).interval, abs=0.01)


def test_classes_and_fields() -> None:
    scores = [0.9, 0.8, 0.3, 0.1]
    assert auroc(scored(scores, ["yes", "Yes", "no", 0])).value == 1
    assert auroc(scored(scores, ["spam", "ham", "spam", "ham"]), positive="spam").value == 0.75
    assert auroc(scored(scores, ["spam", "ham", "spam", "ham"])).reason == (
        "the classes are not true and false: set `positive`"
    )
    sure = group(
        [1.0], [1.0], [0.0], columns={"sure": [0.9, None, 0.2], "passed": [True, True, False]}
    )
    made = auroc(sure, predicted="sure", actual="passed")
    assert (made.value, made.fields["ignored_count"], made.fields["positive_count"]) == (1, 1, 1)


def test_fields_of_rows_and_items(lab: Lab) -> None:
    lab.config["sample_params"] = {"num_samples": 1}
    lab.rows[0]["ground_truth"]["answer"] = "wrong"
    for number, row in enumerate(lab.rows):
        row["data"]["toxic"] = number > 1
    lab.config["evaluation_methods"] = ["exact_match"]
    lab.config["metrics"] = [
        {"name": "passed", "type": "auroc", "params": {"actual": "passed"}},
        {"name": "item", "type": "auroc", "params": {"actual": "item.data.toxic"}},
    ]
    lab.run()
    rows = {row["metric_name"]: row for row in lab.read("metrics.jsonl")}
    assert {name: row["value"] for name, row in rows.items()} == {"passed": 1.0, "item": 0.75}
    assert rows["item"]["ci_method"].startswith("newcombe")
