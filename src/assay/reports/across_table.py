"""Several sides under several labels as one table: for the terminal, as Markdown, LaTeX and CSV."""

from rich.console import Console, Group, RenderableType
from rich.text import Text

from assay.analysis.compare.across import Across, Cell
from assay.reports.compare_table import fitting
from assay.reports.latex import escaped as latex_escaped
from assay.reports.latex import latex_table
from assay.reports.look import one_line
from assay.reports.markdown import escaped, markdown_table
from assay.reports.writers.csv import csv_lines
from assay.text.plain import plain

BEST = "*"


def across_cells(found: Across) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a column for each label, then the items and the failures of the label with most of them."""
    header = ["side", *(f"{one_line(label)}{' (less)' if label in found.lower else ''}" for label in found.labels)]
    rows = [
        [
            one_line(name),
            *(_shown(cells[label]) for label in found.labels),
            f"{max(cell.items for cell in cells.values()):,}",
            f"{max(cell.failed for cell in cells.values()):,}",
        ]
        for name, cells in found.sides.items()
    ]
    return [*header, "items", "failed"], rows


def explained(found: Across) -> str:
    """What the mark means."""
    corrected = f"corrected for {found.tests} pairs (Holm)" if found.tests > 1 else "of one pair"
    return f"{found.metric}; {BEST} differs from every other side, p {corrected} below {1 - found.level:.2g}"


def across_view(found: Across, console: Console) -> RenderableType:
    parts: list[RenderableType] = [Text(explained(found), style="dim")]
    parts += fitting(*across_cells(found), console, lambda row: "")
    parts += [Text(f"note: {plain(note)}", style="yellow") for note in found.notes]
    return Group(*parts)


def across_markdown(found: Across) -> str:
    notes = [f"- {escaped(f'note: {note}')}" for note in found.notes]
    parts = [escaped(explained(found)), markdown_table(*across_cells(found)), *(["\n".join(notes)] if notes else [])]
    return "\n\n".join(parts)


def across_latex(found: Across) -> str:
    return f"% {latex_escaped(explained(found))}\n{latex_table(*across_cells(found))}"


def across_csv(found: Across) -> str:
    """Unrounded, one line for each side and label."""
    columns = ["side", "label", *Cell.__struct_fields__]
    rows = (
        [name, label, *(getattr(cell, field) for field in Cell.__struct_fields__)]
        for name, cells in found.sides.items()
        for label, cell in cells.items()
    )
    return b"".join(csv_lines(columns, rows)).decode().removesuffix("\n")


def _shown(cell: Cell) -> str:
    return f"{cell.value:.3f}{BEST if cell.best else ''}"
