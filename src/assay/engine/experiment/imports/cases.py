"""A reader's cases on their way to a folder: each row is encoded once, as it comes; the lines are then only copied."""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import msgspec

from assay.engine.experiment.dataset import StoredItems
from assay.engine.experiment.imports.foreign import Foreign, ForeignCase
from assay.engine.experiment.imports.rows import Written
from assay.errors import UserError
from assay.records import Evaluation, Response
from assay.store.items import stored_item
from assay.store.keys import digest, id_hash
from assay.store.keyset import Seen

_BUFFER = 1 << 20
_BATCH = 16  # rows that are encoded at once
_outcome = attrgetter("outcome")


def spool(folder: Path) -> IO[bytes]:
    """A file for what has to wait, which nobody else sees."""
    return TemporaryFile(prefix=".assay-", dir=folder, buffering=_BUFFER)


class Cases:
    """A reader's cases, read once. An item whose id another item has gets an id of its own, and so have its rows."""

    def __init__(self, foreign: Foreign, spools: Sequence[IO[bytes]], where: str = "") -> None:
        self._foreign, self._where = foreign, where or foreign.dataset
        self._items, self._evaluations, self._spans = spools
        self._ids, self._contents = Seen(), Seen()
        self._stored_ids = array("Q")
        self._apart: dict[int, str] = {}
        self._outcomes: Counter[str] = Counter()
        self._encode = msgspec.json.Encoder().encode
        self._encode_lines = msgspec.json.Encoder().encode_lines

    def responses(self) -> Iterator[Response]:
        any_response = False
        evaluations: list[Evaluation] = []
        for case in self._foreign.cases():
            if case.item is not None:
                case = self._with_item(case, case.item)
            if case.evaluations:
                evaluations += case.evaluations
                if len(evaluations) >= _BATCH:
                    self._write(evaluations)
                    evaluations = []
            if case.response is not None:
                any_response = True
                if case.spans:
                    self._spans.write(self._trace(case.response, case.spans))
                yield case.response
        self._write(evaluations)
        if not any_response:
            fix = "name a source that has answers"
            raise UserError("there is no response to import", where=self._where, fix=fix)

    def _write(self, evaluations: list[Evaluation]) -> None:
        self._outcomes.update(map(_outcome, evaluations))
        self._evaluations.write(self._encode_lines(evaluations))

    def _trace(self, response: Response, spans: Sequence[Any]) -> bytes:
        owner = {"key": response.key, "item_id": response.item_id, "owner": response.task}
        return self._encode({**owner, "sample_index": response.sample_index, "spans": spans}) + b"\n"

    def _with_item(self, case: ForeignCase, item: Any) -> ForeignCase:
        where, given = self._foreign.dataset, str(item["id"])
        id, line = stored_item(item, where)
        content = int.from_bytes(blake2b(line, digest_size=8).digest(), "big")
        if self._contents.add(content):
            own = id_hash(given)
            if not self._ids.add(own):
                number = int.from_bytes(digest("item", self._encode(item))[:8], "big")
                self._apart[content] = f"{given}~{number:016x}"
                id, line = stored_item({**item, "id": self._apart[content]}, where)
            self._stored_ids.append(own if id == given else id_hash(id))
            self._items.write(line + b"\n")
        return _renamed(case, self._apart[content]) if content in self._apart else case

    def items(self) -> StoredItems:
        return StoredItems(self._stored_ids, lambda: _blocks(self._items), self._rows)

    def _rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(place, row) of every item."""
        self._items.seek(0)
        rows = map(msgspec.json.Decoder(dict[str, Any]).decode, self._items)
        return ((f"{self._foreign.dataset}, item {number}", row) for number, row in enumerate(rows, 1))

    def evaluations(self) -> Iterator[Written]:
        counts = self._outcomes
        for block in _blocks(self._evaluations):
            yield Written(counts, block)
            counts = Counter[str]()

    def spans(self) -> Iterator[bytes]:
        """The lines, many at once."""
        return _blocks(self._spans)

    def notes(self) -> list[str]:
        if not self._apart:
            return []
        first = next(iter(self._apart.values()))
        what = "items have an id that another item has: they got ids of their own"
        return [f"{len(self._apart):,} {what}, the first is {first!r}"]


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines, many at once."""
    file.seek(0)
    while block := file.read(_BUFFER):
        yield block if block.endswith(b"\n") else block + file.readline()


def _renamed(case: ForeignCase, id: str) -> ForeignCase:
    rows: list[Response | Evaluation] = [*case.evaluations, *([case.response] if case.response else [])]
    for row in rows:
        row.item_id, row.sample_id = id, f"{id}_sample_{row.sample_index}"
        row.key = digest("apart", id.encode(), row.key.encode()).hex()
    for row in case.evaluations:
        row.responses = [case.response.key] if case.response and row.responses else row.responses
    return case
