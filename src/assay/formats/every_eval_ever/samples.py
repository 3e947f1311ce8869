"""Evaluation rows as instance records: each joined with its response and its item, one for each result it counts in."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from math import isnan
from typing import Any

import msgspec
from msgspec import UNSET

from assay.analysis.compare.notes import answer_of
from assay.engine.experiment.sources import Source
from assay.formats.every_eval_ever.results import BENCHMARK, MetricResult, texts
from assay.sdk import IntArray, JsonObject, as_object, list_of, verdict_of
from assay.store.table.columns import Growing, How, Table
from assay.store.table.facets import text_of, typed
from assay.store.table.join import Lookup

# where scorers say what they took for the answer
_EXTRACTED = ("parsed", "number", "choice", "predicted", "match")
_QUESTIONS = ("question", "prompt", "input")
_OF_ITEM = f"metadata.{BENCHMARK}"
_encode = msgspec.json.Encoder().encode


class InstanceRows:
    """The rows of an experiment: labels, and which response and item each belongs to (-1: none that is stored)."""

    def __init__(self, source: Source, facets: Collection[str]) -> None:
        labels, answers, items = (source.logs(kind) for kind in ("evaluation", "run", "dataset"))
        shared: dict[str, How] = dict.fromkeys(facets, "code")
        own: dict[str, How] = {"label": "code", "model_name": "code", "players": "code"}
        own |= {"score": "float", "item_id": "id"}
        self.labels = Table(labels, {**shared, **own}, key="responses")
        self._responses = Table(answers, {**shared, "task": "code"}, key="key")
        self._items = Table(items, {**shared, _OF_ITEM: "code", "id": "id"}, item=True)
        self._response = Lookup(self._responses.responses).first(self.labels.responses)
        self._item = Lookup(self._items["id"]).first(self.labels["item_id"])

    def row(self, label: int) -> tuple[JsonObject, JsonObject, JsonObject]:
        """Return a label, its response and its item; empty where they are not stored."""
        response, item = int(self._response[label]), int(self._item[label])
        return (
            self.labels.row(label),
            self._responses.row(response) if response >= 0 else {},
            self._items.row(item) if item >= 0 else {},
        )

    def value(self, name: str, label: int) -> Any:
        """Return the value of a field of the label, of its response or of its item; None if none has it."""
        answer, item = self._response[label], self._item[label]
        places = ((self.labels, label), (self._responses, answer), (self._items, item))
        found = (_value(table, name, row) for table, row in places)
        return next((value for value in found if value is not UNSET), None)

    def owner(self, label: int) -> tuple[str, ...]:
        """Return the model, benchmark and task of a label; empty where they are not stored."""
        found = (
            _value(self.labels, "model_name", label),
            _value(self._items, _OF_ITEM, self._item[label]),
            _value(self._responses, "task", self._response[label]),
        )
        return tuple("" if value is UNSET else str(value or "") for value in found)


def _value(table: Table, name: str, row: int) -> Any:
    code = table[name][row] if row >= 0 and name in table.values else -1
    return table.values[name][code] if code >= 0 else UNSET


def assign(rows: InstanceRows, results: Sequence[MetricResult]) -> dict[int, IntArray]:
    """By number of a result, the labels that it was made of, matches of two answers left out; results learn their
    models and benchmarks."""
    groups: dict[tuple[str, tuple[str, ...], bytes], list[int]] = {}
    for number, result in enumerate(results):
        values = typed([result.row[name] for name in result.facets])
        groups.setdefault((result.row["label"], result.facets, values), []).append(number)
    facets = {result.facets for result in results}
    counted: dict[int, Growing] = {}
    scores = rows.labels["score"]
    for at in range(len(rows.labels)):
        if rows.value("players", at):
            continue
        label = str(rows.value("label", at))
        for names in facets:
            values = typed([rows.value(name, at) for name in names])
            for number in groups.get((label, names, values), ()):
                result = results[number]
                for names_of, name in zip(
                    (result.models, result.benchmarks, result.tasks), rows.owner(at), strict=True
                ):
                    names_of.add(name)
                result.binary &= scores[at] in (0, 1) or isnan(scores[at])
                counted.setdefault(number, Growing("int")).append(at)
    return {number: places.numbers for number, places in counted.items()}


def lines(rows: InstanceRows, counted: Iterable[int], link: Mapping[str, str]) -> Iterator[bytes]:
    """The instances of a result; `link` has what ties them to it."""
    for at in counted:
        yield _encode(_instance(*rows.row(at), link)) + b"\n"


def _instance(
    evaluation: JsonObject, response: JsonObject, item: JsonObject, link: Mapping[str, str]
) -> JsonObject:
    outcome, passed, score = verdict_of(evaluation)
    scored = outcome == "scored" and score == score
    asked: JsonObject = {
        "raw": _text(item.get("data")),
        "reference": _references(item.get("ground_truth")),
    }
    hashed = json.dumps(asked, sort_keys=True, separators=(",", ":"))  # the schema's recipe
    if choices := _texts(as_object(item.get("data")).get("choices")):
        asked["choices"] = choices
    answer = answer_of(response) if response else ""
    reasoning = response.get("reasoning")
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
                "extracted_value": _extract(evaluation, answer),
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


def _extract(evaluation: JsonObject, answer: str) -> str:
    """Return what the scorer took for the answer; the whole answer if it does not say."""
    details: JsonObject = evaluation.get("detailed_results") or {}
    named = (details[name] for name in _EXTRACTED if details.get(name) is not None)
    return text_of(next(named, answer))


def _text(value: Any) -> str:
    """The question of an item: its text, the only text it has, or all of it as JSON."""
    fields = as_object(value)
    named = [fields[name] for name in _QUESTIONS if isinstance(fields.get(name), str)]
    only = fields.values() if len(fields) == 1 else ()
    value = next(iter([*named, *only]), value)
    return "" if value is None else text_of(value)


def _references(truth: Any) -> list[str]:
    if truth is None:
        return []
    return _texts(truth if isinstance(truth, list) else [truth])


def _texts(values: Any) -> list[str]:
    return [*map(text_of, list_of(values))]


def _tokens(response: JsonObject) -> JsonObject | None:
    counts = {name: response.get(f"{ours}_tokens") for name, ours in _TOKENS.items()}
    return counts if all(isinstance(count, int) for count in counts.values()) else None


_TOKENS = {"input_tokens": "prompt", "output_tokens": "completion", "total_tokens": "total"}
