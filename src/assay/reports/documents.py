"""A sheet as a document: Markdown, LaTeX, CSV, HTML. Lines of a sheet become paragraphs, lists or comments."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import Any

import msgspec

from assay.reports.sheet import Line, Part, Row, Sheet, Style, Table, clean, style_of, text_of
from assay.text.plain import plain_cell

_BATCH = 256

# ---- Markdown, as GitHub shows it

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|~#!&])")


def markdown_escaped(text: str) -> str:
    """One line on which Markdown and HTML see only plain text."""
    return _MARKDOWN.sub(r"\\\1", clean(text)).replace("\t", " ").replace("\n", " ⏎ ")


def _markdown(sheet: Sheet) -> str:
    title, *about = sheet.title.split("\n")
    blocks = [f"### {markdown_escaped(title)}"] if title else []
    blocks += [f"`{clean(line)}`" for line in about]
    for listed, parts in groupby(sheet.body(), _is_listed):
        texts = [*map(_markdown_part, parts)]
        if listed:
            texts = [*filter(None, ["\n".join(filter(None, texts))])]
        blocks += texts
    return "\n\n".join(blocks)


def _is_listed(part: Part) -> bool:
    return isinstance(part, Line) and part.style not in ("head", "quiet")


def _markdown_part(part: Part) -> str:
    if isinstance(part, Table):
        return _markdown_table(part)
    text = markdown_escaped(part.text.strip())
    if _is_listed(part):
        return f"{'  ' * part.depth}- {text}" if part.text else ""
    return f"### {text}" if part.style == "head" else text


def _markdown_table(table: Table) -> str:
    head, *rows = _escaped_rows(table, markdown_escaped)
    sides = [":--" if left else "--:" for left in _on_the_left(table)]
    text = "\n".join(f"| {' | '.join(row)} |" for row in (head, sides, *rows))
    return f"{markdown_escaped(table.title)}\n\n{text}" if table.title else text


def _on_the_left(table: Table) -> list[bool]:
    """Return which columns stand on the left: the first one, and texts."""
    return [column.text or not at for at, column in enumerate(table.columns)]


def _escaped_rows(table: Table, escape: Callable[[str], str]) -> Iterator[list[str]]:
    """Yield the heading and the rows of a table as texts of a form."""
    yield [escape(column.name) for column in table.columns]
    for row in table.rows:
        yield [escape(text_of(cell)) for cell in row]


# ---- LaTeX, for the booktabs package

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "…": r"\ldots{}",
    "−": "$-$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "\n": " ",
    "\t": " ",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _latex_escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in clean(text))


def _latex(sheet: Sheet) -> str:
    """Tables; lines become comments."""
    blocks: list[str] = [f"% {_latex_escaped(line)}" for line in sheet.title.splitlines()]
    for part in (*sheet.parts, *sheet.note_lines()):
        if isinstance(part, Table):
            blocks += [f"% {_latex_escaped(part.title)}"] if part.title else []
            blocks.append(_latex_table(part) + "\n")
        elif part.text:
            blocks.append(f"% {'  ' * part.depth}{_latex_escaped(part.text.strip())}")
    return "\n".join(blocks).rstrip("\n")


def _latex_table(table: Table) -> str:
    sides = "".join("l" if left else "r" for left in _on_the_left(table))
    head, *rows = (" & ".join(row) + r" \\" for row in _escaped_rows(table, _latex_escaped))
    lines = [r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
    if weak := table.footnote():
        note = rf"\footnotesize {_latex_escaped(weak)}"
        lines.append(rf"\multicolumn{{{len(sides)}}}{{l}}{{{note}}} \\")
    body = "\n".join(lines)
    return f"\\begin{{tabular}}{{{sides}}}\n{body}\n\\end{{tabular}}"


# ---- CSV


def _csv(sheet: Sheet) -> str:
    """The tables with unrounded values, if there are such, as one where they have the same columns; else the first."""
    exact = [table.data for table in sheet.tables if table.data is not None]
    if exact:
        names = exact[0][0]
        rows: Iterable[Sequence[Any]] = [
            row for other, rows in exact if other == names for row in rows
        ]
    elif sheet.tables:
        names, *rows = _escaped_rows(sheet.tables[0], str)
    else:
        names, rows = ["depth", "line"], [[line.depth, line.text] for line in sheet.lines]
    return b"".join(csv_lines(names, rows)).decode().removesuffix("\n")


# cells that are written as they are
_NUMBERS: frozenset[type] = frozenset({int, float, type(None)})


class _Lines(list[str]):
    """What a CSV writer takes for a file."""

    def write(self, line: str) -> None:
        self.append(line)


def csv_lines(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, keep_formulas: bool = False
) -> Iterator[bytes]:
    """The lines of a CSV file."""
    lines = _Lines()
    # Only a writer that ends its lines with both characters quotes each of them in a text.
    write = csv.writer(lines, lineterminator="\r\n").writerows
    made = (
        [value if type(value) in _NUMBERS else _cell(value, keep_formulas) for value in row]
        for row in chain([columns], rows)
    )
    while batch := list(islice(made, _BATCH)):
        write(batch)
        yield "".join(f"{line[:-2]}\n" for line in lines).encode("utf-8", "replace")
        lines.clear()


def _cell(value: Any, keep_formulas: bool) -> Any:
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    text: str = value if kind is str else _json_text(value)
    # most are nothing but words
    if keep_formulas or not text or (text.isprintable() and text[0].isalnum()):
        return text
    return plain_cell(text)


def _json_text(value: Any) -> str:
    return (
        msgspec.json.encode(value).decode()
        if isinstance(value, (list, dict, tuple))
        else str(value)
    )


# ---- HTML: a fragment that needs no other file

_COLOURS = {
    "good": "#1a7f37",
    "bad": "#cf222e",
    "alike": "#0969da",
    "open": "#9a6700",
    "quiet": "#6e7781",
}


def _html(sheet: Sheet) -> str:
    title, *about = sheet.title.split("\n")
    blocks = [f"<h3>{_html_text(title)}</h3>"] if title else []
    blocks += [f"<p><code>{_html_text(line)}</code></p>" for line in about]
    for part in sheet.body():
        blocks.append(_html_table(part) if isinstance(part, Table) else _html_line(part))
    return "\n".join(['<div class="assay">', *blocks, "</div>"])


def _html_text(text: str) -> str:
    from html import escape

    return escape(clean(text))


def _css(style: Style, *rules: str) -> str:
    colour = f"color:{_COLOURS[style]}" if style in _COLOURS else ""
    declarations = ";".join(filter(None, [*rules, colour]))
    return f' style="{declarations}"' if declarations else ""


def _html_line(line: Line) -> str:
    if line.style == "head":
        return f"<h3>{_html_text(line.text)}</h3>"
    indent = f"margin-left:{2 * line.depth}em" if line.depth else ""
    rules = _css(line.style, "white-space:pre-wrap", indent)
    return f"<p{rules}>{_html_text(line.text)}</p>"


def _html_table(table: Table) -> str:
    sides = ["text-align:left" if column.text else "text-align:right" for column in table.columns]
    heads = _html_row("th", sides, [column.name for column in table.columns])
    body = "\n".join(_html_row("td", sides, row) for row in table.rows)
    caption = f"<caption{_css('', 'text-align:left')}>{_html_text(table.title)}</caption>"
    caption *= bool(table.title)
    return f"<table>{caption}<thead>{heads}</thead>\n<tbody>\n{body}\n</tbody></table>"


def _html_row(tag: str, sides: Sequence[str], row: Row) -> str:
    cells = (
        f"<{tag}{_css(style_of(cell), side)}>{_html_text(text_of(cell))}</{tag}>"
        for side, cell in zip(sides, row, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


FORMS: dict[str, Callable[[Sheet], str]] = {
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
    "html": _html,
}
