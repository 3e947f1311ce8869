"""BLEU, chrF and TER by sacreBLEU: the score of one text, and the counts from which the score of a corpus is made.

Counts add up: the sum over all texts gives exactly what sacreBLEU finds for the whole corpus, which is not the mean
of the texts' scores.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from assay.errors import UserError

MOST_CELLS = 6_000_000  # of a table, and of those that are filled in all: about three seconds
_BEAM = 50  # cells of a table's row that are filled

Measure = Literal["bleu", "chrf", "ter"]


class Segment(NamedTuple):
    """Of one text: its score, as a share of 1, and its counts."""

    score: float
    counts: list[float]


def require_sacrebleu(where: str = "") -> None:
    """UserError where the package is not installed."""
    from importlib.util import find_spec

    if find_spec("sacrebleu") is None:
        raise UserError("this needs sacrebleu, which is not installed", where=where, fix="pip install 'assay[text]'")


def segment(measure: Measure, options: Mapping[str, Any], text: str, references: Sequence[str]) -> Segment:
    """Against all references together, as the measure defines it. Of a single BLEU, orders beyond the text's length
    do not count (`effective_order`)."""
    single = {**options, "effective_order": True} if measure == "bleu" else options
    made = _measure(measure, (*single.items(),))
    (counts,) = made._extract_corpus_statistics([text], [[reference] for reference in references])
    return Segment(_share(measure, made, counts), counts)


def corpus(measure: Measure, options: Mapping[str, Any], counts: Sequence[float]) -> float:
    """The score of a corpus, as a share of 1, from the sum of its texts' counts."""
    return _share(measure, _measure(measure, (*options.items(),)), counts)


def signature(measure: Measure, options: Mapping[str, Any], references: int | None) -> str:
    """sacreBLEU's own description of how a score was made; None for a number of references that differs."""
    made = _measure(measure, (*options.items(),))
    made.num_refs = -1 if references is None else references
    return made.get_signature().format()


def _share(measure: Measure, made: Any, counts: Sequence[float]) -> float:
    share = made._compute_score_from_stats(list(counts)).score / 100
    return share if measure == "ter" else min(1.0, share)  # a perfect BLEU is a few last bits above 100


@lru_cache(32)
def _measure(measure: Measure, options: tuple[tuple[str, Any], ...]) -> Any:
    require_sacrebleu()
    from sacrebleu.metrics import bleu, chrf, lib_ter, ter

    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # its advice is about files that a shell gave it
    if measure == "ter" and not hasattr(lib_ter.BeamEditDistance, "cells"):  # sacreBLEU has no limit of its own
        lib_ter.BeamEditDistance = _counted(lib_ter.BeamEditDistance)
    classes: dict[Measure, Any] = {"bleu": bleu.BLEU, "chrf": chrf.CHRF, "ter": ter.TER}
    return classes[measure](**dict(options))


def _counted(distance: type[Any]) -> type[Any]:
    """sacreBLEU's edit distance, which its TER asks up to a thousand times for one text, until it has worked enough."""

    class Counted(distance):
        cells = 0

        def __call__(self, words_hyp: list[str]) -> tuple[int, str]:
            words = self._n_words_ref
            self.cells += len(words_hyp) * (_BEAM + words // 16)
            if self.cells > MOST_CELLS or len(words_hyp) * words > MOST_CELLS:
                raise ValueError(
                    f"the TER of {len(words_hyp):,} words and {words:,} takes too long: too many can be moved"
                )
            return super().__call__(words_hyp)

    return Counted
