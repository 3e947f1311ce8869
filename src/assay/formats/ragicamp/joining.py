"""An experiment's responses by agent and item, each with its evaluations: found by position, never held.

Agents come in the order of their names and answers in the order of the items, so that equal rows give equal files in
whatever order they stand on disk. Memory holds 12 bytes for a response, 20 where they are not in the order of the
items, and 8 for an evaluation, 16 where they do not follow the responses.
"""

from array import array
from collections.abc import Iterator
from itertools import accumulate, groupby, islice
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from assay.analysis.look.export import Tables
from assay.engine.aggregate.join import response_key
from assay.formats.ragicamp.files import date_of, timestamp_of
from assay.formats.ragicamp.logs import Many, narrow
from assay.formats.ragicamp.names import Cell, Samples, agent_names
from assay.formats.ragicamp.rows import Agent, Row, question_of
from assay.store.index import ItemIndex, id_number
from assay.store.keys import id_hash

Ints = npt.NDArray[np.int64]
_LOST = 1 << 62  # above every position: responses whose item is not in the dataset come last
_CHUNK = 4096
_MOST_AHEAD = 2048  # evaluations


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


class _Of(msgspec.Struct):
    """What is true of all rows of a cell."""

    code: int
    rows: int = 0
    total_samples: int = 1
    timestamp: float = 0.0
    errors: int = 0


class Group(msgspec.Struct):
    """One agent's rows: `rows` are numbers of responses in the order of their items, `count` that of predictions."""

    agent: Agent
    template: str
    rows: Ints | range
    count: int
    errors: int


class Joining:
    """The rows of one experiment, joined."""

    def __init__(self, tables: Tables, samples: Samples) -> None:
        self._items = ItemIndex(tables.log("items"))
        self._runs = Many(tables.logs("responses"))
        self._means = samples == "mean"
        self._cells: dict[Cell, _Of] = {}
        self._evaluations = _Evaluations(Many(tables.source.logs("evaluation")))
        self._read_responses()
        self._evaluations.close()
        self.matches = self._evaluations.matches

    def groups(self) -> Iterator[Group]:
        names = agent_names(list(self._cells))
        for cell in sorted(self._cells, key=lambda cell: names[cell]):
            of = self._cells[cell]
            begin, end = self._begins[of.code], self._begins[of.code + 1]
            agent = Agent(
                name=names[cell],
                model_name=cell.model,
                task=cell.task,
                sample_index=max(cell.sample, 0),
                total_samples=1 if self._means else of.total_samples,
                timestamp=timestamp_of(date_of(of.timestamp)),  # as a reader will find it
            )
            rows = range(begin, end) if self._order is None else self._order[begin:end]
            yield Group(agent, cell.template, rows, self._counts[of.code], of.errors)

    def cases(self, group: Group) -> Iterator[tuple[Row, list[tuple[str, Row]]]]:
        """Each response of an agent with its (metric, evaluation) pairs, in the order of the metrics' names."""
        for number in map(int, group.rows):  # a list would take five times the memory
            response = self._runs.read(self._position[number])
            yield response, self._evaluations.of(number, response)

    def by_item(self, group: Group) -> Iterator[list[tuple[Row, list[tuple[str, Row]]]]]:
        """The same, those of one item together."""
        return (list(several) for _, several in groupby(self.cases(group), lambda case: case[0]["item_id"]))

    def question(self, response: Row) -> str:
        """What the response's item asks; of an item that is not there, what was sent."""
        item = self._items.get(str(response.get("item_id")))
        return str(response.get("prompt") or "") if item is None else question_of(item)

    def _read_responses(self) -> None:
        size = self._runs.lines()  # arrays that grow side by side leave holes in the memory
        self._position, cells, samples = array("q", [0]) * size, array("i", [0]) * size, array("i")
        items = _Places(self._items, size)
        number = -1
        decode = msgspec.json.Decoder(_Address).decode
        for number, (position, line) in enumerate(islice(self._runs.scan(), size)):  # a run may go on
            row = narrow(decode, line, _Address)
            template = row.metadata.prompt_template if row.metadata else None
            cell = Cell(
                row.model_name,
                "" if template is None else str(template),
                row.task,
                -1 if self._means else row.sample_index,
            )
            of = self._cells.get(cell)
            if of is None:
                of = self._cells[cell] = _Of(len(self._cells))
            of.rows += 1
            of.total_samples = max(of.total_samples, row.total_samples)
            of.timestamp = max(of.timestamp, row.timestamp)
            of.errors += row.outcome == "errored"
            self._evaluations.follow(row)
            self._position[number] = position
            items.append(row.item_id)
            cells[number] = of.code
            if self._means:  # else it is the same for a whole cell
                samples.append(row.sample_index)
        self._sort(items.found(), np.frombuffer(cells, np.int32)[: number + 1], np.frombuffer(samples, np.int32))

    def _sort(self, item: Ints, cell: npt.NDArray[np.int32], sample: npt.NDArray[np.int32]) -> None:
        keys = (sample, item, cell) if self._means else (item, cell)
        self._order = None if _in_order(*keys) else np.lexsort(keys)
        self._counts = [of.rows for of in self._cells.values()]
        self._begins = [0, *accumulate(self._counts)]
        if self._means and len(cell):
            if self._order is not None:
                item, cell = item[self._order], cell[self._order]
            begins = np.append(True, (item[1:] != item[:-1]) | (cell[1:] != cell[:-1]))
            self._counts = np.bincount(cell[begins], minlength=len(self._cells)).tolist()


class _Places:
    """Where the items of responses stand in the dataset, looked up many at a time."""

    def __init__(self, items: ItemIndex, most: int) -> None:
        self._items = items
        self._ids: list[str] = []
        self._found: Ints = np.empty(most, np.int64)
        self._count = 0

    def append(self, item_id: str) -> None:
        self._ids.append(item_id)
        if len(self._ids) == _CHUNK:
            self._look_up()

    def found(self) -> Ints:
        self._look_up()
        return self._found[: self._count]

    def _look_up(self) -> None:
        found = self._items.positions(array("Q", map(id_number, self._ids)))
        for at in np.flatnonzero(found < 0).tolist():
            found[at] = _LOST | id_hash(self._ids[at]) >> 2
        self._found[self._count : self._count + len(found)] = found
        self._count += len(found)
        self._ids.clear()


class _Evaluations:
    """The evaluations of each response. Scoring follows the file of responses but for calls that overtake each other:
    as long as that holds, the number of a response tells where its evaluations are; where it does not, they are sought
    by the key of their response."""

    def __init__(self, rows: Many) -> None:
        self.matches = 0
        self._rows = rows
        self._scorers: dict[str, set[str]] = {}
        most = rows.lines()
        self._stream = islice(self._labels(), most)
        self._ahead: dict[str, list[int]] = {}
        self._room = _MOST_AHEAD
        self._begins, self._at = array("I"), array("q", [0]) * most
        self._count = 0
        self._follows = True
        self._keys: npt.NDArray[np.uint64] | None = None

    def follow(self, response: _Address) -> None:
        """Tell the next response of the file."""
        if not self._follows:
            return
        self._begins.append(self._count)
        self._follows = bool(response.key)  # without one, where it stands may not be its own
        for position, row in islice(self._stream, self._room):
            self._ahead.setdefault(row.responses[0] if row.responses else "", []).append(position)
        found = self._ahead.pop(response.key, [])
        self._room = len(found)
        for position in found:
            self._at[self._count] = position
            self._count += 1

    def close(self) -> None:
        """All responses were told."""
        self._begins.append(self._count)
        self._follows = self._follows and not self._ahead and next(self._stream, None) is None
        if not self._follows:
            self._begins, self._at = array("I"), array("q")
            self._index()

    def of(self, number: int, response: Row) -> list[tuple[str, Row]]:
        """(metric, evaluation) of a response, in the order of the metrics' names."""
        key = str(response.get("key") or "")
        if self._keys is None:
            first, last = self._begins[number], self._begins[number + 1]
        else:
            place = (response.get("item_id"), response.get("sample_index") or 0, response.get("model_name") or "")
            sought = np.uint64(response_key(key, place))
            first, last = np.searchsorted(self._keys, sought), np.searchsorted(self._keys, sought, side="right")
        rows = [self._rows.read(position) for position in self._at[first:last]]
        rows = [row for row in rows if not key or not row.get("responses") or row["responses"][0] == key]
        return sorted(((self._metric(row), row) for row in rows), key=_by_metric)

    def _metric(self, evaluation: Row) -> str:
        """A label's name among the metrics: with its scorer where several give the same label."""
        label, scorer = str(evaluation.get("label") or ""), str(evaluation.get("scorer") or "")
        return f"{scorer}.{label}" if len(self._scorers.get(label, ())) > 1 else label

    def _labels(self) -> Iterator[tuple[int, _Label]]:
        """Every evaluation of one answer, with its position."""
        self.matches = 0
        decode = msgspec.json.Decoder(_Label).decode
        for position, line in self._rows.scan():
            row = narrow(decode, line, _Label)
            if len(row.responses) > 1:
                self.matches += 1  # of two answers: no metric of one
                continue
            self._scorers.setdefault(row.label, set()).add(row.scorer)
            yield position, row

    def _index(self) -> None:
        keys, positions = array("Q"), array("q")
        for position, row in self._labels():
            first = row.responses[0] if row.responses else None
            keys.append(response_key(first, (row.item_id, row.sample_index, row.model_name)))
            positions.append(position)
        order = np.argsort(np.frombuffer(keys, np.uint64), kind="stable")
        self._at = array("q", np.frombuffer(positions, np.int64)[order].tobytes())
        del positions
        self._keys = np.frombuffer(keys, np.uint64)[order]


def _by_metric(pair: tuple[str, Row]) -> Any:
    return pair[0], pair[1].get("part") or [0]


def _in_order(*keys: npt.NDArray[Any]) -> bool:
    """Whether rows are sorted by these keys, the last one first: what `lexsort` would leave as it is."""
    later = np.zeros(max(len(keys[-1]) - 1, 0), np.bool_)
    equal = ~later
    for key in reversed(keys):
        later |= equal & (key[1:] > key[:-1])
        equal &= key[1:] == key[:-1]
    return bool((later | equal).all())
