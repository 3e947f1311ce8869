"""One item through all steps: what was asked, what was called, answered and judged, and the numbers it entered.

Without an index files are scanned once; of rows of other items only an id is decoded."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from assay.engine.experiment.resolve import find_source
from assay.engine.experiment.sources import elsewhere
from assay.foreign import unpacked_spans
from assay.sdk import (
    Evaluation,
    Item,
    JsonObject,
    Kind,
    Log,
    Response,
    Store,
    UserError,
    as_object,
    shown,
)
from assay.shown import Shown
from assay.store.log import FileLog
from assay.store.shared.mirror import local
from assay.store.stores import FlatStore, is_repository, open_store
from assay.store.table.decode import fitting, read_rows, row_decoder
from assay.store.table.facets import find_in_item, find_in_row, first_of, typed

MOST_NEAR = 5
MetricRows = dict[str, dict[int, JsonObject]]
_row = row_decoder(JsonObject)


class _Step(msgspec.Struct):
    """What is looked at in rows of calls, of spans and of metrics."""

    step: str = ""
    messages: list[JsonObject] = []
    completion: JsonObject = {}
    spans: list[Any] = []
    facets: list[str] = []
    value: float | None = None


_KINDS: dict[Kind, type[msgspec.Struct]] = {"run": Response, "evaluation": Evaluation}


class _RowMark(msgspec.Struct):
    """What is decoded of every row."""

    item_id: str = ""
    id: str | int | float | bool | None = None
    scorer: str = ""
    label: str = ""


_mark = row_decoder(_RowMark)


class Sample(msgspec.Struct, kw_only=True):
    """A response with all that led to it and followed from it."""

    response: JsonObject
    spans: list[Any] = []
    evaluations: list[JsonObject] = []


class Match(msgspec.Struct, kw_only=True):
    """Two players' answers that met: one evaluation for each seat. In seat 0 the first player's answer stands first."""

    label: str
    players: list[str]
    sample_index: int
    evaluations: list[JsonObject] = []


class Trace(Shown, kw_only=True):
    """`calls` are those inside tasks and scorers, by owner; each evaluation has the rows it entered as `metrics`."""

    folder: str
    item_id: str
    item: JsonObject | None = None
    samples: list[Sample] = []
    matches: list[Match] = []
    calls: list[JsonObject] = []


class ItemLines(Protocol):
    """Finds the lines of an item's rows. `ids` are those of other items, as far as they were met; `labels` the labels
    of each scorer, once evaluations were looked for."""

    @property
    def ids(self) -> Collection[str]: ...

    @property
    def labels(self) -> Mapping[str, Collection[str]]: ...

    def of(self, kind: Kind, item_id: str) -> Iterable[bytes]: ...


def trace(
    folder: str | Path, item_id: str, *, sample: int | None = None, model: str | None = None
) -> Trace:
    """Follow an item; an unknown one is an error with the ids that are nearest."""
    place = _place_of(local(folder))
    store = open_store(place)
    return follow(store, place, item_id, _Scan(store), sample=sample, model=model)


def _place_of(path: Path) -> Path:
    """Return the folder of the one experiment at a path, or the repository of one dataset, all
    of which is searched."""
    if is_repository(path) and len(open_store(path).ids("dataset")) == 1:
        return path
    folder = find_source(path).folder
    if folder is None:
        fix = "name the folder of an experiment; see `assay ls`"
        raise UserError(f"there is no experiment in {str(path)!r}", fix=fix)
    return folder


def follow(
    store: Store,
    folder: Path,
    item_id: str,
    lines: ItemLines,
    *,
    sample: int | None = None,
    model: str | None = None,
    metrics: MetricRows | None = None,
) -> Trace:
    """Return what `trace` gives, of the lines that `lines` finds; `metrics` are those of the store,
    where they are known."""
    item = next(_rows(lines, "dataset", item_id), None)
    traced = Trace(folder=shown(str(folder)), item_id=item_id, item=item)
    every = list(_rows(lines, "run", item_id)) or _only_judged(_rows(lines, "evaluation", item_id))
    if not every and traced.item is None:
        raise unknown_item(item_id, lines.ids, folder)
    traced.samples = _samples_of(every, item_id, sample, model)
    traced.calls = _rows_of_log(store, "calls", item_id)
    _add_spans(traced, _rows_of_log(store, "traces", item_id))
    rows = list(_rows(lines, "evaluation", item_id))
    known = metrics_by_label(store) if metrics is None else metrics
    _add_evaluations(traced, known, every, rows, lines.labels)
    return traced


def _samples_of(
    every: list[JsonObject], item_id: str, sample: int | None, model: str | None
) -> list[Sample]:
    """Return the answers that are asked for."""
    chosen = [
        row
        for row in every
        if sample in (None, _sample_of(row)) and model in (None, row.get("model_name"))
    ]
    if every and not chosen:
        raise _nothing_chosen(every, item_id, sample, model)
    return [Sample(response=row) for row in sorted(chosen, key=_place)]


def _rows(lines: ItemLines, kind: Kind, item_id: str) -> Iterator[JsonObject]:
    return (fitting(_row(line), _KINDS.get(kind, Item)) for line in lines.of(kind, item_id))


class _Scan:
    """Looks at every row of a kind."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ids: set[str] = set()
        self.labels: dict[str, set[str]] = {}

    def of(self, kind: Kind, item_id: str) -> Iterator[bytes]:
        for log in _logs(self.store, kind):
            for position, mark in read_rows(log, _RowMark):
                owner = mark.item_id if kind != "dataset" else _id_text(mark.id)
                if mark.scorer and mark.label:
                    self.labels.setdefault(mark.scorer, set()).add(mark.label)
                if owner == item_id:
                    yield log.read(position)
                elif kind != "evaluation":
                    self.ids.add(owner)


def _logs(store: Store, kind: Kind) -> list[Log]:
    """The rows of a kind, and those elsewhere that an evaluation in the folder was made from."""
    logs = [store.log(kind, id) for id in store.ids(kind) or _own_id(store)]
    if isinstance(store, FlatStore):
        logs += [FileLog(file) for file in elsewhere(store.folder).get(kind, [])]
    return logs


def _own_id(store: Store) -> list[str]:
    """A folder of rows without a manifest, from elsewhere, is an experiment as well."""
    id = getattr(store, "id", None)
    return [id] if isinstance(id, str) else []


def _id_text(id: str | int | float | bool | None) -> str:
    return id if isinstance(id, str) else msgspec.json.encode(id).decode()


def unknown_item(item_id: str, ids: Collection[str], folder: str | Path) -> UserError:
    """The error for an item that is not there, with the ids that are nearest."""
    near = difflib.get_close_matches(item_id, sorted(ids), n=MOST_NEAR, cutoff=0.4)
    names = ", ".join(map(repr, near or sorted(ids)[:MOST_NEAR]))
    fix = "run the experiment first"
    if ids:
        fix = f"did you mean {names}?" if near else f"there are {len(ids)}, such as {names}"
    return UserError(f"there is no item {item_id!r}", where=str(folder), fix=fix)


def _nothing_chosen(
    rows: list[JsonObject], item_id: str, sample: int | None, model: str | None
) -> UserError:
    models = sorted({str(row.get("model_name")) for row in rows})
    samples = sorted(set(map(_sample_of, rows)))
    wanted = " and ".join(
        ([f"model {model!r}"] if model is not None else [])
        + ([f"sample {sample}"] if sample is not None else [])
    )
    fix = f"models: {', '.join(models)}; samples: {', '.join(map(str, samples))}"
    return UserError(f"the item {item_id!r} has no row of {wanted}", fix=fix)


def _place(row: JsonObject) -> tuple[str, str, int]:
    return str(row.get("model_name")), str(row.get("task")), _sample_of(row)


def _sample_of(row: JsonObject) -> int:
    return int(row.get("sample_index") or 0)  # rows of others may not number their samples


def _only_judged(rows: Iterable[JsonObject]) -> list[JsonObject]:
    """A response without content for each that there are only labels of."""
    places = {(row.get("model_name"), _sample_of(row)): None for row in rows}
    return [{"model_name": model, "sample_index": sample} for model, sample in places]


def _rows_of_log(store: Store, name: str, item_id: str) -> list[JsonObject]:
    """Rows of `calls.jsonl` or `traces.jsonl`; in an experiment folder, run and evaluation share
    them."""
    logs = [store.log(kind, id, name) for kind in ("run", "evaluation") for id in store.ids(kind)]
    wanted = msgspec.json.encode(item_id)
    blocks = (block for log in logs for block in log.blocks() if wanted in block)
    lines = dict.fromkeys(line for block in blocks for line in block.split(b"\n") if wanted in line)
    return [fitting(_row(line), _Step) for line in lines if _is_of(line, item_id)]


def _is_of(line: bytes, item_id: str) -> bool:
    try:
        return _mark(line).item_id == item_id
    except (ValueError, RecursionError):
        return False


def _add_spans(trace: Trace, traces: list[JsonObject]) -> None:
    by_key: dict[Any, list[Any]] = {}
    for row in traces:
        by_key.setdefault(row.get("key"), []).extend(unpacked_spans(row.get("spans") or []))
    for sample in trace.samples:
        sample.spans = by_key.get(sample.response.get("key"), [])


def _add_evaluations(
    trace: Trace,
    metrics: MetricRows,
    responses: list[JsonObject],
    rows: list[JsonObject],
    labels: Mapping[str, Collection[str]],
) -> None:
    rows.sort(key=lambda row: (str(row.get("scorer")), str(row.get("label"))))

    def with_metrics(row: JsonObject, response: JsonObject) -> JsonObject:
        label = str(row.get("label") or "")
        # a failure without a label counts under all its scorer's labels
        possible = {label} if label else labels.get(str(row.get("scorer")), {""})
        numbered = chain.from_iterable(metrics.get(name, {}).items() for name in possible)
        own = [metric for _, metric in sorted(numbered, key=itemgetter(0))]
        values = _FacetValues(row, response, as_object(trace.item))
        return {**row, "metrics": [metric for metric in own if values.are_those_of(metric)]}

    judging, met = Judging(rows), set[int]()
    for sample in trace.samples:
        for at in judging.of(sample.response):
            if rows[at].get("players"):
                met.add(at)
            else:
                sample.evaluations.append(with_metrics(rows[at], sample.response))
    answers = {answer["key"]: answer for answer in reversed(responses) if answer.get("key")}
    trace.matches = _matches(
        with_metrics(row, answers.get((row.get("responses") or [""])[0], {}))
        for row in map(rows.__getitem__, sorted(met))
    )


def _matches(rows: Iterable[JsonObject]) -> list[Match]:
    """Return the matches that evaluations are of."""
    matches: dict[Any, Match] = {}  # several runs of one player may meet another on the same item
    for row in sorted(rows, key=lambda row: row.get("seat") or 0):
        match = Match(
            label=str(row.get("label")), players=row["players"], sample_index=_sample_of(row)
        )
        keys = sorted(row.get("responses") or [""])
        match = matches.setdefault((match.label, *match.players, match.sample_index, *keys), match)
        match.evaluations.append(row)
    return sorted(
        matches.values(), key=lambda match: (match.label, match.players, match.sample_index)
    )


def metrics_by_label(store: Store) -> MetricRows:
    """Return the metric rows of each label by their numbers."""
    logs = [store.log("aggregation", id) for id in store.ids("aggregation")]
    rows = chain.from_iterable(read_rows(log, JsonObject) for log in logs)
    metrics: MetricRows = {}
    for at, (_, row) in enumerate(rows):
        metrics.setdefault(str(row.get("label") or ""), {})[at] = fitting(row, _Step)
    return metrics


class Judging:
    """Which evaluations are about a response, by their places in a list: those that name its key, or, where one of both
    has none, those of its sample and model. A match is of any model."""

    def __init__(self, rows: list[JsonObject]) -> None:
        self._places: dict[tuple[Any, ...], list[int]] = {}
        for at, row in enumerate(rows):
            keys = row.get("responses") or []
            place = None if row.get("players") else row.get("model_name") or "", _sample_of(row)
            for name in {
                ("all", *place),
                *((key,) for key in keys),
                *([] if keys else [("unkeyed", *place)]),
            }:
                self._places.setdefault(name, []).append(at)

    def of(self, response: JsonObject) -> list[int]:
        key, sample, model = (
            response.get("key"),
            _sample_of(response),
            response.get("model_name") or "",
        )
        names = [("unkeyed" if key else "all", each, sample) for each in (None, model)]
        return sorted(at for name in (*names, (key or None,)) for at in self._places.get(name, ()))


class _FacetValues(dict[str, bytes]):
    """The values of facets of one evaluation, which are looked up once."""

    def __init__(self, evaluation: JsonObject, response: JsonObject, item: JsonObject) -> None:
        self._rows, self._item = (evaluation, response), item

    def __missing__(self, facet: str) -> bytes:
        places = [find_in_row(row, facet) for row in self._rows]
        value = first_of((*places, find_in_item(self._item, facet)))
        self[facet] = found = typed(None if value is UNSET else value)
        return found

    def are_those_of(self, metric: JsonObject) -> bool:
        """Return whether a metric row of the evaluation's label has the same values."""
        return all(self[facet] == typed(metric.get(facet)) for facet in metric.get("facets") or ())
