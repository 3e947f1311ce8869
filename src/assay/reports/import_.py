"""What an import left behind: a few lines for each dataset."""

from collections.abc import Sequence

from assay.engine.experiment.import_rows import Imported
from assay.reports.sheet import Line, Sheet, count, counts_text


def view(imports: Sequence[Imported]) -> Sheet:
    lines: list[Line] = []
    for imported in imports:
        lines += [
            Line(f"{imported.dataset}: {imported.format}, {', '.join(imported.read_from)}", wraps=False),
            Line(f"items: {imported.items:,}"),
            Line(f"responses: {counts_text(imported.responses, 'none')} of {count(len(imported.agents), 'agent')}"),
            Line(f"evaluations: {counts_text(imported.evaluations, 'none')}"),
            Line(f"files: {imported.folder}", wraps=False),
        ]
    return Sheet(parts=lines, notes=[note for imported in imports for note in imported.notes])
