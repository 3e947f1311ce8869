"""A comparison: a standing for each side, a verdict for each pair; or one table of all labels. A gate: its checks, what
was measured, against which bound, and why each came out as it did."""

import msgspec

from assay.analysis.compare.across import Across, AcrossValue
from assay.analysis.compare.compare import Comparison, Pair, SideStanding
from assay.analysis.compare.gate import Check, Gated
from assay.analysis.compare.reference import Agreement, Referenced
from assay.reports.sheet import (
    Cell,
    Column,
    Line,
    Row,
    Sheet,
    Style,
    Table,
    columns_of,
    failed_text,
    fields_of,
    figures,
    number_text,
    one_line,
    ranks_text,
    shorten,
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
_MOST_COLUMNS = 8  # labels: of more, each is a line


def compare_view(comparison: Comparison | Across) -> Sheet:
    return _across(comparison) if isinstance(comparison, Across) else _comparison(comparison)


def _comparison(comparison: Comparison) -> Sheet:
    interval = interval_text(comparison.level)
    metric = Column(comparison.metric)
    columns = ["rank", "<side", metric, interval, "?items", "?samples", "~failed"]
    partial = any(standing.partial for standing in comparison.standings)
    columns += ["<partial"] * partial
    rows = [[*_standing(each), *[each.partial] * partial] for each in comparison.standings]
    standings = Table(columns_of(*columns), rows)
    level = interval_text(comparison.pairs_level)
    columns = ["<pair", "difference", level, "p", "?could show", "?items", "<verdict"]
    data = fields_of(comparison.pairs, without="flips")
    pairs = Table(columns_of(*columns), [*map(_pair, comparison.pairs)], data=data)
    lower = " (lower is better)" if comparison.lower_is_better else ""
    lead = Line(f"label {comparison.label}{lower}, {_explanation(comparison)}", "quiet")
    return Sheet([lead, standings, pairs, *_flip_lines(comparison)], comparison.notes)


def interval_text(level: float) -> str:
    """Return a heading with as many digits of the level as tell it from 100 %."""
    return f"{100 - float(f'{100 - 100 * level:.2g}'):g}% interval"


def _explanation(comparison: Comparison) -> str:
    """Explain what the columns of the pairs mean, with this comparison's numbers."""
    count = len(comparison.pairs)
    tested = f"p{' and interval' * (count > 1)} {_correction(count, 'pair')}"
    found = "could show: the smallest difference found 4 times in 5"
    return f"{tested}; {found}{_margin_text(comparison.margin)}"


def _correction(tests: int, noun: str) -> str:
    """Return how p-values of so many tests are corrected."""
    return f"corrected for {tests} {noun}s (Holm)" if tests > 1 else f"of one {noun}"


def _margin_text(margin: float | None) -> str:
    return "" if margin is None else f"; equivalent: within ±{margin:g}"


def _standing(standing: SideStanding) -> Row:
    shown = figures(standing.value, standing.ci_low, standing.ci_high, standing.ci_method)
    counts = (f"{standing.items:,}", f"{standing.samples:,}", failed_text(standing.counts))
    return [ranks_text(standing.ranks), standing.name, *shown, *counts]


def _pair(pair: Pair) -> Row:
    return [
        f"{pair.candidate} − {pair.baseline}",
        *figures(pair.difference, pair.ci_low, pair.ci_high, pair.test, "+", " … "),
        p_text(pair.p_corrected),
        number_text(pair.smallest_difference),
        f"{pair.items:,}",
        verdict_cell(pair, "no difference seen"),
    ]


def p_text(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else "<0.001"


def verdict_cell(pair: Pair | Agreement, otherwise: str) -> Cell:
    """The word, and what would settle what is open; `otherwise` is said where no number of items
    would."""
    verdict: str = pair.verdict
    if verdict == "inconclusive":
        verdict += f", {pair.reason or items_text(pair.items_needed) or otherwise}"
    if verdict == "incomplete":
        verdict += "; --partial judges what there is"
    return Cell(verdict, _STYLES.get(pair.verdict, "open"))


def items_text(needed: tuple[int, int | None] | None) -> str:
    """Return how many items it needs, as far as that is known."""
    if needed is None:
        return ""
    fewest, most = needed
    if most is None:
        return f"needs {fewest:,} or more items"
    return f"needs {fewest:,} to {most:,} items"


def reference_view(result: Referenced) -> Sheet:
    """A line for each of our values and its published one, then what differs in how they were
    measured."""
    agreements, level = result.agreements, interval_text(result.level)
    names = ["<side", "<benchmark", "ours", "published", "difference", level]
    columns = columns_of(*names, "?p", "?could show", "<verdict")
    table = Table(columns, [*map(_agreement, agreements)], data=fields_of(agreements))
    corrected = _correction(len(agreements), "comparison")
    lead = f"difference: ours − published, p {corrected}{_margin_text(result.margin)}"
    settings = [
        Line(f"{each.side} {each.benchmark} {each.label}: {'; '.join(each.settings)}", "open")
        for each in agreements
        if each.settings
    ]
    return Sheet([Line(lead, "quiet"), table, *settings], result.notes)


def _agreement(agreement: Agreement) -> Row:
    return [
        agreement.side,
        f"{agreement.benchmark} {agreement.label}",
        number_text(agreement.value),
        number_text(agreement.reference_value),
        *figures(agreement.difference, agreement.low, agreement.high, "", "+", " … "),
        p_text(agreement.p_corrected),
        number_text(agreement.could_show),
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
    return "(no response stored)" if text is None else f'"{shorten(text, _LONGEST_ANSWER)}"'


def _across(table: Across) -> Sheet:
    """One table of all labels and sides, and which evidence is partial."""
    corrected = _correction(table.tests, "pair")
    lead = f"{table.metric}; {_BEST} differs from every other side, p {corrected} below {1 - table.level:.2g}"
    cells = [
        (name, label, cell)
        for name, values in table.sides.items()
        for label, cell in values.items()
    ]
    exact = [[name, label, *msgspec.structs.astuple(cell)] for name, label, cell in cells]
    data = (["side", "label", *AcrossValue.__struct_fields__], exact)
    body = _by_label(table)._replace(data=data)
    if len(table.labels) <= _MOST_COLUMNS:
        body = _by_side(table)._replace(data=data, narrower=[body])
    texts = {name: cell.partial for name, _, cell in cells if cell.partial}
    partial = [Line(f"partial: {name}: {text}", "open") for name, text in texts.items()]
    return Sheet([Line(lead, "quiet"), body, *partial], table.notes)


def _titles(table: Across) -> list[str]:
    return [f"{label}{' (less)' if label in table.lower else ''}" for label in table.labels]


def _by_side(table: Across) -> Table:
    """A line for each side, a column for each label, then the items and the failures of the label
    with most of them."""
    rows: list[Row] = []
    for name, values in table.sides.items():
        shown = [_across_cells(values.get(label))[0] for label in table.labels]
        most = zip(*((cell.items, cell.failed) for cell in values.values()), strict=True)
        rows.append([name, *shown, *([f"{max(each):,}" for each in most] or ["0", "0"])])
    labels = map(Column, _titles(table))
    return Table(columns_of("<side", *labels, "?items", "failed"), rows)


def _by_label(table: Across) -> Table:
    """A line for each label and side."""
    rows = [
        [title, name, *_across_cells(values.get(label))]
        for label, title in zip(table.labels, _titles(table), strict=True)
        for name, values in table.sides.items()
    ]
    names = ("<label", "<side", table.metric, interval_text(table.level), "?items", "failed")
    return Table(columns_of(*names), rows)


def _across_cells(cell: AcrossValue | None) -> Row:
    """Return the value, with a mark if it is the best, its interval, its items and failures."""
    if cell is None:
        return ["–"] * 4
    value = f"{number_text(cell.value)}{_BEST if cell.best else ''}"
    span = span_text(cell.ci_low, cell.ci_high)
    return [value, span, f"{cell.items:,}", f"{cell.failed:,}"]


def gate_view(gated: Gated) -> Sheet:
    columns = ["<check", "<bound", "value", "interval", "?items", "~failed rows", "<outcome"]
    names = ["name", "bound", "threshold", "outcome", "why", "value", "low", "high"]
    data = fields_of(gated.checks, [*names, "items", "samples", "partial"])
    table = Table(columns_of(*columns), [*map(_check, gated.checks)], data=data)
    why = [
        Line(f"{_check_title(check)}: {check.outcome}: {check.why}", _outcome_style(check))
        for check in gated.checks
    ]
    reasons = gated.reasons if gated.outcome != "passed" else ()
    why += [Line(f"errors: {reason}", "open") for reason in reasons]
    return Sheet([table, *why], title=f"assay gate: {gated.outcome}\n{one_line(gated.path)}")


def _outcome_style(check: Check) -> Style:
    return _OUTCOMES.get(check.outcome, "open")


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
    """The value with its interval, or with the bound that decided, and what it is made of."""
    value, span = _check_figures(check)
    weak = f", weak: {span.weak}" if span.weak else ""
    return f"{value} ({span.text}){weak}, {check.items:,} items".replace(" (–)", "")


def _check_figures(check: Check) -> tuple[str, Cell]:
    """Return value and interval; a difference carries its sign, an age its unit."""
    if check.value is None:
        return "no value", Cell("–")
    if check.bound == "fresh":
        return f"{check.value:.1f} days", Cell("–")
    ends = (check.low, check.high)
    decided = getattr(check, "bound_used", None)
    if decided is not None:  # a check fails by the end by which it cannot pass
        upper = (check.bound == "max" or check.lower_is_better) is not (check.outcome == "failed")
        ends = (None, decided) if upper else (decided, None)
    sign = "+" if check.bound == "max_drop" else ""
    return figures(check.value, *ends, check.ci_method, sign, " … ")


def _check_title(check: Check) -> str:
    return one_line(f"{check.name}, {bound_text(check)}")


def _check(check: Check) -> Row:
    shown = check.name, bound_text(check), *_check_figures(check), f"{check.items:,}"
    return [*shown, failed_text(check.counts), Cell(check.outcome, _outcome_style(check))]
