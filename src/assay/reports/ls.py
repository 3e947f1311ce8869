"""The experiments below a folder, a line for each; the metrics of an experiment are its first few."""

import os
from collections.abc import Sequence

from assay.analysis.look.ls import Listed
from assay.reports.sheet import Sheet, Table, columns_of, fields_of

_MOST_METRICS = 3


def view(experiments: Sequence[Listed], root: str = "") -> Sheet:
    """Paths are relative to the folder `root`."""
    table = Table(
        columns=columns_of("<experiment", "<state", "items", "rows", "errors", "<metrics"),
        rows=[_row(listed, root) for listed in experiments],
        compact=True,
        data=fields_of(experiments, [name for name in Listed.__struct_fields__ if name != "values"]),
    )
    return Sheet(parts=[table])


def _row(listed: Listed, root: str) -> list[str]:
    planned = f"/{listed.planned:,}" if listed.planned is not None else ""
    metrics = [f"{name} {_range(*value)}" for name, value in list(listed.values.items())[:_MOST_METRICS]]
    more = [f"+{len(listed.values) - _MOST_METRICS}"] if len(listed.values) > _MOST_METRICS else []
    return [
        os.path.relpath(listed.folder, root) if root else listed.folder,
        listed.state,
        "–" if listed.items is None else f"{listed.items:,}",
        f"{listed.responses:,}{planned}",
        f"{listed.errors:,}",
        listed.problem or ", ".join(metrics + more) or "–",
    ]


def _range(low: float, high: float, count: int) -> str:
    return f"{low:.3f}" if low == high else f"{low:.3f}–{high:.3f} ({count})"
