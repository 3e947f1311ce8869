"""How lists and descriptions of benchmarks, and what was pulled of them, are shown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from assay.reports.sheet import Cell, Line, Part, Sheet, Table, columns_of, facts_table

if TYPE_CHECKING:
    from assay.analysis.look.benchmarks import BenchmarkEntry, BenchmarkShown

_MANY = 500  # lines: measuring the widths of more takes longer than reading the index


def list_view(entries: "Sequence[BenchmarkEntry]") -> Sheet:
    """A table; a very long one as plain lines, at once. With reasons, these stand in place of the data."""
    if len(entries) > _MANY:
        lines = [
            f"{name:<44} {asks or kind:<16} {data}".rstrip()
            for name, kind, asks, _, data, _ in entries
        ]
        return Sheet([Line("\n".join(lines), wraps=False)])
    reasons = all(entry.unsupported for entry in entries)
    rows = [[*_columns(entry), entry.unsupported if reasons else entry.data] for entry in entries]
    heads = ["<benchmark", "<asks", "shots", "<why not" if reasons else "<data"]
    data = (entries[0]._fields if entries else (), entries)
    return Sheet([Table(columns_of(*heads), rows, compact=True, data=data)])


def _columns(entry: "BenchmarkEntry") -> list[str]:
    shots = "" if entry.shots is None else str(entry.shots)
    return [entry.name, entry.asks or entry.kind, shots]


def description_view(shown: "Sequence[BenchmarkShown]") -> Sheet:
    parts: list[Part] = []
    for benchmark in shown:
        rows = [[Cell(name, "quiet"), value] for name, value in benchmark.facts.items()]
        parts += [
            Line(benchmark.name, "head"),
            facts_table(["<fact", "<value"], rows),
        ]
        if benchmark.prompt:
            parts += [Line(""), Line("the first document", "head")]
            parts += [Line(line, depth=1, wraps=False) for line in benchmark.prompt.splitlines()]
    return Sheet(parts)


def pull_view(results: "Sequence[Any]") -> Sheet:
    rows = [
        [each.name, f"{len(each.tasks):,}", f"{sum(each.rows.values()):,}", each.problem or "here"]
        for each in results
    ]
    return Sheet([Table(columns_of("<data", "tasks", "rows", "<state"), rows, compact=True)])
