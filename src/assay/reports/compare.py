"""A comparison: a standing for each side, a verdict for each pair; or one table of all labels. A gate: its checks, what
was measured, against which bound, and why each came out as it did."""

from typing import Any

import msgspec

from assay.analysis.compare.across import Across, AcrossValue
from assay.analysis.compare.compare import Comparison, Pair, SideStanding
from assay.analysis.compare.gate import Check, Gated
from assay.analysis.compare.reference import Agreement, Referenced
from assay.reports.sheet import (
    Cell,
    Column,
    Line,
    Sheet,
    Style,
    Table,
    columns_of,
    failed_text,
    fields_of,
    one_line,
    ranks_text,
    shortened,
    span_text,
)

_STYLES: dict[str, Style] = {
    "better": "good",
    "worse": "bad",
    "equivalent": "alike",
    "agrees": "alike",
}
_OUTCOMES: dict[str, Style] = {"passed": "good", "failed": "bad"}
_LONGEST_ANSWER = 60
_BEST = "*"


def compare_view(comparison: Comparison | Across) -> Sheet:
    return _across(comparison) if isinstance(comparison, Across) else _comparison(comparison)


def _comparison(comparison: Comparison) -> Sheet:
    interval = f"{comparison.level:.0%} interval"
    columns = [
        "rank",
        "<side",
        Column(comparison.metric),
        interval,
        "?items",
        "?samples",
        "~failed",
    ]
    rows = [_standing(standing) for standing in comparison.standings]
    if any(standing.partial for standing in comparison.standings):
        columns.append("<partial")
        rows = [
            [*row, standing.partial]
            for row, standing in zip(rows, comparison.standings, strict=True)
        ]
    standings = Table(columns=columns_of(*columns), rows=rows)
    pairs = Table(
        columns=columns_of(
            "<pair", "difference", interval, "p", "?could show", "?items", "<verdict"
        ),
        rows=[_pair(pair) for pair in comparison.pairs],
        data=fields_of(
            comparison.pairs, [name for name in Pair.__struct_fields__ if name != "flips"]
        ),
    )
    lower = " (lower is better)" if comparison.lower_is_better else ""
    lead = Line(f"label {comparison.label}{lower}, {_explained(comparison)}", "quiet")
    return Sheet(parts=[lead, standings, pairs, *_flip_lines(comparison)], notes=comparison.notes)


def _explained(comparison: Comparison) -> str:
    """What the columns of the pairs mean, with this comparison's numbers."""
    count = len(comparison.pairs)
    corrected = f"corrected for {count} pairs (Holm)" if count > 1 else "of one pair"
    margin = "" if comparison.margin is None else f"; equivalent: within ±{comparison.margin:g}"
    return f"p {corrected}; could show: the smallest difference found 4 times in 5{margin}"


def _standing(standing: SideStanding) -> list[str]:
    span = span_text(standing.ci_low, standing.ci_high)
    counts = (f"{standing.items:,}", f"{standing.samples:,}", failed_text(standing.counts))
    return [ranks_text(standing.ranks), standing.name, f"{standing.value:.3f}", span, *counts]


def _pair(pair: Pair) -> list[str | Cell]:
    return [
        f"{pair.candidate} − {pair.baseline}",
        f"{pair.difference:+.3f}",
        span_text(pair.ci_low, pair.ci_high, "+.3f", " … "),
        p_text(pair.p_corrected),
        f"{pair.smallest_difference:.3f}",
        f"{pair.items:,}",
        verdict_cell(pair, "no difference seen"),
    ]


def p_text(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else "<0.001"


def verdict_cell(pair: Pair | Agreement, otherwise: str) -> Cell:
    """The word, and what would settle what is open; `otherwise` is said where no number of items would."""
    verdict: str = pair.verdict
    if verdict == "inconclusive":
        verdict += f", needs {pair.items_needed:,} items" if pair.items_needed else f", {otherwise}"
    if verdict == "incomplete":
        verdict += "; --partial judges what there is"
    return Cell(verdict, _STYLES.get(pair.verdict, "open"))


def reference_view(result: Referenced) -> Sheet:
    """A line for each of our values and its published one, then what differs in how they were measured."""
    names = [
        "<side",
        "<benchmark",
        "ours",
        "published",
        "difference",
        f"{result.level:.0%} interval",
    ]
    columns = columns_of(*names, "?p", "?could show", "<verdict")
    rows = [_agreement(agreement) for agreement in result.agreements]
    data = fields_of(result.agreements, list(Agreement.__struct_fields__))
    count = len(result.agreements)
    corrected = f"corrected for {count} comparisons (Holm)" if count > 1 else "of one comparison"
    margin = "" if result.margin is None else f"; equivalent: within ±{result.margin:g}"
    lead = f"difference: ours − published, p {corrected}{margin}"
    settings = [
        Line(
            f"{agreement.side} {agreement.benchmark} {agreement.label}: {'; '.join(agreement.settings)}",
            "open",
        )
        for agreement in result.agreements
        if agreement.settings
    ]
    return Sheet(
        parts=[Line(lead, "quiet"), Table(columns=columns, rows=rows, data=data), *settings],
        notes=result.notes,
    )


def _agreement(agreement: Agreement) -> list[str | Cell]:
    return [
        agreement.side,
        f"{agreement.benchmark} {agreement.label}",
        f"{agreement.value:.3f}",
        f"{agreement.reference_value:.3f}",
        f"{agreement.difference:+.3f}",
        span_text(agreement.low, agreement.high, "+.3f", " … "),
        p_text(agreement.p_corrected),
        f"{agreement.could_show:.3f}",
        verdict_cell(agreement, "the published score is too uncertain"),
    ]


def _flip_lines(comparison: Comparison) -> list[Line]:
    """The changed items of each pair, with both answers."""
    lines: list[Line] = []
    for pair in comparison.pairs:
        if not pair.flips:
            continue
        changes = f"gained {pair.gained:,} items and lost {pair.lost:,} against {pair.baseline}:"
        lines.append(Line(f"{pair.candidate} {changes}"))
        for flip in pair.flips:
            values = f"{flip.baseline:.2g} → {flip.candidate:.2g}"
            answers = f"{_answer(flip.baseline_answer)} → {_answer(flip.candidate_answer)}"
            lines.append(Line(f"{one_line(flip.item_id)}: {values}: {answers}", depth=1))
    return lines


def _answer(text: str | None) -> str:
    return "(no response stored)" if text is None else f'"{shortened(text, _LONGEST_ANSWER)}"'


def _across(table: Across) -> Sheet:
    """A line for each side, a column for each label, then the items and the failures of the label with most of them."""
    labels = [
        Column(f"{label}{' (less)' if label in table.lower else ''}") for label in table.labels
    ]
    rows: list[list[str]] = []
    exact: list[list[Any]] = []
    for name, values in table.sides.items():
        shown = [
            f"{values[label].value:.3f}{_BEST if values[label].best else ''}"
            for label in table.labels
        ]
        most = [
            max(value.items for value in values.values()),
            max(value.failed for value in values.values()),
        ]
        rows.append([name, *shown, *(f"{number:,}" for number in most)])
        exact += [[name, label, *msgspec.structs.astuple(value)] for label, value in values.items()]
    corrected = f"corrected for {table.tests} pairs (Holm)" if table.tests > 1 else "of one pair"
    lead = f"{table.metric}; {_BEST} differs from every other side, p {corrected} below {1 - table.level:.2g}"
    names = ["side", "label", *AcrossValue.__struct_fields__]
    cells = Table(
        columns=columns_of("<side", *labels, "?items", "failed"), rows=rows, data=(names, exact)
    )
    texts = {
        name: value.partial
        for name, values in table.sides.items()
        for value in values.values()
        if value.partial
    }
    partial = [Line(f"partial: {name}: {text}", "open") for name, text in texts.items()]
    return Sheet(parts=[Line(lead, "quiet"), cells, *partial], notes=table.notes)


def gate_view(gated: Gated) -> Sheet:
    columns = columns_of(
        "<check", "<bound", "value", "interval", "?items", "~failed rows", "<outcome"
    )
    names = [
        "name",
        "bound",
        "threshold",
        "outcome",
        "why",
        "value",
        "low",
        "high",
        "items",
        "samples",
        "partial",
    ]
    table = Table(
        columns=columns,
        rows=[_check(check) for check in gated.checks],
        data=fields_of(gated.checks, names),
    )
    why = [
        Line(
            f"{_check_title(check)}: {check.outcome}: {check.why}",
            _OUTCOMES.get(check.outcome, "open"),
        )
        for check in gated.checks
    ]
    why += [
        Line(f"errors: {reason}", "open") for reason in gated.reasons if gated.outcome != "passed"
    ]
    return Sheet(parts=[table, *why], title=f"assay gate: {gated.outcome}\n{one_line(gated.path)}")


def gate_text(gated: Gated) -> str:
    """A line for each check that did not pass."""
    lines = [
        one_line(f"{check.outcome}: {_check_title(check)}: {value_text(check)}: {check.why}")
        for check in gated.checks
        if check.outcome != "passed"
    ]
    return "\n".join(lines)


def bound_text(check: Check) -> str:
    if check.bound == "max_drop":
        return f"{'rise' if check.lower_is_better else 'drop'} of at most {check.threshold:g}"
    if check.bound == "fresh":
        return f"not older than {check.threshold:g} days" if check.threshold else "there"
    return f"{'at least' if check.bound == 'min' else 'at most'} {check.threshold:g}"


def value_text(check: Check) -> str:
    """The value with its interval."""
    if check.value is None:
        return "no value"
    return _check_number(check, check.value) + (
        f" ({_check_span(check)})" if check.low is not None else ""
    )


def _check_number(check: Check, value: float) -> str:
    """A difference carries its sign, an age its unit."""
    if check.bound == "fresh":
        return f"{value:.1f} days"
    return f"{value:+.3f}" if check.bound == "max_drop" else f"{value:.3f}"


def _check_span(check: Check) -> str:
    if check.low is None or check.high is None:
        return "–"
    return f"{_check_number(check, check.low)} … {_check_number(check, check.high)}"


def _check_title(check: Check) -> str:
    return one_line(f"{check.name}, {bound_text(check)}")


def _check(check: Check) -> list[str | Cell]:
    value = "–" if check.value is None else _check_number(check, check.value)
    outcome = Cell(check.outcome, _OUTCOMES.get(check.outcome, "open"))
    return [
        check.name,
        bound_text(check),
        value,
        _check_span(check),
        f"{check.items:,}",
        failed_text(check.counts),
        outcome,
    ]
