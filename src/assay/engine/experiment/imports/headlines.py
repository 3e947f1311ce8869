"""The numbers that another program reported, computed again from the imported rows, without failures and with them."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.engine.aggregate.groups import under_every_label, verdicts
from assay.engine.experiment.imports.foreign import Headline
from assay.interfaces import Codes, FloatArray, Hashes, Log, Mask
from assay.store.table.facets import text_of
from assay.store.table.labels import OUTCOMES, Columns, Reader

_SKIPPED, _SCORED = OUTCOMES.index("skipped"), OUTCOMES.index("scored")
_CLOSE = 1e-9
_FEWEST_DIGITS = 3  # of a number that may have been rounded before it was written


class HeadlineCheck(msgspec.Struct, kw_only=True):
    """`theirs` is the program's number, `ours` the same from the rows, over so many items; `with_failures` is what it
    would be with the `failed` answers counted as 0, where there are some. `equal` is None if nothing can tell, and
    `reason` says why."""

    label: str
    metric: str
    where: dict[str, str] = {}
    theirs: float | None
    theirs_stderr: float | None = None
    ours: float | None = None
    ours_stderr: float | None = None
    items: int = 0
    failed: int = 0
    with_failures: float | None = None
    equal: bool | None = None
    reason: str = ""


def check_headlines(headlines: Sequence[Headline], log: Log, where: str) -> list[HeadlineCheck]:
    """Each number beside that of the rows; the rows are read once."""
    if not headlines:
        return []
    facets = sorted({facet for headline in headlines for facet in headline.where})
    reader = Reader(facets)
    reader.read(log, where)
    columns = under_every_label(reader.columns())
    outcome, passed, score = verdicts(columns)
    return [
        _check(headline, _rows_of(headline, columns, facets), columns, outcome, passed > 0, score)
        for headline in headlines
    ]


def _rows_of(headline: Headline, columns: Columns, facets: Sequence[str]) -> Mask:
    wanted = {facets.index(facet): text_of(value) for facet, value in headline.where.items()}
    rows = [
        combination.label == headline.label
        and all(_text(combination.values[at]) == value for at, value in wanted.items())
        for combination in columns.combinations
    ]
    return (
        np.array(rows, dtype=np.bool_)[columns.combination] if rows else np.zeros(0, dtype=np.bool_)
    )


def _text(value: Any) -> str | None:
    return None if value is UNSET else text_of(value)


def _check(
    headline: Headline,
    chosen: Mask,
    columns: Columns,
    outcome: npt.NDArray[np.int8],
    passed: Mask,
    score: FloatArray,
) -> HeadlineCheck:
    checked = HeadlineCheck(
        label=headline.label,
        metric=headline.metric,
        where={facet: text_of(value) for facet, value in headline.where.items()},
        theirs=headline.value,
        theirs_stderr=headline.stderr,
        ours=headline.ours,
        ours_stderr=headline.ours_stderr,
        reason=headline.reason,
    )
    failed = chosen & (outcome != _SCORED) & (outcome != _SKIPPED) & (outcome < len(OUTCOMES))
    checked.failed = int(failed.sum())
    scored = chosen & (outcome == _SCORED)
    values = passed.astype(np.float64) if headline.of == "passed" else score
    if headline.ours is None and not headline.reason:
        counted = scored | failed if headline.failed_as is not None else scored
        own = np.where(failed, headline.failed_as or 0.0, values)
        means = by_item(columns.item[counted], own[counted], headline.reduce)
        checked.ours, checked.ours_stderr, checked.items = _mean(means), _stderr(means), len(means)
    if checked.failed and (headline.ours is None or headline.is_mean) and not headline.reason:
        every = scored | failed
        means = by_item(columns.item[every], np.where(failed, 0.0, values)[every], headline.reduce)
        checked.with_failures = _mean(means)
    if headline.stderr is None:
        checked.ours_stderr = None
    if checked.ours is not None and headline.value is not None:
        checked.equal = _agree(headline.value, checked.ours) and _agree(
            headline.stderr, checked.ours_stderr
        )
    return checked


def by_item(item: Codes | Hashes, values: FloatArray, reduce: str) -> FloatArray:
    """The value of each item: several samples are reduced to one."""
    if reduce == "none" or not len(item):
        return values
    order = np.argsort(item, kind="stable")
    item, values = item[order], values[order]
    starts = np.flatnonzero(np.append(True, item[1:] != item[:-1]))
    if len(starts) == len(item):
        return values
    if reduce == "mean":
        return np.add.reduceat(values, starts) / np.diff(np.append(starts, len(item)))
    if reduce == "max":
        return np.maximum.reduceat(values, starts)
    reduced = np.median if reduce == "median" else _mode
    return np.array([reduced(part) for part in np.split(values, starts[1:])])


def _mode(values: FloatArray) -> float:
    """The most frequent value; of several, that which came first."""
    seen = values.tolist()
    return max(dict.fromkeys(seen), key=seen.count)


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if len(values) else None


def _stderr(values: FloatArray) -> float | None:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def _agree(theirs: float | None, ours: float | None) -> bool:
    """Return whether two numbers are equal, or the first is the second, rounded."""
    if theirs is None or ours is None:
        return theirs is None or ours is None
    if abs(theirs - ours) <= _CLOSE * max(1.0, abs(theirs)):
        return True
    digits = len(repr(theirs).partition(".")[2])
    return "e" not in repr(theirs) and digits >= _FEWEST_DIGITS and round(ours, digits) == theirs
