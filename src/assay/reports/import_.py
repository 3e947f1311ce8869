"""What an import left behind: a few lines for each dataset."""

from collections.abc import Mapping, Sequence

from assay.engine.experiment.import_rows import Imported
from assay.reports.sheet import Line, Sheet, count


def view(imports: Sequence[Imported]) -> Sheet:
    lines: list[Line] = []
    for imported in imports:
        lines += [
            Line(f"{imported.dataset}: {imported.format}, {', '.join(imported.read_from)}", wraps=False),
            Line(f"items: {imported.items:,}"),
            Line(f"responses: {_counts(imported.responses)} of {count(len(imported.agents), 'agent')}"),
            Line(f"evaluations: {_counts(imported.evaluations)}"),
            Line(f"files: {imported.folder}", wraps=False),
        ]
    return Sheet(parts=lines, notes=[note for imported in imports for note in imported.notes])


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {outcome}" for outcome, number in counts.items()) or "none"
