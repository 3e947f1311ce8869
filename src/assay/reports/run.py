"""What a run would cost, and what it came to: metrics with their intervals, what is missing, what was used."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

import msgspec

from assay.config.providers import table
from assay.engine.aggregate.measure import cluster_lines
from assay.engine.calls.failures import Failures
from assay.engine.calls.usage import CALLS, USAGE
from assay.engine.experiment.experiment import Result
from assay.engine.experiment.plan import CallPlan, Plan
from assay.engine.run.evidence import PARTIAL
from assay.records import JsonMapping, MetricRow, values_by_key
from assay.reports.sheet import (
    Cell,
    Column,
    Line,
    Parts,
    Row,
    Sheet,
    Table,
    averaged_over,
    columns_of,
    cost_text,
    counts_text,
    facts_table,
    failed_text,
    figures,
    one_line,
    passed_text,
    shorten,
    span_text,
    text_of,
)
from assay.text.plain import plain

_LONGEST_FACET = 40
_LONGEST_REASON = 300
_MOST_REASONS = 3
_FAILURES = ("errored", "unparsed", "refused", "skipped")


def result_view(result: Result) -> Sheet:
    return Sheet([*_parts(result)])


def _parts(result: Result) -> Parts:
    if result.metrics:
        yield metrics_table(result.metrics)
        partial = dict.fromkeys(row[PARTIAL] for row in result.metrics if row.get(PARTIAL))
        # more than the table says
        yield from (Line(f"partial: {text}", "open") for text in partial if ";" in text)
        yield from map(Line, cluster_lines(result.metrics))
        yield from (Line(f"note: {reason}", "open") for reason in _reasons(result))
    else:
        for name, manifest in (("responses", result.run), ("evaluations", result.evaluation)):
            if manifest is not None:
                yield Line(f"{name}: {counts_text(manifest.counts, '')}")
    if used := _usage_by_model(result):
        yield _usage(used)
    yield from failure_lines(result.failures, result.folder)
    if result.folder:
        yield Line(f"files: {result.folder}", wraps=False)


def metrics_table(rows: Sequence[MetricRow]) -> Table:
    """One table; where it does not fit, one for each set of facets."""
    by_facets = values_by_key((str(row.get("facets", [])), row) for row in rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    exact = (names, [list(map(row.get, names)) for row in rows])
    parts = [_table(part)._replace(narrower=_side_by_side(part)) for part in by_facets.values()]
    return _table(rows)._replace(instead=parts, data=exact)


def _table(rows: Sequence[MetricRow]) -> Table:
    """Facets, label and metric on the left; value, interval and counts on the right."""
    return _with_names(rows, ("label", "metric_name"), _numbers(rows))


def _side_by_side(rows: Sequence[MetricRow]) -> list[Table]:
    """Return a table with a column for each metric, where there are several and a group has each
    once."""
    groups = _groups(rows)
    metrics = dict.fromkeys(row["metric_name"] for row in rows)
    if len(metrics) < 2 or len(rows) > sum(map(len, groups)):
        return []
    numbers: dict[str, Row] = {}
    for name in metrics:
        numbers[f"<{name}"] = [_brief(group.get(name)) for group in groups]
    shared: list[str] = []
    for name, texts in _shared_counts(groups):
        if len(set(texts)) == 1:
            shared.append(f"{name.lstrip('~?')}: {texts[0]}")
        else:
            numbers[name] = texts
    table = _with_names([next(iter(group.values())) for group in groups], ("label",), numbers)
    return [table._replace(title=", ".join(filter(None, [table.title, *shared])))]


def _groups(rows: Sequence[MetricRow]) -> list[dict[str, MetricRow]]:
    """Return the rows that share their facets and label, by metric."""
    groups: dict[str, dict[str, MetricRow]] = {}
    for row in rows:
        key = str([row.get(name) for name in (*row.get("facets", []), "label")])
        groups.setdefault(key, {})[row["metric_name"]] = row
    return list(groups.values())


def _shared_counts(
    groups: Sequence[Mapping[str, MetricRow]],
) -> Iterator[tuple[str, list[str]]]:
    """Yield the columns of counts, with all that the metrics of each group have."""
    own = [_numbers([*group.values()]) for group in groups]
    for name in dict.fromkeys(name for each in own for name in [*each][2:]):
        yield name, [_distinct(each.get(name, ())) for each in own]


def _distinct(cells: Iterable[str | Cell]) -> str:
    return ", ".join(dict.fromkeys(filter(None, map(text_of, cells))))


def _brief(row: MetricRow | None) -> Cell:
    """The value with its interval."""
    if row is None:
        return Cell("–")
    shown, span = figures(row["value"], row["ci_low"], row["ci_high"], str(row["ci_method"]))
    return Cell(f"{shown} {span.text}".removesuffix(" –"), weak=span.weak)


def _with_names(
    rows: Sequence[MetricRow], more: Sequence[str], numbers: Mapping[str, Row]
) -> Table:
    """Facets on the left of numbers. What all rows share is the title, so that the table fits a
    terminal."""
    shared: list[str] = []
    columns: list[Column] = []
    cells: list[Row] = []
    for name, texts in _names(rows, more):
        if len(rows) > 1 and len(set(texts)) == 1:
            shared.append(f"{name}: {texts[0]}")
        else:
            columns.append(Column(name, text=True))
            cells.append(texts)
    return Table(
        title=", ".join(shared),
        columns=[*columns, *columns_of(*numbers)],
        rows=[*zip(*cells, *numbers.values(), strict=True)],
    )


def _names(rows: Sequence[MetricRow], more: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the columns on the left: facets, what there is `more`, and why rows are partial."""
    facets = (facet for row in rows for facet in row.get("facets", []))
    for key in dict.fromkeys([*facets, *more]):
        name = "metric" if key == "metric_name" else key.removeprefix("metadata.")
        yield name, _facets([row.get(key) for row in rows])
    partial = [str(row.get(PARTIAL) or "").partition(";")[0] for row in rows]
    if any(partial):
        yield PARTIAL, partial


def _facets(values: Sequence[Any]) -> list[str]:
    """Values of a facet, cut to a readable length unless that makes two of them alike."""
    whole = ["–" if value is None else one_line(str(value)) for value in values]
    cut = [shorten(text, _LONGEST_FACET) for text in whole]
    return cut if len(set(cut)) == len(set(whole)) else whole


def _level(rows: Sequence[MetricRow]) -> str:
    levels = {row.get("ci_level") for row in rows} - {None}
    return f"{levels.pop():.0%} interval" if len(levels) == 1 else "interval"


def _numbers(rows: Sequence[MetricRow]) -> dict[str, Row]:
    """Return the columns of numbers that have any."""
    names = ["value", _level(rows), "?passed", "~if missing", "?items", "samples", "~failed"]
    cells = zip(names, zip(*map(_row_numbers, rows), strict=True), strict=True)
    return {name: texts for name, texts in cells if any(map(text_of, texts))}


def _row_numbers(row: MetricRow) -> Row:
    value, low, high = map(row.get, ("value", "ci_low", "ci_high"))
    shown, span = figures(value, low, high, str(row.get("ci_method")))
    items = row.get("total_item_count")
    total = row.get("total_sample_count") or 0
    planned = max(row.get("planned_sample_count") or 0, total)
    used = row.get("used_sample_count", planned)
    failed = failed_text({name: row.get(f"{name}_count") or 0 for name in _FAILURES})
    return [
        Cell("null", "quiet") if value is None else shown,
        span,
        row.get("passed") or passed_text(row),
        _if_missing(row),
        "–" if items is None else f"{items:,}",
        f"{total:,}" if used == planned else f"{used:,}/{planned:,}",
        failed if failed == "0" else Cell(failed, "open"),
    ]


def _if_missing(row: MetricRow) -> str:
    wrong, right = map(row.get, ("value_if_missing_wrong", "value_if_missing_right"))
    return "" if wrong == right else span_text(wrong, right, " … ")


def _reasons(result: Result) -> Iterable[str]:
    """Over what values are averages, why they are null and what the rows warn of, each once."""
    rows = result.metrics
    fields = ((row, field) for row in rows for field in ("error", "reason", "warning"))
    told = (f"{row.get('metric_name')}: {row[field]}" for row, field in fields if row.get(field))
    pooled = averaged_over((row.get("facets", []) for row in rows), result.run)
    return dict.fromkeys([*pooled, *told])


def failure_lines(failures: Sequence[Failures], folder: str) -> Iterator[Line]:
    """The commonest reasons of errors, with an item to look at."""
    reasons = [(each, reason) for each in failures for reason in each.reasons]
    reasons.sort(key=lambda entry: -entry[1].count)
    for each, reason in reasons[:_MOST_REASONS]:
        share = f"{reason.count:,} of {each.rows:,} rows of {each.of}"
        yield Line(f"errors: {share}: {shorten(plain(reason.error), _LONGEST_REASON)}", "open")
        if folder:
            command = f"  assay trace {quote(folder)} {quote(plain(reason.item_id))}"
            yield Line(command, wraps=False)
    if (further := len(reasons) - _MOST_REASONS) > 0:
        text = f"{further} more reasons are in {folder or 'its'}/manifest.json"
        yield Line(text, wraps=False)


def _usage_by_model(result: Result) -> dict[str, JsonMapping]:
    """Return what responses used by model, then what the calls inside of tasks and scorers used."""
    used: dict[str, JsonMapping] = {}
    for manifest in filter(None, (result.run, result.evaluation)):
        if manifest is result.run:
            used |= manifest.metadata.get(USAGE, {})
        for owner, models in manifest.metadata.get(CALLS, {}).items():
            used |= {f"{model} for {owner}": usage for model, usage in models.items()}
    return used


def _usage(usage: Mapping[str, JsonMapping]) -> Table:
    """A line for each model; a price that is unknown is never shown as 0."""
    rows: list[Row] = []
    for model, used in usage.items():
        errors = Cell(f"{used['errors']:,}", "open" if used["errors"] else "")
        tokens = (f"{used['prompt_tokens']:,}", f"{used['completion_tokens']:,}")
        answered = used["responses"] > used["errors"]
        cost = cost_text(used["cost"], used["unpriced"]) if answered else "–"
        rows.append([model, f"{used['responses']:,}", errors, *tokens, cost])
    columns = columns_of("<model", "responses", "errors", "tokens in", "tokens out", "cost")
    return Table(columns, rows)


def plan_view(plan: Plan) -> Sheet:
    rows = [
        ["planned", f"{plan.planned:,}", "cells of the config"],
        ["selected", f"{plan.selected:,}", "by --limit, --model, --num-samples"],
        ["present", f"{plan.present:,}", "have their rows"],
        ["to run", f"{plan.missing:,}", _tokens(plan)],
        ["cost", "unknown" if plan.usd is None else cost_text(plan.usd, 0), _price_note(plan)],
        ["time", _time(plan.seconds), _time_note(plan)],
    ]
    more = [
        ("  again", plan.retried, "of them because they failed"),
        ("set aside", plan.stale, "rows that the plan no longer has"),
        ("brought back", plan.returning, "rows that had been set aside"),
    ]
    rows += [[what, f"{number:,}", meaning] for what, number, meaning in more if number]
    tasks = [[f"{task.cells:,} cells", task.name] for task in plan.tasks]
    title = f"{plan.items} items × {len(plan.tasks)} tasks × {plan.samples} samples"
    exact = msgspec.structs.asdict(plan)
    del exact["tasks"], exact["calls"]
    data = ["what", "value"], [*map(list, exact.items())]
    facts = facts_table(["<what", "number", "<meaning"], rows, depth=1, data=data)
    cells = facts_table(["cells", "<task"], tasks, depth=1)
    calls = [Line(_call(call), depth=1) for call in plan.calls]
    warnings = [Line(f"warning: {warning}", "open") for warning in plan.warnings]
    folder = Line(f"folder: {plan.folder}", wraps=False)
    return Sheet([Line(title), folder, facts, cells, *calls, *warnings])


def _call(call: CallPlan) -> str:
    if call.calls is None:
        return f"{call.owner} asks models by itself: no earlier run tells how often"
    return f"{call.calls:,} calls to {call.model} for {call.owner}, {_tokens(call)}"


def _tokens(of: Plan | CallPlan) -> str:
    return f"about {of.prompt_tokens:,} + {of.answer_tokens:,} tokens"


def _price_note(plan: Plan) -> str:
    if plan.usd is None:
        return "a price is missing: add `price:` to the model"
    return f"list prices are of {table().as_of}; a config's own win" if plan.usd else ""


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return f"{seconds:,.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"


def _time_note(plan: Plan) -> str:
    if plan.seconds is None:
        return "no earlier run tells the rate"
    return "at the last run's rate and the limits per minute"
