"""Several files of one folder that grow side by side while rows are read once. They get their names when all
are whole."""

from contextlib import ExitStack
from pathlib import Path

from assay.store.ledger import OwnFile


class SideBySide(ExitStack):
    """A context: `write` adds to a file below the folder, `done` puts what was written so far in place. A file with
    content that Assay did not write is refused unless `force`."""

    def __init__(self, folder: Path, *, force: bool = False) -> None:
        super().__init__()
        self.folder = folder
        self._force = force
        self._files: dict[str, OwnFile] = {}
        self._filled = set[str]()

    def write(self, name: str, content: bytes) -> None:
        """Add to the file of this name, a path below the folder; the first time it is made, empty."""
        if name not in self._files:
            file = OwnFile(self.folder / name, force=self._force)
            self.enter_context(file)
            self._files[name] = file
        self._files[name].write(content)
        if content:
            self._filled.add(name)

    def is_empty(self, name: str) -> bool:
        """Return whether nothing was written under this name."""
        return name not in self._filled

    def done(self) -> None:
        for file in self._files.values():
            file.commit()
        self._files.clear()
