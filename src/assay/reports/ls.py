"""The experiments below a folder, a line for each; the metrics of an experiment are its first few."""

import os
from collections.abc import Sequence

from assay.analysis.look.ls import Listed
from assay.reports.sheet import Column, Line, Sheet, Table

_MOST_METRICS = 3
_MOST_REASONS = 2


def view(experiments: Sequence[Listed], root: str = "") -> Sheet:
    """Paths are relative to the folder `root`."""
    names = [name for name in Listed.__struct_fields__ if name != "values"]
    table = Table(
        columns=[
            *(Column("experiment", text=True), Column("state", text=True), Column("items"), Column("rows")),
            *(Column("errors"), Column("metrics", text=True)),
        ],
        rows=[_row(listed, root) for listed in experiments],
        compact=True,
        data=(names, [[getattr(listed, name) for name in names] for listed in experiments]),
    )
    lines = [
        Line(f"{_path(listed, root)}: {reason}", "open", wraps=False)
        for listed in experiments
        if listed.state == "failed"
        for reason in listed.reasons[:_MOST_REASONS]
    ]
    return Sheet(parts=[table, *lines])


def _path(listed: Listed, root: str) -> str:
    return os.path.relpath(listed.folder, root) if root else listed.folder


def _row(listed: Listed, root: str) -> list[str]:
    planned = f"/{listed.planned:,}" if listed.planned is not None else ""
    metrics = [f"{name} {_range(*value)}" for name, value in list(listed.values.items())[:_MOST_METRICS]]
    more = [f"+{len(listed.values) - _MOST_METRICS}"] if len(listed.values) > _MOST_METRICS else []
    return [
        _path(listed, root),
        listed.state,
        "–" if listed.items is None else f"{listed.items:,}",
        f"{listed.responses:,}{planned}",
        f"{listed.errors + listed.label_errors:,}",
        listed.problem or ", ".join(metrics + more) or "–",
    ]


def _range(low: float, high: float, count: int) -> str:
    return f"{low:.3f}" if low == high else f"{low:.3f}–{high:.3f} ({count})"
