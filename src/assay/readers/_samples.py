"""The table `samples` of any file format as items, responses and evaluations."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, get_args

import msgspec

from assay.analysis.look.joining import (
    BACK,
    DATA,
    FRONT,
    OUTCOME,
    PASSED,
    SCORE,
    TRUTH,
    label_and_scorer,
)
from assay.engine.experiment.dataset import content_stamp
from assay.foreign import Foreign, ForeignCase, Headline, files_below
from assay.sdk import OUTCOMES, Evaluation, JsonMapping, JsonObject, Response, ResponseOutcome
from assay.store.index import id_number
from assay.store.items import normalise
from assay.store.keyset import Seen

_NEEDED = {"item_id", "model_name", "sample_index", "response", "outcome"}
_FIELDS = (*FRONT, *BACK)
_BATCH = 64
_Made = tuple[Sequence[Any], Response, list[Evaluation]]
_decode = msgspec.json.Decoder().decode
Rows = Callable[[Path], Iterable[Sequence[Any]]]


def is_samples(columns: Collection[str]) -> bool:
    return set(columns) >= _NEEDED


def samples_below(
    path: Path, format: str, columns_of: Callable[[Path], Sequence[str]], rows: Rows
) -> list[Foreign]:
    """Return each file with such a table, at or below a path."""
    found = ((file, columns_of(file)) for file in files_below(path, f".{format}"))
    return [SampleFile(file, format, names, rows) for file, names in found if is_samples(names)]


class SampleFile:
    """One file, or folder, with the table."""

    planned: int | None = None
    rejected = 0

    def __init__(self, path: Path, format: str, columns: Sequence[str], rows: Rows) -> None:
        self.path = path
        self.dataset = path.stem
        self._other_items = 0
        self._format = format
        self._table = _SampleTable(columns)
        self._rows = rows

    @property
    def source(self) -> JsonMapping:
        files = files_below(self.path, "")
        return {"format": self._format, "files": [content_stamp(file.absolute()) for file in files]}

    @property
    def facts(self) -> JsonMapping:
        return {"read_from": [self.path.name]}

    def cases(self) -> Iterator[ForeignCase]:
        self.rejected = self._other_items = 0
        table, seen, contents = self._table, Seen(), Seen()
        rows = iter(self._rows(self.path))
        while batch := list(islice(rows, _BATCH)):
            for cells, response, evaluations in self._cases_of(batch):
                new = contents.add(table.content(cells))
                if new and not seen.add(id_number(response.item_id)):
                    new = False
                    self._other_items += 1
                item = table.item(cells, response.item_id) if new else None
                yield ForeignCase(item, response, evaluations)

    def _cases_of(self, batch: list[Sequence[Any]]) -> Iterable[_Made]:
        """Return the rows of a batch; where one cannot be read, one by one."""
        try:
            return self._table.cases_of(batch)
        except (ValueError, LookupError, TypeError):
            if len(batch) > 1:
                return chain.from_iterable(self._cases_of([cells]) for cells in batch)
            self.rejected += 1
            return ()

    def notes(self) -> list[str]:
        other = "rows have other data or another ground truth than the first row of their item, which counts"
        counts = {
            f"rows of {self.path.name} cannot be read and were left out": self.rejected,
            other: self._other_items,
        }
        return [f"{count:,} {what}" for what, count in counts.items() if count]

    def headlines(self) -> list[Headline]:
        return []


class _SampleTable:
    """Where what is in a row."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._width = len(columns)
        places = {name: at for at, name in enumerate(columns)}
        # what a table lacks is behind its last column
        self._own = [places.get(name, self._width) for name in _FIELDS]
        self._whole, self._truth = places.get(DATA), places.get(TRUTH)
        self._data = {
            name.removeprefix(f"{DATA}."): at
            for name, at in places.items()
            if name.startswith(f"{DATA}.")
        }
        others = (at for at in (self._whole, self._truth) if at is not None)
        self._content = [places["item_id"], *others, *self._data.values()]
        labels = _labels_in(columns)
        self._labels = [label_and_scorer(name) for name in labels]
        self._label_cells = [
            (convert, at.get(kind, self._width))
            for at in labels.values()
            for kind, convert in _OF_LABELS.items()
        ]

    def cases_of(self, batch: Sequence[Sequence[Any]]) -> list[_Made]:
        """Return each row with its response and evaluations: column by column, since most columns have few values."""
        if any(len(cells) != self._width for cells in batch):
            raise ValueError
        columns = [*zip(*batch, strict=True), (None,) * len(batch)]
        own = [
            _convert_column(convert, columns[at])
            for convert, at in zip(_OWN, self._own, strict=True)
        ]
        labels = [_convert_column(convert, columns[at]) for convert, at in self._label_cells]
        marks = zip(*labels, strict=True) if labels else repeat(())
        rows = zip(batch, zip(*own, strict=True), marks, strict=False)
        return [self._case(*each) for each in rows]

    def _case(self, cells: Sequence[Any], own: Sequence[Any], marks: Sequence[Any]) -> _Made:
        fields = dict(zip(_FIELDS, own, strict=True))
        item = fields["item_id"] = fields["item_id"] or str(self.item(cells, "")["id"])
        fields["sample_id"] = f"{item}_sample_{fields['sample_index']}"
        response = Response(**fields, metadata={"model_id": fields["model_name"]})
        return cells, response, list(self._evaluations(response, marks))

    def content(self, cells: Sequence[Any]) -> int:
        """Return 64 bits of a row's item."""
        return hash(tuple([cells[at] for at in self._content])) & 0xFFFF_FFFF_FFFF_FFFF

    def item(self, cells: Sequence[Any], item_id: str) -> JsonObject:
        """Return the item of a row; without an id it has that of its content."""
        if self._whole is not None:
            data = _value(cells[self._whole])
        else:
            values = {name: _value(cells[at]) for name, at in self._data.items()}
            data = {name: value for name, value in values.items() if value is not None}
        row: JsonObject = {"id": item_id, "data": data}
        truth = None if self._truth is None else _value(cells[self._truth])
        if truth is not None:
            row[TRUTH] = truth
        return row if item_id else {**row, "id": normalise(row).id}

    def _evaluations(self, response: Response, marks: Sequence[Any]) -> Iterator[Evaluation]:
        for number, (label, scorer) in enumerate(self._labels):
            score, passed, outcome = marks[3 * number : 3 * number + 3]
            if score is None and passed is None and not outcome:
                continue
            yield Evaluation(
                item_id=response.item_id,
                sample_id=response.sample_id,
                sample_index=response.sample_index,
                label=label,
                scorer=scorer,
                model_name=response.model_name,
                score=score,
                passed=passed,
                outcome=outcome or "scored",
            )


def _labels_in(columns: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return where each label has each of its columns."""
    labels: dict[str, dict[str, int]] = {}
    for at, name in enumerate(columns):
        kind, dot, label = name.partition(".")
        if dot and kind in _OF_LABELS:
            labels.setdefault(label, {})[kind] = at
    return labels


def _convert_column(convert: Callable[[Any], Any], column: Sequence[Any]) -> Iterable[Any]:
    """Convert every cell, each value once where there are few."""
    if convert is _text:
        return column if {*map(type, column)} == {str} else map(_text, column)
    values = set(column)
    if 2 * len(values) > len(column):
        return map(convert, column)
    known = {value: convert(value) for value in values}
    return map(known.__getitem__, column)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _number(value: Any) -> float | None:
    if value is None or value == "":
        return None
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _whole_number(value: Any) -> int | None:
    if type(value) is int or (type(value) is str and value.isdigit()):
        return int(value)
    number = _number(value)
    if number is not None and not number.is_integer():
        raise ValueError
    return None if number is None else int(number)


_VERDICTS = {
    "true": True,
    "false": False,
    "1": True,
    "0": False,
    "1.0": True,
    "0.0": False,
    "": None,
}


def _verdict(value: Any) -> bool | None:
    return _VERDICTS[_text(value).strip().lower()]


def _one_of(known: Sequence[str], default: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value is None or value == "":
            return default
        if value not in known:
            raise ValueError
        return str(value)

    return convert


# in the order of FRONT and BACK
_OWN: tuple[Callable[[Any], Any], ...] = (
    _text,
    _text,
    _text,
    lambda value: _whole_number(value) or 0,
    _text,
    _one_of(get_args(ResponseOutcome), "ok"),
    lambda value: _text(value) or None,
    _whole_number,
    _whole_number,
    _whole_number,
    _number,
    lambda value: _number(value) or 0.0,
)
_OF_LABELS: dict[str, Callable[[Any], Any]] = {
    SCORE: _number,
    PASSED: _verdict,
    OUTCOME: _one_of(OUTCOMES, ""),
}


def _value(cell: Any) -> Any:
    """Return what a cell of any type holds: text that is JSON is what it says, an empty cell is nothing."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, str) and cell[0] in '{["-0123456789tfn':
        try:
            return _decode(cell)
        except (ValueError, RecursionError):
            pass
    return cell
