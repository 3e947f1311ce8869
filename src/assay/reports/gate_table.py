"""A gate's checks as a table: for the terminal, and as Markdown for a CI's summary."""

from rich.console import Console, Group, RenderableType
from rich.text import Text

from assay.analysis.compare.gate import Check, Gated
from assay.reports.look import fits, plain_table
from assay.reports.markdown import escaped, markdown_table
from assay.text.plain import plain

STYLES = {"passed": "green", "failed": "red", "inconclusive": "yellow"}
_HEADER = ["check", "bound", "value", "interval", "items", "failed rows", "outcome"]


def gate_view(gated: Gated, console: Console) -> RenderableType:
    """The table where it fits, else a paragraph for each check; below it why each came out as it did."""
    table = plain_table(*_HEADER)
    for column in table.columns[2:6]:
        column.justify, column.no_wrap = "right", True
    for check in gated.checks:
        *cells, outcome = _cells(check)
        table.add_row(*(Text(cell) for cell in cells), Text(outcome, STYLES[check.outcome]))
    why = [
        Text(f"{_title(check)}: {check.outcome}: {plain(check.why)}", STYLES[check.outcome]) for check in gated.checks
    ]
    lines = [Text(f"{_title(check)}: {interval_text(check)}") for check in gated.checks]
    return Group(*([table] if fits(table, console) else lines), *why)


def gate_text(gated: Gated) -> str:
    """A line for each check that did not pass."""
    lines = [
        f"{check.outcome}: {_title(check)}: {interval_text(check)}: {plain(check.why)}"
        for check in gated.checks
        if check.outcome != "passed"
    ]
    return "\n".join(lines)


def gate_markdown(gated: Gated) -> str:
    """A headline, the table, and the reasons."""
    reasons = "\n".join(f"- {escaped(_title(check))}: {check.outcome}, {escaped(check.why)}" for check in gated.checks)
    table = markdown_table(_HEADER, [_cells(check) for check in gated.checks])
    return f"### assay gate: {gated.outcome}\n\n`{plain(gated.path)}`\n\n{table}\n\n{reasons}\n"


def bound_text(check: Check) -> str:
    if check.bound == "max_drop":
        return f"drop of at most {check.threshold:g}"
    if check.bound == "fresh":
        return f"not older than {check.threshold:g} days" if check.threshold else "there"
    return f"{'at least' if check.bound == 'min' else 'at most'} {check.threshold:g}"


def interval_text(check: Check) -> str:
    if check.value is None:
        return "no value"
    return number(check, check.value) + (f" ({_span(check)})" if check.low is not None else "")


def number(check: Check, value: float) -> str:
    """A difference carries its sign, an age its unit."""
    if check.bound == "fresh":
        return f"{value:.1f} days"
    return f"{value:+.3f}" if check.bound == "max_drop" else f"{value:.3f}"


def _span(check: Check) -> str:
    if check.low is None or check.high is None:
        return "–"
    return f"{number(check, check.low)} … {number(check, check.high)}"


def _title(check: Check) -> str:
    return plain(f"{check.name}, {bound_text(check)}").replace("\n", " ")


def _cells(check: Check) -> list[str]:
    failed = ", ".join(f"{count:,} {name}" for name, count in check.counts.items() if count and name != "skipped")
    value = "–" if check.value is None else number(check, check.value)
    name = plain(check.name).replace("\n", " ")
    return [name, bound_text(check), value, _span(check), f"{check.items:,}", failed or "0", check.outcome]
