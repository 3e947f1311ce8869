"""Fast ways against plain ones: numpy's own comparison, scikit-learn, rouge-score, and resamples drawn one by one."""

import math
import random
import warnings
from typing import Any

import msgspec
import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings, strategies as st
from rouge_score import rouge_scorer, scoring
from sklearn import metrics as sklearn

from assay.errors import UserError
from assay.formats.lm_eval.facade.importing import METRICS, code_runs_in, load
from assay.formats.lm_eval.scoring import aggregations, corpora, hub
from assay.formats.lm_eval.scoring.aggregations import resamples, stderr
from assay.formats.lm_eval.scoring.measures import exact_match
from assay.formats.lm_eval.scoring.results import results
from assay.formats.lm_eval.tasks.definition import Definition, HookError
from tests.formats.lm_eval.test_results import FOLDER, case_of, real, scored

TEXTS = st.text(alphabet="aBİßẞ.1\0 ", max_size=6)
PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=25)


@given(
    TEXTS,
    TEXTS,
    st.sampled_from([None, ["a"], [r"\.$", "B"]]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_one_text_is_compared_like_an_array(
    first: str,
    second: str,
    patterns: list[str] | None,
    case: bool,
    punctuation: bool,
    numbers: bool,
) -> None:
    flags: Any = {"ignore_case": case, "ignore_punctuation": punctuation, "ignore_numbers": numbers}
    alone = exact_match([first], [second], patterns, **flags)
    # a second pair that is equal and as short as can be makes numpy compare, and halves the difference
    both = exact_match([first, ""], [second, ""], patterns, **flags)
    assert both["exact_match"] == (alone["exact_match"] + 1) / 2


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_draws_are_those_of_random(size: int) -> None:
    rows = [row for block in resamples(size, 2050) for row in block.tolist()]
    expected = [
        generator.choices(range(size), k=size)
        for generator in (random.Random(0), random.Random(1))
        for _ in range(1000)
    ]
    assert rows == expected


def plain_stderr(function: Any, values: list[Any], iterations: int) -> float:
    generator = random.Random(0)
    scores = [function(generator.choices(values, k=len(values))) for _ in range(iterations)]
    centre = sum(scores) / len(scores)
    return math.sqrt(sum((score - centre) ** 2 for score in scores) / (len(scores) - 1))


def task(metric: str, aggregation: str) -> Definition:
    listed = [{"metric": metric, "aggregation": aggregation}]
    return Definition(task="own", metric_list=listed, output_type="multiple_choice")


def f1(items: list[Any]) -> float:
    return float(sklearn.f1_score(*zip(*items, strict=True)))


def mcc(items: list[Any]) -> float:
    return float(sklearn.matthews_corrcoef(*zip(*items, strict=True)))


@settings(max_examples=10)
@given(PAIRS)
def test_classes_as_in_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for metric, name, oracle in (("f1", "f1", f1), ("mcc", "matthews_corrcoef", mcc)):
            value = aggregations.aggregate(task(metric, name), metric, pairs)
            assert value == pytest.approx(oracle(pairs), rel=1e-15)
            error = stderr(task(metric, name), metric, pairs, 40)
            assert error == pytest.approx(plain_stderr(oracle, pairs, 40), rel=1e-9, abs=1e-12)
        wide = [(gold, guess + 2 * gold) for gold, guess in pairs]
        assert corpora.matthews_corrcoef(wide) == pytest.approx(mcc(wide), rel=1e-14)
        weighted = float(sklearn.f1_score(*zip(*wide, strict=True), average="weighted"))
        assert corpora.weighted_f1_score(wide) == pytest.approx(weighted, rel=1e-15)


@pytest.mark.parametrize(
    "pairs", [[(0, 2), (1, 1)], [(0, 2), (2, 2)], [("a", 1), (0, 1)], [(0.5, 1), (1, 1)]]
)
def test_f1_of_other_classes_is_an_error(pairs: list[Any]) -> None:
    with pytest.raises(UserError, match="f1 of own cannot be aggregated: ValueError"):
        aggregations.aggregate(task("f1", "f1"), "f1", pairs)


@settings(max_examples=10)
@given(st.lists(st.floats(-9, 9) | st.just(math.nan), min_size=2, max_size=20))
def test_resampled_numbers(values: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = plain_stderr(aggregations.nanmean, values, 50)
    error = stderr(task("acc", "nanmean"), "acc", values, 50)
    assert error == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)
    finite = [value for value in values if not math.isnan(value)] + [0.0, 1.0]
    for name in ("median", "perplexity"):
        expected = plain_stderr(aggregations.AGGREGATIONS[name], finite, 50)
        assert stderr(task("acc", name), "acc", finite, 50) == pytest.approx(
            expected, rel=1e-9, abs=1e-9
        )


def test_flags_of_exact_match_may_be_texts() -> None:
    """As lm-eval's afriqa has them: `ignore_punctuation: true - "."` is a text in YAML."""
    assert exact_match(["a."], ["a"], ignore_punctuation='true - "."') == {"exact_match": 1.0}  # pyright: ignore[reportArgumentType]


def test_metrics_of_the_hub() -> None:
    generator = random.Random(7)
    golds, guesses = ([generator.randint(0, 3) for _ in range(40)] for _ in range(2))
    for average in ("micro", "macro", "weighted"):
        made = load("f1").compute(predictions=guesses, references=golds, average=average)
        assert made["f1"] == pytest.approx(
            float(sklearn.f1_score(golds, guesses, average=average)), rel=1e-14
        )
    made = load("accuracy").compute(predictions=guesses, references=golds)
    assert made["accuracy"] == sklearn.accuracy_score(golds, guesses)
    assert load("exact_match").compute(
        predictions=["A", 1], references=["a", "1"], ignore_case=True
    ) == {"exact_match": 1.0}
    assert hub.METRICS.keys() == METRICS


def test_rouge_as_in_a_run_of_the_harness() -> None:
    generator = random.Random(1)
    texts = [
        " ".join(generator.choices(["the", "cat", "sat", "Äpfel", "12\n"], k=9)) for _ in range(12)
    ]
    golds = [
        [" ".join(generator.choices(["the", "cat", "sat", "12"], k=7)) for _ in range(at % 3 + 1)]
        for at in range(12)
    ]
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"])
    aggregator = scoring.BootstrapAggregator()
    for gold, text in zip(golds, texts, strict=True):
        aggregator.add_scores(scorer.score_multi(gold, text))
    state = np.random.get_state()
    np.random.seed(1234)  # the harness's
    expected = {name: score.mid.fmeasure for name, score in aggregator.aggregate().items()}
    np.random.set_state(state)
    assert load("rouge").compute(predictions=texts, references=golds) == pytest.approx(
        expected, rel=1e-12
    )


def test_bleu_as_in_sacrebleu() -> None:
    texts = ["The cat, it sat on the mat today.", "It rains a lot here, they say."]
    golds = [
        ["The cat sat on the mat today.", "A cat sat on the mat."],
        ["It rains a lot there, they say.", "Rain, they say."],
    ]
    made = load("bleu").compute(predictions=texts, references=golds)
    first = [[gold[0]] for gold in golds]
    expected = sacrebleu.corpus_bleu(texts, [[gold[0] for gold in golds]], smooth_method="none")
    assert load("bleu").compute(predictions=texts, references=first)["bleu"] == pytest.approx(
        expected.score / 100
    )
    several = sacrebleu.corpus_bleu(
        texts, [list(stream) for stream in zip(*golds, strict=True)], smooth_method="none"
    )
    assert made["precisions"] == pytest.approx(
        [precision / 100 for precision in several.precisions]
    )


def test_word_errors_of_the_hub() -> None:
    texts, golds = ["a  b c", "x", ""], ["a c d e", "x y", "z"]
    assert load("wer").compute(predictions=texts, references=golds) == (3 + 1 + 1) / (4 + 2 + 1)
    with pytest.raises(ValueError, match="no words"):
        load("wer").compute(predictions=["a"], references=[" "])


def test_numbers_that_json_has_not() -> None:
    listed = real(
        [
            {"metric": "spread", "aggregation": "nanmean"},
            {"metric": "greedy", "aggregation": "mean"},
        ]
    )
    hook = real({"!function": "of_likelihoods"})
    keys: Any = {"output_type": "multiple_choice", "process_results": hook, "metric_list": listed}
    definition = Definition(task="own", **keys)
    rows = [
        [(-1.0, True), (-3.0, True)],
        [(-math.inf, False), (-math.inf, True)],
        [(-1.0, True), (-7.0, False)],
    ]
    made = [results(definition, {}, 0, ["a", "b"], row)["spread", "none"] for row in rows]
    kept = msgspec.json.decode(msgspec.json.encode(made))
    assert kept == [2.0, {"float": "nan"}, 6.0]
    assert aggregations.aggregate(definition, "spread", kept) == 4.0
    error = stderr(definition, "spread", [2.0, math.nan, 6.0] * 5, 50)
    assert stderr(definition, "spread", kept * 5, 50) == error


def test_code_is_run_with_consent_only() -> None:
    code = {
        "predictions": [["def f(): return 1", "def f(): return 2"]],
        "references": ["assert f() == 1"],
    }
    with pytest.raises(UserError, match="code, which is run to score them"):
        load("code_eval").compute(**code)
    with code_runs_in("weak"):
        scores, outcomes = load("code_eval").compute(**code, k=[1, 2, 3])
    assert scores == {"pass@1": 0.5, "pass@2": 1.0}
    assert [outcome["passed"] for _, outcome in outcomes[0]] == [True, False]


@given(st.integers(1, 12), st.integers(0, 12), st.integers(1, 12))
def test_pass_at_k_is_the_chance_that_one_of_k_passes(total: int, right: int, k: int) -> None:
    right, k = min(right, total), min(k, total)
    expected = 1 - math.comb(total - right, k) / math.comb(total, k)
    assert hub._pass_at(total, right, k) == pytest.approx(expected)


def test_what_a_hook_raises_names_its_line() -> None:
    definition, case = case_of("raises")
    with pytest.raises(HookError, match="ZeroDivisionError") as error:
        scored(definition, case)
    line = next(
        at
        for at, text in enumerate((FOLDER / "own.py").read_text().splitlines(), 1)
        if "[:0]" in text
    )
    assert error.value.where == f"{FOLDER / 'own.py'}:{line}"


def test_unknown_names_are_user_errors() -> None:
    for keys, message in (
        (
            {"filter_list": [{"name": "x", "filter": [{"function": "shorten"}]}]},
            "no filter 'shorten'",
        ),
        (
            {"metric_list": [{"metric": "bertscore", "aggregation": "mean"}]},
            "the metric 'bertscore'",
        ),
        ({"metric_list": [{"metric": "niceness"}]}, "niceness has no `aggregation`"),
        ({"metric_list": [{"aggregation": "mean"}]}, "has no `metric`"),
    ):
        with pytest.raises(UserError, match=message):
            results(Definition(task="own", **real(keys)), {}, "a", None, ["a"])
    with pytest.raises(UserError, match="no aggregation 'best'"):
        aggregations.aggregate(task("acc", "best"), "acc", [1.0])
