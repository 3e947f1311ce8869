"""Tables as LaTeX, for the booktabs package."""

from collections.abc import Sequence

from assay.text.plain import plain

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "…": r"\ldots{}",
    "−": "$-$",
    "≥": r"$\geq$",
    "\n": " ",
    "\t": " ",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A tabular whose first column is on the left and whose others are on the right."""
    lines = [" & ".join(map(escaped, row)) + r" \\" for row in (header, *rows)]
    columns = "l" + "r" * (len(header) - 1)
    body = "\n".join(lines[1:])
    return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{lines[0]}\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}"


def escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in plain(text))
