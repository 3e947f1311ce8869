"""The rows of a folder scored once more by the Evaluator: judges answer from `calls.jsonl`, and nobody else is asked.

Nothing is written: what is computed goes to a log that compares. A call that is not in the log fails, and while scorers
run this process opens no connection.
"""

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.engine.experiment.existing import ExistingResponses
from assay.engine.experiment.runs import answers_of
from assay.sdk import Kind, Log, Manifest
from assay.store.log import FileLog
from assay.store.memory_log import MemoryLog
from assay.store.stores import MemoryStore

NOT_LOGGED = "this call is not in calls.jsonl, and verifying asks nobody"


class Replay(MemoryStore):
    """Shows the artefacts and the log of calls of a folder; what is made anew stays in memory."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._shown: dict[tuple[Kind, str], tuple[Log, Manifest | None]] = {}
        self._calls = _Calls(folder / "calls.jsonl")
        self._forgotten = _Forgotten()

    def show(self, kind: Kind, id: str, log: Log, manifest: Manifest | None) -> None:
        self._shown[kind, id] = log, manifest

    def ids(self, kind: Kind) -> list[str]:
        return sorted(id for shown, id in self._shown if shown == kind)

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        shown = self._shown.get((kind, id))
        return super().manifest(kind, id) if shown is None else shown[1]

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        if name:
            return self._calls if name == "calls" else self._forgotten
        shown = self._shown.get((kind, id))
        return super().log(kind, id) if shown is None else shown[0]


class _Calls(FileLog):
    """The calls that were paid: they are read, and none is added."""

    def append(self, lines: bytes) -> None:
        raise AssertionError("a call was made")


class _Forgotten(MemoryLog):
    def append(self, lines: bytes) -> None:
        pass


class Bench(ExistingResponses):
    """A folder made ready for computing from its rows, which have the ids that they had in its evaluation."""

    def show(self, *, answers: bool = False) -> Replay:
        """Return a store that shows responses and items; `answers`: with the keys by which evaluations name the
        responses, for metrics."""
        store = Replay(self.folder)
        self.store = store  # type: ignore[assignment]
        self._show(lambda run: run.evidence("run").log)
        self._find_items()
        if answers:
            self._show(answers_of)
        return store

    def runs(self) -> list[str]:
        manifest = self.sources[0].manifest("evaluation")
        inputs = manifest.inputs if manifest is not None else []
        ids = [entry["id"] for entry in inputs if entry.get("kind") == "run"]
        return ids if len(ids) == len(self._runs) else super().runs()


@contextmanager
def no_network() -> Generator[None]:
    """Refuse connections of this process to other machines and to itself: user code may try them."""

    def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
        def guard(self: socket.socket, *arguments: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                raise PermissionError("verifying uses no network")
            return call(self, *arguments)

        return guard

    names = ("connect", "connect_ex", "sendto")
    before = {name: vars(socket.socket).get(name) for name in names}
    for name in names:
        setattr(socket.socket, name, refusing(getattr(socket.socket, name)))
    try:
        yield
    finally:
        for name, call in before.items():
            if call is None:
                delattr(socket.socket, name)  # the inherited one shows again
            else:
                setattr(socket.socket, name, call)
