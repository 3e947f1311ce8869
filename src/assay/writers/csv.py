"""CSV for spreadsheets, which take a text for a formula if it begins like one."""

from assay.analysis.look.export import Export
from assay.reports.documents import csv_lines
from assay.sdk import writer


@writer
def csv(export: Export, *, keep_formulas: bool = False) -> None:
    """Comma-separated values with a header; nested values are JSON text, null is empty."""
    columns = list(export.columns())
    export.write(csv_lines(columns, export.cells(), keep_formulas=keep_formulas))
