"""A gate's checks: what was measured, against which bound, and why each came out as it did."""

from assay.analysis.compare.gate import Check, Gated
from assay.reports.sheet import Cell, Line, Sheet, Style, Table, columns_of, failed_text, fields_of, one_line

_STYLES: dict[str, Style] = {"passed": "good", "failed": "bad", "inconclusive": "open"}


def view(gated: Gated) -> Sheet:
    columns = columns_of("<check", "<bound", "value", "interval", "items", "~failed rows", "<outcome")
    names = ["name", "bound", "threshold", "outcome", "why", "value", "low", "high", "items", "samples"]
    table = Table(columns=columns, rows=[_row(check) for check in gated.checks], data=fields_of(gated.checks, names))
    why = [Line(f"{_title(check)}: {check.outcome}: {check.why}", _STYLES[check.outcome]) for check in gated.checks]
    return Sheet(parts=[table, *why], title=f"assay gate: {gated.outcome}\n{one_line(gated.path)}")


def gate_text(gated: Gated) -> str:
    """A line for each check that did not pass."""
    lines = [
        one_line(f"{check.outcome}: {_title(check)}: {value_text(check)}: {check.why}")
        for check in gated.checks
        if check.outcome != "passed"
    ]
    return "\n".join(lines)


def bound_text(check: Check) -> str:
    if check.bound == "max_drop":
        return f"drop of at most {check.threshold:g}"
    if check.bound == "fresh":
        return f"not older than {check.threshold:g} days" if check.threshold else "there"
    return f"{'at least' if check.bound == 'min' else 'at most'} {check.threshold:g}"


def value_text(check: Check) -> str:
    """The value with its interval."""
    if check.value is None:
        return "no value"
    return _number(check, check.value) + (f" ({_span(check)})" if check.low is not None else "")


def _number(check: Check, value: float) -> str:
    """A difference carries its sign, an age its unit."""
    if check.bound == "fresh":
        return f"{value:.1f} days"
    return f"{value:+.3f}" if check.bound == "max_drop" else f"{value:.3f}"


def _span(check: Check) -> str:
    if check.low is None or check.high is None:
        return "–"
    return f"{_number(check, check.low)} … {_number(check, check.high)}"


def _title(check: Check) -> str:
    return one_line(f"{check.name}, {bound_text(check)}")


def _row(check: Check) -> list[str | Cell]:
    value = "–" if check.value is None else _number(check, check.value)
    outcome = Cell(check.outcome, _STYLES[check.outcome])
    return [check.name, bound_text(check), value, _span(check), f"{check.items:,}", failed_text(check.counts), outcome]
