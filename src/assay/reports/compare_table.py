"""A comparison as tables: for the terminal, as Markdown, as LaTeX."""

from collections.abc import Callable, Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from assay.analysis.compare.compare import Comparison, Pair, Standing
from assay.reports.latex import escaped as latex_escaped
from assay.reports.latex import latex_table
from assay.reports.look import fits, one_line, plain_table
from assay.reports.markdown import escaped, markdown_table
from assay.text.plain import plain

STYLES = {"better": "green", "worse": "red", "equivalent": "cyan", "inconclusive": "yellow"}
LONGEST_ANSWER = 60
Rows = list[list[str]]


def standing_cells(found: Comparison) -> tuple[list[str], Rows]:
    """Header and rows of the ordered table."""
    header = ["rank", "side", found.metric, f"{found.level:.0%} interval", "items", "samples", "failed"]
    return header, [_standing(one) for one in found.standings]


def pair_cells(found: Comparison) -> tuple[list[str], Rows]:
    """Header and rows of the pairs."""
    header = ["pair", "difference", f"{found.level:.0%} interval", "p", "could show", "items", "verdict"]
    return header, [_pair(pair) for pair in found.pairs]


def compare_view(found: Comparison, console: Console) -> RenderableType:
    """What a terminal shows; where a table does not fit, a line for each of its rows."""
    parts: list[RenderableType] = [Text(f"label {plain(found.label)}, {explained(found)}", style="dim")]
    parts += fitting(*standing_cells(found), console, lambda row: "")
    parts += fitting(*pair_cells(found), console, lambda row: STYLES[row[-1].split(",")[0]])
    parts += [Text(line) for line in flip_lines(found)]
    parts += [Text(f"note: {plain(note)}", style="yellow") for note in found.notes]
    return Group(*parts)


def compare_markdown(found: Comparison) -> str:
    notes = [f"- {escaped(line.strip())}" for line in [*flip_lines(found), *(f"note: {note}" for note in found.notes)]]
    parts = [escaped(f"label {found.label}, {explained(found)}"), markdown_table(*standing_cells(found))]
    return "\n\n".join([*parts, markdown_table(*pair_cells(found)), *(["\n".join(notes)] if notes else [])])


def compare_latex(found: Comparison) -> str:
    comment = latex_escaped(f"label {found.label}, {explained(found)}")
    return f"% {comment}\n{latex_table(*standing_cells(found))}\n\n{latex_table(*pair_cells(found))}"


def explained(found: Comparison) -> str:
    """What the columns of the pairs mean, with this comparison's own numbers."""
    count = len(found.pairs)
    corrected = f"corrected for {count} pairs (Holm)" if count > 1 else "of one pair"
    margin = "" if found.margin is None else f"; equivalent: within ±{found.margin:g}"
    return f"p {corrected}; could show: the smallest difference found 4 times in 5{margin}"


def flip_lines(found: Comparison) -> list[str]:
    """The changed items of each pair, with both answers."""
    lines: list[str] = []
    for pair in found.pairs:
        if not pair.flips:
            continue
        lines.append(
            plain(f"{pair.candidate} gained {pair.gained:,} items and lost {pair.lost:,} against {pair.baseline}:")
        )
        for flip in pair.flips:
            was, now = _answer(flip.baseline_answer), _answer(flip.candidate_answer)
            values = f"{flip.baseline:.2g} → {flip.candidate:.2g}"
            lines.append(f"  {one_line(flip.item_id)}: {values}: {was} → {now}")
    return lines


def fitting(header: list[str], rows: Rows, console: Console, style: Callable[[list[str]], str]) -> list[RenderableType]:
    """A table, or where it does not fit a line for each of its rows; `style` is that of a row's last cell."""
    table = plain_table()
    for name in header:
        words = name in ("side", "pair", "verdict")
        table.add_column(name, justify="left" if words else "right", no_wrap=not words, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row[:-1]), Text(row[-1], style(row)))
    if fits(table, console):
        return [table]
    return [Text(", ".join(_named(header, row)), style(row)) for row in rows]


def _named(header: Sequence[str], row: Sequence[str]) -> list[str]:
    return [
        cell if name in ("side", "pair", "verdict") else f"{name} {cell}"
        for name, cell in zip(header, row, strict=True)
    ]


def _standing(one: Standing) -> list[str]:
    low, high = one.ranks
    failed = ", ".join(f"{count:,} {name}" for name, count in one.counts.items() if count and name != "skipped")
    span = "–" if one.ci_low is None or one.ci_high is None else f"{one.ci_low:.3f}–{one.ci_high:.3f}"
    rank = f"{low}" if low == high else f"{low}–{high}"
    return [rank, one_line(one.name), f"{one.value:.3f}", span, f"{one.items:,}", f"{one.samples:,}", failed or "0"]


def _pair(pair: Pair) -> list[str]:
    verdict = pair.verdict
    if verdict == "inconclusive":
        needed = pair.items_needed
        verdict += f", needs {needed:,} items" if needed else ", no difference seen"
    return [
        f"{one_line(pair.candidate)} − {one_line(pair.baseline)}",
        f"{pair.difference:+.3f}",
        f"{pair.ci_low:+.3f} … {pair.ci_high:+.3f}",
        f"{pair.p_corrected:.2g}" if pair.p_corrected >= 0.001 else "<0.001",
        f"{pair.smallest_difference:.3f}",
        f"{pair.items:,}",
        verdict,
    ]


def _answer(text: str | None) -> str:
    if text is None:
        return "(no response stored)"
    shown = one_line(text)
    return f'"{shown if len(shown) <= LONGEST_ANSWER else shown[: LONGEST_ANSWER - 1] + "…"}"'
