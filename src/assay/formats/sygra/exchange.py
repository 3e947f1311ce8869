"""Records of SyGra's output files as items, responses and evaluations.

A record has the fields of its input and what the graph made of them, side by side. The results of unit metrics tell
which field is the answer and which the expected one: their two sides repeat the values.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from assay.engine.experiment.imports.foreign import ForeignCase, content_id, key_of
from assay.engine.experiment.imports.kept import labelled
from assay.records import Evaluation, Response

Row = dict[str, Any]
SERVER_ERROR = "###SERVER_ERROR###"
_QUESTIONS = ("question", "input", "prompt", "problem", "query", "instruction", "mission", "text")
_USUAL = _QUESTIONS[:3]
_NO_RESULT = "the record has no result of this metric"
_EMPTY = "the record is empty: its graph failed"


class Roles(msgspec.Struct):
    """What the fields of a file's records are; `columns` have results of unit metrics."""

    columns: list[str] = []
    response: str = ""
    truth: str = ""

    @property
    def placed(self) -> set[str]:
        return {"id", "error", "execution_error", self.response, self.truth, *self.columns}


class Author(msgspec.Struct):
    """Whose answers a file holds."""

    model_name: str
    task: str
    timestamp: float


def is_result(value: Any) -> bool:
    """Whether a value is what a unit metric gives."""
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
    """What the fields are, by the first records."""
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
    placed = roles.placed
    data = {name: value for name, value in record.items() if name not in placed}
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
    for column in roles.columns:
        for attempt in attempts_in(record.get(column)):
            return _side(attempt, "golden")
    return None


# ---- answers


def cases_of(
    record: Row, item: Row, roles: Roles, author: Author, number: int
) -> Iterator[ForeignCase]:
    """Return the answer to an item in its record, with its labels; several, if the record tells of
    several attempts. `number` is how many records before it have its id."""
    attempts = {column: attempts_in(record.get(column)) for column in roles.columns}
    count = max(map(len, attempts.values()), default=1) or 1
    for at in range(count):
        results = {
            column: several[at] if at < len(several) else None
            for column, several in attempts.items()
        }
        response = _response(record, _answer(record, roles, results), author, str(item["id"]))
        _number(response, number + at, count)
        labels = [_evaluation(response, column, result) for column, result in results.items()]
        yield ForeignCase(item, response, labels)


def _response(record: Row, said: Any, author: Author, id: str) -> Response:
    text = said if isinstance(said, str) else ""
    if said is not None and not isinstance(said, str):
        text = json.dumps(said)
    outcome, error = _failure(record, text)
    return Response(
        item_id=id,
        model_name=author.model_name,
        response=text,
        timestamp=author.timestamp,
        metadata={"model_id": author.model_name},
        error=error,
        task=author.task,
        outcome=outcome,
        error_kind="permanent" if outcome == "errored" else None,
        output=None if isinstance(said, str) or outcome != "ok" else said,
    )


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
    about = result.get("metadata")
    metadata = cast("Row", about) if isinstance(about, dict) else {}
    score = metadata.get("score")
    graded = (
        isinstance(score, (int, float)) and not isinstance(score, bool) and math.isfinite(score)
    )
    made.passed = bool(result["correct"])
    made.score = float(cast("float", score)) if graded else float(made.passed)
    made.scorer = str(metadata.get("validator") or label)
    made.detailed_results = {
        "predicted": result["predicted"],
        "expected": result["golden"],
        "metadata": metadata,
    }
    return made
