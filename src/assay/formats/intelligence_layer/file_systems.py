"""Files on any file system that has fsspec's methods: the hub's, or the local one without fsspec."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.errors import UserError
from assay.formats.intelligence_layer.types import BadValue

_REPOSITORY_TYPE = "dataset"


class FileSystemBasedRepository:
    """A folder of a file system; it is made if it is missing."""

    def __init__(self, file_system: Any, root_directory: Path) -> None:
        self._file_system = file_system
        self._root_directory = root_directory
        self.mkdir(root_directory)

    def write_utf8(self, path: Path, content: str, create_parents: bool = False) -> None:
        if create_parents:
            self.mkdir(path.parent)
        self._file_system.write_text(self.path_to_str(path), content, encoding="utf-8")

    def read_utf8(self, path: Path) -> str:
        return self._file_system.read_text(self.path_to_str(path), encoding="utf-8")

    def remove_file(self, path: Path) -> None:
        self._file_system.rm_file(self.path_to_str(path))

    def exists(self, path: Path) -> bool:
        return self._file_system.exists(self.path_to_str(path))

    def mkdir(self, path: Path) -> None:
        """Make a folder with its parents; another process may have made it meanwhile."""
        if self.exists(path):
            return
        try:
            self._file_system.makedir(self.path_to_str(path), create_parents=True)
        except FileExistsError:
            return

    def file_names(self, path: Path, file_type: str = "json") -> Sequence[str]:
        """The names, without their ending, of the files of one type."""
        files = [Path(file) for file in self._file_system.ls(self.path_to_str(path), detail=False)]
        return [file.stem for file in files if file.suffix == f".{file_type}"]

    @staticmethod
    def path_to_str(path: Path) -> str:
        return path.as_posix()


class LocalFileSystem:
    """As much of fsspec's local file system as repositories use."""

    def write_text(self, path: str, value: str, encoding: str = "utf-8") -> None:
        Path(path).write_text(value, encoding=encoding)

    def read_text(self, path: str, encoding: str = "utf-8") -> str:
        return Path(path).read_text(encoding=encoding)

    def rm_file(self, path: str) -> None:
        Path(path).unlink()

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def makedir(self, path: str, create_parents: bool = True) -> None:
        Path(path).mkdir(parents=create_parents)

    def ls(self, path: str, detail: bool = False) -> list[str]:
        return [str(entry) for entry in Path(path).iterdir()]


class HuggingFaceRepository(FileSystemBasedRepository):
    """`repository_id` is `owner/name`; the repository is created if it is not there."""

    def __init__(self, repository_id: str, token: str, private: bool) -> None:
        if not repository_id or repository_id.endswith("/"):
            raise BadValue(
                f"{repository_id!r} is not a repository of the hub", fix="write owner/name, without a final /"
            )
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
        """Remove the repository with all that is in it; one that is gone is not an error."""
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
