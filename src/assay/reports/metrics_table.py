"""The metrics table: one line per metric row, with its interval, its counts and what is missing from it."""

import re
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from assay.records import MetricRow
from assay.reports.look import fits, one_line, plain_table
from assay.text.plain import plain

LONGEST_FACET = 40
FAILURES = {"errored_count": "errored", "unparsed_count": "unparsed", "refused_count": "refused"}


def metrics_view(rows: Sequence[MetricRow], console: Console) -> RenderableType:
    """The table where it fits, if need be with its headings on several lines or in a table for each set of facets; on a
    terminal too narrow for that, a paragraph for each row: nothing is left out."""
    by_facets: dict[tuple[str, ...], list[MetricRow]] = {}
    for row in rows:
        by_facets.setdefault(tuple(row.get("facets", [])), []).append(row)
    for parts in ([rows], by_facets.values()):
        tables = [_fitting(part, console) for part in parts]
        if None not in tables:
            return Group(*(table for table in tables if table is not None))
    return Group(*(_paragraph(row) for row in rows))


def _fitting(rows: Sequence[MetricRow], console: Console) -> Table | None:
    for table in (metrics_table(rows), metrics_table(rows, narrow=1), metrics_table(rows, narrow=2)):
        if fits(table, console):
            return table
    return None


def _paragraph(row: MetricRow) -> Text:
    names = [*row.get("facets", []), "label", "metric_name"]
    who = ", ".join(cell(row.get(name)) for name in dict.fromkeys(names))
    counts = f"{_count(row, 'total_item_count')} items, {_count(row, 'total_sample_count')} samples"
    return Text.from_markup(f"{who}: {_value(row)} ({_interval(row)}), {counts}, {_failures(row)} failed")


def metrics_table(rows: Sequence[MetricRow], *, narrow: int = 0) -> Table:
    """Facets, label and metric on the left; value, interval and counts on the right.

    What is the same in all rows stands above the table, so that it fits a terminal. `narrow`: 1 breaks long headings,
    2 long names as well.
    """
    facets = list(dict.fromkeys(facet for row in rows for facet in row.get("facets", [])))
    left = {facet: facet.removeprefix("metadata.") for facet in facets}
    left |= {"label": "label", "metric_name": "metric"}
    shared = [key for key in left if len(rows) > 1 and len({cell(row.get(key)) for row in rows}) == 1]
    title = ", ".join(f"{escape(left[key])}: {cell(rows[0].get(key))}" for key in shared)
    table = plain_table(title=title or None, title_justify="left")
    for key, name in left.items():
        if key not in shared:
            heading = escape(_heading(name) if narrow else name)
            longest = max(len(cell(row.get(key))) for row in rows)
            table.add_column(heading, overflow="fold", min_width=min(longest, 8 if narrow == 2 else 20))
    for name in ("value", _level(rows), "items", "samples", "failed"):
        table.add_column(name, justify="right", no_wrap=name != "failed")
    for row in rows:
        table.add_row(
            *(cell(row.get(key)) for key in left if key not in shared),
            _value(row),
            _interval(row),
            _count(row, "total_item_count"),
            _count(row, "total_sample_count"),
            _failures(row),
        )
    return table


def cell(value: Any) -> str:
    """A facet's value on one line, shortened, with nothing that a terminal or rich would obey."""
    text = "–" if value is None else one_line(str(value))
    return escape(text if len(text) <= LONGEST_FACET else f"{text[: LONGEST_FACET - 1]}…")


def reasons(rows: Sequence[MetricRow]) -> list[str]:
    """Why values are null and what the rows warn of, each once."""
    said: dict[str, None] = {}
    for row in rows:
        for field in ("error", "reason", "warning"):
            if row.get(field):
                said[f"{row.get('metric_name')}: {plain(str(row[field]))}"] = None
    return list(said)


def _heading(name: str) -> str:
    """A long facet name on several lines, cut behind its underscores and dots, so that the table stays narrow."""
    return re.sub(r"([_.])(?=.)", r"\1\n", name) if len(name) > 12 else name


def _level(rows: Sequence[MetricRow]) -> str:
    levels = {row.get("ci_level") for row in rows} - {None}
    return f"{levels.pop():.0%} interval" if len(levels) == 1 else "interval"


def _value(row: MetricRow) -> str:
    value = row.get("value")
    if value is None:
        return "[dim]null[/dim]"
    return f"{value:.4g}" if abs(value) >= 1000 else f"{value:.3f}"


def _interval(row: MetricRow) -> str:
    low, high = row.get("ci_low"), row.get("ci_high")
    return "–" if low is None or high is None else f"{low:.3f}–{high:.3f}"


def _count(row: MetricRow, name: str) -> str:
    value = row.get(name)
    return "–" if value is None else f"{value:,}"


def _failures(row: MetricRow) -> str:
    """Rows without a verdict, by kind; 0 where every row has one."""
    found = [f"{row[name]:,} {word}" for name, word in FAILURES.items() if row.get(name)]
    return f"[yellow]{', '.join(found)}[/yellow]" if found else "0"
