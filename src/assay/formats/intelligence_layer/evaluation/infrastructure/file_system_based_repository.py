"""Files on any file system that has fsspec's methods: the hub's, or the local one without fsspec."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


class FileSystemBasedRepository:
    """A folder of a file system; it is made if it is not there."""

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
