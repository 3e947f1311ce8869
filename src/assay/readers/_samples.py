"""The table `samples` of any file format as items, responses and evaluations."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

import msgspec

from assay.analysis.look.samples import BACK, DATA, FRONT, OUTCOME, PASSED, SCORE, TRUTH, item_of, label_and_scorer
from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.imports.foreign import Foreign, ForeignCase, Headline, files_below
from assay.records import OUTCOMES, Evaluation, Response, ResponseOutcome
from assay.store.index import id_number
from assay.store.keyset import Seen

_NEEDED = {"item_id", "model_name", "sample_index", "response", "outcome"}
_RESPONSE_OUTCOMES = get_args(ResponseOutcome)
_decode = msgspec.json.Decoder().decode
Rows = Callable[[Path], Iterable[Sequence[Any]]]


def is_samples(columns: Collection[str]) -> bool:
    return set(columns) >= _NEEDED


def samples_below(path: Path, format: str, columns_of: Callable[[Path], Sequence[str]], rows: Rows) -> list[Foreign]:
    """Each file with such a table, at or below a path."""
    files = [file for file in files_below(path, f".{format}") if is_samples(columns_of(file))]
    return [SampleFile(file, format, columns_of, rows) for file in files]


class SampleFile:
    """One file, or folder, with the table."""

    planned: int | None = None
    rejected = 0

    def __init__(self, path: Path, format: str, columns_of: Callable[[Path], Sequence[str]], rows: Rows) -> None:
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
        for cells in self._rows(self.path):
            try:
                response = table.response(cells)
                response.item_id = response.item_id or str(table.item(cells, "")["id"])
                response.sample_id = f"{response.item_id}_sample_{response.sample_index}"
                evaluations = table.evaluations(cells, response)
            except (ValueError, LookupError, TypeError):
                self.rejected += 1
                continue
            new = contents.add(table.content(cells))
            if new and not seen.add(id_number(response.item_id)):
                new = False
                self._other_items += 1
            yield ForeignCase(table.item(cells, response.item_id) if new else None, response, evaluations)

    def notes(self) -> list[str]:
        name = self.path.name
        notes = [f"{self.rejected:,} rows of {name} cannot be read and were left out"] if self.rejected else []
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
        self._data = [(at, name[len(DATA) + 1 :]) for at, name in enumerate(columns) if name.startswith(f"{DATA}.")]
        self._item = places["item_id"]
        others = [at for at in (self._whole, self._truth) if at is not None]
        self._content = [*others, *(at for at, _ in self._data)]
        labels: dict[str, dict[str, int]] = {}
        for at, name in enumerate(columns):
            kind, dot, label = name.partition(".")
            if dot and kind in (SCORE, PASSED, OUTCOME):
                labels.setdefault(label, {})[kind] = at
        self._labels = [
            (*label_and_scorer(name), *map(at.get, (SCORE, PASSED, OUTCOME))) for name, at in labels.items()
        ]

    def response(self, cells: Sequence[Any]) -> Response:
        if len(cells) != self._width:
            raise ValueError
        cells = [*cells, None]  # what a table lacks is behind its last column
        item, model, task, sample, text, outcome, error, asked, answered, total, cost, took = [
            cells[at] for at in self._own
        ]
        return Response(
            item_id=_text(item),
            sample_index=_whole_number(sample) or 0,
            model_name=_text(model),
            task=_text(task),
            response=_text(text),
            outcome=cast("ResponseOutcome", _one_of(outcome, _RESPONSE_OUTCOMES, "ok")),
            error=_text(error) or None,
            prompt_tokens=_whole_number(asked),
            completion_tokens=_whole_number(answered),
            total_tokens=_whole_number(total),
            cost=_number(cost),
            inference_time=_number(took) or 0.0,
            metadata={"model_id": _text(model)},
        )

    def content(self, cells: Sequence[Any]) -> int:
        """Of a row's item, 64 bits."""
        return hash((cells[self._item], *[cells[at] for at in self._content])) & 0xFFFF_FFFF_FFFF_FFFF

    def item(self, cells: Sequence[Any], item_id: str) -> dict[str, Any]:
        if self._whole is not None:
            data = _value(cells[self._whole])
        else:
            data = {name: value for at, name in self._data if (value := _value(cells[at])) is not None}
        return item_of(data, None if self._truth is None else _value(cells[self._truth]), item_id)

    def evaluations(self, cells: Sequence[Any], response: Response) -> list[Evaluation]:
        found: list[Evaluation] = []
        for label, scorer, score_at, passed_at, outcome_at in self._labels:
            score = None if score_at is None else _number(cells[score_at])
            passed = None if passed_at is None else _verdict(cells[passed_at])
            outcome = None if outcome_at is None else _one_of(cells[outcome_at], OUTCOMES, "")
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
                    outcome=cast("Any", outcome or "scored"),
                )
            )
        return found


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


_VERDICTS = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False, "": None}


def _verdict(value: Any) -> bool | None:
    return value if value is None or isinstance(value, bool) else _VERDICTS[str(value).strip().lower()]


def _one_of(value: Any, known: Sequence[str], default: str) -> str:
    if value is None or value == "":
        return default
    if value not in known:
        raise ValueError
    return str(value)


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
