"""RAGiCamp's metrics and files."""

from assay.formats.ragicamp import aliases as aliases  # registers scorers
from assay.formats.ragicamp import questions as questions  # registers the dataset
from assay.formats.ragicamp import writer as writer  # registers the export
