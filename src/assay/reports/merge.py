"""A merge: what each folder gave, and what the new one has."""

from collections.abc import Iterator

from assay.engine.experiment.merging.merge import Merged
from assay.reports.sheet import Line, Sheet, Table, columns_of, count, fields_of

_COUNTS = ["responses", "responses_taken", "evaluations", "evaluations_taken"]


def view(merged: Merged) -> Sheet:
    rows = [[part.path, *(f"{getattr(part, name):,}" for name in _COUNTS)] for part in merged.parts]
    columns = columns_of("<from", "responses", "taken", "evaluations", "taken")
    data = fields_of(merged.parts, ["path", *_COUNTS])
    return Sheet([Table(columns, rows, data=data), *_lines(merged)], merged.notes)


def _lines(merged: Merged) -> Iterator[Line]:
    planned = (
        f" of {merged.planned:,} planned" if merged.planned not in (None, merged.responses) else ""
    )
    whole = [count(merged.items, "item"), f"{merged.responses:,}{planned} responses"]
    whole += [count(merged.evaluations, "evaluation"), count(merged.metrics, "metric row")]
    yield Line(", ".join(whole), "open" if merged.partial else "good")
    if merged.repeated:
        alike = f"{merged.repeated:,} rows were in several folders alike and are taken once"
        yield Line(alike, "quiet")
    if merged.decided:
        rows = count(merged.decided, "row")
        yield Line(f"{rows} differed; --prefer decided which one stays", "open")
    if merged.partial:
        yield Line(f"partial: {merged.partial}", "open")
    if not merged.new:
        yield Line("there was nothing to do: the folder is this merge already", "quiet")
    yield Line(f"files: {merged.folder}", wraps=False)
