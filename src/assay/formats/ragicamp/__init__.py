"""RAGiCamp's metrics and files."""

from assay.formats.ragicamp import aliases as aliases  # registers scorers
