"""RAGiCamp's old results, five files a run, as its three files.

    python examples/convert_old_format.py OLD NEW

OLD is a folder or a file, NEW the folder that gets questions, predictions and summaries.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from assay.analysis.look.export import Export, Tables
from assay.engine.experiment.imports.results import import_results
from assay.engine.experiment.resolve import find_source
from assay.errors import AssayError
from assay.registry import writer


def convert(old: str, new: str) -> list[str]:
    """What there is to know about the files that were read."""
    notes: list[str] = []
    with TemporaryDirectory() as temporary:
        for found in import_results(old, temporary, format_name="ragicamp"):
            export = Export(Tables(find_source(found.folder)), "responses", Path(new))
            notes += [
                *found.notes,
                *writer.get("ragicamp")(export, dataset=found.dataset),
            ]
    return notes


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        for note in convert(*sys.argv[1:]):
            print(f"note: {note}")
    except AssayError as error:
        sys.exit(f"error: {error}")
