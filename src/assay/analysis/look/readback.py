"""A converted file is read again and compared with its source, row by row: what differs becomes its sidecar.

Rows are mostly in the same order, so each is compared with the next one of its kind in the source. Those that are not
wait in a file, found by address: 25 bytes of memory for each.
"""

import os
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

import msgspec
import numpy as np

from assay.analysis.look.export import TABLES, Tables
from assay.engine.experiment.imports.foreign import Foreign
from assay.engine.experiment.imports.own_folder import rows_of
from assay.engine.experiment.imports.patches import (
    SHAPES,
    RowKind,
    WrittenLine,
    address,
    digest_of_value,
)
from assay.engine.experiment.imports.sidecar import FILES, FileLine, SidecarHead
from assay.records import Evaluation, Response
from assay.store.files import make_folder, new_file, store_error
from assay.store.keyset import Seen
from assay.store.log import FileLog

Step = Callable[[int], None]
_TABLES: dict[RowKind, tuple[str, Any]] = {
    "item": ("items", dict[str, Any]),
    "response": ("responses", Response),
    "evaluation": ("evaluations", Evaluation),
}
_STEP = 4096
_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines
_BATCH = 64  # rows that are compared at once


def write_sidecar(
    path: Path, head: SidecarHead, tables: Tables, foreign: Foreign, step: Step
) -> Counter[str]:
    """Write what `foreign`, read from a converted file, lacks of its source; how many rows are not wholly in the
    file, by kind."""
    make_folder(path.parent)
    try:
        with open(new_file(path, path), "wb", buffering=1 << 20) as file:
            counts = _Comparison(tables, file, step).compare(foreign, head)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise store_error(error, path) from error
    return counts


class _Comparison:
    def __init__(self, tables: Tables, file: IO[bytes], step: Step) -> None:
        self._tables = tables
        self._file = file
        self._step = step
        self._counts: Counter[str] = Counter()

    def compare(self, foreign: Foreign, head: SidecarHead) -> Counter[str]:
        self._file.write(_encode(head) + b"\n")
        with ExitStack() as stack:
            sides = {kind: _Side(self._tables, kind, stack) for kind in _TABLES}
            items, responses, evaluations = sides["item"], sides["response"], sides["evaluation"]
            seen = Seen()
            for done, case in enumerate(foreign.cases(), 1):
                if case.item is not None:
                    item = dict(case.item)
                    if seen.add(hash(item.get("id")) & 0xFFFF_FFFF_FFFF_FFFF):
                        self._take(items, item)
                if case.response is not None:
                    self._take(responses, case.response)
                for evaluation in case.evaluations:
                    self._take(evaluations, evaluation)
                if not done % _STEP:
                    self._step(done)
            for side in sides.values():
                self._rest(side)
        self._files()
        return +self._counts

    def _take(self, side: "_Side", read: Any) -> None:
        """Compare a row of the file with the next one of the source, or put it aside."""
        true = side.next
        if true is None or not side.fits(read, true):
            side.put_aside(read)
            return
        side.next = next(side.rows, None)
        side.read.append(read)
        side.true.append(true)
        if len(side.read) >= _BATCH:
            self._write_compared(side)

    def _rest(self, side: "_Side") -> None:
        """The rows of the source that were not next in turn, then those of the file that the source does not have."""
        side.sort()
        for true in chain([side.next] if side.next is not None else (), side.rows):
            read = side.find(true)
            if read is None:
                self._counts[side.kind] += 1
                self._write([WrittenLine(side.kind, address(true), adds=true)])
                continue
            side.read.append(read)
            side.true.append(true)
            if len(side.read) >= _BATCH:
                self._write_compared(side)
        self._write_compared(side)
        for read in side.left():
            self._write([WrittenLine(side.kind, address(read), digest_of_value(read), extra=True)])

    def _write_compared(self, side: "_Side") -> None:
        lines = SHAPES[side.kind].lines(side.read, side.true) if side.read else []
        self._counts[side.kind] += sum(1 for line in lines if line.adds or line.fixes)
        self._write(lines)
        side.read, side.true = [], []

    def _write(self, lines: list[WrittenLine]) -> None:
        self._file.write(_encode_lines(lines))

    def _files(self) -> None:
        """What an experiment has beside items, responses and evaluations."""
        folder = self._tables.source.folder
        for name, file in FILES.items() if folder is not None else ():
            for _, line in FileLog(cast("Path", folder) / file).scan():
                if line and not line.isspace():
                    self._counts[name] += 1
                    self._file.write(_encode(FileLine(name, msgspec.Raw(line))) + b"\n")


class _Side:
    """The rows of one kind: those of the source in their order, and those of the file that were not next in turn."""

    def __init__(self, tables: Tables, kind: RowKind, stack: ExitStack) -> None:
        self.kind: RowKind = kind
        self.fits = {
            "item": _same_item,
            "response": _same_response,
            "evaluation": _same_evaluation,
        }[kind]
        table, self._type = _TABLES[kind]
        self.read: list[Any] = []
        self.true: list[Any] = []
        self.rows = rows_of(tables.source, TABLES[table], self._type)
        self.next: Any = next(self.rows, None)
        self._spool: IO[bytes] | None = None
        self._stack = stack
        self._hashes, self._positions = array("q"), array("q")
        self._masks: set[tuple[bool, ...]] = set()
        self._size = 0

    def put_aside(self, read: Any) -> None:
        if self._spool is None:
            self._spool = self._stack.enter_context(TemporaryFile(prefix="assay-"))  # noqa: SIM115
        place = address(read)
        mask = tuple(map(bool, place[2:]))
        self._masks.add(mask)
        self._hashes.append(hash((*place[:2], *place[2:])))
        self._positions.append(self._size)
        self._size += self._spool.write(_encode(read) + b"\n")

    def sort(self) -> None:
        order = (
            np.argsort(np.frombuffer(self._hashes, np.int64), kind="stable")
            if self._hashes
            else np.zeros(0, int)
        )
        self._order = array("q", order.astype(np.int64).tobytes())
        self._sorted = array("q", (self._hashes[number] for number in self._order))
        self._used = bytearray(len(self._order))
        self._decode = msgspec.json.Decoder(self._type).decode
        if self._spool is not None:
            self._spool.flush()

    def find(self, true: Any) -> Any:
        """The row of the file that stands for one of the source: with as much of its address as the file holds."""
        place = address(true)
        for mask in sorted(self._masks, reverse=True):
            held = [part if there else "" for part, there in zip(place[2:], mask, strict=True)]
            sought = hash((*place[:2], *held))
            at = bisect_left(self._sorted, sought)
            while at < len(self._sorted) and self._sorted[at] == sought:
                if not self._used[at]:
                    read = self._read(self._order[at])
                    if self.fits(read, true):
                        self._used[at] = 1
                        return read
                at += 1
        return None

    def left(self) -> Iterator[Any]:
        return (self._read(self._order[at]) for at, used in enumerate(self._used) if not used)

    def _read(self, number: int) -> Any:
        assert self._spool is not None
        self._spool.seek(self._positions[number])
        return self._decode(self._spool.readline())


def _same_item(read: Any, true: Any) -> bool:
    return read.get("id") == true.get("id")


def _same_response(read: Response, true: Response) -> bool:
    return (
        read.item_id == true.item_id
        and read.sample_index == true.sample_index
        and read.model_name in (true.model_name, "")
        and read.task in (true.task, "")
    )


def _same_evaluation(read: Evaluation, true: Evaluation) -> bool:
    return (
        read.item_id == true.item_id
        and read.label == true.label
        and read.sample_index == true.sample_index
        and read.model_name in (true.model_name, "")
        and read.scorer in (true.scorer, "")
    )
