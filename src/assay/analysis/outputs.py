"""What a config writes after a run: the same writers as `assay export`."""

from pathlib import Path

from assay.analysis.tables import Export, Tables
from assay.config import Config
from assay.steps.outputs import bind_outputs
from assay.steps.sources import find_source


def write_outputs(config: Config, folder: str | Path) -> list[str]:
    """Write a config's outputs from the rows in the folder; what there is to know about them."""
    notes: list[str] = []
    for output in bind_outputs(config):
        export = Export(Tables(find_source(folder)), output.table, output.path)
        notes += output.write(export, **output.params) or ()
        notes.append(f"{output.table} written to {output.path}")
    return notes
