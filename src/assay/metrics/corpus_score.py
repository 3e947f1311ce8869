"""BLEU, an error rate or another score of all answers of a group together."""

from typing import Any

import numpy as np
import numpy.typing as npt

from assay.sdk import FloatArray, Group, JsonObject, Resampled, Values, metric
from assay.text.translation import corpus, signature

CORPUS = "detailed_results.corpus"
RATES = ("wer", "cer", "instructions")


@metric(columns=[CORPUS])
def corpus_score(group: Group) -> Values:
    """The score of all answers as one corpus, as a share of 1: BLEU, chrF or TER exactly as sacreBLEU computes it, the
    word or character error rate, the share of all instructions that are followed.

    The scorers `bleu`, `chrf`, `ter`, `wer`, `cer` and `instruction_checks` keep their counts of
    each answer in `detailed_results.corpus`. These are added, and the score is made of the sums:
    what papers report, and no mean of the answers' scores. Samples of one item are answers of their
    own. Rows without counts (refused, unparsed) cannot be in it: `ignored_count` says how many. The
    row has sacreBLEU's `signature`. Intervals are made by the jackknife over items.
    """
    rows = [at for at, entry in enumerate(group.columns[CORPUS]) if isinstance(entry, dict)]
    entries: list[JsonObject] = [group.columns[CORPUS][at] for at in rows]
    counts = {"answer_count": len(rows), "ignored_count": len(group.item) - len(rows)}
    if not entries:
        return Values(fields=counts, reason="no label has the counts of a corpus")
    measure = entries[0]["measure"]
    options = entries[0]["options"]
    if any((entry["measure"], entry["options"]) != (measure, options) for entry in entries):
        return Values(fields=counts, reason="the answers were scored with different options")
    references = {int(entry["references"]) for entry in entries}
    named = (
        {}
        if measure in RATES
        else {
            "signature": signature(
                measure, options, max(references) if len(references) == 1 else None
            )
        }
    )
    items, number = np.unique(group.item[rows], return_inverse=True)
    sums = np.zeros((len(items), len(entries[0]["counts"])))
    np.add.at(sums, number, np.array([entry["counts"] for entry in entries], dtype=np.float64))
    resampled = _statistic(measure, options, sums)
    return Values(
        value=float(resampled.statistic(resampled.counts[None, :])[0]),
        fields={**counts, "measure": measure, **named},
        resampled=resampled,
        rows=rows,
    )


def _statistic(measure: Any, options: JsonObject, sums: FloatArray) -> Resampled:
    def statistic(weights: npt.NDArray[Any]) -> FloatArray:
        if measure in RATES:
            edits, lengths = (weights @ sums).T
            return edits / np.maximum(1.0, lengths)
        return np.array([corpus(measure, options, row) for row in (weights @ sums).tolist()])

    most = None if measure in ("wer", "cer", "ter") else 1.0
    return Resampled(np.ones(len(sums), np.int64), statistic, scale=(0.0, most))
