"""A reader's cases on their way to a folder: one pass, each row encoded once, into the files that it will stay in."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import msgspec
from xxhash import xxh3_64_intdigest

from assay.engine.experiment.imports.foreign import Foreign, ForeignCase
from assay.errors import UserError
from assay.records import Evaluation, Response
from assay.store.items import stored_item
from assay.store.keys import digest, id_hash
from assay.store.keyset import Seen
from assay.store.new_rows import NewRows
from assay.store.stores import FlatStore

_BATCH = 16  # rows that are encoded at once
_outcome = attrgetter("outcome")
_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines


class _Rows:
    """Answers or labels, encoded many at once."""

    def __init__(self, new: NewRows) -> None:
        self.new = new
        self.counts: Counter[str] = Counter()
        self._batch: list[Response | Evaluation] = []

    def add(self, rows: Sequence[Response | Evaluation]) -> None:
        self._batch += rows
        if len(self._batch) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        self.counts.update(map(_outcome, self._batch))
        self.new.write(_encode_lines(self._batch))
        self._batch = []


class Cases:
    """A reader's cases. `read` writes their rows; `commit` of each kind puts them in the folder. An item whose id
    another item has gets an id of its own, and so have its rows."""

    def __init__(
        self, foreign: Foreign, store: FlatStore, id: str, stack: ExitStack, where: str
    ) -> None:
        self._foreign, self._where = foreign, where
        self._ids, self._contents = Seen(), Seen()
        self._apart: dict[int, str] = {}
        self._hash = blake2b(digest_size=16)
        self.items = stack.enter_context(store.new_rows("dataset", id, read=self._hash.update))
        self.spans = stack.enter_context(store.new_rows("run", id, "traces"))
        self.responses = _Rows(stack.enter_context(store.new_rows("run", id)))
        self.evaluations = _Rows(stack.enter_context(store.new_rows("evaluation", id)))
        self.item_count = 0

    def read(self) -> None:
        """The one pass over the source."""
        responses, evaluations = self.responses, self.evaluations
        for case in self._foreign.cases():
            if case.item is not None:
                case = self._with_item(case, case.item)
            if case.evaluations:
                evaluations.add(case.evaluations)
            if case.response is not None:
                if case.spans:
                    self.spans.write(_trace(case.response, case.spans))
                responses.add((case.response,))
        responses.flush()
        evaluations.flush()
        missing = "item" if not self.item_count else "response" if not responses.counts else ""
        if missing:
            what = f"there is no {missing} to import"
            raise UserError(what, where=self._where, fix="name a source that has answers")

    def _with_item(self, case: ForeignCase, item: Any) -> ForeignCase:
        where, given = self._foreign.dataset, str(item["id"])
        id, line = stored_item(item, where)
        content = xxh3_64_intdigest(line)
        if self._contents.add(content):
            if not self._ids.add(id_hash(given)):
                number = int.from_bytes(digest("item", _encode(item))[:8], "big")
                id = f"{given}~{number:016x}"
                while not self._ids.add(id_hash(id)):
                    id += "~"
                self._apart[content] = id
                _, line = stored_item({**item, "id": id}, where)
            self.item_count += 1
            self.items.write(line + b"\n")
        return _renamed(case, self._apart[content]) if content in self._apart else case

    @property
    def content(self) -> str:
        """The hash of the items, once they are committed."""
        return self._hash.hexdigest()

    def notes(self) -> list[str]:
        if not self._apart:
            return []
        first = next(iter(self._apart.values()))
        what = "items have an id that another item has: they got ids of their own"
        return [f"{len(self._apart):,} {what}, the first is {first!r}"]


def _trace(response: Response, spans: Sequence[Any]) -> bytes:
    owner = {"key": response.key, "item_id": response.item_id, "owner": response.task}
    return _encode({**owner, "sample_index": response.sample_index, "spans": spans}) + b"\n"


def _renamed(case: ForeignCase, id: str) -> ForeignCase:
    rows: list[Response | Evaluation] = [
        *case.evaluations,
        *([case.response] if case.response else []),
    ]
    for row in rows:
        row.item_id, row.sample_id = id, f"{id}_sample_{row.sample_index}"
        row.key = digest("apart", id.encode(), row.key.encode()).hex()
    for row in case.evaluations:
        row.responses = [case.response.key] if case.response and row.responses else row.responses
    return case
