"""What a run, an evaluation or an aggregation came to: metrics with their intervals, what is missing, what was used."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.engine.experiment.experiment import Result
from assay.records import MetricRow
from assay.reports.sheet import (
    Cell,
    Column,
    Line,
    Sheet,
    Table,
    columns_of,
    cost_text,
    counts_text,
    shortened,
    span_text,
)

_LONGEST_FACET = 40
_FAILURES = {"errored_count": "errored", "unparsed_count": "unparsed", "refused_count": "refused"}


def view(result: Result) -> Sheet:
    parts: list[Line | Table] = []
    if result.metrics:
        parts.append(_metrics(result.metrics))
        parts += [Line(f"note: {reason}", "open") for reason in _reasons(result.metrics)]
    else:
        for name, manifest in (("responses", result.run), ("evaluations", result.evaluation)):
            if manifest is not None:
                parts.append(Line(f"{name}: {counts_text(manifest.counts, '')}"))
    if result.run is not None and result.run.metadata.get("usage"):
        parts.append(_usage(result.run.metadata["usage"]))
    if result.folder:
        parts.append(Line(f"files: {result.folder}", wraps=False))
    return Sheet(parts=parts)


def _metrics(rows: Sequence[MetricRow]) -> Table:
    """One table; where it does not fit, one for each set of facets."""
    by_facets: dict[tuple[str, ...], list[MetricRow]] = {}
    for row in rows:
        by_facets.setdefault(tuple(row.get("facets", [])), []).append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    exact = (names, [[row.get(name) for name in names] for row in rows])
    return _table(rows)._replace(instead=[_table(part) for part in by_facets.values()], data=exact)


def _table(rows: Sequence[MetricRow]) -> Table:
    """Facets, label and metric on the left; value, interval and counts on the right. What all rows share is the
    title, so that the table fits a terminal."""
    facets = dict.fromkeys(facet for row in rows for facet in row.get("facets", []))
    left = {facet: facet.removeprefix("metadata.") for facet in facets}
    left |= {"label": "label", "metric_name": "metric"}
    shared = [key for key in left if len(rows) > 1 and len({_facet(row.get(key)) for row in rows}) == 1]
    keys = [key for key in left if key not in shared]
    numbers = [Column(name) for name in ("value", _level(rows), "items", "samples")]
    return Table(
        title=", ".join(f"{left[key]}: {_facet(rows[0].get(key))}" for key in shared),
        columns=[*(Column(left[key], text=True) for key in keys), *numbers, Column("failed", folds=True)],
        rows=[[*(_facet(row.get(key)) for key in keys), *_numbers(row)] for row in rows],
    )


def _facet(value: Any) -> str:
    return "–" if value is None else shortened(str(value), _LONGEST_FACET)


def _level(rows: Sequence[MetricRow]) -> str:
    levels = {row.get("ci_level") for row in rows} - {None}
    return f"{levels.pop():.0%} interval" if len(levels) == 1 else "interval"


def _numbers(row: MetricRow) -> list[str | Cell]:
    value, low, high = row.get("value"), row.get("ci_low"), row.get("ci_high")
    shown: str | Cell = Cell("null", "quiet")
    if value is not None:
        shown = f"{value:.4g}" if abs(value) >= 1000 else f"{value:.3f}"
    counts = [row.get(name) for name in ("total_item_count", "total_sample_count")]
    failures = [f"{row[name]:,} {word}" for name, word in _FAILURES.items() if row.get(name)]
    failed = Cell(", ".join(failures), "open") if failures else "0"  # 0 where every row has a verdict
    return [shown, span_text(low, high), *("–" if count is None else f"{count:,}" for count in counts), failed]


def _reasons(rows: Sequence[MetricRow]) -> list[str]:
    """Why values are null and what the rows warn of, each once."""
    fields = ((row, field) for row in rows for field in ("error", "reason", "warning"))
    return list(dict.fromkeys(f"{row.get('metric_name')}: {row[field]}" for row, field in fields if row.get(field)))


def _usage(usage: Mapping[str, Mapping[str, Any]]) -> Table:
    """A line for each model; a price that is unknown is never shown as 0."""
    rows: list[list[str | Cell]] = []
    for model, used in usage.items():
        errors = Cell(f"{used['errors']:,}", "open" if used["errors"] else "")
        tokens = (f"{used['prompt_tokens']:,}", f"{used['completion_tokens']:,}")
        answered = used["responses"] > used["errors"]
        cost = cost_text(used["cost"], used["unpriced"]) if answered else "–"
        rows.append([_facet(model), f"{used['responses']:,}", errors, *tokens, cost])
    columns = columns_of("<model", "responses", "errors", "tokens in", "tokens out", "cost")
    return Table(columns=columns, rows=rows)
