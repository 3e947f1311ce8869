"""A dataset repository of the Hugging Face hub as a folder."""

import os
from pathlib import Path
from typing import Any

from assay.errors import UserError
from assay.formats.intelligence_layer.evaluation.infrastructure.file_system_based_repository import (
    FileSystemBasedRepository,
)
from assay.formats.intelligence_layer.types import BadValue

_REPOSITORY_TYPE = "dataset"


class HuggingFaceRepository(FileSystemBasedRepository):
    """`repository_id` is `owner/name`; the repository is created if it is not there."""

    def __init__(self, repository_id: str, token: str, private: bool) -> None:
        if not repository_id or repository_id.endswith("/"):
            raise BadValue(f"{repository_id!r} is no repository of the hub", fix="write owner/name, without a final /")
        self.create_repository(repository_id, token, private)
        super().__init__(_hub().HfFileSystem(token=token), Path("datasets") / repository_id)
        self._repository_id = repository_id

    def mkdir(self, path: Path) -> None:
        """The hub has no folders but those of its files."""

    def create_repository(self, repository_id: str, token: str, private: bool) -> None:
        _hub().create_repo(
            repo_id=repository_id, token=token, repo_type=_REPOSITORY_TYPE, private=private, exist_ok=True
        )

    def delete_repository(self) -> None:
        """Remove the repository with all that is in it; one that is gone is no error."""
        _hub().delete_repo(
            repo_id=self._repository_id,
            token=self._file_system.token,
            repo_type=_REPOSITORY_TYPE,
            missing_ok=True,
        )


def _hub() -> Any:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        import huggingface_hub
    except ModuleNotFoundError:
        raise UserError(
            "repositories on the Hugging Face hub need the package huggingface_hub", fix="pip install 'assay[hf]'"
        ) from None
    return huggingface_hub
