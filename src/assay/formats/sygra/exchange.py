"""Records of SyGra's output files as items, responses and evaluations; the numbers of a report.

A record has the fields of its input and what the graph made of them, side by side. The results of unit metrics tell
which field is the answer and which the expected one: their two sides repeat the values.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import msgspec

from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.imports.kept import labelled
from assay.foreign import (
    ForeignCase,
    Headline,
    content_id,
    key_of,
    whole_json,
    without_secrets,
)
from assay.formats.sygra.metrics import AggregatorMetricRegistry, UnitMetricResult
from assay.formats.sygra.types import Row
from assay.sdk import Evaluation, Response, as_object, id_hash, is_number
from assay.store.keyset import Seen
from assay.text.json_stream import file_entries

SERVER_ERROR = "###SERVER_ERROR###"
_QUESTIONS = ("question", "input", "prompt", "problem", "query", "instruction", "mission", "text")
_USUAL = _QUESTIONS[:3]
_LOOKED_AT = 200  # records that tell what the fields are
_NO_RESULT = "the record has no result of this metric"
_EMPTY = "the record is empty: its graph failed"
_POOLED = ("pass@k", "pass^k")
_ELSEWHERE = "it was computed from what a post-processor made of the records"
_UNKNOWN = "the report does not say which column and parameters it is about"


class Roles(msgspec.Struct):
    """What the fields of a file's records are; `columns` have results of unit metrics."""

    columns: list[str] = []
    response: str = ""
    truth: str = ""

    @property
    def known_fields(self) -> set[str]:
        return {"id", "error", "execution_error", self.response, self.truth, *self.columns}


def is_result(value: Any) -> bool:
    """Return whether a value is what a unit metric gives."""
    if not isinstance(value, dict):
        return False
    fields = cast("Row", value)
    return (
        "correct" in fields
        and isinstance(fields.get("golden"), dict)
        and isinstance(fields.get("predicted"), dict)
    )


def attempts_in(value: Any) -> list[Row]:
    """The results of one column: one, or one for each attempt."""
    if is_result(value):
        return [cast("Row", value)]
    several: list[Any] = list(cast("Row", value).values()) if isinstance(value, dict) else []
    return cast("list[Row]", several) if several and all(map(is_result, several)) else []


def roles_of(records: Iterable[Row]) -> Roles:
    """Return what the fields are, by the first records."""
    columns: dict[str, None] = {}
    predicted, golden, results = Counter[str](), Counter[str](), 0
    names: dict[str, None] = {}
    for record in records:
        own = {name: attempts for name, value in record.items() if (attempts := attempts_in(value))}
        columns |= dict.fromkeys(own)
        if not own:
            continue
        results += 1
        first = next(iter(own.values()))[0]
        for name, value in record.items():
            if name in own or name == "id" or value is None:
                continue
            names[name] = None
            predicted[name] += value in first["predicted"].values() or value == first["predicted"]
            golden[name] += value in first["golden"].values() or value == first["golden"]
    answers = [name for name in names if results and predicted[name] == results]
    order = list(names)
    response = min(
        answers,
        key=lambda name: (golden[name], "predict" not in name, -order.index(name)),
        default="",
    )
    truths = [name for name in names if results and golden[name] == results and name != response]
    return Roles(columns=list(columns), response=response, truth=truths[0] if truths else "")


# ---- items


def item_of(record: Row, roles: Roles) -> Row:
    """The dataset row of a record: its id where it has one, else that of what it asks."""
    known_fields = roles.known_fields
    data = {name: value for name, value in record.items() if name not in known_fields}
    asks = next((name for name in _QUESTIONS if isinstance(data.get(name), str)), "")
    if asks and asks not in _USUAL:
        data["question"] = data[asks]
    truth = record.get(roles.truth) if roles.truth else _golden(record, roles)
    id = record.get("id")
    if id in (None, ""):
        id = content_id(data, truth)
    elif not isinstance(id, str):
        id = json.dumps(id, sort_keys=True)
    return {"id": id, "data": data, "ground_truth": truth}


def _golden(record: Row, roles: Roles) -> Any:
    results = (attempt for name in roles.columns for attempt in attempts_in(record.get(name)))
    return next((_side(attempt, "golden") for attempt in results), None)


# ---- answers


def records_in(path: Path, broken: Callable[[str], object]) -> Iterator[Row]:
    """Yield the records of a list or of lines; what cannot be read is told to `broken`."""
    for place, value in file_entries(path, broken):
        if isinstance(value, dict):
            yield cast("Row", value)
        else:
            broken(f"{place} is not a record")


class OutputFile:
    """The records of one output file. `about` is its run's metadata; `report` the file with the
    numbers."""

    def __init__(self, path: Path, about: Row, report: Path | None) -> None:
        self._path, self._about, self._report = path, about, report
        execution, models = as_object(about.get("execution")), list(as_object(about.get("models")))
        self.dataset = str(execution.get("task_name") or path.stem)
        self._task = str(execution.get("task_name") or "sygra")
        self._model = models[0] if len(models) == 1 else self._task
        self._timestamp = _time(as_object(execution.get("timing")).get("start_time"))
        self.planned: int | None = None
        self._broken: list[str] = []

    @property
    def rejected(self) -> int:
        return len(self._broken)

    @property
    def source(self) -> Row:
        files = [file for file in (self._path, self._report) if file is not None]
        return {"format": "sygra", "files": [content_stamp(file.absolute()) for file in files]}

    @property
    def facts(self) -> Row:
        about = [self._about] if self._about else []
        return {"agents": [self._model], "metadata": without_secrets(about)}

    def cases(self) -> Iterator[ForeignCase]:
        self._broken = []
        roles, rows, seen, again = self._roles(), 0, Seen(), dict[str, int]()
        for record in records_in(self._path, self._broken.append):
            item, number = item_of(record, roles), 0
            id = str(item["id"])
            if not seen.add(id_hash(id)):
                number = again[id] = again.get(id, 0) + 1
            for case in self._cases(record, item, roles, number):
                rows += 1
                yield case
        counts = as_object(as_object(self._about.get("aggregate_statistics")).get("records"))
        known = counts.get("total_processed")  # also of records that it then failed to write
        self.planned = max(known, rows) if isinstance(known, int) else None

    def notes(self) -> list[str]:
        if not self._broken:
            return []
        return [f"{len(self._broken):,} places of the files cannot be read: {self._broken[0]}"]

    def headlines(self) -> list[Headline]:
        if self._report is None:
            return []
        report = whole_json(self._report)
        return list(headlines_of(report, self._roles(), partial(records_in, self._path, str)))

    def _roles(self) -> Roles:
        return roles_of(islice(records_in(self._path, str), _LOOKED_AT))

    def _cases(self, record: Row, item: Row, roles: Roles, number: int) -> Iterator[ForeignCase]:
        """Yield the answer to an item in its record, with its labels; several, if the record tells
        of several attempts. `number` is how many records before it have its id."""
        attempts = {column: attempts_in(record.get(column)) for column in roles.columns}
        count = max(map(len, attempts.values()), default=1) or 1
        for at in range(count):
            results = {
                column: several[at] if at < len(several) else None
                for column, several in attempts.items()
            }
            response = self._response(record, _answer(record, roles, results), str(item["id"]))
            _number(response, number + at, count)
            labels = [_evaluation(response, column, result) for column, result in results.items()]
            yield ForeignCase(item, response, labels)

    def _response(self, record: Row, said: Any, id: str) -> Response:
        text = said if isinstance(said, str) else ""
        if said is not None and not isinstance(said, str):
            text = json.dumps(said)
        outcome, error = _failure(record, text)
        return Response(
            item_id=id,
            model_name=self._model,
            response=text,
            timestamp=self._timestamp,
            metadata={"model_id": self._model},
            error=error,
            task=self._task,
            outcome=outcome,
            error_kind="permanent" if outcome == "errored" else None,
            output=None if isinstance(said, str) or outcome != "ok" else said,
        )


def _time(text: Any) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return 0.0


def _number(response: Response, sample: int, count: int) -> None:
    """Make a response the sample of this number; `count` are at least as many as there are."""
    response.sample_id, response.sample_index = f"{response.item_id}_sample_{sample}", sample
    response.total_samples = max(count, sample + 1)
    parts = response.model_name, response.task, response.item_id, sample, response.response
    response.key = key_of("sygra", *parts)
    if response.response.startswith(SERVER_ERROR):
        response.response = ""


def _answer(record: Row, roles: Roles, results: Mapping[str, Row | None]) -> Any:
    """Return what was answered: its field, else a predicted side, else all but the results."""
    if roles.response:
        return record.get(roles.response)
    said = next((_side(result, "predicted") for result in results.values() if result), None)
    if said is None:
        return {name: value for name, value in record.items() if name not in ("id", *roles.columns)}
    return said


def _side(result: Row, name: str) -> Any:
    side: Row = result[name]
    return side["text"] if side.keys() == {"text"} else side


def _failure(record: Row, text: str) -> tuple[Any, str | None]:
    """The outcome of an answer, and what went wrong."""
    if record.get("error") or record.get("execution_error"):
        return "errored", str(record.get("error") or "the graph failed")
    if text.startswith(SERVER_ERROR):
        return "errored", text.removeprefix(SERVER_ERROR).strip() or "the server failed"
    if all(value is None for name, value in record.items() if name != "id"):
        return "errored", _EMPTY
    return "ok", None


def _evaluation(response: Response, label: str, result: Row | None) -> Evaluation:
    made = labelled("sygra", response, label)
    if result is None:
        made.outcome, made.error_kind = "errored", "permanent"
        made.error = response.error or _NO_RESULT
        return made
    metadata = as_object(result.get("metadata"))
    score = metadata.get("score")
    graded = type(score) in (int, float) and math.isfinite(cast("float", score))
    made.passed = bool(result["correct"])
    made.score = float(cast("float", score)) if graded else float(made.passed)
    made.scorer = str(metadata.get("validator") or label)
    made.detailed_results = {
        "predicted": result["predicted"],
        "expected": result["golden"],
        "metadata": metadata,
    }
    return made


# ---- the numbers of a report, and the same from the records that it is about


def headlines_of(
    report: Any, roles: Roles, records: Callable[[], Iterable[Row]]
) -> Iterator[Headline]:
    """Yield each number of the report's results. Numbers of single classes stay in the report."""
    found = next(iter(cast("list[Any]", report)), None) if isinstance(report, list) else report
    results = cast("Row", found).get("results") if isinstance(found, dict) else None
    for key, payload in cast("Row", results).items() if isinstance(results, dict) else ():
        label, name = _about(str(key), roles)
        numbers = _numbers(payload)
        ours = {} if name == "accuracy" else _own_numbers(name, label, numbers, records)
        for part, value in numbers.items():
            metric = str(key) if part == name else f"{key}.{part}"
            line = Headline(label=label, metric=metric, value=value, ours=ours.get(part))
            if label and name == part == "accuracy":
                line.of, line.reduce = "passed", "none"
            elif part not in ours:
                line.reason = _ELSEWHERE if label else _UNKNOWN
            yield line


def _about(key: str, roles: Roles) -> tuple[str, str]:
    """Return the label and the aggregator that a key of the results names: `<column>-<aggregator>`,
    or only the latter."""
    for column in roles.columns:
        if key.startswith(f"{column}-"):
            return column, key.removeprefix(f"{column}-")
    return roles.columns[0] if len(roles.columns) == 1 else "", key


def _numbers(payload: Any) -> dict[str, float]:
    fields = cast("Row", payload) if isinstance(payload, dict) else {"": payload}
    return {str(name): float(value) for name, value in fields.items() if is_number(value)}


# a user's metric of this name may raise anything, and its number stays unchecked
def _own_numbers(
    name: str, column: str, numbers: Mapping[str, float], records: Callable[[], Iterable[Row]]
) -> dict[str, float]:
    """Return what the aggregator of this name gives for the column; empty where that cannot be
    told."""
    if not column or not AggregatorMetricRegistry.has_metric(name):
        return {}
    first = next(
        (results[0] for record in records() if (results := attempts_in(record.get(column)))), None
    )
    if first is None or any(len(attempts_in(record.get(column))) > 1 for record in records()):
        return {}
    params = _params(name, first, numbers)
    if params is None:
        return {}
    try:
        made: Any = AggregatorMetricRegistry.get_metric(name, **params)
        rows = (
            UnitMetricResult.from_dict(each)
            for record in records()
            for each in attempts_in(record.get(column))
        )
        return _numbers(made.calculate(rows))
    except Exception:
        return {}


def _params(name: str, first: Row, numbers: Mapping[str, float]) -> Row | None:
    """Return the aggregator's parameters, as a result and its numbers tell them."""
    if name not in _POOLED:
        return {f"{side}_key": next(iter(first[side]), "text") for side in ("golden", "predicted")}
    largest = [int(part[5:]) for part in numbers if part[:5] == name[:5] and part[5:].isdecimal()]
    return {"k": max(largest)} if largest else None
