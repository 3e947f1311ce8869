"""Which files of a model's folder Assay wrote: what others wrote is not replaced, and response files that they have
begun are continued.

`written.json` has the digest of each file, and how many of its first lines are another tool's.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.errors import UserError
from assay.store.files import write_file
from assay.store.stores import EXPERIMENT_FILES, MANIFEST
from assay.store.written import digest_of

_FILE = "written.json"


class _Entry(msgspec.Struct):
    digest: str
    begun: int = 0


class _Row(msgspec.Struct):
    id: Any = None
    response: Any = None


class Written:
    """What Assay wrote into one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._entries: dict[str, _Entry] = {}
        file = folder / _FILE
        if file.exists():
            try:
                self._entries = msgspec.json.decode(reading.content(file), type=dict[str, _Entry])
            except msgspec.MsgspecError as error:
                raise UserError(
                    f"the list of files is broken: {error}", where=str(file), fix="remove it"
                ) from None
        elif (
            folder / "scores.json"
        ).exists():  # of a version that kept no list; no other tool writes such a file
            made = [
                path
                for pattern in ("judge_results_*.jsonl", "score*.json")
                for path in folder.glob(pattern)
            ]
            self._entries = {path.name: _Entry(digest_of(path)) for path in made}

    def is_ours(self, name: str) -> bool:
        """Whether the file is as Assay left it, or not there at all."""
        path, entry = self.folder / name, self._entries.get(name)
        return not path.exists() or (entry is not None and entry.digest == digest_of(path))

    def begun(self, name: str) -> int:
        """How many lines of a response file are another tool's: all of a file that is not as Assay left it."""
        if self.is_ours(name):
            return self._entries[name].begun if (self.folder / name).exists() else 0
        with reading.opened(self.folder / name) as file:
            return sum(1 for _ in file)

    def claim(self, name: str) -> None:
        """The file has nothing that the run does not have: it is ours, but for what was another's before."""
        entry = self._entries.get(name)
        self._note(name, digest_of(self.folder / name), entry.begun if entry else 0)

    def refuse_others(self, names: Iterable[str], *, experiment: bool = False) -> None:
        """Raise if a file would be replaced that is not as Assay left it; `experiment`: that is kept here, too."""
        theirs = [name for name in names if not self.is_ours(name)]
        if experiment and not (self.folder / MANIFEST).exists():
            theirs += [name for name in EXPERIMENT_FILES if (self.folder / name).exists()]
        if theirs:
            raise UserError(
                f"Assay would replace what it did not write: {', '.join(theirs)}",
                where=str(self.folder),
                fix="choose another folder with -o, or replace them with --force",
            )

    def write(self, name: str, content: Iterable[bytes], begun: int = 0) -> None:
        """Write a file and remember it."""
        made = blake2b(digest_size=16)

        def passing() -> Iterator[bytes]:
            for part in content:
                made.update(part)
                yield part

        write_file(self.folder / name, passing())
        self._note(name, made.hexdigest(), begun)

    def write_lines(self, name: str, rows: Iterable[tuple[str, bytes]]) -> None:
        """Write a response file: another tool's lines as they are, then the `rows`, by id, that these do not answer."""
        ids = [id for id, _ in self._others(name)]
        answered = set(ids)
        others = (line for _, line in self._others(name))
        ours = (line + b"\n" for id, line in rows if id not in answered)
        self.write(name, chain(others, ours), len(ids))

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        self._entries.pop(name, None)

    def _others(self, name: str) -> Iterator[tuple[str, bytes]]:
        """(id, line) of the lines that another tool wrote, without those that have no response or are cut off."""
        begun = self.begun(name)
        if not begun:
            return
        decode = msgspec.json.Decoder(_Row).decode
        with reading.opened(self.folder / name) as file:
            for line in islice(file, begun):
                try:
                    row = decode(line)
                except (ValueError, RecursionError):
                    if line.endswith(b"\n"):
                        yield "", line
                    continue
                if row.response is not None:
                    yield str(row.id), line if line.endswith(b"\n") else line + b"\n"

    def _note(self, name: str, made: str, begun: int) -> None:
        self._entries[name] = _Entry(made, begun)
        write_file(
            self.folder / _FILE,
            msgspec.json.format(msgspec.json.encode(self._entries), indent=2) + b"\n",
        )
