"""Datasets in PhariaStudio, a closed service that Assay has no client for."""

from typing import Any

from assay.errors import UserError


class StudioDatasetRepository:
    """Only a name to import."""

    def __init__(self, studio_client: Any) -> None:
        raise UserError(
            "datasets in PhariaStudio cannot be reached: it is a closed service",
            fix="use FileDatasetRepository, or HuggingFaceDatasetRepository to share datasets",
        )
