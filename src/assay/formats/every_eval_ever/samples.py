"""Evaluation rows as instance records: each joined with its response and its item, one for each result it counts in."""

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

import msgspec
from msgspec import UNSET

from assay.analysis.compare.notes import answer_of
from assay.engine.experiment.sources import Source
from assay.formats.every_eval_ever.results import BENCHMARK, Result, Row, texts
from assay.records import decode_json, verdict_of
from assay.store.log import FileLog
from assay.store.table.facets import find_in_item, find_in_row, text_of, typed

# where scorers say what they took for the answer
_EXTRACTED = ("parsed", "number", "choice", "predicted", "match")
_encode = msgspec.json.Encoder().encode


class Rows:
    """The rows of an experiment, joined. Only places of rows are held in memory."""

    def __init__(self, source: Source) -> None:
        self._logs = {kind: source.logs(kind) for kind in ("evaluation", "run", "dataset")}
        self._responses = self._places("run", lambda row: row.get("key") or _stands(row))
        self._items = self._places("dataset", lambda row: row.get("id"))

    def _places(self, kind: Any, key: Any) -> dict[Any, tuple[FileLog, int]]:
        return {key(row): (log, at) for log in self._logs[kind] for at, row in _scan(log)}

    def joined(self) -> Iterator[tuple[FileLog, int, Row, Row, Row]]:
        """Each evaluation with its response and its item, and where it is; matches of two answers are left out."""
        for log in self._logs["evaluation"]:
            for at, row in _scan(log):
                if not row.get("players"):
                    yield log, at, row, *self.behind(row)

    def behind(self, evaluation: Row) -> tuple[Row, Row]:
        """Response and item of an evaluation; empty where they are not stored."""
        keys = evaluation.get("responses") or ()
        response = _read(self._responses.get(keys[0] if keys else _stands(evaluation)))
        return response, _read(self._items.get(evaluation["item_id"]))


def _scan(log: FileLog) -> Iterator[tuple[int, Row]]:
    for at, line in log.scan():
        if line and not line.isspace():
            yield at, _decode(line)


def _decode(line: bytes) -> Row:
    try:
        return msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return cast("Row", decode_json(line))


def _read(place: tuple[FileLog, int] | None) -> Row:
    return _decode(place[0].read(place[1])) if place else {}


def _stands(row: Row) -> tuple[Any, ...]:
    return row.get("item_id"), row.get("model_name"), row.get("sample_index") or 0


class Counted(msgspec.Struct):
    """Which evaluations each result was made of: places in a log, eight bytes for each."""

    log: FileLog
    places: "array[int]"


def assign(rows: Rows, results: Sequence[Result]) -> dict[int, list[Counted]]:
    """By number of a result, the evaluations that it was made of; results learn their models and benchmarks."""
    groups: dict[tuple[str, tuple[str, ...], bytes], list[int]] = {}
    for number, result in enumerate(results):
        values = typed([result.row[name] for name in result.facets])
        groups.setdefault((result.row["label"], result.facets, values), []).append(number)
    facets = {result.facets for result in results}
    counted: dict[int, list[Counted]] = {}
    for log, at, evaluation, response, item in rows.joined():
        for names in facets:
            values = typed([_facet(name, evaluation, response, item) for name in names])
            for number in groups.get((str(evaluation.get("label")), names, values), ()):
                result = results[number]
                result.models.add(str(evaluation.get("model_name")))
                result.benchmarks.add(str((item.get("metadata") or {}).get(BENCHMARK) or ""))
                result.tasks.add(str(response.get("task") or ""))
                result.binary &= evaluation.get("score") in (None, 0, 1)
                parts = counted.setdefault(number, [])
                if not parts or parts[-1].log is not log:
                    parts.append(Counted(log, array("q")))
                parts[-1].places.append(at)
    return counted


def _facet(name: str, evaluation: Row, response: Row, item: Row) -> Any:
    for value in (
        find_in_row(evaluation, name),
        find_in_row(response, name),
        find_in_item(item, name),
    ):
        if value is not UNSET:
            return value
    return None


def lines(rows: Rows, counted: Iterable[Counted], link: Mapping[str, str]) -> Iterator[bytes]:
    """The instances of a result; `link` has what ties them to it."""
    for part in counted:
        for at in part.places:
            evaluation = _decode(part.log.read(at))
            yield _encode(_instance(evaluation, *rows.behind(evaluation), link)) + b"\n"


def _instance(evaluation: Row, response: Row, item: Row, link: Mapping[str, str]) -> Row:
    outcome, passed, score = verdict_of(evaluation)
    scored = outcome == "scored" and score == score
    asked: Row = {
        "raw": _text(item.get("data")),
        "reference": _references(item.get("ground_truth")),
    }
    hashed = json.dumps(asked, sort_keys=True, separators=(",", ":"))  # the schema's recipe
    if choices := _choices(item.get("data")):
        asked["choices"] = choices
    answer = answer_of(response) if response else ""
    reasoning = response.get("reasoning")
    details: Row = evaluation.get("detailed_results") or {}
    extracted = next(
        (details[name] for name in _EXTRACTED if details.get(name) is not None), answer
    )
    error = evaluation.get("error") or response.get("error")
    return {
        **link,
        "sample_id": str(evaluation["item_id"]),
        "sample_hash": sha256(hashed.encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {**asked, "formatted": response.get("prompt") or None},
        "output": {
            "raw": [answer],
            "reasoning_trace": [reasoning] if isinstance(reasoning, str) else None,
        },
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": text_of(extracted),
                "extraction_method": str(evaluation.get("scorer") or evaluation.get("label")),
                "is_terminal": True,
            }
        ],
        "evaluation": {
            "score": score if scored else 0.0,
            "is_correct": score == 1 if passed is None else passed,
        },
        "token_usage": _tokens(response),
        "performance": {"latency_ms": 1000 * response["inference_time"]}
        if response.get("inference_time")
        else None,
        "error": str(error) if error else None if scored else outcome,
        "metadata": texts(
            {
                **(item.get("metadata") or {}),
                "sample_index": evaluation.get("sample_index"),
                "outcome": outcome,
            }
        ),
    }


def _text(value: Any) -> str:
    """The question of an item: its text, the only text it has, or all of it as JSON."""
    if isinstance(value, dict):
        fields = cast("Row", value)
        named = [
            fields[name]
            for name in ("question", "prompt", "input")
            if isinstance(fields.get(name), str)
        ]
        value = named[0] if named else next(iter(fields.values())) if len(fields) == 1 else fields
    return "" if value is None else text_of(value)


def _references(truth: Any) -> list[str]:
    if truth is None:
        return []
    return (
        [text_of(one) for one in cast("list[Any]", truth)]
        if isinstance(truth, list)
        else [text_of(truth)]
    )


def _choices(data: Any) -> list[str]:
    choices: Any = cast("Row", data).get("choices") if isinstance(data, dict) else None
    return (
        [text_of(choice) for choice in cast("list[Any]", choices)]
        if isinstance(choices, list)
        else []
    )


def _tokens(response: Row) -> Row | None:
    counts = {name: response.get(f"{ours}_tokens") for name, ours in _TOKENS.items()}
    return counts if all(isinstance(count, int) for count in counts.values()) else None


_TOKENS = {"input_tokens": "prompt", "output_tokens": "completion", "total_tokens": "total"}
