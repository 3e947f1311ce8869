"""Two sides: the paired difference with its verdict, also by a facet, and what they were made of."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from assay.analysis.compare.compare import CompareOptions, Comparison, compare_sides
from assay.analysis.compare.measured import bound_metric, shared_policy
from assay.analysis.compare.paired import Side, read_sides
from assay.config.differences import comparable, unequal
from assay.engine.aggregate.measure import BoundMetric
from assay.engine.experiment.trust import CONFIG
from assay.errors import UserError
from assay.records import JsonMapping, JsonObject, find_in_row
from assay.sdk import as_object
from assay.store.table.facets import text_of
from assay.viewer.choices import choices
from assay.viewer.experiments import Experiments
from assay.viewer.metrics import Stored, error_line, first_rows, metrics_of, stored

_MOST_VALUES = 50
_LONGEST = 2000
_NOT_COMPARED = ("output_dir", "name")


class Query(msgspec.Struct, kw_only=True):
    """`a` is the baseline, `b` the candidate: an experiment's id, or `id::facet=value`."""

    a: str
    b: str
    label: str = ""
    metric: str = ""
    facet: str = ""


class Spec(msgspec.Struct):
    """A side as an address names it."""

    text: str
    id: str
    where: dict[str, str]


def spec_of(text: str) -> Spec:
    id, *parts = text.split("::")
    where: dict[str, str] = {}
    for part in parts:
        facet, equals, value = part.partition("=")
        if not equals:
            raise UserError(f"{text!r} does not name a side", fix="write id::facet=value")
        where[facet] = value
    return Spec(text, id, where)


def page(experiments: Experiments, query: Query) -> JsonObject:
    if query.a == query.b:
        raise UserError(
            "both sides are the same", fix="choose another experiment, or id::facet=value"
        )
    first, second = spec_of(query.a), spec_of(query.b)
    ids = list(dict.fromkeys([first.id, second.id]))
    key = "compare", msgspec.json.encode(query)
    return experiments.cached(key, ids, lambda: _page(experiments, query, first, second))


def _page(experiments: Experiments, query: Query, first: Spec, second: Spec) -> JsonObject:
    entries = [stored(experiments, spec.id) for spec in (first, second)]
    notes: list[str] = []
    try:
        sides = _sides(experiments, (first, second), [query.facet] if query.facet else [])
    except UserError as error:
        if not query.facet:
            raise
        notes.append(error_line(error))
        query = msgspec.structs.replace(query, facet="")
        sides = _sides(experiments, (first, second), [])
    labels = sorted(set(sides[0].labels()) & set(sides[1].labels()))
    metric = query.metric or "mean"
    options = CompareOptions(metric=metric, label=query.label or next(iter(labels), ""), flips=0)
    comparison, by = None, list[JsonObject]()
    try:
        bound = _metric(metric, entries[0], sides)
        comparison = compare_sides(sides, options, bound)
        by = _by(sides, query.facet, options, bound, notes) if query.facet else []
    except UserError as error:
        notes.append(error_line(error))
    return {
        "a": query.a,
        "b": query.b,
        "label": comparison.label if comparison else options.label,
        "labels": labels,
        "metric": metric,
        "comparison": comparison,
        "facets": choices(experiments, entries[: 1 + (first.id != second.id)]),
        "by": by,
        "differences": [
            {"what": what, "a": a, "b": b}
            for what, a, b in _differences(experiments, (first, second), entries)
        ],
        "notes": notes,
    }


def _sides(experiments: Experiments, specs: tuple[Spec, Spec], more: list[str]) -> list[Side]:
    """Both sides; an experiment that has both is read once."""
    read: dict[str, Side] = {}
    for id in dict.fromkeys(spec.id for spec in specs):
        own = {spec.text: spec.where for spec in specs if spec.id == id}
        read |= {side.name: side for side in read_sides(experiments.source(id), own, more)}
    return [read[spec.text] for spec in specs]


def _metric(name: str, entry: Stored, sides: list[Side]) -> BoundMetric:
    """The baseline's own metric of this name, or a metric that is called so."""
    own = [
        bound
        for bound in metrics_of(entry.manifests.get("aggregation"), [], [])
        if bound.name == name
    ]
    return (
        own[0]
        if own
        else bound_metric(name, shared_policy([side.source for side in sides])[0], 0.95)
    )


def _by(
    sides: list[Side], facet: str, options: CompareOptions, bound: BoundMetric, notes: list[str]
) -> list[JsonObject]:
    """The same comparison for each value of a facet."""
    parts = [{part.name: part for part in side.by(facet)} for side in sides]
    values = list(dict.fromkeys([*parts[0], *parts[1]]))
    if len(values) > _MOST_VALUES:
        notes.append(f"{facet!r} has {len(values):,} values; the first {_MOST_VALUES} are compared")
    made: list[JsonObject] = []
    for value in values[:_MOST_VALUES]:
        comparison: Comparison | None = None
        lacking = [side.name for side, own in zip(sides, parts, strict=True) if value not in own]
        reason = f"{' and '.join(lacking)} has no such row" if lacking else ""
        if not lacking:
            both = [
                msgspec.structs.replace(own[value], name=side.name)
                for side, own in zip(sides, parts, strict=True)
            ]
            try:
                comparison = compare_sides(both, options, bound, noting=False)
            except UserError as error:
                reason = error.what
        made.append({"facet": facet, "value": value, "comparison": comparison, "reason": reason})
    return made


# ---- what differs


Difference = tuple[str, str, str]


def _differences(
    experiments: Experiments, specs: tuple[Spec, Spec], entries: list[Stored]
) -> Iterator[Difference]:
    parts = [_parts(experiments, spec, entry) for spec, entry in zip(specs, entries, strict=True)]
    yield from _unequal("", parts[0], parts[1])
    if specs[0].id != specs[1].id:
        configs = [_config(experiments, spec.id) for spec in specs]
        yield from _unequal("config", configs[0], configs[1])


def _parts(experiments: Experiments, spec: Spec, entry: Stored) -> JsonObject:
    """What a side was made of: its tasks' prompts, models and parameters, its data, the models served, its scorers."""
    data, scored = entry.manifests.get("dataset"), entry.manifests.get("evaluation")
    texts: dict[str, dict[str, None]] = {}
    for task in (task for run in entry.runs for task in run.plan.get("tasks") or []):
        facets, identity = (as_object(task.get(name)) for name in ("facets", "identity"))
        row = {"task": task.get("name"), "model_name": facets.get("model_id"), "metadata": facets}
        if _has(row, spec.where):
            for name, value in identity.items():
                texts.setdefault(str(name), {})[_text(value)] = None
    for served in _served(experiments, spec):
        texts.setdefault("served model", {})[served] = None
    parts: JsonObject = {name: "\n".join(sorted(values)) for name, values in texts.items()}
    if data is not None:
        parts |= {"data": data.digest[:12], "items": f"{data.counts.get('items', 0):,}"}
    for scorer in cast("list[JsonObject]", scored.plan.get("scorers") or []) if scored else []:
        code, params = str(scorer.get("identity") or "")[:12], scorer.get("params")
        parts[f"scorer {scorer.get('name')}"] = {"code": code, "params": params}
    return parts


def _has(row: JsonMapping, where: Mapping[str, str]) -> bool:
    """Whether a row has these values of facets, as far as it tells."""
    found = {facet: find_in_row(row, facet) for facet in where}
    return all(
        value is msgspec.UNSET or text_of(value) == where[facet] for facet, value in found.items()
    )


def _served(experiments: Experiments, spec: Spec) -> Iterator[str]:
    """Of the first responses."""
    for row in first_rows(experiments, spec.id, "run", JsonObject):
        served = [
            str(row[name]) for name in ("served_model", "served_fingerprint") if row.get(name)
        ]
        if served and _has(row, spec.where):
            yield f"{row.get('model_name')}: {' '.join(served)}"


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _config(experiments: Experiments, id: str) -> JsonObject:
    folder = experiments.source(id).folder
    data = comparable(folder / CONFIG) if folder is not None else {}
    return {key: value for key, value in data.items() if key not in _NOT_COMPARED}


def _unequal(what: str, a: Any, b: Any) -> Iterator[Difference]:
    for key, *values in unequal(what, a, b):
        first, second = ("–" if value is None else _text(value) for value in values)
        yield key, first, second
