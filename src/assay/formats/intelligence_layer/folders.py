"""Folders of the original, and repositories of the library, in `assay ls`: what they hold, from the overviews alone."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.analysis.look.ls import Listed

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
    """What the original left in a folder whose entries have these names."""
    for kind in sorted({*names} & {*_KINDS}):
        for file in sorted((folder / kind).glob("*.json")):
            try:
                overview = _overview(reading.content(file))
            except (ValueError, OSError, RecursionError):  # somebody else's file
                continue
            yield _listed(file.with_suffix(""), overview, is_run=kind == "runs")


def _listed(place: Path, overview: _Overview, *, is_run: bool) -> Listed:
    failed = overview.failed_evaluation_count or overview.crashed_during_evaluation_count
    responses = overview.failed_example_count + overview.successful_example_count
    evaluations = failed + overview.successful_evaluation_count
    end = overview.end or overview.end_date
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
        values=dict(_values(overview.statistics, "")),
        updated=end.timestamp() if end else 0.0,
    )


def _values(value: Any, way: str) -> Iterator[tuple[str, tuple[float, float, int]]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, f"{way}.{key}" if way else str(key))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield way or "value", (float(value), float(value), 1)
