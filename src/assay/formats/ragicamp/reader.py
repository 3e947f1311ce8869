"""RAGiCamp's results: the three files, the five before them, raw predictions, and the folders that came later."""

from pathlib import Path

from assay.engine.experiment.import_rows import Foreign
from assay.formats.ragicamp.readers import read
from assay.registry import reader


@reader
def ragicamp(path: Path, *, dataset: str = "") -> list[Foreign]:
    """A folder with RAGiCamp's results, or one of its files.

    Parameters:
    dataset: only the results on this dataset
    """
    return list(read(path, dataset=dataset))
