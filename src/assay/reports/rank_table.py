"""A ranking as tables: for the terminal, and as JSON, CSV, Markdown or LaTeX by the name of a file."""

from collections.abc import Callable
from pathlib import Path

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay.analysis.rank.rank import Ranking, Standing
from assay.errors import UserError
from assay.reports.latex import escaped as latex_escaped
from assay.reports.latex import latex_table
from assay.reports.look import fits, one_line, plain_table
from assay.reports.markdown import escaped, markdown_table
from assay.reports.writers.csv import csv_lines
from assay.store.files import write_file
from assay.text.plain import plain

Rows = list[list[str]]


def rank_view(found: Ranking, console: Console) -> RenderableType:
    """What a terminal shows: the standings, if need be a line for each, and the win matrix if it fits."""
    header, rows = standing_cells(found)
    standings = _table(header, rows)
    parts: list[RenderableType] = [Text(plain(explained(found)), style="dim")]
    parts += [standings] if fits(standings, console, folded=False) else [Text(_line(header, row)) for row in rows]
    matrix = _table(*matrix_cells(found))
    if fits(matrix, console, folded=False):
        parts += [Text("wins of the row against the column (and ties)", style="dim"), matrix]
    parts += [Text(f"note: {plain(note)}", style="yellow") for note in found.notes]
    return Group(*parts)


def standing_cells(found: Ranking) -> tuple[list[str], Rows]:
    """Header and rows of the standings."""
    value = "win rate" if found.method == "win-rate" else "rating"
    header = ["rank", "player", value, f"{found.level:.0%} interval", "win rate", "matches", "won/tied/lost", "failed"]
    rows = [_standing(one, found) for one in found.standings]
    if value == "win rate":
        return header[:4] + header[5:], [row[:4] + row[5:] for row in rows]
    return header, rows


def matrix_cells(found: Ranking) -> tuple[list[str], Rows]:
    """Header and rows of the win matrix, players in the order of the standings."""
    names = [one_line(name) for name in found.win_matrix.players]
    rows: Rows = []
    for at, name in enumerate(names):
        both = list(zip(found.win_matrix.wins[at], found.win_matrix.ties[at], strict=True))
        rows.append([name, *("–" if at == number else _met(*cell) for number, cell in enumerate(both))])
    return ["", *names], rows


def explained(found: Ranking) -> str:
    """Where the numbers come from, in one line."""
    parts = [f"label {found.label}", f"{found.method} over {_count(found.matches, 'match', 'matches')}"]
    parts[-1] += f" of {_count(found.items, 'item')}"
    if found.disagreements:
        parts.append(f"{_count(found.disagreements, 'tie')} because the seats disagree")
    if found.one_sided:
        parts.append(f"{_count(found.one_sided, 'tie')} because only one order has a verdict")
    if found.unread:
        parts.append(f"{_count(found.unread, 'pair')} without a verdict")
    if found.ci_method.startswith("none: "):
        parts.append(f"no interval: {found.ci_method.removeprefix('none: ')}")
    return "; ".join(parts)


# ---- files


def write_ranking(found: Ranking, path: Path) -> None:
    """Write it in the format that the file's name asks for."""
    write_file(path, writer_of(path)(found))


def writer_of(path: Path) -> Callable[[Ranking], bytes]:
    """How a file of this name is written."""
    if path.suffix not in WRITERS:
        raise UserError(f"a ranking cannot be written as {path.name!r}", fix=f"name it {', '.join(WRITERS)}")
    return WRITERS[path.suffix]


def _json(found: Ranking) -> bytes:
    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


def _csv(found: Ranking) -> bytes:
    rows = [msgspec.structs.asdict(one) for one in found.standings]
    for row in rows:
        row["rank_low"], row["rank_high"] = row.pop("ranks")
    return b"".join(csv_lines(list(rows[0]), (list(row.values()) for row in rows)))


def rank_markdown(found: Ranking) -> str:
    notes = [f"- {escaped(f'note: {note}')}" for note in found.notes]
    tables = [markdown_table(*standing_cells(found)), markdown_table(*matrix_cells(found))]
    return "\n\n".join([escaped(explained(found)), *tables, *(["\n".join(notes)] if notes else [])]) + "\n"


def rank_latex(found: Ranking) -> str:
    tables = f"{latex_table(*standing_cells(found))}\n\n{latex_table(*matrix_cells(found))}"
    return f"% {latex_escaped(explained(found))}\n{tables}\n"


WRITERS: dict[str, Callable[[Ranking], bytes]] = {
    ".json": _json,
    ".csv": _csv,
    ".md": lambda found: rank_markdown(found).encode("utf-8", "replace"),
    ".tex": lambda found: rank_latex(found).encode("utf-8", "replace"),
}


# ---- cells


def _standing(one: Standing, found: Ranking) -> list[str]:
    low, high = one.ranks
    form = ".3f" if found.method == "win-rate" else ".0f"
    span = "–"
    if one.ci_low is not None and one.ci_high is not None:
        span = f"{one.ci_low:{form}}–{one.ci_high:{form}}"
    return [
        f"{low}" if low == high else f"{low}–{high}",
        one_line(one.player),
        f"{one.value:{form}}",
        span,
        f"{one.win_rate:.3f}",
        f"{one.matches:,}",
        f"{one.wins:,}/{one.ties:,}/{one.losses:,}",
        f"{one.failed:,}",
    ]


def _met(wins: int, ties: int) -> str:
    return f"{wins:,}" + (f" ({ties:,})" if ties else "")


def _table(header: list[str], rows: Rows) -> Table:
    table = plain_table()
    for at, name in enumerate(header):
        words = name == "player" or (not at and not name)
        table.add_column(Text(name), justify="left" if words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _line(header: list[str], row: list[str]) -> str:
    return ", ".join(cell if name == "player" else f"{name} {cell}" for name, cell in zip(header, row, strict=True))


def _count(n: int, noun: str, plural: str = "") -> str:
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
