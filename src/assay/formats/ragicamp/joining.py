"""An experiment's responses by agent and item, each with its evaluations: found by position, never held.

Agents come in the order of their names and answers in the order of the items, so that equal rows give equal files in
whatever order they stand on disk. Memory holds about 30 bytes for a response and 16 for an evaluation.
"""

from array import array
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from assay.analysis.tables import Tables, foreign_row
from assay.formats.ragicamp.files import date_of, timestamp_of
from assay.formats.ragicamp.names import Cell, Samples, agent_names
from assay.formats.ragicamp.rows import Agent, Row, question_row
from assay.interfaces import Log
from assay.steps.join import response_key
from assay.store.index import ItemIndex, id_number

Ints = npt.NDArray[np.int64]
_NO_ITEM = np.iinfo(np.int64).max


class _Metadata(msgspec.Struct):
    prompt_template: Any = None


class _Address(msgspec.Struct):
    item_id: str
    sample_index: int = 0
    total_samples: int = 1
    model_name: str = ""
    metadata: _Metadata | None = None
    task: str = ""
    key: str = ""
    timestamp: float = 0.0
    outcome: str = "ok"


class _Label(msgspec.Struct):
    item_id: str
    sample_index: int = 0
    label: str = ""
    model_name: str = ""
    responses: list[str] = []
    scorer: str = ""


class Group(msgspec.Struct):
    """One agent's rows: `rows` are numbers of responses."""

    agent: Agent
    template: str
    rows: Ints
    errors: int


class Joining:
    """The rows of one experiment, joined."""

    def __init__(self, tables: Tables, samples: Samples) -> None:
        self.items = ItemIndex(tables.log("items"))
        self.matches = 0
        self._runs = _Many(tables.logs("responses"))
        self._evaluations = _Many(tables.source.logs("evaluation"))
        self._samples = samples
        self._cells: dict[Cell, int] = {}
        self._totals: dict[int, tuple[int, float]] = {}
        self._scorers: dict[str, set[str]] = {}
        self._read_responses()
        self._read_evaluations()

    def groups(self) -> Iterator[Group]:
        names = agent_names(list(self._cells))
        for cell in sorted(self._cells, key=lambda cell: names[cell]):
            code = self._cells[cell]
            rows = np.flatnonzero(self._cell == code)
            rows = rows[np.lexsort((rows, self._sample[rows], self._item[rows]))]
            total, timestamp = self._totals[code]
            mean = self._samples == "mean"
            agent = Agent(
                name=names[cell],
                model_name=cell.model,
                task=cell.task,
                sample_index=max(cell.sample, 0),
                total_samples=1 if mean else total,
                timestamp=timestamp_of(date_of(timestamp)),  # as a reader will find it
            )
            yield Group(agent, cell.template, rows, int(self._failed[rows].sum()))

    def place(self, rows: Ints) -> Ints:
        """Where the items of these responses are in the dataset; equal for samples of one item."""
        return self._item[rows]

    def response(self, number: int) -> Row:
        return _row(self._runs.read(int(self._position[number])))

    def question(self, response: Row) -> str:
        """What the response's item asks; of an item that is not there, what was sent."""
        item = self.items.get(str(response.get("item_id")))
        return str(response.get("prompt") or "") if item is None else question_row(item)["question"]

    def evaluations(self, number: int, key: str) -> list[tuple[str, Row]]:
        """(metric, evaluation) of a response, in the order of the metrics' names."""
        hashed = self._keys[number]
        first, last = np.searchsorted(self._of, hashed), np.searchsorted(self._of, hashed, side="right")
        rows = [_row(self._evaluations.read(int(position))) for position in self._at[first:last]]
        rows = [row for row in rows if not key or not row.get("responses") or row["responses"][0] == key]
        return sorted(((self.metric(row), row) for row in rows), key=lambda pair: (pair[0], pair[1].get("part") or [0]))

    def metric(self, evaluation: Row) -> str:
        """A label's name among the metrics: with its scorer where several give the same label."""
        label, scorer = str(evaluation.get("label") or ""), str(evaluation.get("scorer") or "")
        return f"{scorer}.{label}" if len(self._scorers.get(label, ())) > 1 else label

    @cached_property
    def _item(self) -> Ints:
        """The position of each response's item: the order of the dataset. Items that are not there come last."""
        found = self.items.positions(self._hashes)
        return np.where(found < 0, _NO_ITEM, found)

    def _read_responses(self) -> None:
        self._hashes, keys, positions = array("Q"), array("Q"), array("q")
        cells, samples, failed = array("i"), array("i"), array("b")
        decode = msgspec.json.Decoder(_Address).decode
        for position, line in self._runs.scan():
            row = _narrow(decode, line, _Address)
            template = row.metadata.prompt_template if row.metadata else None
            sample = -1 if self._samples == "mean" else row.sample_index
            cell = Cell(row.model_name, "" if template is None else str(template), row.task, sample)
            code = self._cells.setdefault(cell, len(self._cells))
            total, latest = self._totals.get(code, (1, 0.0))
            self._totals[code] = max(total, row.total_samples), max(latest, row.timestamp)
            self._hashes.append(id_number(row.item_id))
            keys.append(response_key(row.key, (row.item_id, row.sample_index, row.model_name)))
            positions.append(position)
            cells.append(code)
            samples.append(row.sample_index)
            failed.append(row.outcome == "errored")
        self._keys = np.frombuffer(keys, np.uint64)
        self._position = np.frombuffer(positions, np.int64)
        self._cell, self._sample = np.frombuffer(cells, np.int32), np.frombuffer(samples, np.int32)
        self._failed = np.frombuffer(failed, np.int8)

    def _read_evaluations(self) -> None:
        sought, positions = array("Q"), array("q")
        decode = msgspec.json.Decoder(_Label).decode
        for position, line in self._evaluations.scan():
            row = _narrow(decode, line, _Label)
            if len(row.responses) > 1:
                self.matches += 1  # of two answers: no metric of one
                continue
            first = row.responses[0] if row.responses else None
            sought.append(response_key(first, (row.item_id, row.sample_index, row.model_name)))
            positions.append(position)
            self._scorers.setdefault(row.label, set()).add(row.scorer)
        keys = np.frombuffer(sought, np.uint64)
        order = np.argsort(keys, kind="stable")
        self._of, self._at = keys[order], np.frombuffer(positions, np.int64)[order]


class _Many:
    """Several logs as one; a position has the number of its log in the highest bits."""

    _BITS = 58

    def __init__(self, logs: "list[Any]") -> None:
        self._logs: list[Log] = logs

    def scan(self) -> Iterator[tuple[int, bytes]]:
        for number, log in enumerate(self._logs):
            for position, line in log.scan():
                if line and not line.isspace():
                    yield number << self._BITS | position, line

    def read(self, position: int) -> bytes:
        return self._logs[position >> self._BITS].read(position & ((1 << self._BITS) - 1))


def _row(line: bytes) -> Row:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return foreign_row(line, "a row")


def _narrow(decode: Any, line: bytes, kind: type[Any]) -> Any:
    try:
        return decode(line)
    except msgspec.DecodeError:
        row = foreign_row(line, "a row")
        kept = {name: row[name] for name in kind.__struct_fields__ if row.get(name) is not None}
        return msgspec.convert({**kept, "item_id": str(row.get("item_id"))}, kind, strict=False)
