"""The report of an experiment: `assay report` as an output of a config."""

from pathlib import Path

from assay.analysis.look.export import Export
from assay.sdk import UserError, writer
from assay.viewer.experiments import Experiments
from assay.viewer.report import SAMPLES, html


@writer(whole="report.html")
def report(export: Export, *, samples: int = SAMPLES, title: str = "") -> None:
    """One HTML file: leaderboard, comparisons, plots and up to `samples` samples, the hardest items first (-1: all)."""
    folder = export.tables.source.folder
    if folder is None:
        raise UserError(
            "a report is made of an experiment's folder", where=str(export.tables.source.path)
        )
    name = export.path or Path("report.html")
    export.write(
        html(Experiments([folder]), name, samples=None if samples < 0 else samples, title=title)
    )
