"""A sheet on a terminal of any width: nothing is cut off, and what is left out is named.

A table that does not fit gets headings on several lines and folded texts; then its parts; then names without what they
all begin with, folded within, or as headings of their rows; then it loses the columns that matter least; at last its
rows stand below one another, each with its headings. It is drawn here and not by a library, because verbs such as `ls`
and `list` must start without one.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import compress, groupby, product, takewhile, zip_longest
from typing import NamedTuple

from assay.reports.sheet import (
    Cell,
    Column,
    Line,
    Row,
    Sheet,
    Style,
    Table,
    clean,
    facts_table,
    one_line,
    style_of,
    text_of,
)
from assay.reports.wrapping import cells, longest_part, wrapped

_CODES: dict[Style, str] = {
    "good": "32",
    "bad": "31",
    "alike": "36",
    "open": "33",
    "quiet": "2",
    "head": "1",
}
_GAP = "  "
_LONGEST_PART = 20  # of a name that is not broken itself
_LONG_PREFIX = 5  # a shorter one saves nothing


def terminal_width() -> int:
    """The columns of the terminal: COLUMNS, or what any of the standard streams says, or 80."""
    if os.environ.get("COLUMNS", "").isdigit():
        return max(1, int(os.environ["COLUMNS"]))
    for stream in (0, 1, 2):
        try:
            return max(1, os.get_terminal_size(stream).columns)
        except OSError:
            continue
    return 80


def terminal_text(sheet: Sheet, width: int, colour: bool = False) -> str:
    """The sheet as lines of at most `width` columns; with `colour`, in what its styles look
    like."""
    lines: list[str] = []
    for part in sheet.body():
        lines += (
            _table(part, width, colour) if isinstance(part, Table) else _line(part, width, colour)
        )
    return "\n".join(lines)


def _line(line: Line, width: int, colour: bool) -> Iterator[str]:
    indent = _GAP * line.depth
    whole = clean(line.text)
    if not (line.wraps or line.depth or line.hang or line.style):  # it may be ten thousand lines
        yield whole.rstrip()
        return
    for number, text in enumerate(whole.split("\n")):
        hang = line.hang if not number else len(text) - len(text.lstrip())
        hang = hang if hang <= width // 2 else 0
        pieces = (
            wrapped(text[hang:], width - len(indent) - hang)
            if line.wraps
            else [text[hang:].rstrip()]
        )
        for at, piece in enumerate(pieces):
            yield indent + _paint((" " * hang if at else text[:hang]) + piece, line.style, colour)


def _paint(text: str, style: Style, colour: bool) -> str:
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour and style and text else text


# ---- tables

Texts = list[list[str]]


class _Fold(NamedTuple):
    """How far a table may give way: broken headings, columns of texts at least this narrow, names broken within."""

    heads: bool
    least: int
    within: bool = False


_FOLDS = (_Fold(False, 20), _Fold(True, 20), _Fold(True, 8))
_WITHIN = (_Fold(True, 8), _Fold(True, 16, within=True))
_NARROW = (_Fold(True, 8, within=True),)


def _table(table: Table, width: int, colour: bool) -> list[str]:
    forms = (table, *table.narrower)
    drawn = next(filter(None, (_fitting(form, width, colour, _FOLDS) for form in forms)), None)
    if drawn is None and table.instead:
        return [line for part in table.instead for line in _table(part, width, colour)]
    drawn = drawn or _tight(table, width, colour)
    if drawn is None and table.extra:
        return []
    return drawn or _stacked(table, width, colour)


def _fitting(
    table: Table, width: int, colour: bool, folds: Sequence[_Fold], groups: Sequence[str] = ()
) -> list[str] | None:
    """The table with its title, by the first of the folds that does; each group is a heading above
    its rows."""
    rows = [
        [_text(column, cell) for column, cell in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    names = (
        [clean(column.name) for column in table.columns]
        if table.heads
        else [""] * len(table.columns)
    )
    for fold in folds:
        widths = _widths(table, names, rows, width, fold)
        if widths is not None:
            headings = [wrapped(group, width - 1) for group in groups]
            return [
                *_title(table, width, colour),
                *_draw(table, names, rows, widths, colour, headings),
            ]
    return None


def _text(column: Column, cell: str | Cell) -> str:
    """Return the text of a cell. Where numbers fold, a number stays with its word."""
    text = one_line(text_of(cell))
    return re.sub(r"(?<=\d) (?=\w)", "\xa0", text) if column.folds else text


def _title(table: Table, width: int, colour: bool) -> Iterator[str]:
    return _line(Line(table.title), width, colour) if table.title else iter(())


def _tight(table: Table, width: int, colour: bool) -> list[str] | None:
    """Names without what they share, broken within or as headings of their rows; and one column
    less at a time, first those that have one value."""
    short, notes = _without_prefixes(table)
    spare = [at for at, column in enumerate(table.columns) if column.spare][::-1]
    spare.sort(key=lambda at: len({text_of(row[at]) for row in table.rows}) > 1)
    for folds, dropped, above in _attempts(table, len(spare)):
        kept = [at for at in range(above, len(table.columns)) if at not in spare[:dropped]]
        groups = _groups(table, above)
        if above == 1 and 2 * sum(1 for _ in groupby(groups)) > len(groups):
            continue  # only a name that several rows in a row have
        drawn = _fitting(_columns(short, kept), width, colour, folds, groups)
        if drawn is not None:
            told = notes + [_left_out(table, at) for at in sorted(spare[:dropped])]
            below = [line for note in told for line in _line(Line(note, "quiet"), width, colour)]
            return [*drawn, *below] if table.compact or not below else [*drawn[:-1], *below, ""]
    return None


def _attempts(table: Table, spare: int) -> Iterator[tuple[Sequence[_Fold], int, int]]:
    """Yield folds, how many spare columns are dropped, and how many names are headings of their
    rows."""
    names = 0 if table.compact else sum(1 for _ in takewhile(lambda own: own.text, table.columns))
    one, last = min(names, 1), min(names, len(table.columns) - 1)
    further = [(_NARROW, most) for most in range(2, last + 1)]
    for folds, most in [(_WITHIN, one), (_NARROW, one), *further]:
        yield from ((folds, *each) for each in product(range(spare + 1), range(most + 1)))


def _heading(heads: Sequence[str], cells: Row) -> str:
    named = zip(heads, map(text_of, cells), strict=False)
    return ", ".join(f"{head}: {one_line(text)}" for head, text in named)


def _groups(table: Table, above: int) -> list[str]:
    """Return the headings of the rows that have the first columns, if any, in their place."""
    heads = [column.name for column in table.columns[:above]]
    return [_heading(heads, row) for row in table.rows if above]


def _columns(table: Table, kept: Sequence[int]) -> Table:
    return table._replace(
        columns=[table.columns[at] for at in kept],
        rows=[[row[at] for at in kept] for row in table.rows],
    )


def _left_out(table: Table, at: int) -> str:
    """A column that has one value is told in a line, so it is not lost."""
    name, values = table.columns[at].name, {text_of(row[at]) for row in table.rows}
    return (
        f"{name}: {values.pop()} in each row"
        if len(values) == 1
        else f"{name}: shown on a wider terminal"
    )


def _without_prefixes(table: Table) -> tuple[Table, list[str]]:
    """The table with an ellipsis for what all names of a column begin with, and what it stands
    for."""
    rows = [list(row) for row in table.rows]
    notes: list[str] = []
    for at, column in enumerate(table.columns):
        texts = {text_of(row[at]) for row in rows}
        wide = max(map(cells, texts), default=0) > longest_part([column.name], within=True)
        prefix = _prefix(texts) if column.text and wide and len(texts) > 1 else ""
        if len(prefix) < _LONG_PREFIX:
            continue
        notes.append(f"{column.name}: … is {prefix}".removeprefix(": "))
        for row in rows:
            text = text_of(row[at]).replace(prefix, "…")
            row[at] = text if isinstance(cell := row[at], str) else cell._replace(text=text)
    return table._replace(rows=rows), notes


def _prefix(texts: set[str]) -> str:
    """Return what all texts begin with, up to the end of a part of a name; none is left empty."""
    shared = os.path.commonprefix([text.split(" ")[0][:-1] for text in texts])  # noqa: RUF071  letters are meant
    return re.sub(r"[^/_.:-]*$", "", shared)


def _widths(
    table: Table, names: Sequence[str], rows: Texts, width: int, fold: _Fold
) -> list[int] | None:
    """The width of each column, texts folded where they must be; None where that does not do."""
    most, least = [], []
    for at, column in enumerate(table.columns):
        longest = max([cells(row[at]) for row in rows], default=0)
        most.append(max(cells(names[at]), longest))
        head = longest_part([names[at]], within=True) if fold.heads else cells(names[at])
        words = longest
        if column.text or column.folds:
            words = longest_part([row[at] for row in rows], within=fold.within and column.text)
            words = max(
                min(words, _LONGEST_PART) if fold.within else words, min(longest, fold.least)
            )
        least.append(max(head, words))
    room = width - len(_edge(table)) - len(_GAP) * (len(most) - 1)
    while sum(most) > room:
        slack = [wide - narrow for wide, narrow in zip(most, least, strict=True)]
        if not any(slack):
            return None
        widest = max((at for at, left in enumerate(slack) if left), key=lambda at: most[at])
        most[widest] -= min(slack[widest], sum(most) - room, _step(most, widest))
    return most


def _step(widths: Sequence[int], at: int) -> int:
    """Return how far the widest column shrinks before another is the widest."""
    return max(
        1, widths[at] - max((wide for other, wide in enumerate(widths) if other != at), default=0)
    )


def _edge(table: Table) -> str:
    return _GAP * table.depth if table.compact else " "


def _draw(
    table: Table,
    names: Sequence[str],
    rows: Texts,
    widths: Sequence[int],
    colour: bool,
    groups: Sequence[list[str]] = (),
) -> list[str]:
    lines = _heading_lines(table, names, widths, colour)
    before: list[str] = []
    for row, own, group in zip_longest(rows, table.rows, groups, fillvalue=[]):
        if group != before:
            lines += [f" {_paint(piece, 'head', colour)}" for piece in group]
        before = group
        folded = [wrapped(text, wide) for text, wide in zip(row, widths, strict=True)]
        lines += _folded_lines(table, folded, [*map(style_of, own)], widths, colour)
    return lines if table.compact else [*lines, ""]


def _heading_lines(
    table: Table, names: Sequence[str], widths: Sequence[int], colour: bool
) -> list[str]:
    style: Style = "" if table.compact else "head"
    above = [wrapped(name, wide) for name, wide in zip(names, widths, strict=True)]
    tall = max(map(len, above), default=0)
    above = [[""] * (tall - len(pieces)) + pieces for pieces in above]
    styles: list[Style] = [style] * len(above)
    lines = _folded_lines(table, above, styles, widths, colour) if table.heads else []
    rule = " " + "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    return lines if table.compact else ["", *lines, rule]


def _folded_lines(
    table: Table, folded: Texts, styles: Sequence[Style], widths: Sequence[int], colour: bool
) -> list[str]:
    """Return the lines of a row whose cells have several."""
    lines: list[str] = []
    for texts in zip_longest(*folded, fillvalue=""):
        parts: list[str] = []
        for column, text, style, wide in zip(table.columns, texts, styles, widths, strict=True):
            space = " " * (wide - cells(text))
            painted = _paint(text, style, colour)
            parts.append(painted + space if column.text else space + painted)
        lines.append(f"{_edge(table)}{_GAP.join(parts)}".rstrip())
    return lines


def _stacked(table: Table, width: int, colour: bool) -> list[str]:
    """Rows below one another, each as a small table of headings and values, or where even that is
    too wide, each value below its heading."""
    lines = [*_title(table, width, colour)]
    names = [clean(column.name) for column in table.columns]
    small = facts_table(["<name", "<value"], [], depth=1)
    room = width - len(_edge(small)) - len(_GAP)
    left = min(max(map(cells, names), default=1), room // 2)
    for row in table.rows:
        pairs = [*zip(names, row, strict=True)]
        texts = [[name, one_line(text_of(cell)).strip()] for name, cell in pairs]
        filled = [bool(text) for _, text in texts]
        texts = [*compress(texts, filled)]
        lines.append("")
        if room < _LONGEST_PART:
            below = [Line(text, depth=at) for pair in texts for at, text in enumerate(pair)]
            lines += [piece for line in below for piece in _line(line, width, colour)]
            continue
        own = small._replace(rows=[*compress(pairs, filled)])
        lines += _draw(own, ["", ""], texts, [left, room - left], colour)
    return [*lines, ""]
