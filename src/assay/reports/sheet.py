"""One value that every report becomes, and its forms: terminal, Markdown, LaTeX, CSV, HTML.

A view (`reports/<verb>.py`) turns a result into a Sheet and puts texts in as they are. The forms make them harmless:
control characters are shown as their codes, and whatever a form would obey is escaped.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from assay.errors import UserError
from assay.records import Manifest, MetricRow, find_in_row
from assay.text.plain import plain

if TYPE_CHECKING:
    from pathlib import Path

# what a text means, not how it looks
Style = Literal["", "good", "bad", "alike", "open", "quiet", "head"]


class Cell(NamedTuple):
    """A text of a table that has a meaning of its own; `weak` is why its interval is weak."""

    text: str
    style: Style = ""
    weak: str = ""


Row = Sequence[str | Cell]


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
    """Rows of texts. On a terminal that it does not fit, `instead` is shown, or else the first of `narrower` that fits,
    or its rows below one another; an `extra` table is left out there. A `compact` one has no frame. `data` are the names and unrounded values that CSV
    has instead of the rows."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    instead: "Sequence[Table]" = ()
    narrower: "Sequence[Table]" = ()
    extra: bool = False
    compact: bool = False
    heads: bool = True
    depth: int = 0
    data: tuple[Sequence[str], Sequence[Sequence[Any]]] | None = None

    def footnote(self) -> str:
        """Return why intervals are weak, if any is."""
        return weak_text(getattr(cell, "weak", "") for row in self.rows for cell in row)


Part = Line | Table
Parts = Iterator[Part]


class Sheet(NamedTuple):
    """What there is to see of a result, from top to bottom. `title` is for documents: a terminal shows the command."""

    parts: Sequence[Part]
    notes: Sequence[str] = ()
    title: str = ""

    def form(self, name: str = "table", *, width: int | None = None, colour: bool = False) -> str:
        """As `table`, `markdown`, `latex`, `csv` or `html`; `width` (by default what the terminal
        has) and `colour` are for tables."""
        if name == "table":
            from assay.reports.terminal import terminal_text, terminal_width

            return terminal_text(self, width or terminal_width(), colour)
        from assay.reports.documents import FORMS

        return FORMS[name](self)

    @property
    def lines(self) -> list[Line]:
        """The parts that are not tables, notes included."""
        return [part for part in self.parts if isinstance(part, Line)] + [*self.note_lines()]

    @property
    def tables(self) -> list[Table]:
        return [part for part in self.parts if isinstance(part, Table)]

    def note_lines(self) -> Iterator[Line]:
        return (Line(f"note: {note}", "open") for note in self.notes)

    def body(self) -> Parts:
        """Yield parts and notes, and below its table why an interval is weak, once."""
        told = {""}
        for part in self.parts:
            yield part
            text = part.footnote() if isinstance(part, Table) else ""
            if text not in told:
                yield Line(text, "quiet")
            told.add(text)
        yield from self.note_lines()

    def __str__(self) -> str:
        return self.form()

    def _repr_html_(self) -> str:
        return self.form("html")


def clean(text: str) -> str:
    """Text from anywhere with nothing that a terminal would obey; what is not a character is a
    question mark."""
    return plain(text if text.isascii() else text.encode("utf-8", "replace").decode())


def one_line(text: str) -> str:
    return clean(text).replace("\n", " ⏎ ")


def shorten(text: str, most: int) -> str:
    """On one line, cut with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def count(n: int, noun: str, plural: str = "") -> str:
    """`1 item`, `2 items`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def cost_text(cost: float, unpriced: int) -> str:
    """Dollars, and whether something without a known price is missing from them; never 0 for what
    is unknown."""
    if unpriced and not cost:
        return "unknown"
    if not cost:
        return "$0"
    text = f"${cost:,.2f}" if cost >= 1 else f"${cost:.4f}" if cost >= 0.01 else f"${cost:.3g}"
    return f"{text} + unknown" if unpriced else text


_NOISE = 1e-9  # of sums of floats; the smallest distance that is shown
_SMALL = 10
_GROUPED = 1e4
_LARGE = 1e9
_MOST_PLACES = 12
_VERDICTS = ("pass_rate", "mean", "pass_at_k")  # metrics whose value may be passed / used
WEAK = "~"  # stands behind an interval that is wrong more often than it says


def weak_reason(method: str) -> str:
    """Return why an interval or a test is weak, which is the end of its method's name."""
    return method.partition("; weak: ")[2]


def weak_text(reasons: Iterable[str]) -> str:
    """Return the footnote of weak intervals; some may have no reason."""
    told = "; ".join(filter(None, dict.fromkeys(reasons)))
    return f"{WEAK} weak: {told}" if told else ""


def decimals(*figures: float | None) -> int:
    """Return how many places a value and the ends of its interval are shown with.

    Two significant digits of half the width, or of a value without an interval, but four of one from
    10 on; three places at least below 10, and as many more as tell a number from the whole one that
    it rounds to.
    """
    numbers = [each for each in figures if each is not None and abs(each) < _LARGE] or [0.0]
    size = abs(numbers[0])
    half = (max(numbers) - min(numbers)) / 2
    least, digits = (3, 2) if size < _SMALL else (0, 4)
    if half > _NOISE:
        size = half
        digits = 2
    places = max(digits - 1 - math.floor(math.log10(size or 1)), least)
    for each in numbers:
        off = abs(each - round(each))
        if off > _NOISE and abs(each) < _SMALL and float(f"{each:.{places}f}").is_integer():
            places = -math.floor(math.log10(off))
    return min(places, _MOST_PLACES)


def number_text(value: float | None, places: int | None = None, sign: str = "") -> str:
    """Return a number as people read it, a dash for none; with `+` as its `sign` a difference."""
    if value is None:
        return "–"
    if not abs(value) < _LARGE:  # nor is what is no number
        return f"{value:{sign}.4g}"
    places = decimals(value) if places is None else places
    comma = "," if abs(value) >= _GROUPED else ""
    return f"{round(value, places) + 0.0:{sign}{comma}.{places}f}"  # + 0.0: never -0.000


def figures(
    value: float | None,
    low: float | None,
    high: float | None,
    method: str = "",
    sign: str = "",
    between: str = "–",
) -> tuple[str, Cell]:
    """Return a value and its interval with the same digits: dashes for what is missing, one bound
    where the other end is open, and a mark where `method` says that it is weak."""
    places = decimals(value, low, high)
    shown, start, end = (number_text(each, places, sign) for each in (value, low, high))
    if low is None and high is None:
        return shown, Cell("–")
    span = f"≥ {start}" if high is None else f"{start}{between}{end}"
    span = f"≤ {end}" if low is None else span
    weak = weak_reason(method)
    return shown, Cell(f"{span}{WEAK if weak else ''}", weak=weak)


def with_interval(
    value: float | None,
    low: float | None,
    high: float | None,
    method: str = "",
    between: str = "–",
) -> Cell:
    """Return a value, and in brackets its interval, if it has one."""
    shown, span = figures(value, low, high, method, between=between)
    return span._replace(text=f"{shown} ({span.text})".removesuffix(" (–)"))


def json_text(value: Any) -> str:
    """Return a text as it is, anything else as JSON."""
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def apart(groups: Iterable[Iterable[Part]]) -> list[Part]:
    """Return the parts of all groups, an empty line between them."""
    parts: list[Part] = []
    for group in groups:
        parts += [*([Line("")] if parts else []), *group]
    return parts


def span_text(low: float | None, high: float | None, between: str = "–") -> str:
    return figures(None, low, high, between=between)[1].text


def passed_text(row: MetricRow) -> str:
    """Return `1999/2000` where a value is a share of verdicts."""
    passed = row.get("passed_count")
    total = row.get("total_count")
    method = str(row.get("ci_method")).partition(";")[0]
    if method == "wilson" and row.get("metric_type") in _VERDICTS:
        total = row["used_sample_count"]
        passed = round(row["value"] * total)
    return "" if passed is None or total is None else f"{passed:,}/{total:,}"


def averaged_over(facets: Iterable[Sequence[str]], run: Manifest | None) -> list[str]:
    """Return a line about the facets of tasks of which a value by these facets pools several."""
    tasks = run.plan.get("tasks") if run else None
    values: dict[tuple[str, str], set[str]] = {}
    for names, task in product(set(map(tuple, facets)), tasks or []):
        own = task["facets"]
        row = {"task": task["name"], "model_name": own.get("model_id"), "metadata": own}
        group = str([names, *(find_in_row(row, name) for name in names)])
        for name, value in own.items():
            values.setdefault((name, group), set()).add(str(value))
    most = dict(sorted((name, len(each)) for (name, _), each in values.items()))
    pooled = ", ".join(f"{name} ({number})" for name, number in most.items() if number > 1)
    return [f"averaged over {pooled}"] if pooled else []


def ranks_text(ranks: tuple[int, int]) -> str:
    return f"{ranks[0]}" if ranks[0] == ranks[1] else f"{ranks[0]}–{ranks[1]}"


def counts_text(counts: Mapping[str, int], none: str) -> str:
    """`3 errored, 1 refused`."""
    return ", ".join(f"{number:,} {what}" for what, number in counts.items()) or none


def failed_text(counts: Mapping[str, int]) -> str:
    """The rows without a verdict."""
    return counts_text({what: number for what, number in counts.items() if number}, "0")


def columns_of(*names: str | Column) -> list[Column]:
    """Columns by name: `<` before it stands for texts, `~` for numbers that may fold, `?` for
    numbers to spare."""
    return [
        name
        if isinstance(name, Column)
        else Column(
            name.lstrip("<~?"), text=name[0] == "<", folds=name[0] == "~", spare=name[0] == "?"
        )
        for name in names
    ]


def facts_table(columns: Sequence[str], rows: Sequence[Row], **options: Any) -> Table:
    """Return a table without a frame and headings: names with what they are."""
    return Table(columns_of(*columns), rows, compact=True, heads=False, **options)


def listing(entries: Mapping[str, str] | Sequence[str]) -> Sheet:
    """Return names with what they are, or lines."""
    if not isinstance(entries, Mapping):
        return Sheet([Line(entry) for entry in entries])
    return Sheet([facts_table(["<name", "<about"], [*map(list, entries.items())])])


def fields_of(
    values: Sequence[Any], names: Sequence[str] = (), *, without: str = ""
) -> tuple[Sequence[str], list[list[Any]]]:
    """The unrounded values of a table: these attributes of each, by default all `without` one."""
    fields = getattr(values[0], "__struct_fields__", ()) if values else ()
    names = names or [name for name in fields if name != without]
    return names, [[getattr(value, name) for name in names] for value in values]


def text_of(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def style_of(cell: str | Cell) -> Style:
    return "" if isinstance(cell, str) else cell.style


def sheet(value: Any, **options: Any) -> Sheet:
    """Return what `assay` shows of a result: str() of it is the table, `form("markdown")` another
    form, and a notebook shows it by itself."""
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
    """Write a result to a file in the form that its name asks for: .json (everything, unrounded),
    .csv, .md, .tex or .html. `force` replaces a file that Assay did not write."""
    from assay.store.ledger import write_named

    file, suffix = checked_suffix(path)
    if suffix == ".json":
        import msgspec

        content = msgspec.json.format(msgspec.json.encode(value), indent=2)
    else:
        head = _PAGE if suffix == ".html" else ""
        content = f"{head}{sheet(value).form(_SUFFIXES[suffix])}".encode()
    write_named(file, content + b"\n", force=force, private=False)


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
    "BenchmarkEntry": "benchmarks.list_view",
    "BenchmarkShown": "benchmarks.description_view",
    "Calibrated": "judge.view",
    "Comparison": "compare.compare_view",
    "Converted": "imports.conversions_view",
    "Described": "listings.descriptions",
    "Diff": "diff.view",
    "Gated": "compare.gate_view",
    "Imported": "imports.imports_view",
    "Listed": "listings.experiments",
    "LocalModel": "listings.local_models",
    "Locked": "verify.lock_view",
    "Merged": "merge.view",
    "Plan": "run.plan_view",
    "PlugIn": "listings.plug_ins",
    "ProviderEntry": "listings.providers",
    "Pulled": "benchmarks.pull_view",
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
