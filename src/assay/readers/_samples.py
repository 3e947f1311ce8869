"""The table `samples` of any file format as items, responses and evaluations."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, get_args

import msgspec

from assay.analysis.look.samples import (
    BACK,
    DATA,
    FRONT,
    OUTCOME,
    PASSED,
    SCORE,
    TRUTH,
    item_of,
    label_and_scorer,
)
from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.imports.foreign import Foreign, ForeignCase, Headline, files_below
from assay.records import OUTCOMES, Evaluation, Response, ResponseOutcome
from assay.store.index import id_number
from assay.store.keyset import Seen

_NEEDED = {"item_id", "model_name", "sample_index", "response", "outcome"}
_RESPONSE_OUTCOMES = get_args(ResponseOutcome)
_BATCH = 64
_Made = tuple[Sequence[Any], Response, list[Evaluation]]
_decode = msgspec.json.Decoder().decode
Rows = Callable[[Path], Iterable[Sequence[Any]]]


def is_samples(columns: Collection[str]) -> bool:
    return set(columns) >= _NEEDED


def samples_below(
    path: Path, format: str, columns_of: Callable[[Path], Sequence[str]], rows: Rows
) -> list[Foreign]:
    """Each file with such a table, at or below a path."""
    files = [file for file in files_below(path, f".{format}") if is_samples(columns_of(file))]
    return [SampleFile(file, format, columns_of, rows) for file in files]


class SampleFile:
    """One file, or folder, with the table."""

    planned: int | None = None
    rejected = 0

    def __init__(
        self, path: Path, format: str, columns_of: Callable[[Path], Sequence[str]], rows: Rows
    ) -> None:
        self.path = path
        self.dataset = path.stem
        self._other_items = 0
        self._format = format
        self._columns_of = columns_of
        self._rows = rows

    @property
    def source(self) -> Mapping[str, Any]:
        files = files_below(self.path, "")
        return {"format": self._format, "files": [content_stamp(file.absolute()) for file in files]}

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"read_from": [self.path.name]}

    def cases(self) -> Iterator[ForeignCase]:
        self.rejected = self._other_items = 0
        table = _Table(self._columns_of(self.path))
        seen, contents = Seen(), Seen()
        rows = iter(self._rows(self.path))
        while batch := list(islice(rows, _BATCH)):
            for cells, response, evaluations in self._made(table, batch):
                new = contents.add(table.content(cells))
                if new and not seen.add(id_number(response.item_id)):
                    new = False
                    self._other_items += 1
                yield ForeignCase(
                    table.item(cells, response.item_id) if new else None, response, evaluations
                )

    def _made(self, table: "_Table", batch: list[Sequence[Any]]) -> Iterable[_Made]:
        """The rows of a batch; where one cannot be read, one by one."""
        try:
            return table.made(batch)
        except (ValueError, LookupError, TypeError):
            if len(batch) > 1:
                return chain.from_iterable(self._made(table, [cells]) for cells in batch)
            self.rejected += 1
            return ()

    def notes(self) -> list[str]:
        name = self.path.name
        notes = (
            [f"{self.rejected:,} rows of {name} cannot be read and were left out"]
            if self.rejected
            else []
        )
        if self._other_items:
            what = "rows have other data or another ground truth than the first row of their item, which counts"
            notes.append(f"{self._other_items:,} {what}")
        return notes

    def headlines(self) -> list[Headline]:
        return []


class _Table:
    """Where what is in a row."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._width = len(columns)
        places = {name: at for at, name in enumerate(columns)}
        self._own = [places.get(name, self._width) for name in (*FRONT, *BACK)]
        self._whole = columns.index(DATA) if DATA in columns else None
        self._truth = columns.index(TRUTH) if TRUTH in columns else None
        self._data = [
            (at, name[len(DATA) + 1 :])
            for at, name in enumerate(columns)
            if name.startswith(f"{DATA}.")
        ]
        self._item = places["item_id"]
        others = [at for at in (self._whole, self._truth) if at is not None]
        self._content = [*others, *(at for at, _ in self._data)]
        labels: dict[str, dict[str, int]] = {}
        for at, name in enumerate(columns):
            kind, dot, label = name.partition(".")
            if dot and kind in (SCORE, PASSED, OUTCOME):
                labels.setdefault(label, {})[kind] = at
        self._labels = [
            (*label_and_scorer(name), *map(at.get, (SCORE, PASSED, OUTCOME)))
            for name, at in labels.items()
        ]

    def made(self, batch: Sequence[Sequence[Any]]) -> list[_Made]:
        """Each row with its response and evaluations: column by column, since most columns have few values."""
        if any(len(cells) != self._width for cells in batch):
            raise ValueError
        # what a table lacks is behind its last column
        columns = [*zip(*batch, strict=True), (None,) * len(batch)]
        own = [
            list(_mapped(convert, columns[at]))
            for convert, at in zip(_CONVERT, self._own, strict=True)
        ]
        models = {name: {"model_id": name} for name in own[1]}
        labels = self._label_cells(columns)
        found: list[_Made] = []
        for cells, row, marks in zip(batch, zip(*own, strict=True), labels, strict=True):
            item, model, task, sample, text, outcome, error, asked, answered, total, cost, took = (
                row
            )
            item = item or str(self.item(cells, "")["id"])
            response = Response(
                item_id=item,
                sample_id=f"{item}_sample_{sample}",
                sample_index=sample,
                model_name=model,
                task=task,
                response=text,
                outcome=outcome,
                error=error,
                prompt_tokens=asked,
                completion_tokens=answered,
                total_tokens=total,
                cost=cost,
                inference_time=took,
                metadata=models[model],
            )
            found.append((cells, response, self._evaluations(response, marks)))
        return found

    def _label_cells(self, columns: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        """For each row the score, verdict and outcome of each label."""
        cells = [
            _mapped(convert, columns[self._width if at is None else at])
            for _, _, *places in self._labels
            for convert, at in zip((_number, _verdict, _outcome), places, strict=True)
        ]
        return zip(*cells, strict=True) if cells else repeat((), len(columns[-1]))

    def content(self, cells: Sequence[Any]) -> int:
        """Of a row's item, 64 bits."""
        return (
            hash((cells[self._item], *[cells[at] for at in self._content])) & 0xFFFF_FFFF_FFFF_FFFF
        )

    def item(self, cells: Sequence[Any], item_id: str) -> dict[str, Any]:
        if self._whole is not None:
            data = _value(cells[self._whole])
        else:
            data = {
                name: value for at, name in self._data if (value := _value(cells[at])) is not None
            }
        return item_of(data, None if self._truth is None else _value(cells[self._truth]), item_id)

    def _evaluations(self, response: Response, marks: Sequence[Any]) -> list[Evaluation]:
        found: list[Evaluation] = []
        for number, (label, scorer, *_) in enumerate(self._labels):
            score, passed, outcome = marks[3 * number : 3 * number + 3]
            if score is None and passed is None and not outcome:
                continue
            found.append(
                Evaluation(
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
            )
        return found


def _mapped(convert: Callable[[Any], Any], column: Sequence[Any]) -> Iterable[Any]:
    """Every cell converted, each value once where there are few."""
    if convert is _text:
        return column if {*map(type, column)} == {str} else map(_text, column)
    values = set(column)
    if 2 * len(values) > len(column):
        return map(convert, column)
    known = {value: convert(value) for value in values}
    return map(known.__getitem__, column)


def _text(value: Any) -> str:
    return value if type(value) is str else "" if value is None else str(value)


def _number(value: Any) -> float | None:
    if value is None or value == "":
        return None
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _whole_number(value: Any) -> int | None:
    if type(value) is int:
        return value
    if type(value) is str and value.isdigit():
        return int(value)
    number = _number(value)
    if number is None:
        return None
    if not number.is_integer():
        raise ValueError
    return int(number)


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
    return (
        value if value is None or isinstance(value, bool) else _VERDICTS[str(value).strip().lower()]
    )


def _one_of(value: Any, known: Sequence[str], default: str) -> str:
    if value is None or value == "":
        return default
    if value not in known:
        raise ValueError
    return str(value)


def _outcome(value: Any) -> str:
    return _one_of(value, OUTCOMES, "")


# in the order of FRONT and BACK
_CONVERT: tuple[Callable[[Any], Any], ...] = (
    _text,
    _text,
    _text,
    lambda value: _whole_number(value) or 0,
    _text,
    lambda value: _one_of(value, _RESPONSE_OUTCOMES, "ok"),
    lambda value: _text(value) or None,
    _whole_number,
    _whole_number,
    _whole_number,
    _number,
    lambda value: _number(value) or 0.0,
)


def _value(cell: Any) -> Any:
    """What a cell of any type holds: text that is JSON is what it says, an empty cell is nothing."""
    if cell is None or cell == "":
        return None
    if not isinstance(cell, str):
        return cell
    if cell[0] in '{["-0123456789tfn':
        try:
            return _decode(cell)
        except (ValueError, RecursionError):
            return cell
    return cell
