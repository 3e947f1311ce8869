"""Measures for logics to use: BLEU, ROUGE-2, whether two texts are in one language, how well highlights overlap,
a running mean, and what a trace says about time and tokens."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from math import sqrt
from typing import Any, Generic, TypeVar

from assay.errors import install_command
from assay.formats.intelligence_layer.tracer import ExportedSpan, SpanType, TaskSpanAttributes
from assay.formats.intelligence_layer.types import BadValue, extra
from assay.text.rouge import rouge_n, words

T = TypeVar("T")
Extracted = TypeVar("Extracted")
_SENTENCE_ENDS = re.compile(r"[.!?…:;][\"'”’)\]]*$")
COMPLETE = "_Complete"  # the original's task that calls a model


class BleuGrader:
    def __init__(self) -> None:
        what = "BLEU needs sacrebleu, which is not installed"
        self.bleu: Any = extra("sacrebleu", what, install_command("text")).BLEU()

    def calculate_bleu(self, hypothesis: str, reference: str) -> float:
        """sacrebleu's corpus BLEU of this one pair: 0 for no overlap to 100 for the same text."""
        return self.bleu.corpus_score([hypothesis], [[reference]]).score


@dataclass
class FScores:
    precision: float
    recall: float
    f_score: float


class RougeGrader:
    def calculate_rouge(self, hypothesis: str, reference: str) -> FScores:
        """ROUGE-2: pairs of neighbouring words, as stems, that the hypothesis shares with the reference; 0 to 1."""
        rouge = rouge_n(words(hypothesis, True), words(reference, True), 2)
        return FScores(precision=rouge.precision, recall=rouge.recall, f_score=rouge.f1)


class LanguageMatchesGrader:
    """Compares the one language of each text. A text has one if exactly one language has a share of at least
    `acceptance_threshold`, weighed over pieces of the text by their length; languages in Latin script are known."""

    def __init__(self, acceptance_threshold: float = 0.1) -> None:
        what = "finding out a text's language needs lingua, which is not installed"
        lingua = extra("lingua", what, install_command("lingua"))
        self._acceptance_threshold = acceptance_threshold
        self._detector = (
            lingua.LanguageDetectorBuilder.from_all_languages_with_latin_script().build()
        )

    def languages_match(self, input: str, output: str) -> bool:
        """Whether the output is in the input's language: true if the input has no clear one, false if only the output
        has none."""
        language = self._language(input)
        return language is None or language == self._language(output)

    def _language(self, text: str) -> str | None:
        shares: dict[str, float] = {}
        for piece in pieces(text):
            for guess in self._detector.compute_language_confidence_values(piece):
                shares[guess.language.name] = shares.get(
                    guess.language.name, 0.0
                ) + guess.value * len(piece)
        total = sum(shares.values())
        clear = [
            name
            for name, share in shares.items()
            if total and share / total >= self._acceptance_threshold
        ]
        return clear[0] if len(clear) == 1 else None


def pieces(text: str, least: int = 30, most: int = 200) -> list[str]:
    """The text cut between words into pieces of `least` to `most` characters, at the ends of sentences where there are
    any. A longer word is cut; a text that is shorter is one piece."""
    cut: list[str] = []
    piece = ""
    for word in text.split():
        for part in (word[start : start + most] for start in range(0, len(word), most)):
            if piece and len(piece) + 1 + len(part) > most:
                cut.append(piece)
                piece = ""
            piece = f"{piece} {part}" if piece else part
        if len(piece) >= least and _SENTENCE_ENDS.search(piece):
            cut.append(piece)
            piece = ""
    return [*cut, piece] if piece else cut


class HighlightCoverageGrader:
    """How well generated highlights cover expected ones, character by character; `beta_factor` above 1 weighs recall
    more, below 1 precision."""

    def __init__(self, beta_factor: float = 1.0) -> None:
        self.beta_factor = beta_factor

    def compute_fscores(
        self,
        generated_highlight_indices: Sequence[tuple[int, int]],
        expected_highlight_indices: Sequence[tuple[int, int]],
    ) -> FScores:
        """Ranges are half-open. Where nothing was generated, or nothing expected, the other side's share is 0; where
        there is nothing on either side, that is a perfect match."""
        generated, expected = (
            _merged(generated_highlight_indices),
            _merged(expected_highlight_indices),
        )
        if not generated and not expected:
            return FScores(precision=1.0, recall=1.0, f_score=1.0)
        size, full = _length(generated), _length(expected)
        shared = size + full - _length(_merged([*generated, *expected]))
        precision, recall = (shared / size if size else 0.0), (shared / full if full else 0.0)
        weight = self.beta_factor**2
        below = weight * precision + recall
        f_score = (1 + weight) * precision * recall / below if below else 0.0
        return FScores(precision=precision, recall=recall, f_score=f_score)


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same characters as ranges that do not touch, in order; empty ones are left out."""
    for start, stop in ranges:
        if start < 0 or stop < start:
            raise BadValue(
                f"({start}, {stop}) is not a range of characters", fix="0 <= start <= stop"
            )
    ordered = sorted(each for each in ranges if each[0] < each[1])
    merged = ordered[:1]
    for (_, _), (start, stop) in pairwise(ordered):
        if start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], stop)
        else:
            merged.append((start, stop))
    return merged


def _length(ranges: Sequence[tuple[int, int]]) -> int:
    return sum(stop - start for start, stop in ranges)


class Accumulator(ABC, Generic[T, Extracted]):
    @abstractmethod
    def add(self, value: T) -> None: ...

    @abstractmethod
    def extract(self) -> Extracted:
        """What the values so far come to."""


class MeanAccumulator(Accumulator[float, float]):
    """Mean and spread by Welford's updates: equal values have a spread of exactly 0. Nothing added is 0.0."""

    def __init__(self) -> None:
        self._n = 0
        self._mean = 0.0
        self._squares = 0.0  # of the distances to the mean

    def add(self, value: float) -> None:
        self._n += 1
        distance = value - self._mean
        self._mean += distance / self._n
        self._squares += distance * (value - self._mean)

    def extract(self) -> float:
        return self._mean

    def standard_deviation(self) -> float:
        """Of these values, not of a population that they were drawn from: divided by n."""
        return sqrt(self._squares / self._n) if self._n else 0.0

    def standard_error(self) -> float:
        return self.standard_deviation() / sqrt(self._n) if self._n > 1 else 0.0


def extract_latency_from_trace(trace: Sequence[ExportedSpan]) -> int:
    """Microseconds from the beginning to the end of the trace's one root."""
    roots = [span for span in trace if span.parent_id is None]
    if len(roots) != 1:
        raise ValueError(f"a trace has exactly one root span, found {len(roots)}")
    return (roots[0].end_time - roots[0].start_time) // timedelta(microseconds=1)


def extract_token_count_from_trace(trace: Sequence[ExportedSpan]) -> int:
    """Tokens that models generated: the sum over all completions in the trace."""
    return sum(_tokens(span) for span in trace if _is_completion(span))


def _is_completion(span: ExportedSpan) -> bool:
    return span.attributes.type == SpanType.TASK_SPAN and span.name == COMPLETE


def _tokens(span: ExportedSpan) -> int:
    output = span.attributes.output if isinstance(span.attributes, TaskSpanAttributes) else None
    count = output.get("num_tokens_generated") if isinstance(output, dict) else None
    if count is None:
        count = getattr(output, "num_tokens_generated", None)
    if count is None:
        raise ValueError(
            f"the span {span.name!r} has no output with the number of generated tokens"
        )
    return count
