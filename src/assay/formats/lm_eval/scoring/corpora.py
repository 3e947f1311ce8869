"""Aggregations of (reference, prediction) pairs that depend on sums over documents only: each is a table of counts, a
row for each document, and a formula. Resampling then needs no second look at the documents."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from assay.sdk import FloatArray
from assay.text.translation import Measure, counts, percent

Items = Sequence[Any]
Table = FloatArray


class Corpus(NamedTuple):
    """An aggregation; `scores` has one score for each row of sums."""

    table: Callable[[Items], Table]
    scores: Callable[[Table], Table]

    def __call__(self, items: Items) -> float:
        return float(self.scores(self.table(items).sum(axis=0)[None, :])[0])


def _labels(items: Items) -> tuple[list[Any], list[Any], list[Any]]:
    golds, guesses = (list(side) for side in zip(*items, strict=True))
    labels = list(dict.fromkeys([*golds, *guesses]))
    numbers = [
        label
        for label in labels
        if isinstance(label, int) or (isinstance(label, float) and label.is_integer())
    ]
    if len(numbers) != len(labels) and not all(isinstance(label, str) for label in labels):
        raise ValueError(f"classes must be whole numbers or texts, not {labels[:5]}")
    return golds, guesses, labels


def _f1_table(items: Items) -> Table:
    golds, guesses, labels = _labels(items)
    if len(labels) > 2 or (len(labels) == 2 and 1 not in labels):
        raise ValueError(
            f"f1 needs the classes 0 and 1, and there are {sorted(labels, key=str)[:5]}"
        )
    positive, guessed = (
        np.array([label == 1 for label in side], np.float64) for side in (golds, guesses)
    )
    return np.stack([positive * guessed, positive + guessed], axis=1)


def _f1_scores(sums: Table) -> Table:
    both, either = sums.T
    return np.divide(2 * both, either, out=np.zeros(len(sums)), where=either > 0)


def _mcc_table(items: Items) -> Table:
    golds, guesses, labels = _labels(items)
    number = {label: at for at, label in enumerate(labels)}
    each = np.eye(len(labels))
    true, guess = ([number[label] for label in side] for side in (golds, guesses))
    return np.hstack([np.equal(true, guess)[:, None], each[true], each[guess]])


def _mcc_scores(sums: Table) -> Table:
    right, true, guess = sums[:, 0], *np.split(sums[:, 1:], 2, axis=1)
    total = true.sum(axis=1)
    common = right * total - (true * guess).sum(axis=1)
    spread = (total**2 - (guess**2).sum(axis=1)) * (total**2 - (true**2).sum(axis=1))
    return np.divide(common, np.sqrt(spread), out=np.zeros(len(sums)), where=spread > 0)


def class_scores(
    golds: Sequence[Any], guesses: Sequence[Any], labels: Sequence[Any]
) -> tuple[list[float], list[int]]:
    """The F1 of each class, 0 where it is in neither, and how often it is right."""
    true, guessed = Counter(golds), Counter(guesses)
    both = Counter(gold for gold, guess in zip(golds, guesses, strict=True) if gold == guess)
    scores = [2 * both[label] / max(1, true[label] + guessed[label]) for label in labels]
    return scores, [true[label] for label in labels]


def weighted_f1_score(items: Sequence[Any]) -> float:
    """The mean F1 of the classes of (reference, prediction) pairs, each by its share of references; as scikit-learn."""
    golds, guesses = zip(*items, strict=True)
    scores, support = class_scores(golds, guesses, sorted({*golds, *guesses}))
    return float(np.average(scores, weights=support))


def _translation(measure: Measure, every: bool = False, **options: Any) -> Corpus:
    def table(items: Items) -> Table:
        golds, results = (list(side) for side in zip(*items, strict=True))
        if isinstance(golds[0], str):
            golds = [[gold] for gold in golds]
        if not isinstance(results[0], str):
            if len(results[0]) != 1:
                raise ValueError(f"{measure} needs one text as an answer, not {len(results[0])}")
            results = [result[0] for result in results]
        if every:
            pairs = zip(results, golds, strict=True)
            rows = [
                counts(measure, options, [text], [[gold] for gold in several])[0]
                for text, several in pairs
            ]
        else:  # the harness drops references beyond the least number that a document has
            rows = counts(measure, options, results, list(zip(*golds, strict=False)))
        return np.array(rows, np.float64)

    def scores(sums: Table) -> Table:
        return np.array([percent(measure, options, row) for row in sums.tolist()])

    return Corpus(table, scores)


f1_score = Corpus(_f1_table, _f1_scores)
"""scikit-learn's f1_score of two classes, with the positive class 1; a ValueError for more classes."""
matthews_corrcoef = Corpus(_mcc_table, _mcc_scores)
"""scikit-learn's matthews_corrcoef; 0 where one side has a single class."""
bleu, chrf, ter = _translation("bleu"), _translation("chrf"), _translation("ter")
chrfpp = _translation("chrf", word_order=2)
EVERY = {  # with all references of each document
    bleu: _translation("bleu", every=True),
    chrf: _translation("chrf", every=True),
    chrfpp: _translation("chrf", every=True, word_order=2),
    ter: _translation("ter", every=True),
}
