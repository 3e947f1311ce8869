"""BLEU, chrF and TER by sacreBLEU: the score of one text, and the counts from which the score of a corpus is made.

Counts add up: the sum over all texts gives exactly what sacreBLEU finds for the whole corpus, which is not the mean
of the texts' scores.
"""

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from assay.errors import UserError, install_command
from assay.records import JsonMapping
from assay.text.edit_rate import edits

Measure = Literal["bleu", "chrf", "ter"]


class SegmentCounts(NamedTuple):
    """Of one text: its score, as a share of 1, and its counts."""

    score: float
    counts: list[float]


def require_sacrebleu(where: str = "") -> None:
    """UserError where the package is not installed."""
    from importlib.util import find_spec

    if find_spec("sacrebleu") is None:
        raise UserError(
            "this needs sacrebleu, which is not installed",
            where=where,
            fix=install_command("text"),
        )


def segment(
    measure: Measure, options: JsonMapping, text: str, references: Sequence[str]
) -> SegmentCounts:
    """Against all references together, as the measure defines it. Of a single BLEU, orders beyond the text's length
    do not count (`effective_order`)."""
    single = {**options, "effective_order": True} if measure == "bleu" else options
    made = _measure(measure, single)
    (counts,) = made._extract_corpus_statistics([text], [[reference] for reference in references])
    return SegmentCounts(_share(measure, made, counts), counts)


def corpus(measure: Measure, options: JsonMapping, counts: Sequence[float]) -> float:
    """The score of a corpus, as a share of 1, from the sum of its texts' counts."""
    return _share(measure, _measure(measure, options), counts)


def counts(
    measure: Measure, options: JsonMapping, texts: Sequence[str], references: Any
) -> list[list[float]]:
    """Of each text; `references` is sacreBLEU's form: the first of each text, the second of each text, …"""
    return _measure(measure, options)._extract_corpus_statistics(texts, references)


def percent(measure: Measure, options: JsonMapping, sums: Sequence[float]) -> float:
    """The score of a corpus from the sum of its texts' counts, as sacreBLEU writes it."""
    return float(_measure(measure, options)._compute_score_from_stats(list(sums)).score)


def signature(measure: Measure, options: JsonMapping, references: int | None) -> str:
    """sacreBLEU's own description of how a score was made; None for a number of references that differs."""
    made = _measure(measure, options)
    made.num_refs = -1 if references is None else references
    return made.get_signature().format()


def _share(measure: Measure, made: Any, counts: Sequence[float]) -> float:
    share = made._compute_score_from_stats(list(counts)).score / 100
    # a perfect BLEU is a few last bits above 100
    return share if measure == "ter" else min(1.0, share)


def _measure(measure: Measure, options: JsonMapping) -> Any:
    return _metric(measure, (*options.items(),))


@lru_cache(32)
def _metric(measure: Measure, options: tuple[tuple[str, Any], ...]) -> Any:
    require_sacrebleu()
    from sacrebleu.metrics import bleu, chrf, ter

    class FastTER(ter.TER):
        def _compute_segment_statistics(
            self, hypothesis: str, ref_kwargs: dict[str, list[list[str]]]
        ) -> list[float]:
            words, references = hypothesis.split(), ref_kwargs["ref_words"]
            return [
                min(edits(words, reference) for reference in references),
                sum(map(len, references)) / len(references),
            ]

    # its advice is about files that a shell gave it
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    classes: dict[Measure, Any] = {"bleu": bleu.BLEU, "chrf": chrf.CHRF, "ter": FastTER}
    return classes[measure](**dict(options))
