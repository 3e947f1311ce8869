"""BLEU, chrF, TER, ROUGE and METEOR as scorers, and the scores of a corpus, against their reference implementations."""

import json
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from hypothesis import given, strategies as st
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.lib_ter import translation_edit_rate

from assay.engine.evaluate.bind import bind_scorer
from assay.errors import UserError
from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.text.edit_rate import edits
from tests.metrics.rows import group
from tests.support import Lab

WORDS = st.sampled_from(
    ["the", "cat", "sat", "on", "The", "mat", ".", "3.14", "don't", "Łódź", "猫"]
)
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)
CORPORA = st.lists(
    st.tuples(TEXTS, st.lists(TEXTS, min_size=2, max_size=2)), min_size=1, max_size=6
)


def scored(name: str, answer: str, truth: Any, **params: Any) -> Any:
    bound = bind_scorer(scorer.get(name), params=params)
    return bound.function(
        Item(id="i", ground_truth=truth), Response(item_id="i", response=answer), **bound.params
    )


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_single_scores_are_sacrebleus(answer: str, references: list[str]) -> None:
    bleu = sacrebleu.sentence_bleu(answer, references).score / 100
    assert scored("bleu", answer, references).score == pytest.approx(bleu, abs=1e-12)
    chrf = sacrebleu.sentence_chrf(answer, references).score / 100
    assert scored("chrf", answer, references).score == pytest.approx(chrf, abs=1e-12)
    plus = sacrebleu.sentence_chrf(answer, references, word_order=2).score / 100
    assert scored("chrf", answer, references, word_order=2).score == pytest.approx(plus, abs=1e-12)
    ter = sacrebleu.sentence_ter(answer, references).score / 100
    assert scored("ter", answer, references).score == pytest.approx(ter, abs=1e-12)


@given(st.lists(st.sampled_from("abcdefgh"), max_size=60), st.data())
def test_edits_are_those_of_sacrebleu(words: list[str], data: st.DataObject) -> None:
    other = data.draw(st.permutations(words) | st.lists(st.sampled_from("abc"), max_size=120))
    assert (edits(words, other), len(other)) == translation_edit_rate(words, other)


@given(CORPORA)
def test_corpus_scores_are_sacrebleus(corpus: list[tuple[str, list[str]]]) -> None:
    answers, references = (
        [answer for answer, _ in corpus],
        [list(each) for each in zip(*(r for _, r in corpus), strict=True)],
    )
    for name, expected in {
        "bleu": sacrebleu.corpus_bleu(answers, references),
        "chrf": sacrebleu.corpus_chrf(answers, references),
        "ter": sacrebleu.corpus_ter(answers, references),
    }.items():
        found = corpus_score([scored(name, answer, truth) for answer, truth in corpus])
        assert found.value == pytest.approx(expected.score / 100, abs=1e-12)
        assert found.fields["answer_count"] == len(corpus)
    assert "nrefs:2" in found.fields["signature"]


def corpus_score(scores: list[Score | None]) -> Any:
    from assay.metrics.corpus_score import CORPUS, corpus_score as metric

    made = group(*([0.0 if score is None else score.score] for score in scores))
    made.columns[CORPUS] = [
        None if score is None else json.loads(json.dumps(score.details["corpus"]))
        for score in scores
    ]
    return metric(made)


def test_a_corpus_says_what_it_is_made_of() -> None:
    first, second = (
        scored("bleu", "the cat sat", ["the cat sat down"]),
        scored("bleu", "a dog", ["a dog", "the dog"]),
    )
    found = corpus_score([first, None, second])
    assert (found.fields["answer_count"], found.fields["ignored_count"]) == (2, 1)
    assert found.fields["signature"].startswith(
        "nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:"
    )
    assert corpus_score([None]).reason == "no label has the counts of a corpus"
    other = scored("bleu", "a dog", ["a dog"], lowercase=True)
    assert corpus_score([first, other]).reason == "the answers were scored with different options"


def test_a_corpus_through_the_engine(tmp_path: Path) -> None:
    lab = Lab(tmp_path, items=12)
    lab.config["evaluation_methods"] = [
        {"name": "chrf", "params": {"char_order": 2}},
        "exact_match",
    ]
    lab.config["metrics"] = ["corpus_score", "mean"]
    for number, row in enumerate(lab.rows):
        row["ground_truth"] = [f"{number + 1} apples" if number % 3 else str(number + 1), "many"]
    lab.run()
    rows = {(row["label"], row["metric_name"]): row for row in lab.read("metrics.jsonl")}
    answers = [str(number + 1) for number in range(12) for _ in range(2)]
    references = [
        [row["ground_truth"][at] for row in lab.rows for _ in range(2)] for at in range(2)
    ]
    expected = sacrebleu.corpus_chrf(answers, references, char_order=2).score / 100
    found = rows["chrf", "corpus_score"]
    assert found["value"] == pytest.approx(expected, abs=1e-12)
    assert found["value"] != pytest.approx(rows["chrf", "mean"]["value"], abs=0.01)
    assert (found["answer_count"], found["measure"]) == (24, "chrf")
    assert found["ci_method"] == "jackknife; weak: fewer than 30 items"
    assert found["ci_low"] < found["value"] < found["ci_high"]
    assert rows["exact_match", "corpus_score"]["value"] is None


@pytest.mark.parametrize(
    ("name", "perfect"), [("bleu", 1.0), ("chrf", 1.0), ("meteor", None), ("ter", 0.0)]
)
def test_verdicts(name: str, perfect: float | None) -> None:
    same = scored(name, "the cat sat on the mat", "the cat sat on the mat")
    other = scored(name, "zzz www", "the cat sat on the mat")
    assert (same.passed, other.passed) == (True, False)
    if perfect is not None:
        assert same.score == perfect
    assert scored(name, "{}", "x", response_field="a").outcome == "unparsed"
    assert scored(name, "<think>no</think>the cat", "the cat", strip_reasoning=True).passed is True
    with pytest.raises(LookupError):
        scored(name, "x", [])


def test_meteor_of_its_paper() -> None:
    """Six words in one chunk: 1 − 0.5 · (1/6)³."""
    truth = ["The crew left the Moon.", "the cat sat on the mat"]
    assert scored("meteor", "the cat sat on the mat", truth).score == pytest.approx(1 - 0.5 / 216)
    assert scored("meteor", "running cats", "run cat").score == pytest.approx(1 - 0.5 / 8)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), st.booleans())
def test_rouge_takes_the_best_reference(answer: str, references: list[str], stemming: bool) -> None:
    names = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    oracle = RougeScorer(names, use_stemmer=stemming)
    expected = oracle.score_multi(references, answer)
    found = scored("rouge", answer, references, variants=[1, 2, "L", "Lsum"], stemming=stemming)
    assert [each.label for each in found] == [".1", ".2", ".L", ".Lsum"]
    for each, name in zip(found, names, strict=True):
        best = expected[name]
        assert each.score == pytest.approx(best.fmeasure, abs=1e-12)
        assert each.passed is (each.score > 0)
        if best.fmeasure:  # of references that are equally good, either will do
            one_by_one = [oracle.score(reference, answer)[name] for reference in references]
            equal = [
                one for one in one_by_one if one.fmeasure == pytest.approx(best.fmeasure, abs=1e-12)
            ]
            details = pytest.approx((each.details["precision"], each.details["recall"]))
            assert any((one.precision, one.recall) == details for one in equal)


def test_rouge_labels_and_problems() -> None:
    assert [each.label for each in scored("rouge", "a", "a")] == [".1", ".2", ".L"]
    assert [each.outcome for each in scored("rouge", "a", "a", response_field="b")] == ["unparsed"]
    for variants in ([0], [], ["L", "L"]):
        with pytest.raises(UserError):
            scored("rouge", "a", "a", variants=variants)


def test_a_missing_package_is_said_before_anything_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="needs sacrebleu") as raised:
        bind_scorer(scorer.get("bleu"))
    assert raised.value.fix == "pip install 'assay-eval[text]'"
