"""A sheet on a terminal of any width: nothing is cut off, nothing is lost.

A table that does not fit gets headings on several lines and folded texts, then its parts, at last a line for each row.
It is drawn here and not by a library, because verbs such as `ls` and `list` must start without one.
"""

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence

from assay.reports.sheet import Line, Sheet, Style, Table, clean, one_line, style_of, text_of

_CODES: dict[Style, str] = {"good": "32", "bad": "31", "alike": "36", "open": "33", "quiet": "2", "head": "1"}
_HEADS: list[Style] = ["head"]
_GAP = "  "
_LONG_HEADING = 12
_READABLE = (20, 8)  # a folded column is not narrower than this, where its texts are that long
_WIDE = re.compile(r"[^\x00-\u02ff\u2010-\u2027\u2190-\u21ff\u2212\u2500-\u257f]")


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
    """The sheet as lines of at most `width` columns; with `colour`, in what its styles look like."""
    lines: list[str] = []
    for part in (*sheet.parts, *sheet.noted()):
        lines += _table(part, width, colour) if isinstance(part, Table) else _line(part, width, colour)
    return "\n".join(lines)


def _line(line: Line, width: int, colour: bool) -> Iterator[str]:
    indent = _GAP * line.depth
    for text in clean(line.text).split("\n"):
        for piece in wrapped(text, width - len(indent)) if line.wraps else [text.rstrip()]:
            yield indent + _painted(piece, line.style, colour)


def _painted(text: str, style: Style, colour: bool) -> str:
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour and style and text else text


# ---- widths


def cells(text: str) -> int:
    """The columns that a text takes: two for East Asian and emoji, none for marks upon other characters."""
    if not _WIDE.search(text):
        return len(text)
    return sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken between words; a longer word is broken itself."""
    width = max(1, width)
    if cells(text) <= width:
        return [text]
    lines = [""]
    for word in re.findall(r"\s*\S+|\s+$", text):
        if cells(lines[-1] + word) <= width:
            lines[-1] += word
            continue
        word = word.lstrip() if lines[-1].strip() else word
        lines += [] if not lines[-1] else [""]
        for character in word:
            if cells(lines[-1] + character) > width and lines[-1]:
                lines.append("")
            lines[-1] += character
    return [line.rstrip() for line in lines]


# ---- tables

Texts = list[list[str]]


def _table(table: Table, width: int, colour: bool) -> list[str]:
    title = [piece for line in [Line(table.title)] if table.title for piece in _line(line, width, colour)]
    drawn = _fitting(table, width, colour)
    if drawn is None and table.instead:
        parts = [_fitting(part, width, colour) for part in table.instead]
        if None not in parts:
            titles = [[*_line(Line(part.title), width, colour)] if part.title else [] for part in table.instead]
            return [line for title, part in zip(titles, parts, strict=True) for line in (*title, *(part or []))]
    if drawn is None and table.extra:
        return []
    return [*title, *(_row_lines(table, width, colour) if drawn is None else drawn)]


def _fitting(table: Table, width: int, colour: bool) -> list[str] | None:
    rows = [[one_line(text_of(cell)) for cell in row] for row in table.rows]
    names = [clean(column.name) for column in table.columns]
    if table.compact:
        return _compact(table, names, rows, colour)
    for broken, readable in ((False, _READABLE[0]), (True, _READABLE[0]), (True, _READABLE[1])):
        heads = [_heading(name) if broken else [name] for name in names]
        widths = _widths(table, heads, rows, width, readable)
        if widths is not None:
            return _drawn(table, heads, rows, widths, colour)
    return None


def _heading(name: str) -> list[str]:
    """A long name on several lines, cut behind its underscores and dots."""
    return re.sub(r"([_.])(?=.)", r"\1\n", name).split("\n") if len(name) > _LONG_HEADING else [name]


def _widths(table: Table, heads: Texts, rows: Texts, width: int, readable: int) -> list[int] | None:
    """The width of each column, texts folded where they must be; None where that does not do."""
    most, least = [], []
    for at, column in enumerate(table.columns):
        head = max(map(cells, heads[at]))
        longest = max([cells(row[at]) for row in rows], default=0)
        most.append(max(head, longest))
        folds = column.text or column.folds
        words = max((cells(word) for row in rows for word in row[at].split()), default=0) if folds else longest
        least.append(max(head, words, min(longest, readable)))
    room = width - 1 - len(_GAP) * (len(most) - 1)
    while sum(most) > room:
        slack = [wide - narrow for wide, narrow in zip(most, least, strict=True)]
        if not any(slack):
            return None
        widest = max((at for at, left in enumerate(slack) if left), key=lambda at: most[at])
        most[widest] -= min(slack[widest], sum(most) - room, _step(most, widest))
    return most


def _step(widths: Sequence[int], at: int) -> int:
    """How far the widest column shrinks before another is the widest."""
    return max(1, widths[at] - max((wide for other, wide in enumerate(widths) if other != at), default=0))


def _drawn(table: Table, heads: Texts, rows: Texts, widths: Sequence[int], colour: bool) -> list[str]:
    tall = max(map(len, heads))
    above = [[""] * (tall - len(head)) + head for head in heads]
    lines = ["", *(_across(table, line, _HEADS * len(widths), widths, colour) for line in zip(*above, strict=True))]
    lines.append(" " + "─" * (sum(widths) + len(_GAP) * (len(widths) - 1)))
    for row, shown in zip(rows, table.rows, strict=True):
        styles: list[Style] = [style_of(cell) for cell in shown]
        folded = [wrapped(text, wide) for text, wide in zip(row, widths, strict=True)]
        for at in range(max(map(len, folded))):
            line = [pieces[at] if at < len(pieces) else "" for pieces in folded]
            lines.append(_across(table, line, styles, widths, colour))
    return [*lines, ""]


def _across(
    table: Table, texts: Sequence[str], styles: Sequence[Style], widths: Sequence[int], colour: bool, edge: str = " "
) -> str:
    line = edge
    for at, (text, style, wide) in enumerate(zip(texts, styles, widths, strict=True)):
        space = " " * (wide - cells(text))
        painted = _painted(text, style, colour)
        line += (_GAP if at else "") + (painted + space if table.columns[at].text else space + painted)
    return line.rstrip()


def _compact(table: Table, names: list[str], rows: Texts, colour: bool) -> list[str]:
    texts = [names, *rows] if table.heads else rows
    widths = [max([cells(row[at]) for row in texts], default=0) for at in range(len(names))]
    plain: list[Style] = ["" for _ in names]
    styles = [plain] * (len(texts) - len(rows)) + [[style_of(cell) for cell in row] for row in table.rows]
    edge = _GAP * table.depth
    return [
        _across(table, row, row_styles, widths, colour, edge) for row, row_styles in zip(texts, styles, strict=True)
    ]


def _row_lines(table: Table, width: int, colour: bool) -> list[str]:
    """A line for each row: its first texts, then each number with its name."""
    lines: list[str] = []
    for row in table.rows:
        named: list[str] = []
        begin: list[str] = []
        for column, cell in zip(table.columns, row, strict=True):
            text = one_line(text_of(cell)).strip()
            if column.text and not named:
                begin.append(text)
            elif text:
                named.append(text if column.text else f"{one_line(column.name)} {text}")
        styles: list[Style] = [style_of(cell) for cell in row]
        text = ": ".join(filter(None, [", ".join(begin), ", ".join(named)]))
        lines += _line(Line(text, max(styles, key=bool)), width, colour)
    return lines
