"""Scorers and metrics of likelihoods against numpy and scipy."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import softmax
from scipy.stats import entropy as scipy_entropy

from assay.metrics.bits_per_byte import bits_per_byte
from assay.metrics.brier_score import brier_score
from assay.metrics.calibration_error import calibration_error
from assay.metrics.entropy import entropy
from assay.metrics.perplexity import perplexity
from assay.records import Item, Response
from assay.scorers.letter_likelihood import letter_likelihood
from assay.scorers.likelihood_choice import likelihood_choice
from assay.scorers.text_likelihood import text_likelihood
from tests.metrics.rows import group

CHOICES = [
    {"text": "no", "logprob": -4.0, "tokens": 1, "greedy": False, "unconditional": -6.0},
    {"text": "ünwahr", "logprob": -5.0, "tokens": 4, "greedy": True, "unconditional": -5.5},
    {
        "text": "maybe, who knows",
        "logprob": -9.0,
        "tokens": 5,
        "greedy": False,
        "unconditional": -10.5,
    },
]


def response(choices: list[dict[str, Any]], **more: Any) -> Response:
    return Response(item_id="i", output={"choices": choices}, **more)


@pytest.mark.parametrize(
    ("by", "values"),
    [
        ("raw", [-4, -5, -9]),
        ("characters", [-4 / 2, -5 / 6, -9 / 16]),
        ("bytes", [-4 / 2, -5 / 7, -9 / 16]),
        ("tokens", [-4, -5 / 4, -9 / 5]),
        ("unconditional", [2, 0.5, 1.5]),
    ],
)
def test_what_is_compared(by: Any, values: list[float]) -> None:
    best = int(np.argmax(values))
    for target in range(3):
        score = likelihood_choice(Item(id="i", ground_truth=target), response(CHOICES), by=by)
        assert score.passed == (target == best)
        details = score.details
        assert details["values"] == pytest.approx(values)
        shares = softmax(values)
        assert details["probabilities"] == pytest.approx(shares)
        assert details["confidence"] == pytest.approx(shares[best])
        assert details["brier"] == pytest.approx(np.sum((shares - np.eye(3)[target]) ** 2))
        assert details["entropy"] == pytest.approx(scipy_entropy(shares))
        assert (details["choice"], details["target"]) == (best, target)
        assert details["greedy"] == (target == 1)


@pytest.mark.parametrize(
    ("truth", "number"), [(1, 1), ("ünwahr", 1), ("B", 1), ("c", 2), (" no ", 0), ([2, 1], 2)]
)
def test_how_the_right_choice_is_named(truth: Any, number: int) -> None:
    assert (
        likelihood_choice(Item(id="i", ground_truth=truth), response(CHOICES)).details["target"]
        == number
    )


def test_what_cannot_be_scored_says_why() -> None:
    for truth, message in [("zzz", "none of the 3"), (7, "none of the 3")]:
        with pytest.raises(LookupError, match=message):
            likelihood_choice(Item(id="i", ground_truth=truth), response(CHOICES))
    with pytest.raises(LookupError, match="no likelihoods"):
        likelihood_choice(Item(id="i", ground_truth=0), Response(item_id="i", response="x"))
    plain = [{**choice} for choice in CHOICES]
    del plain[0]["unconditional"]
    with pytest.raises(LookupError, match="unconditional"):
        likelihood_choice(Item(id="i", ground_truth=0), response(plain), by="unconditional")
    assert text_likelihood(Item(id="i"), response(CHOICES)).outcome == "skipped"
    whole = response([{**CHOICES[0], "text": ""}])
    assert likelihood_choice(Item(id="i", ground_truth=0), whole).outcome == "skipped"


def test_a_text_and_its_lengths() -> None:
    text = " Zwölf  Boxer\njagen."
    whole = text_likelihood(Item(id="i"), response([{**CHOICES[0], "text": ""}], prompt=text))
    assert (whole.score, whole.passed) == (-4.0, False)
    assert whole.details == {
        "logprob": -4.0,
        "words": 4,
        "bytes": 21,
        "characters": 20,
        "tokens": 1,
    }
    last = text_likelihood(Item(id="i"), response([CHOICES[1]], prompt=text))
    assert (last.passed, last.details["words"]) == (True, 1)


def answered(*tops: list[tuple[str, float]]) -> Response:
    entries = [
        {
            "token": top[0][0],
            "top_logprobs": [{"token": token, "logprob": math.log(p)} for token, p in top],
        }
        for top in tops
    ]
    return Response(item_id="i", response="x", logprobs=entries)


def test_letters() -> None:
    item = Item(id="i", ground_truth="B")
    score = letter_likelihood(
        item, answered([("A", 0.3), (" B", 0.25), ("b", 0.15), ("The", 0.2), ("(C)", 0.1)])
    )
    assert score.passed
    assert score.details["mass"] == pytest.approx(0.8)
    assert score.details["probabilities"] == pytest.approx([0.375, 0.5, 0.125, 0])
    assert score.details["values"][3] is None
    assert score.details["brier"] == pytest.approx(0.375**2 + 0.5**2 + 0.125**2)
    second = letter_likelihood(item, answered([("x", 1.0)], [("C", 0.9)]), position=1)
    assert (second.passed, second.details["text"]) == (False, "C")
    other = letter_likelihood(
        Item(id="i", ground_truth=1), answered([("no", 0.9)]), labels=["yes", "no"]
    )
    assert other.passed
    assert letter_likelihood(item, answered([("The", 0.9)])).outcome == "unparsed"
    with pytest.raises(LookupError, match="top_logprobs"):
        letter_likelihood(item, Response(item_id="i", response="B"))


# ---- metrics

Texts = st.lists(st.tuples(st.floats(-500, -0.01), st.integers(1, 60)), min_size=1, max_size=20)


@given(Texts, st.sampled_from(["word", "byte", "character", "token"]))
def test_perplexity_and_bits(texts: list[tuple[float, int]], per: Any) -> None:
    names = ("words", "bytes", "characters", "tokens")
    columns: dict[str, list[Any]] = {
        f"detailed_results.{name}": [n for _, n in texts] for name in names
    }
    columns["detailed_results.logprob"] = [value for value, _ in texts]
    rows = group(*[[0.0]] * len(texts), columns=columns)
    nats = -math.fsum(value for value, _ in texts) / sum(n for _, n in texts)
    assert perplexity(rows, per=per).value == pytest.approx(math.exp(nats), rel=1e-9)
    bits = bits_per_byte(rows)
    assert bits.value == pytest.approx(nats / math.log(2), rel=1e-9)
    assert bits.per_item is not None
    assert float(bits.per_item.mean()) == pytest.approx(bits.value, rel=1e-9)
    sizes = np.array([n for _, n in texts])
    # the derivative by an item's weight, which is what the linearised value stands for
    shift = 1e-6
    heavier = np.ones(len(texts))
    heavier[0] += shift
    moved = (heavier @ [-value / math.log(2) for value, _ in texts]) / (heavier @ sizes)
    assert (bits.per_item[0] - bits.value) / len(texts) == pytest.approx(
        (moved - bits.value) / shift, rel=1e-2, abs=1e-3
    )
    alone = perplexity(rows, per="text").value
    assert alone is None or alone == pytest.approx(
        math.exp(-math.fsum(v for v, _ in texts) / len(texts)), rel=1e-9
    )
    found = perplexity(rows, per=per)
    assert found.per_item is not None
    assert found.transform is not None
    assert found.transform(float(found.per_item.mean())) == pytest.approx(found.value, rel=1e-6)


def test_a_perplexity_beyond_numbers_and_none() -> None:
    columns: dict[str, list[Any]] = {
        "detailed_results.logprob": [-1e6],
        "detailed_results.words": [1],
    }
    assert perplexity(group([0.0], columns=columns)).reason == "it is beyond the range of numbers"
    columns["detailed_results.logprob"] = [None]
    assert perplexity(group([0.0], columns=columns)).value is None


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60), st.integers(1, 15)
)
def test_calibration_error(rows: list[tuple[float, bool]], bins: int) -> None:
    columns: dict[str, list[Any]] = {
        "detailed_results.confidence": [confidence for confidence, _ in rows]
    }
    made = calibration_error(
        group(*[[float(passed)] for _, passed in rows], columns=columns), bins=bins
    )
    error, members = 0.0, 0
    for at in range(bins):
        inside = [(c, p) for c, p in rows if max(0, math.ceil(c * bins) - 1) == at]
        members += len(inside)
        if inside:
            right, sure = (
                sum(column) / len(inside)
                for column in zip(*[(p, c) for c, p in inside], strict=True)
            )
            error += len(inside) / len(rows) * abs(right - sure)
    assert members == len(rows)
    assert made.value == pytest.approx(error, abs=1e-12)
    assert sum(entry["count"] for entry in made.fields["bins"]) == len(rows)


def test_means_of_details_leave_out_rows_without_them() -> None:
    columns: dict[str, list[Any]] = {
        "detailed_results.brier": [0.5, None, 1.0],
        "detailed_results.entropy": [None] * 3,
    }
    rows = group([1.0, 0.0], [1.0], columns=columns)
    made = brier_score(rows)
    assert (made.value, made.fields["ignored_count"]) == (0.75, 1)
    assert made.per_item is not None
    assert list(made.per_item) == [0.5, 1.0]
    assert entropy(rows).value is None
