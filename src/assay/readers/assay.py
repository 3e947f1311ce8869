"""Assay's own experiment folders."""

from pathlib import Path

from assay.engine.experiment.imports.own_folder import own_results
from assay.foreign import Foreign
from assay.sdk import reader


@reader
def assay(path: Path) -> list[Foreign]:
    """An experiment's folder, or a folder with several."""
    return [*own_results(path)]
