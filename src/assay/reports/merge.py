"""A merge: what each folder gave, and what the new one has."""

from assay.engine.experiment.merging.merge import Merged
from assay.reports.sheet import Line, Sheet, Table, columns_of, count, fields_of


def view(merged: Merged) -> Sheet:
    names = ["path", "responses", "responses_taken", "evaluations", "evaluations_taken"]
    rows = [
        [part.path, *(f"{number:,}" for number in (part.responses, part.responses_taken))]
        + [f"{number:,}" for number in (part.evaluations, part.evaluations_taken)]
        for part in merged.parts
    ]
    columns = columns_of("<from", "responses", "taken", "evaluations", "taken")
    planned = (
        f" of {merged.planned:,} planned" if merged.planned not in (None, merged.responses) else ""
    )
    whole = [count(merged.items, "item"), f"{merged.responses:,}{planned} responses"]
    whole += [count(merged.evaluations, "evaluation"), count(merged.metrics, "metric row")]
    lines = [Line(", ".join(whole), "good" if not merged.partial else "open")]
    if merged.repeated:
        lines.append(
            Line(
                f"{merged.repeated:,} rows were in several folders alike and are taken once",
                "quiet",
            )
        )
    if merged.decided:
        lines.append(
            Line(
                f"{count(merged.decided, 'row')} differed; --prefer decided which one stays", "open"
            )
        )
    if merged.partial:
        lines.append(Line(f"partial: {merged.partial}", "open"))
    if not merged.new:
        lines.append(Line("there was nothing to do: the folder is this merge already", "quiet"))
    lines.append(Line(f"files: {merged.folder}", wraps=False))
    parts = Table(columns=columns, rows=rows, data=fields_of(merged.parts, names))
    return Sheet(parts=[parts, *lines], notes=merged.notes)
