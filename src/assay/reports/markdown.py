"""Tables as Markdown, as GitHub shows it."""

import re
from collections.abc import Sequence

from assay.text.plain import plain

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#!&])")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells show the text as it is, whatever it holds. The first column is on the left, numbers right."""
    aligned = [":--" if number == 0 else "--:" for number in range(len(header))]
    lines = [[escaped(cell) for cell in header], aligned, *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str) -> str:
    """One line on which Markdown and HTML see only plain text."""
    return _SPECIAL.sub(r"\\\1", plain(text)).replace("\t", " ").replace("\n", " ⏎ ")
