"""Labels of an index: which verdicts are those of a label, where several scorers gave it, or one
failed before it."""

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping
from itertools import combinations

import msgspec

VERDICT_BITS = (
    40  # a verdict's id is the number of its series, and in so many bits that of the response
)
_JOINT = 1 << 20  # the first number of series that are made of others
_BETWEEN = "BETWEEN :series << 40 AND (:series + 1 << 40) - 1"
_FAILURES = "outcome IN ('errored', 'unparsed', 'refused')"


class Series(msgspec.Struct):
    """The verdicts of one label of one scorer. `scored`: there are some beside failures."""

    label: str
    scorer: str
    scored: bool = False
    number: int = -1


class Label(msgspec.Struct):
    """A label as it is shown: the series with its verdicts, and the scorers that gave it.
    `bare`: it has scores other than 0 and 1 without a verdict, so that scores alone say nothing
    of passing."""

    number: int
    scorers: list[str]
    bare: bool = False


def make_labels(db: sqlite3.Connection, every: Mapping[str, Series]) -> dict[str, Label]:
    """Return the labels by name."""
    db.execute("DELETE FROM verdict WHERE id >= ?", (_JOINT << VERDICT_BITS,))
    labels: dict[str, Label] = {}
    for number, (name, own) in enumerate(_by_name(db, every.values()).items(), _JOINT):
        label = labels[name] = Label(own[0].number, [series.scorer for series in own])
        if len(own) > 1:
            label.number = number
            for series in own:
                _copy(db, series.number, number)
        label.bare = _exists(
            db,
            f"SELECT 1 FROM verdict WHERE id {_BETWEEN} AND passed IS NULL AND score NOT IN (0, 1)",
            {"series": label.number},
        )
    return labels


def _by_name(db: sqlite3.Connection, every: Collection[Series]) -> dict[str, list[Series]]:
    """Return the series of each label. One that several scorers gave to the same answer is
    `label (scorer)`; a failure before a label was named counts under all labels of its scorer."""
    by_scorer, by_label, named = (defaultdict[str, list[Series]](list) for _ in range(3))
    for series in every:
        if series.scored:
            by_scorer[series.scorer].append(series)
            by_label[series.label].append(series)
    for series in every:
        others = by_scorer[series.scorer]
        if series.label == series.scorer and not series.scored and others:
            for own in others:
                _copy(db, series.number, own.number, _FAILURES)
            continue
        rivals = combinations(by_label[series.label], 2)
        is_apart = series.scored and any(_share_answers(db, a.number, b.number) for a, b in rivals)
        named[f"{series.label} ({series.scorer})" if is_apart else series.label].append(series)
    return named


def _share_answers(db: sqlite3.Connection, a: int, b: int) -> bool:
    query = (
        "SELECT 1 FROM verdict a JOIN verdict b ON b.id = a.id + (:other - :series << 40)"
        f" WHERE a.id {_BETWEEN}"
    )
    return _exists(db, query, {"series": a, "other": b})


def _copy(db: sqlite3.Connection, series: int, other: int, which: str = "1") -> None:
    query = (
        "INSERT OR IGNORE INTO verdict SELECT id + (:other - :series << 40), outcome, passed, score"
        f" FROM verdict WHERE id {_BETWEEN} AND {which}"
    )
    db.execute(query, {"series": series, "other": other})


def _exists(db: sqlite3.Connection, query: str, values: Mapping[str, int]) -> bool:
    return db.execute(f"{query} LIMIT 1", values).fetchone() is not None
