"""Several files of one folder that grow side by side while rows are read once. They get their names when all
are whole."""

import os
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import IO

from assay.store.files import make_folder, private_mode, store_error, temporary_suffix
from assay.store.written import check_replaceable, remember


class SideBySide:
    """A context: `write` adds to a file below the folder, `done` puts what was written so far in place. A file with
    content that Assay did not write is refused unless `force`."""

    def __init__(self, folder: Path, *, force: bool = False) -> None:
        self.folder = folder
        self._force = force
        self._files: dict[str, IO[bytes]] = {}
        self._held = ExitStack()

    def __enter__(self) -> "SideBySide":
        try:
            make_folder(self.folder)
        except OSError as error:
            raise store_error(error, self.folder) from error
        beside = TemporaryDirectory(prefix=".assay-", suffix=temporary_suffix(), dir=self.folder)
        self._aside = Path(self._held.enter_context(beside))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files.values():
            file.close()
        self._held.close()

    def write(self, name: str, content: bytes) -> None:
        """Add to the file of this name, a path below the folder; the first time it is made, empty."""
        file = self._files.get(name)
        if file is None:
            check_replaceable(self.folder / name, force=self._force)
            place = self._aside / str(len(self._files))
            file = self._files[name] = open(place, "wb", opener=_private)  # noqa: SIM115
        file.write(content)

    def is_empty(self, name: str) -> bool:
        """Whether nothing was written under this name."""
        file = self._files.get(name)
        return file is None or file.tell() == 0

    def done(self) -> None:
        for name, file in self._files.items():
            path = self.folder / name
            try:
                file.flush()
                os.fsync(file.fileno())
                file.close()
                make_folder(path.parent)
                os.replace(file.name, path)
            except OSError as error:
                raise store_error(error, path) from error
            remember(path)
        self._files.clear()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, private_mode())
