"""Graders against their reference implementations, and where those have none, against brute force."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import UserError
from assay.formats.intelligence_layer.evaluation import (
    BleuGrader,
    FScores,
    HighlightCoverageGrader,
    LanguageMatchesGrader,
    RougeGrader,
)
from assay.formats.intelligence_layer.graders import pieces

SUMMARY = "The cat sat quietly on the mat, watching birds."
REFERENCE = "A cat was sitting on the mat and watched the birds."


def test_bleu_is_sacrebleus() -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    grader = BleuGrader()
    assert grader.calculate_bleu(SUMMARY, SUMMARY) == pytest.approx(100.0)
    assert grader.calculate_bleu("", SUMMARY) == 0.0
    found = grader.calculate_bleu(SUMMARY, REFERENCE)
    assert found == pytest.approx(sacrebleu.corpus_bleu([SUMMARY], [[REFERENCE]]).score)
    assert 0 < found < 100


def test_without_its_package_bleu_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(UserError, match="sacrebleu"):
        BleuGrader()


@pytest.mark.parametrize(
    ("hypothesis", "reference", "precision", "recall"),
    [
        (SUMMARY, SUMMARY, 1.0, 1.0),
        ("cats sit", "cat sits", 1.0, 1.0),  # pairs of stems
        ("the cat sat", "the cat sat down here", 1.0, 0.5),
        ("nothing alike", SUMMARY, 0.0, 0.0),
        ("", SUMMARY, 0.0, 0.0),
        ("word", "word", 0.0, 0.0),  # no pair of words
    ],
)
def test_rouge_counts_pairs_of_stems(
    hypothesis: str, reference: str, precision: float, recall: float
) -> None:
    found = RougeGrader().calculate_rouge(hypothesis, reference)
    f_score = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    assert (found.precision, found.recall) == (precision, recall)
    assert found.f_score == pytest.approx(f_score)


def test_rouge_is_that_of_the_reference_package() -> None:
    rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")
    reference = rouge_scorer.RougeScorer(["rouge2"], use_stemmer=True)
    for hypothesis, target in [(SUMMARY, REFERENCE), (REFERENCE, SUMMARY), ("a b a b", "b a b a")]:
        expected = reference.score(prediction=hypothesis, target=target)["rouge2"]
        found = RougeGrader().calculate_rouge(hypothesis, target)
        values = (found.precision, found.recall, found.f_score)
        assert values == pytest.approx((expected.precision, expected.recall, expected.fmeasure))


# ---- highlights

ranges = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda each: (each[0], sum(each))),
    max_size=5,
)


@settings(
    suppress_health_check=[HealthCheck.too_slow]
)  # the first example waits for hypothesis to read our sources
@given(ranges, ranges, st.sampled_from([0.5, 1.0, 2.0]))
def test_highlights_are_compared_character_by_character(
    generated: list[tuple[int, int]], expected: list[tuple[int, int]], beta: float
) -> None:
    ours = {place for start, stop in generated for place in range(start, stop)}
    theirs = {place for start, stop in expected for place in range(start, stop)}
    found = HighlightCoverageGrader(beta).compute_fscores(generated, expected)
    if not ours and not theirs:
        assert found == FScores(1.0, 1.0, 1.0)
        return
    precision = len(ours & theirs) / len(ours) if ours else 0.0
    recall = len(ours & theirs) / len(theirs) if theirs else 0.0
    below = beta**2 * precision + recall
    f_score = (1 + beta**2) * precision * recall / below if below else 0.0
    assert (found.precision, found.recall) == pytest.approx((precision, recall))
    assert found.f_score == pytest.approx(f_score)


@pytest.mark.parametrize(
    ("generated", "expected", "scores"),
    [
        ([(5, 10)], [(5, 10)], (1.0, 1.0, 1.0)),
        ([(0, 10)], [(5, 15)], (0.5, 0.5, 0.5)),
        ([(0, 5), (3, 10)], [(0, 10)], (1.0, 1.0, 1.0)),
        ([(0, 5)], [(5, 10)], (0.0, 0.0, 0.0)),
        ([], [(5, 10)], (0.0, 0.0, 0.0)),
        ([(5, 10)], [], (0.0, 0.0, 0.0)),
        ([], [], (1.0, 1.0, 1.0)),
    ],
)
def test_highlights_by_hand(
    generated: list[tuple[int, int]],
    expected: list[tuple[int, int]],
    scores: tuple[float, float, float],
) -> None:
    assert HighlightCoverageGrader().compute_fscores(generated, expected) == FScores(*scores)


def test_ranges_far_out_cost_nothing_and_bad_ones_are_refused() -> None:
    found = HighlightCoverageGrader().compute_fscores([(0, 10**12)], [(0, 10**12)])
    assert found.f_score == 1.0
    for bad in [(-1, 3), (5, 4)]:
        with pytest.raises(ValueError, match="not a range of characters"):
            HighlightCoverageGrader().compute_fscores([bad], [(0, 1)])


# ---- languages


@given(st.text(alphabet="ab .!\n", max_size=600))
def test_pieces_keep_the_words_and_their_sizes(text: str) -> None:
    found = pieces(text)
    assert "".join(found).replace(" ", "") == "".join(text.split())
    assert all(0 < len(piece) <= 200 for piece in found)
    assert all(len(piece) >= 30 or len(found) - number <= 2 or len(found[number + 1]) > 150
               for number, piece in enumerate(found))  # fmt: skip


def stub(monkeypatch: pytest.MonkeyPatch, shares: dict[str, dict[str, float]]) -> None:
    """A lingua that gives languages by the first word of a text."""

    def confidence(text: str) -> list[SimpleNamespace]:
        found = shares[text.split()[0]]
        return [
            SimpleNamespace(language=SimpleNamespace(name=name), value=value)
            for name, value in found.items()
        ]

    detector = SimpleNamespace(compute_language_confidence_values=confidence)
    module = ModuleType("lingua")
    module.LanguageDetectorBuilder = SimpleNamespace(  # type: ignore[attr-defined]
        from_all_languages_with_latin_script=lambda: SimpleNamespace(build=lambda: detector)
    )
    monkeypatch.setitem(sys.modules, "lingua", module)


def test_languages_are_decided_by_clear_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {
        "english": {"ENGLISH": 0.95, "GERMAN": 0.05},
        "german": {"GERMAN": 0.95, "ENGLISH": 0.05},
        "both": {"GERMAN": 0.5, "ENGLISH": 0.5},
        "none": {},
    }
    stub(monkeypatch, shares)
    grader = LanguageMatchesGrader()
    assert grader.languages_match("english a", "english b")
    assert not grader.languages_match("english a", "german b")
    assert grader.languages_match("both", "german")  # no clear input language: anything matches
    assert grader.languages_match("", "german")
    assert not grader.languages_match("english", "both")
    assert not grader.languages_match("english", "")


def test_longer_pieces_weigh_more(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, {"english": {"ENGLISH": 1.0}, "german": {"GERMAN": 1.0}})
    short, long = "german " + "x" * 25 + ".", "english " + "y " * 90
    mixed = f"{short} {long}"
    assert [len(piece) for piece in pieces(mixed)] == [33, 187]
    assert not LanguageMatchesGrader(0.2).languages_match("german", mixed)
    assert LanguageMatchesGrader(0.2).languages_match("english", mixed)


def test_the_real_detector_tells_languages_apart() -> None:
    pytest.importorskip("lingua")
    english = (
        "This is a text about the weather in spring, and it is written in plain English sentences."
    )
    german = "Dies ist ein Text über das Wetter im Frühling, und er ist in einfachem Deutsch geschrieben."
    grader = LanguageMatchesGrader()
    assert grader.languages_match(english, english)
    assert not grader.languages_match(english, german)


def test_without_its_package_the_language_grader_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "lingua", None)
    with pytest.raises(UserError, match="lingua") as raised:
        LanguageMatchesGrader()
    assert raised.value.fix == "pip install 'assay-eval[lingua]'"
