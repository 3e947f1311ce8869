"""One value that every report becomes, and its forms: terminal, Markdown, LaTeX, CSV, HTML.

A view (`reports/<verb>.py`) turns a result into a Sheet and puts texts in as they are. The forms make them harmless:
control characters are shown as their codes, and whatever a form would obey is escaped.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from assay.errors import UserError
from assay.text.plain import plain

if TYPE_CHECKING:
    from pathlib import Path

# what a text means, not how it looks
Style = Literal["", "good", "bad", "alike", "open", "quiet", "head"]


class Cell(NamedTuple):
    """A text of a table that has a meaning of its own."""

    text: str
    style: Style = ""


class Column(NamedTuple):
    """Texts stand on the left and may go over several lines; numbers stand on the right and, unless they `fold`,
    never do. A `spare` column is left out, and named, where there is no room for it."""

    name: str
    text: bool = False
    folds: bool = False
    spare: bool = False


class Line(NamedTuple):
    """A line between tables. `depth` indents it, `hang` what is wrapped. One that does not wrap is left to the
    terminal, as is best for what people copy: paths and commands."""

    text: str
    style: Style = ""
    depth: int = 0
    wraps: bool = True
    hang: int = 0


class Table(NamedTuple):
    """Rows of texts. On a terminal that it does not fit, `instead` is shown, or else its rows below one another; an
    `extra` table is left out there. A `compact` one has no frame. `data` are the names and unrounded values that CSV
    has instead of the rows."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str | Cell]]
    title: str = ""
    instead: "Sequence[Table]" = ()
    extra: bool = False
    compact: bool = False
    heads: bool = True
    depth: int = 0
    data: tuple[Sequence[str], Sequence[Sequence[Any]]] | None = None


class Sheet(NamedTuple):
    """What there is to see of a result, from top to bottom. `title` is for documents: a terminal shows the command."""

    parts: Sequence[Line | Table]
    notes: Sequence[str] = ()
    title: str = ""

    def form(self, name: str = "table", *, width: int | None = None, colour: bool = False) -> str:
        """As `table`, `markdown`, `latex`, `csv` or `html`; `width` (by default what the terminal has) and
        `colour` are for tables."""
        if name == "table":
            from assay.reports.terminal import terminal_text, terminal_width

            return terminal_text(self, width or terminal_width(), colour)
        from assay.reports.documents import FORMS

        return FORMS[name](self)

    @property
    def lines(self) -> list[Line]:
        """The parts that are not tables, notes included."""
        return [part for part in self.parts if isinstance(part, Line)] + [*self.noted()]

    @property
    def tables(self) -> list[Table]:
        return [part for part in self.parts if isinstance(part, Table)]

    def noted(self) -> Iterator[Line]:
        return (Line(f"note: {note}", "open") for note in self.notes)

    def __str__(self) -> str:
        return self.form()

    def _repr_html_(self) -> str:
        return self.form("html")


def clean(text: str) -> str:
    """Text from anywhere with nothing that a terminal would obey; what is not a character is a question mark."""
    return plain(text if text.isascii() else text.encode("utf-8", "replace").decode())


def one_line(text: str) -> str:
    return clean(text).replace("\n", " ⏎ ")


def shortened(text: str, most: int) -> str:
    """On one line, cut with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def count(n: int, noun: str, plural: str = "") -> str:
    """`1 item`, `2 items`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def cost_text(cost: float, unpriced: int) -> str:
    """Dollars, and whether something without a known price is missing from them; never 0 for what is unknown."""
    if unpriced and not cost:
        return "unknown"
    if not cost:
        return "$0"
    text = f"${cost:,.2f}" if cost >= 1 else f"${cost:.4f}" if cost >= 0.01 else f"${cost:.3g}"
    return f"{text} + unknown" if unpriced else text


def span_text(low: float | None, high: float | None, form: str = ".3f", between: str = "–") -> str:
    """An interval, or a dash where there is none."""
    return "–" if low is None or high is None else f"{low:{form}}{between}{high:{form}}"


def ranks_text(ranks: tuple[int, int]) -> str:
    return f"{ranks[0]}" if ranks[0] == ranks[1] else f"{ranks[0]}–{ranks[1]}"


def counts_text(counts: Mapping[str, int], none: str) -> str:
    """`3 errored, 1 refused`."""
    return ", ".join(f"{number:,} {what}" for what, number in counts.items()) or none


def failed_text(counts: Mapping[str, int]) -> str:
    """The rows without a verdict; those that were skipped need none."""
    return counts_text(
        {what: number for what, number in counts.items() if number and what != "skipped"}, "0"
    )


def columns_of(*names: str | Column) -> list[Column]:
    """Columns by name: `<` before it stands for texts, `~` for numbers that may fold, `?` for numbers to spare."""
    return [
        name
        if isinstance(name, Column)
        else Column(
            name.lstrip("<~?"), text=name[0] == "<", folds=name[0] == "~", spare=name[0] == "?"
        )
        for name in names
    ]


def listing(entries: Mapping[str, str] | Sequence[str]) -> Sheet:
    """Names with what they are, or lines."""
    if not isinstance(entries, Mapping):
        return Sheet([Line(entry) for entry in entries])
    rows = [list(entry) for entry in entries.items()]
    return Sheet([Table(columns_of("<name", "<about"), rows, compact=True, heads=False)])


def fields_of(values: Sequence[Any], names: Sequence[str]) -> tuple[Sequence[str], list[list[Any]]]:
    """The unrounded values of a table: these attributes of each."""
    return names, [[getattr(value, name) for name in names] for value in values]


def text_of(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def style_of(cell: str | Cell) -> Style:
    return "" if isinstance(cell, str) else cell.style


def sheet(value: Any, **options: Any) -> Sheet:
    """What `assay` shows of a result: str() of it is the table, `form("markdown")` another form, and a notebook shows
    it by itself."""
    from importlib import import_module

    shown: Any = value[0] if isinstance(value, list) and value else value
    view = _VIEWS.get(type(shown).__name__)
    if view is None:
        raise UserError(
            f"there is no view of a {type(shown).__name__}",
            fix="pass what a function of assay returned",
        )
    module, _, function = view.partition(".")
    return getattr(import_module(f"assay.reports.{module}"), function)(value, **options)


def save(value: Any, path: "str | Path", *, force: bool = False) -> None:
    """Write a result to a file in the form that its name asks for: .json (everything, unrounded), .csv, .md, .tex or
    .html. `force` replaces a file that Assay did not write."""
    from assay.store.written import write_named

    file, suffix = checked_suffix(path)
    if suffix == ".json":
        import msgspec

        write_named(
            file,
            msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n",
            force=force,
            private=False,
        )
    else:
        head = _PAGE if suffix == ".html" else ""
        text = f"{head}{sheet(value).form(_SUFFIXES[suffix])}\n"
        write_named(file, text.encode(), force=force, private=False)


def checked_suffix(path: "str | Path") -> "tuple[Path, str]":
    """The file, if its name tells a form that it can be written in."""
    from pathlib import Path

    file = Path(path)
    if file.suffix not in _SUFFIXES:
        raise UserError(
            f"a result cannot be written as {file.name!r}", fix=f"name it {', '.join(_SUFFIXES)}"
        )
    return file, file.suffix


_PAGE = """<!doctype html>
<meta charset="utf-8">
<style>.assay{font-family:sans-serif;margin:2em}.assay p{margin:.2em 0}.assay td,.assay th{padding:.1em .6em}</style>
"""
_SUFFIXES = {".json": "", ".csv": "csv", ".md": "markdown", ".tex": "latex", ".html": "html"}
_VIEWS = {  # of each type the module and the function
    "Across": "compare.compare_view",
    "BenchmarkEntry": "benchmarks.listed",
    "BenchmarkShown": "benchmarks.described",
    "Calibrated": "judge.view",
    "Comparison": "compare.compare_view",
    "Converted": "imports.conversions_view",
    "Described": "listings.descriptions",
    "Diff": "diff.view",
    "Gated": "compare.gate_view",
    "Imported": "imports.imports_view",
    "Listed": "listings.experiments",
    "LocalModel": "listings.local_models",
    "Locked": "verify.locked",
    "Merged": "merge.view",
    "Plan": "run.plan_view",
    "PlugIn": "listings.plug_ins",
    "ProviderEntry": "listings.providers",
    "Pulled": "benchmarks.pulled",
    "QueryAnswer": "listings.answer",
    "Ranking": "rank.view",
    "Referenced": "compare.reference_view",
    "Result": "run.result_view",
    "RunStatus": "status.view",
    "ServedModelEntry": "listings.served_models",
    "StoredDataset": "listings.datasets",
    "Trace": "trace.view",
    "Verified": "verify.view",
}
