"""The client of PhariaStudio, a closed service that Assay has none for."""

from typing import Any

from assay.errors import UserError


class StudioClient:
    """Only a name to import."""

    def __init__(self, project: str, *args: Any, **kwargs: Any) -> None:
        raise UserError(
            f"the project {project!r} in PhariaStudio cannot be reached: it is a closed service",
            fix="use the file repositories, and FileBenchmarkRepository for benchmarks",
        )
