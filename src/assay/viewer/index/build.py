"""The columns of an experiment's samples, made in one pass over its rows, or continued where they were left off."""

from array import array
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from assay.interfaces import IntArray
from assay.records import OUTCOMES, Kind
from assay.store.items import decode_item
from assay.store.log import FileLog
from assay.viewer.index.decode import (
    OFFSET_BITS,
    RESPONSE_OUTCOMES,
    EvaluationRow,
    Facets,
    Ids,
    Texts,
    evaluation_rows,
    keys_of,
    lines_from,
    response_rows,
    response_type,
    starts_of,
)

Arrays = dict[str, npt.NDArray[Any]]
# of each log, by its path: the offset up to which each of its files is read
Ends = dict[str, dict[int, int]]
_BOTH = {"position": "q", "log": "H", "key": "Q", "item": "Q", "sample": "i", "model": "i"}
_RESPONSES = {
    **_BOTH,
    "task": "i",
    "outcome": "b",
    "latency": "d",
    "tokens": "d",
    "cost": "d",
    "length": "i",
}
_EVALUATIONS = {**_BOTH, "combination": "i", "score": "d"}
_ITEMS = {"hash": "Q", "log": "q", "position": "q"}
_LONGEST_FACET = 100  # characters
_OUTCOMES: dict[Any, int] = {name: code for code, name in enumerate(RESPONSE_OUTCOMES)}
_ERRORED = _OUTCOMES["errored"]


_item_id, _score, _players = attrgetter("item_id"), attrgetter("score"), attrgetter("players")
_latency, _tokens, _cost = (
    attrgetter("inference_time"),
    attrgetter("total_tokens"),
    attrgetter("cost"),
)
_combination = attrgetter("label", "scorer", "outcome", "passed")


class Coded(msgspec.Struct):
    """What the codes in columns stand for. A combination is a label, its scorer, outcome (its place in OUTCOMES),
    passed (-1: not said) and whether it is of a match. `left_out` lines of responses are no rows, or do not count."""

    tasks: list[str] = []
    models: list[str] = []
    combinations: list[tuple[str, str, int, int, bool]] = []
    facets: dict[str, list[str]] = {}
    not_facets: list[str] = []
    item_facets: dict[str, list[str]] = {}
    left_out: int = 0


class Builder:
    """Reads logs; `ends` says how far it has come."""

    def __init__(self, coded: Coded | None = None, ends: Ends | None = None) -> None:
        coded = coded or Coded()
        self.ids = Ids()
        self.tasks, self.models = Texts(coded.tasks), Texts(coded.models)
        self.combinations = {entry: code for code, entry in enumerate(coded.combinations)}
        self.facets = Facets(coded.facets, coded.not_facets)
        self.item_facets = Facets(coded.item_facets)
        self.responses = {name: array(kind) for name, kind in _RESPONSES.items()}
        self.evaluations = {name: array(kind) for name, kind in _EVALUATIONS.items()}
        self.items = {name: array(kind) for name, kind in _ITEMS.items()}
        self.ends: Ends = {path: dict(offsets) for path, offsets in (ends or {}).items()}
        self.left_out = coded.left_out
        self._evaluation = msgspec.json.Decoder(EvaluationRow)
        self._known: dict[Any, int] = {}

    def coded(self) -> Coded:
        return Coded(
            tasks=self.tasks.texts,
            models=self.models.texts,
            combinations=list(self.combinations),
            facets={name: texts.texts for name, (texts, _) in self.facets.names.items()},
            not_facets=sorted(self.facets.skipped),
            item_facets={name: texts.texts for name, (texts, _) in self.item_facets.names.items()},
            left_out=self.left_out,
        )

    def read(self, kind: Kind, number: int, log: FileLog, most: int | None = None) -> None:
        """The rows of a log, the one of this number among those of its kind, that were not read yet."""
        take = {
            "run": self._take_responses,
            "evaluation": self._take_evaluations,
            "dataset": self._take_items,
        }[kind]
        ends = self.ends.setdefault(str(log.path), {})
        for position, block in lines_from(log, dict(ends), most):
            size, places = len(block), starts_of(block) + position
            lines_read, before = len(places), len(self.responses["item"])
            if log.hidden:
                shown = np.array([place not in log.hidden for place in places.tolist()], np.bool_)
                lines = [
                    line for line, kept in zip(block.split(b"\n"), shown, strict=False) if kept
                ]
                block, places = b"".join(line + b"\n" for line in lines), places[shown]
            take(number, block, places)
            if kind == "run":
                self.left_out += lines_read - (len(self.responses["item"]) - before)
            file, offset = position >> OFFSET_BITS, position & (1 << OFFSET_BITS) - 1
            ends[file] = offset + size

    def _take_responses(self, number: int, block: bytes, places: IntArray) -> None:
        known = len(self.responses["item"])
        try:
            _check_text(block)
            rows = cast("list[Any]", self._response().decode_lines(block))
            if len(rows) != len(places):
                raise ValueError
            empty = self.facets.type()
            metadata = [row.metadata or empty for row in rows]
        except (ValueError, RecursionError):
            kept, rows = response_rows(block.split(b"\n"))
            places = places[kept]
            metadata = self.facets.learn([row.metadata for row in rows], known)
        columns = self.responses
        columns["position"].frombytes(places.tobytes())
        columns["log"].extend([number] * len(rows))
        _extend(columns["key"], keys_of([row.key or "" for row in rows]))
        columns["item"].extend(map(self.ids.__getitem__, map(_item_id, rows)))
        columns["sample"].extend([row.sample_index & 0x7FFFFFFF for row in rows])
        columns["task"].extend(self.tasks.codes([row.task or row.model_name or "" for row in rows]))
        columns["model"].extend(self.models.codes([row.model_name or "" for row in rows]))
        columns["outcome"].extend(
            [
                _ERRORED
                if row.error and row.outcome in ("ok", None)
                else _OUTCOMES[row.outcome or "ok"]
                for row in rows
            ]
        )
        for name, field in (("latency", _latency), ("tokens", _tokens), ("cost", _cost)):
            # null becomes NaN
            columns[name].frombytes(np.array(list(map(field, rows)), np.float64).tobytes())
        columns["length"].extend(
            [len(row.response) if row.response else _length(row.output) for row in rows]
        )
        self.facets.take(metadata)

    def _response(self) -> Any:
        if getattr(self, "_type", None) is not self.facets.type:
            self._type = self.facets.type
            self._decoder = msgspec.json.Decoder(response_type(self._type))
        return self._decoder

    def _take_evaluations(self, number: int, block: bytes, places: IntArray) -> None:
        try:
            _check_text(block)
            rows = self._evaluation.decode_lines(block)
            if len(rows) != len(places):
                raise ValueError
        except (ValueError, RecursionError):
            kept, rows = evaluation_rows(block.split(b"\n"))
            places = places[kept]
        keys = [(row.responses or ("",))[0] for row in rows]
        more = [
            at
            for at, row in enumerate(rows)
            if not row.players and row.responses and len(row.responses) > 1
        ]
        if more:  # a label of several answers is one of each
            keys += [key for at in more for key in (rows[at].responses or ())[1:]]
            repeats = [at for at in more for _ in (rows[at].responses or ())[1:]]
            rows = rows + [rows[at] for at in repeats]
            places = np.concatenate([places, places[repeats]])
        columns = self.evaluations
        columns["position"].frombytes(places.tobytes())
        columns["log"].extend([number] * len(rows))
        _extend(columns["key"], keys_of(keys))
        columns["item"].extend(map(self.ids.__getitem__, map(_item_id, rows)))
        columns["sample"].extend([row.sample_index & 0x7FFFFFFF for row in rows])
        columns["model"].extend(self.models.codes([row.model_name or "" for row in rows]))
        columns["score"].frombytes(np.array(list(map(_score, rows)), np.float64).tobytes())
        columns["combination"].extend(self._combined(rows))

    def _combined(self, rows: Sequence[EvaluationRow]) -> list[int]:
        """The codes of the rows' combinations."""
        if any(map(_players, rows)):
            kinds = [
                (row.label, row.scorer, row.outcome, row.passed, bool(row.players)) for row in rows
            ]
        else:
            kinds = list(map(_combination, rows))
        codes = list(map(self._known.get, kinds))
        for at in (at for at, code in enumerate(codes) if code is None):
            label, scorer, outcome, passed, *match = kinds[at]
            said = -1 if passed is None else int(passed)
            entry = (label or "", scorer or "", OUTCOMES.index(outcome), said, any(match))
            codes[at] = self._known[kinds[at]] = self.combinations.setdefault(
                entry, len(self.combinations)
            )
        return cast("list[int]", codes)

    def _take_items(self, number: int, block: bytes, places: IntArray) -> None:
        facets: list[dict[str, Any]] = []
        known = len(self.items["hash"])
        for place, line in zip(places.tolist(), block.split(b"\n"), strict=False):
            try:
                item = decode_item(line)
            except Exception:  # whatever is not an item is not one of these
                continue
            self.items["hash"].append(self.ids[item.id])
            self.items["log"].append(number)
            self.items["position"].append(place)
            # as the engine looks for them
            facets.append({**item.metadata, **_short(item.data), **item.extra})
        self.item_facets.take(self.item_facets.learn(facets, known))


def _short(data: Any) -> dict[str, Any]:
    """The fields of an item's data that may be facets; texts to be read are none."""
    fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return {
        name: value
        for name, value in fields.items()
        if not isinstance(value, str) or len(value) <= _LONGEST_FACET
    }


def _check_text(block: bytes) -> None:
    """Fields that are not decoded are skipped unread, and may be no text at all."""
    if not block.isascii():
        block.decode()


def _length(output: msgspec.Raw) -> int:
    return 0 if bytes(output) == b"null" else len(bytes(output).decode("utf-8", "replace"))


def _extend(column: "array[int]", values: Sequence[int] | bytes) -> None:
    if isinstance(values, bytes):
        column.frombytes(values)
    else:
        column.extend(values)
