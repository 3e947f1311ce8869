"""The numbers that another program reported, computed again from the imported rows, without failures and with them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from assay.engine.aggregate.groups import under_every_label, verdicts
from assay.foreign import Headline
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
    rows = _LabelRows(facets, under_every_label(reader.columns()))
    return [rows.check(headline) for headline in headlines]


class _LabelRows:
    """The rows' verdicts and scores, as columns."""

    def __init__(self, facets: Sequence[str], columns: Columns) -> None:
        self.facets, self.columns = facets, columns
        self.outcome, passed, self.score = verdicts(columns)
        self.passed = (passed > 0).astype(np.float64)

    def check(self, headline: Headline) -> HeadlineCheck:
        """Return a number beside the same from the rows."""
        checked = _unchecked(headline)
        self._compute(headline, checked)
        if headline.stderr is None:
            checked.ours_stderr = None
        if checked.ours is not None and headline.value is not None:
            same = _agree(headline.value, checked.ours)
            checked.equal = same and _agree(headline.stderr, checked.ours_stderr)
        return checked

    def _compute(self, headline: Headline, checked: HeadlineCheck) -> None:
        outcome, chosen = self.outcome, self._chosen_rows(headline.label, checked.where)
        failed = chosen & (outcome != _SCORED) & (outcome != _SKIPPED) & (outcome < len(OUTCOMES))
        checked.failed = int(failed.sum())
        scored = chosen & (outcome == _SCORED)
        computed = headline.ours is None and not headline.reason
        if computed:
            counted = scored if headline.failed_as is None else scored | failed
            means = self._means(headline, counted, failed, headline.failed_as or 0.0)
            checked.ours, checked.ours_stderr = _mean(means), _stderr(means)
            checked.items = len(means)
        if checked.failed and (computed or (headline.is_mean and not headline.reason)):
            checked.with_failures = _mean(self._means(headline, scored | failed, failed, 0.0))

    def _means(
        self, headline: Headline, counted: Mask, failed: Mask, failed_as: float
    ) -> FloatArray:
        values = self.passed if headline.of == "passed" else self.score
        own = np.where(failed, failed_as, values)
        return by_item(self.columns.item[counted], own[counted], headline.reduce)

    def _chosen_rows(self, label: str, where: Mapping[str, str]) -> Mask:
        wanted = {self.facets.index(facet): value for facet, value in where.items()}
        rows = [
            combination.label == label and wanted.items() <= _texts_of(combination.values).items()
            for combination in self.columns.combinations
        ]
        if not rows:
            return np.zeros(0, dtype=np.bool_)
        return np.array(rows, dtype=np.bool_)[self.columns.combination]


def _unchecked(headline: Headline) -> HeadlineCheck:
    return HeadlineCheck(
        label=headline.label,
        metric=headline.metric,
        where={facet: text_of(value) for facet, value in headline.where.items()},
        theirs=headline.value,
        theirs_stderr=headline.stderr,
        ours=headline.ours,
        ours_stderr=headline.ours_stderr,
        reason=headline.reason,
    )


def _texts_of(values: Sequence[Any]) -> dict[int, str]:
    """Return the values that there are as texts, by their places."""
    return {at: text_of(value) for at, value in enumerate(values) if value is not UNSET}


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
