"""A comparison: a standing for each side, a verdict for each pair; or one table of all labels."""

from typing import Any

from assay.analysis.compare.across import Across, AcrossValue
from assay.analysis.compare.compare import Comparison, Pair, SideStanding
from assay.reports.sheet import Cell, Column, Line, Sheet, Style, Table, one_line, shortened

_STYLES: dict[str, Style] = {"better": "good", "worse": "bad", "equivalent": "alike", "inconclusive": "open"}
_LONGEST_ANSWER = 60
_BEST = "*"


def view(comparison: Comparison | Across) -> Sheet:
    return _across(comparison) if isinstance(comparison, Across) else _comparison(comparison)


def _comparison(comparison: Comparison) -> Sheet:
    interval = f"{comparison.level:.0%} interval"
    standings = Table(
        columns=[
            *(Column("rank"), Column("side", text=True), Column(comparison.metric), Column(interval)),
            *(Column("items"), Column("samples"), Column("failed", folds=True)),
        ],
        rows=[_standing(standing) for standing in comparison.standings],
    )
    names = [name for name in Pair.__struct_fields__ if name != "flips"]
    pairs = Table(
        columns=[
            *(Column("pair", text=True), Column("difference"), Column(interval), Column("p"), Column("could show")),
            *(Column("items"), Column("verdict", text=True)),
        ],
        rows=[_pair(pair) for pair in comparison.pairs],
        data=(names, [[getattr(pair, name) for name in names] for pair in comparison.pairs]),
    )
    lead = Line(f"label {comparison.label}, {_explained(comparison)}", "quiet")
    return Sheet(parts=[lead, standings, pairs, *_flip_lines(comparison)], notes=comparison.notes)


def _explained(comparison: Comparison) -> str:
    """What the columns of the pairs mean, with this comparison's numbers."""
    count = len(comparison.pairs)
    corrected = f"corrected for {count} pairs (Holm)" if count > 1 else "of one pair"
    margin = "" if comparison.margin is None else f"; equivalent: within ±{comparison.margin:g}"
    return f"p {corrected}; could show: the smallest difference found 4 times in 5{margin}"


def _standing(standing: SideStanding) -> list[str]:
    low, high = standing.ranks
    failed = ", ".join(f"{count:,} {name}" for name, count in standing.counts.items() if count and name != "skipped")
    bounds = (standing.ci_low, standing.ci_high)
    span = "–" if None in bounds else "–".join(f"{bound:.3f}" for bound in bounds)
    rank = f"{low}" if low == high else f"{low}–{high}"
    counts = (f"{standing.items:,}", f"{standing.samples:,}", failed or "0")
    return [rank, standing.name, f"{standing.value:.3f}", span, *counts]


def _pair(pair: Pair) -> list[str | Cell]:
    verdict: str = pair.verdict
    if verdict == "inconclusive":
        needed = pair.items_needed
        verdict += f", needs {needed:,} items" if needed else ", no difference seen"
    return [
        f"{pair.candidate} − {pair.baseline}",
        f"{pair.difference:+.3f}",
        f"{pair.ci_low:+.3f} … {pair.ci_high:+.3f}",
        f"{pair.p_corrected:.2g}" if pair.p_corrected >= 0.001 else "<0.001",
        f"{pair.smallest_difference:.3f}",
        f"{pair.items:,}",
        Cell(verdict, _STYLES[pair.verdict]),
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
    labels = [Column(f"{label}{' (less)' if label in table.lower else ''}") for label in table.labels]
    rows = [
        [
            name,
            *(f"{values[label].value:.3f}{_BEST if values[label].best else ''}" for label in table.labels),
            f"{max(value.items for value in values.values()):,}",
            f"{max(value.failed for value in values.values()):,}",
        ]
        for name, values in table.sides.items()
    ]
    fields = AcrossValue.__struct_fields__
    exact: list[list[Any]] = [
        [name, label, *(getattr(value, field) for field in fields)]
        for name, values in table.sides.items()
        for label, value in values.items()
    ]
    corrected = f"corrected for {table.tests} pairs (Holm)" if table.tests > 1 else "of one pair"
    lead = f"{table.metric}; {_BEST} differs from every other side, p {corrected} below {1 - table.level:.2g}"
    columns = [Column("side", text=True), *labels, Column("items"), Column("failed")]
    values = Table(columns=columns, rows=rows, data=(["side", "label", *fields], exact))
    return Sheet(parts=[Line(lead, "quiet"), values], notes=table.notes)
