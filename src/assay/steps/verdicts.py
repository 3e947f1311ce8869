"""What columns of rows say: under which labels a row counts, its verdict, and an order that depends on rows alone."""

from array import array
from collections.abc import Iterable
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray, Log
from assay.steps.columns import OUTCOMES, VALUED, Columns
from assay.store.keys import short

_FAILED = {"errored", "unparsed", "refused"}


def under_every_label(columns: Columns) -> Columns:
    """Rows of scorer calls that failed before they could name a label count under every label of that scorer:
    otherwise a failure would be missing from the very denominators that it belongs to."""
    labels: dict[str, dict[str, None]] = {}
    for one in columns.combinations:
        if one.scorer and one.outcome == "scored":
            labels.setdefault(one.scorer, {})[one.label] = None
    spread: dict[int, list[int]] = {}
    combinations = list(columns.combinations)
    for number, one in enumerate(columns.combinations):
        own = labels.get(one.scorer, {})
        if own and one.outcome in _FAILED and one.label == one.scorer and one.label not in own:
            spread[number] = list(range(len(combinations), len(combinations) + len(own)))
            combinations += [one._replace(label=label) for label in own]
    if not spread:
        return columns
    copies = np.array([len(spread.get(number, "1")) for number in range(len(columns.combinations))])
    row = np.repeat(np.arange(len(columns.item)), copies[columns.combination])
    combination = columns.combination[row]
    for number, codes in spread.items():
        at = combination == number
        combination[at] = np.resize(codes, int(at.sum()))
    return Columns(
        item=columns.item[row],
        sample=columns.sample[row],
        score=columns.score[row],
        combination=combination,
        combinations=combinations,
        ids=columns.ids,
        starts=np.searchsorted(row, columns.starts).tolist(),
        positions=columns.positions[row] if len(columns.positions) else columns.positions,
        row=row,
    )


def verdicts(columns: Columns) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_], FloatArray]:
    """Outcome (its place in OUTCOMES), passed and score of every row.

    A missing score is 1 or 0 by `passed`, a missing `passed` is score > 0; a scored row with neither has only a value.
    """
    given = columns.combinations
    outcome = np.array([OUTCOMES.index(one.outcome) for one in given], dtype=np.int8)[columns.combination]
    passed = np.array([-1 if one.passed is None else int(one.passed) for one in given], dtype=np.int8)
    verdict = passed[columns.combination]
    score, unscored = columns.score, np.isnan(columns.score)
    if unscored.any():
        outcome[unscored & (verdict < 0) & (outcome == 0)] = VALUED
        score = np.where(unscored, verdict == 1, score)
    return outcome, np.where(verdict < 0, score > 0, verdict == 1), score


class _Key(msgspec.Struct):
    key: str = ""


def tie_breakers(logs: Iterable[Log]) -> tuple[npt.NDArray[np.uint64], ...]:
    """Columns, the last one first to sort by, that depend on nothing but the row: its text and its key."""
    decode = msgspec.json.Decoder(_Key).decode
    texts, keys = array("Q"), array("Q")
    for log in logs:
        for _, line in log.scan():
            if not line.strip():
                continue
            try:
                key = decode(line).key
            except msgspec.DecodeError:
                key = ""
            keys.append(short(key) if key else 0)
            texts.append(crc32(line))
    return np.frombuffer(texts, dtype=np.uint64), np.frombuffer(keys, dtype=np.uint64)
