"""Which files of a model's folder Assay wrote: what others wrote is not replaced.

`written.json` has the digest of each file.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

from assay import reading
from assay.errors import UserError
from assay.store.files import write_file
from assay.store.stores import EXPERIMENT_FILES, MANIFEST
from assay.store.written import digest_of

_FILE = "written.json"


class _Entry(msgspec.Struct):
    digest: str
    begun: int = 0  # lines of another tool, which an earlier version went on with


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
        return not path.exists() or (
            entry is not None and not entry.begun and entry.digest == digest_of(path)
        )

    def claim(self, name: str, content: Iterable[bytes]) -> None:
        """Remember a file that holds exactly what Assay would write: of a version that kept no list, or killed
        between the two."""
        if not self.is_ours(name):
            made = blake2b(digest_size=16)
            for part in content:
                made.update(part)
            if made.hexdigest() == digest_of(self.folder / name):
                self._note(name, made.hexdigest())

    def refuse_others(
        self,
        names: Iterable[str],
        *,
        experiment: bool = False,
        fix: str = "choose another folder with -o, or replace them with --force",
    ) -> None:
        """Raise if a file would be replaced that is not as Assay left it; `experiment`: that is kept here, too."""
        theirs = [name for name in names if not self.is_ours(name)]
        if experiment and not (self.folder / MANIFEST).exists():
            theirs += [name for name in EXPERIMENT_FILES if (self.folder / name).exists()]
        if theirs:
            raise UserError(
                f"Assay would replace what it did not write: {', '.join(theirs)}",
                where=str(self.folder),
                fix=fix,
            )

    def write(self, name: str, content: Iterable[bytes]) -> None:
        """Write a file and remember it."""
        made = blake2b(digest_size=16)

        def passing() -> Iterator[bytes]:
            for part in content:
                made.update(part)
                yield part

        write_file(self.folder / name, passing())
        self._note(name, made.hexdigest())

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        self._entries.pop(name, None)

    def _note(self, name: str, made: str) -> None:
        self._entries[name] = _Entry(made)
        write_file(
            self.folder / _FILE,
            msgspec.json.format(msgspec.json.encode(self._entries), indent=2) + b"\n",
        )
