"""Folders of the original, and repositories of the library, in `assay ls`: what they hold, from the overviews alone."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.analysis.look.ls import Listed
from assay.formats.intelligence_layer.types import numbers_in

_KINDS = ("runs", "evaluations", "aggregations")


class _Overview(msgspec.Struct):
    """What a listing needs of an overview of any kind."""

    id: str
    description: str
    start: datetime | None = None
    end: datetime | None = None
    end_date: datetime | None = None
    failed_example_count: int = 0
    successful_example_count: int = 0
    failed_evaluation_count: int = 0
    crashed_during_evaluation_count: int = 0
    successful_evaluation_count: int = 0
    statistics: Any = None


_overview = msgspec.json.Decoder(_Overview).decode


def listed(folder: Path, names: Iterable[str]) -> Iterator[Listed]:
    """Yield what the original left in a folder whose entries have these names."""
    for kind in sorted({*names} & {*_KINDS}):
        for file in sorted((folder / kind).glob("*.json")):
            try:
                overview = _overview(reading.content(file))
            except (ValueError, OSError, RecursionError):  # somebody else's file
                continue
            yield _listing(file.with_suffix(""), overview, is_run=kind == "runs")


def _listing(place: Path, overview: _Overview, *, is_run: bool) -> Listed:
    failed = overview.failed_evaluation_count or overview.crashed_during_evaluation_count
    responses = overview.failed_example_count + overview.successful_example_count
    evaluations = failed + overview.successful_evaluation_count
    end = overview.end or overview.end_date
    found = numbers_in(overview.statistics)
    numbers = [each for each in found if not isinstance(each[1], bool)]
    is_total = failed + overview.failed_example_count == responses + evaluations > 0
    return Listed(
        folder=str(place),
        name=overview.description,
        state="failed" if is_total else "complete",
        planned=responses if is_run else None,
        responses=responses,
        errors=overview.failed_example_count,
        evaluations=evaluations,
        label_errors=failed,
        values={name: (float(value), float(value), 1) for name, value in numbers},
        updated=end.timestamp() if end else 0.0,
    )
