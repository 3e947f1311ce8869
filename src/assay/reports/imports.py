"""What an import or a conversion left behind: counts, and another program's own numbers beside those of its rows."""

import os
from collections.abc import Sequence
from itertools import chain

from assay.analysis.look.convert import Converted
from assay.engine.experiment.imports.headlines import HeadlineCheck
from assay.engine.experiment.imports.results import Imported
from assay.records import values_by_key
from assay.reports.sheet import (
    Cell,
    Column,
    Line,
    Parts,
    Row,
    Sheet,
    Table,
    columns_of,
    count,
    counts_text,
    fields_of,
)

_MOST_NAMED = 3
_NUMBER = Column("number", text=True, folds=True)
_COLUMNS = columns_of(_NUMBER, "theirs", "ours", "with failures", "failed", "<check")


def imports_view(imports: Sequence[Imported]) -> Sheet:
    notes = [note for imported in imports for note in imported.notes]
    parts = [*chain.from_iterable(map(_parts, imports))]
    return Sheet(parts, [*notes, *_reasons(imports)])


def _parts(imported: Imported) -> Parts:
    named = f"{imported.dataset}: {', '.join([imported.format, *imported.read_from])}"
    if not imported.folder:
        yield Line(f"{named}: it was not imported")
        return
    yield Line(named)
    models = ""
    if imported.files:
        yield Line(f"from: {_place(imported.files)}", wraps=False)
    if imported.agents:
        models = f" of {count(len(imported.agents), 'model')}"
        yield Line(f"models: {_some(imported.agents)}")
    yield Line(f"items: {imported.items:,}")
    responses = counts_text(imported.responses, "none")
    yield Line(f"responses: {responses}{models}{_missing(imported)}")
    yield Line(f"evaluations: {counts_text(imported.evaluations, 'none')}")
    if imported.rejected:
        yield Line(f"rejected: {imported.rejected:,} rows or files")
    if imported.headlines:
        yield headline_table(imported.headlines)
    yield Line(f"files: {imported.folder}", wraps=False)


def conversions_view(conversions: Sequence[Converted]) -> Sheet:
    lines: list[Line] = []
    for made in conversions:
        rows = f"{count(made.items, 'item')}, {count(made.responses, 'response')}, {count(made.evaluations, 'evaluation')}"
        left_out = ", ".join(f"{what} ({number:,})" for what, number in made.left_out.items())
        lines += [
            Line(f"{made.format}: {'unchanged' if made.unchanged else rows}"),
            *([Line(f"no place in {made.format} for: {left_out}")] if left_out else []),
            Line(f"files: {made.path}", wraps=False),
        ]
    return Sheet(lines, [note for made in conversions for note in made.notes])


def headline_table(headlines: Sequence[HeadlineCheck]) -> Table:
    """Every number of the other program, with its standard error, as it says and as the rows say."""
    errors = ["theirs", "theirs_stderr", "ours", "ours_stderr"]
    names = ["label", "metric", *errors, "with_failures", "failed", "equal"]
    return Table(_COLUMNS, [*map(_row, headlines)], data=fields_of(headlines, names))


def _row(checked: HeadlineCheck) -> Row:
    where = ", ".join(checked.where.values())
    equal = Cell("not computed", "quiet") if checked.equal is None else Cell("equal", "good")
    return [
        f"{_name(checked)}{f' ({where})' if where else ''}",
        _value(checked.theirs, checked.theirs_stderr),
        _value(checked.ours, checked.ours_stderr),
        _value(checked.with_failures, None),
        f"{checked.failed:,}" if checked.failed else "",
        Cell("differs", "bad") if checked.equal is False else equal,
    ]


def _name(checked: HeadlineCheck) -> str:
    return checked.label if checked.label == checked.metric else f"{checked.label} {checked.metric}"


def _value(value: float | None, stderr: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if stderr is None else f"{value:.4g} ± {stderr:.2g}"


def _missing(imported: Imported) -> str:
    missing = (imported.planned or 0) - sum(imported.responses.values()) - imported.rejected
    return f"; {missing:,} more were planned" if missing > 0 else ""


def _place(files: Sequence[str]) -> str:
    """The file, or the folder of several, as the user would type it: relative below the current folder."""
    path = os.path.commonpath(files) if all(map(os.path.isabs, files)) else _some(files)
    return os.path.relpath(path) if path.startswith(f"{os.getcwd()}{os.sep}") else path


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return f"{', '.join(names[:_MOST_NAMED])}{f' and {more:,} more' if more > 0 else ''}"


def _reasons(imports: Sequence[Imported]) -> list[str]:
    checks = (each for imported in imports for each in imported.headlines)
    reasons = values_by_key((each.reason, _name(each)) for each in checks if each.reason)
    return [f"{_some([*dict.fromkeys(names)])}: {reason}" for reason, names in reasons.items()]
