"""What takes long to know of the leaderboard's rows of a metric and label: the ranks that they may have, by the paired
tests of `compare` over all of them, and what their responses took and cost."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from assay.analysis.compare.compare import CompareOptions, compare_sides
from assay.analysis.compare.paired import Side, read_sides
from assay.engine.aggregate.measure import BoundMetric
from assay.sdk import AssayError, JsonObject, MetricRow, UserError, canonical
from assay.viewer.experiments import Experiments
from assay.viewer.metrics import Stored, error_line, facet_names, metrics_of
from assay.viewer.pages.leaderboard import facets_of, leaders
from assay.viewer.spent import Spent, spent

MOST_SIDES = 100  # each is compared with each


class Query(msgspec.Struct, kw_only=True):
    experiment: list[str] = []
    facet: list[str] = []
    metric: str = ""
    label: str = ""


Rows = list[tuple[Stored, MetricRow]]


def page(experiments: Experiments, query: Query) -> JsonObject:
    made = leaders(experiments, query.experiment, query.facet)
    rows = [made.board.rows[at] for at in made.places.get((query.metric, query.label), ())]
    counted = [(entry, row) for entry, row in rows if row.get("value") is not None]
    notes = (
        [f"{len(rows) - len(counted)} rows without a value have no rank"]
        if len(counted) < len(rows)
        else []
    )
    ranks: list[Any] = []
    if len(counted) < 2:
        notes.append("there are no two rows to compare")
    elif len(counted) > MOST_SIDES:
        notes.append(
            f"{len(counted):,} rows are too many to compare each with each; choose fewer, at most {MOST_SIDES}"
        )
    else:
        key = ("standing", *query.experiment, "", *query.facet, "", query.metric, query.label)
        ids = list(dict.fromkeys(entry.id for entry, _ in counted))
        try:
            ranks, more = experiments.cached(key, ids, lambda: _ranks(experiments, counted))
            notes += more
        except UserError as error:
            notes.append(f"no ranks: {error_line(error)}")
    return {
        "ranks": [
            {"experiment": entry.id, "facets": facets_of(row), "ranks": span}
            for (entry, row), span in zip(counted, ranks, strict=False)
        ],
        "spent": list(_spent(experiments, rows)),
        "notes": notes,
    }


def _spent(experiments: Experiments, rows: Rows) -> Iterator[JsonObject]:
    """Latency and cost of every row, as far as there is an index."""
    known: dict[tuple[str, ...], Spent | None] = {}
    for entry, row in rows:
        facets = facets_of(row)
        place = (entry.id, *facets)
        if place not in known:
            try:
                known[place] = spent(experiments, entry.id, list(facets))
            except AssayError:  # rows that are out of reach
                known[place] = None
        if (index := known[place]) is not None:
            latency, cost = index.of(facets)
            yield {"experiment": entry.id, "facets": facets, "latency": latency, "cost": cost}


def _ranks(experiments: Experiments, rows: Rows) -> tuple[list[Any], list[str]]:
    """Ranks in the order of the rows, and what was noted."""
    bound = _metric(rows)
    names = [", ".join([entry.id, *facets_of(row).values()]) for entry, row in rows]
    names = [name if names.count(name) == 1 else f"{name} ({at})" for at, name in enumerate(names)]
    sides = _sides(experiments, names, rows)
    label = str(rows[0][1].get("label"))
    compared = compare_sides(
        [sides[name] for name in names], CompareOptions(label=label, flips=0), bound
    )
    ranks = {standing.name: standing.ranks for standing in compared.standings}
    open_ranks = any(pair.verdict == "incomplete" for pair in compared.pairs)
    more = ["ranks stay open where evidence is unfinished"] if open_ranks else []
    return [ranks.get(name) for name in names], [*compared.notes, *more]


def _sides(experiments: Experiments, names: list[str], rows: Rows) -> dict[str, Side]:
    """Return sides by name, read once for all labels that have the same ones."""
    wanted: dict[str, dict[str, JsonObject]] = {}
    for name, (entry, row) in zip(names, rows, strict=True):
        wanted.setdefault(entry.id, {})[name] = _where(row)

    def read(id: str) -> dict[str, Side]:
        return {side.name: side for side in read_sides(experiments.source(id), wanted[id])}

    sides: dict[str, Side] = {}
    for id, own in wanted.items():
        sides |= experiments.cached(("sides", id, canonical(own)), [id], partial(read, id))
    return sides


def _metric(rows: Rows) -> BoundMetric:
    """The metric of the rows, if it is one and the same."""
    notes: list[str] = []
    plans: dict[bytes, BoundMetric] = {}
    for entry in {entry.id: entry for entry, _ in rows}.values():
        for bound in metrics_of(entry.manifests.get("aggregation"), [], notes):
            if bound.name == rows[0][1].get("metric_name"):
                plans[canonical(bound.plan())] = bound
    if not plans:
        raise UserError("the metric cannot be computed here", fix="; ".join(notes))
    if len(plans) > 1:
        raise UserError(
            "the experiments compute this metric in different ways",
            fix="compare rows of one experiment",
        )
    return next(iter(plans.values()))


def _where(row: MetricRow) -> JsonObject:
    return {name: row.get(name) for name in facet_names(row)}
