"""Records of SyGra's output files ⇄ items, responses and evaluations.

A record has the fields of its input and what the graph made of them, side by side. The results of unit metrics tell
which field is the answer and which the expected one: their two sides repeat the values. A file that Assay wrote says
it in its metadata.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from assay.engine.experiment.imports.foreign import ForeignCase, content_id, key_of
from assay.engine.experiment.imports.kept import KEPT, labelled, restored
from assay.records import Evaluation, Response

Row = dict[str, Any]
OUTCOMES = "outcomes"  # the field of a record that says what is neither right nor wrong
SERVER_ERROR = "###SERVER_ERROR###"
_QUESTIONS = ("question", "input", "prompt", "problem", "query", "instruction", "mission", "text")
_USUAL = _QUESTIONS[:3]
_NO_RESULT = "the record has no result of this metric"
_EMPTY = "the record is empty: its graph failed"


class Roles(msgspec.Struct):
    """What the fields of a file's records are: `columns` have results of unit metrics, by their labels; with `input`,
    the whole input is in that field."""

    columns: dict[str, str] = {}
    response: str = ""
    truth: str = ""
    input: str = ""

    @property
    def placed(self) -> set[str]:
        own = {
            "id",
            "error",
            "execution_error",
            OUTCOMES,
            KEPT,
            self.response,
            self.truth,
            self.input,
        }
        return own | set(self.columns.values())


class Author(msgspec.Struct):
    """Whose answers a file holds."""

    model_name: str
    task: str = ""
    sample_index: int = 0
    total_samples: int = 1
    timestamp: float = 0.0


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
    columns: dict[str, str] = {}
    predicted, golden, results = Counter[str](), Counter[str](), 0
    names: dict[str, None] = {}
    for record in records:
        own = {name: attempts for name, value in record.items() if (attempts := attempts_in(value))}
        columns |= {name: name for name in own}
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
    return Roles(columns=columns, response=response, truth=truths[0] if truths else "")


# ---- items


def item_of(record: Row, roles: Roles) -> Row:
    """The dataset row of a record: its id where it has one, else that of what it asks."""
    kept = record.get(KEPT)
    own = cast("Row", kept).get("item") if isinstance(kept, dict) else None
    if isinstance(own, dict):
        return cast("Row", own)
    data: Any
    if roles.input:
        data = record.get(roles.input)
    else:
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
    for column in roles.columns.values():
        for attempt in attempts_in(record.get(column)):
            side: Row = attempt["golden"]
            return side["text"] if side.keys() == {"text"} else side
    return None


# ---- answers


def cases_of(
    record: Row, roles: Roles, author: Author, number: int, place: str
) -> Iterator[ForeignCase]:
    """The answer of a record with its labels; several, if it tells of several attempts. `number` is how many records
    before it have its id."""
    item = item_of(record, roles)
    attempts = {label: attempts_in(record.get(column)) for label, column in roles.columns.items()}
    count = max(map(len, attempts.values()), default=1) or 1
    for at in range(count):
        results = {
            label: several[at] if at < len(several) else None for label, several in attempts.items()
        }
        sample = author.sample_index + number + at
        response = _response(
            record,
            roles,
            author,
            str(item["id"]),
            results,
            sample,
            max(author.total_samples, count),
        )
        response, evaluations = restored("sygra", record, response, place)
        if evaluations is None:
            evaluations = [
                _evaluation(record, roles, response, label, results[label])
                for label in roles.columns
            ]
        yield ForeignCase(item, response, evaluations)


def _response(
    record: Row,
    roles: Roles,
    author: Author,
    id: str,
    results: Mapping[str, Row | None],
    sample: int,
    total: int,
) -> Response:
    said = record.get(roles.response) if roles.response else _predicted(results)
    if said is None and not roles.response:
        said = {
            name: value
            for name, value in record.items()
            if name not in ("id", KEPT, *roles.columns.values())
        }
    text = said if isinstance(said, str) else "" if said is None else json.dumps(said)
    outcome, error = _failure(record, roles, text)
    model = author.model_name
    return Response(
        item_id=id,
        sample_id=f"{id}_sample_{sample}",
        sample_index=sample,
        total_samples=max(total, sample + 1),
        model_name=model,
        response="" if text.startswith(SERVER_ERROR) else text,
        timestamp=author.timestamp,
        metadata={"model_id": model},
        error=error,
        key=key_of("sygra", model, author.task, id, sample, text),
        task=author.task or model,
        outcome=outcome,
        error_kind="permanent" if outcome == "errored" else None,
        output=None if isinstance(said, str) or outcome != "ok" else said,
    )


def _predicted(results: Mapping[str, Row | None]) -> Any:
    for result in results.values():
        if result is not None:
            side: Row = result["predicted"]
            return side["text"] if side.keys() == {"text"} else side
    return None


def _failure(record: Row, roles: Roles, text: str) -> tuple[Any, str | None]:
    """The outcome of an answer, and what went wrong."""
    noted = _noted(record, roles.response)
    if noted:
        return noted.get("outcome") or "ok", noted.get("error")
    if record.get("error") or record.get("execution_error"):
        return "errored", str(record.get("error") or "the graph failed")
    if text.startswith(SERVER_ERROR):
        return "errored", text.removeprefix(SERVER_ERROR).strip() or "the server failed"
    if all(value is None for name, value in record.items() if name != "id"):
        return "errored", _EMPTY
    return "ok", None


def _noted(record: Row, field: str) -> Row:
    noted = record.get(OUTCOMES)
    own = cast("Row", noted).get(field) if isinstance(noted, dict) else None
    return cast("Row", own) if isinstance(own, dict) else {}


def _evaluation(
    record: Row, roles: Roles, response: Response, label: str, result: Row | None
) -> Evaluation:
    made = labelled("sygra", response, label)
    noted = _noted(record, roles.columns[label])
    if result is None or noted:
        made.outcome, made.error = (
            noted.get("outcome") or "errored",
            noted.get("error") or response.error,
        )
        made.error = made.error or (None if noted else _NO_RESULT)
        made.error_kind = "permanent" if made.outcome == "errored" else None
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
