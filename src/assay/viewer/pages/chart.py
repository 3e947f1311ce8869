"""Charts of experiments: `name` says which, the other fields what of them.

`intervals`, `heat` (facets `rows` × `columns`) and `scatter` (quality against cost or latency) draw the leaderboard's
rows of one metric and label; `scores`, `latency` and `tokens` are distributions `by` a facet; `pass_at_k` goes over k.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np

from assay.engine.aggregate.measure import bind_metric
from assay.reports.charts import (
    Cell,
    Chart,
    Dot,
    Line,
    Point,
    curve,
    heat,
    histogram,
    intervals,
    scatter,
)
from assay.reports.sheet import figures
from assay.sdk import FloatArray, JsonMapping, JsonObject, MetricRow, UserError
from assay.store.table.join import group_rows
from assay.viewer.experiments import Experiments
from assay.viewer.index.columns import column_of
from assay.viewer.index.index import Index
from assay.viewer.index.opening import open_index
from assay.viewer.metrics import facet_names, measured, stored
from assay.viewer.pages.leaderboard import facets_of, leaders
from assay.viewer.query import view
from assay.viewer.spent import are_answers, group_rows_by, spent

_MOST_GROUPS = 12
_MOST_CELLS = 2500
_BARS = 30
EXPERIMENT = "experiment"  # may stand for a facet where there are several


class Query(msgspec.Struct, kw_only=True):
    """`metric` and `label` choose among the leaderboard's rows, by default the first; `facet` are its facets. `by` of
    `scatter` is what is paid: cost or latency, by default cost if there is any."""

    name: Literal["intervals", "heat", "scatter", "scores", "latency", "tokens", "pass_at_k"] = (
        "intervals"
    )
    experiment: list[str] = []
    metric: str = ""
    label: str = ""
    facet: list[str] = []
    rows: str = ""
    columns: str = ""
    by: str = ""


def page(experiments: Experiments, query: Query) -> Chart:
    if query.name in ("intervals", "heat"):  # what is dear in them is kept by facets
        return _CHARTS[query.name](experiments, query)
    ids = query.experiment or list(experiments.list())
    return experiments.cached(
        ("chart", msgspec.json.encode(query)), ids, lambda: _CHARTS[query.name](experiments, query)
    )


# ---- the leaderboard's rows


def _chosen(experiments: Experiments, query: Query, facets: Sequence[str]) -> list[JsonObject]:
    """The leaderboard's rows of one metric and label."""
    made = leaders(experiments, query.experiment, facets)
    if not made.places:
        why = "; ".join(made.board.notes)
        fix = why or "`assay aggregate` computes them, with `metrics:` in the config"
        raise UserError("there are no metrics to draw", fix=fix)
    metric = query.metric or made.rows[0]["metric"]
    label = query.label or next((label for name, label in made.places if name == metric), "")
    places = made.places.get((metric, label))
    if places is None:
        pairs = ", ".join(sorted(f"{name} of {own}" for name, own in made.places))
        raise UserError(
            f"no row has the metric {metric!r} and the label {label!r}",
            fix=f"choose one of {pairs}",
        )
    return [made.rows[at] for at in places]


def _title(row: JsonObject) -> str:
    return f"{row['metric']} of {row['label']}"


def _are_several(rows: Sequence[JsonObject]) -> bool:
    """Return whether rows are of more than one experiment."""
    return len({row["experiment"] for row in rows}) > 1


def _counts(row: JsonObject) -> str:
    weak = row["ci_method"].partition("; ")[2]
    failed = [
        f"{count:,} {name}" for name, count in row["counts"].items() if count and name != "scored"
    ]
    sizes = [f"{row['items']:,} items", f"{row['samples']:,} samples"]
    return ", ".join(filter(None, [*sizes, *failed, row["partial"], weak]))


def _intervals(experiments: Experiments, query: Query) -> Chart:
    rows = _chosen(experiments, query, query.facet)
    several = _are_several(rows)
    dots = [
        Dot(
            name=", ".join(row["facets"].values()) or row["experiment"],
            value=row["value"],
            **_interval(row),
            wrong=row["if_wrong"],
            right=row["if_right"],
            group=row["experiment"] if several else "",
            note=_counts(row),
        )
        for row in rows
    ]
    first = rows[0]
    level = f", {first['ci_level']:.0%} intervals" if first["ci_level"] else ""
    less = "; less is better" if first["lower_is_better"] else ""
    about = "Bars are intervals; faint lines end where a value would be if all that is missing were wrong or right."
    return intervals(_title(first), dots, axis=f"{first['metric']}{level}{less}", about=about)


def _heat(experiments: Experiments, query: Query) -> Chart:
    if not query.rows or not query.columns or query.rows == query.columns:
        raise UserError(
            "a heat map needs two facets", fix="choose `rows` and `columns`, two different facets"
        )
    wanted = [facet for facet in (query.rows, query.columns) if facet != EXPERIMENT]
    rows = _chosen(experiments, query, wanted)
    if _are_several(rows) and EXPERIMENT not in (query.rows, query.columns):
        raise UserError(
            "several experiments do not fit into one cell",
            fix="choose one, or `experiment` as a facet",
        )
    placed = {(_side(row, query.rows), _side(row, query.columns)): row for row in rows}
    down, across = (list(dict.fromkeys(place[at] for place in placed)) for at in (0, 1))
    if len(down) * len(across) > _MOST_CELLS:
        raise UserError(
            f"{len(down):,} × {len(across):,} cells are too many",
            fix="choose facets with fewer values",
        )
    cells = [
        [
            Cell(value=row["value"], note=_tip(row)) if (row := placed.get((y, x))) else None
            for x in across
        ]
        for y in down
    ]
    ends = (0.0, 1.0) if all(0 <= (row["value"] or 0) <= 1 for row in rows) else None
    title = f"{_title(rows[0])} by {query.rows} and {query.columns}"
    return heat(
        title,
        down,
        across,
        cells,
        ends=ends,
        about="The stronger the colour, the more; a dash is a cell without a value.",
    )


def _side(row: JsonObject, facet: str) -> str:
    return row["experiment"] if facet == EXPERIMENT else row["facets"].get(facet, "")


def _interval(row: JsonMapping) -> JsonObject:
    return {"low": row["ci_low"], "high": row["ci_high"], "method": row["ci_method"]}


def _tip(row: JsonObject) -> str:
    return f"{figures(row['value'], between=' to ', **_interval(row))[1].text}, {_counts(row)}"


def _scatter(experiments: Experiments, query: Query) -> Chart:
    if query.by not in ("", "cost", "latency"):
        raise UserError(
            f"quality cannot be drawn against {query.by!r}", fix="choose cost or latency"
        )
    rows = _with_spent(experiments, _chosen(experiments, query, query.facet))
    paid = query.by or ("cost" if any(row["cost"] for row in rows) else "latency")
    if not any(row[paid] for row in rows):
        raise UserError(
            f"no row has a {paid} to draw",
            fix="`price:` of a model in the config tells what tokens cost",
        )
    several = _are_several(rows)
    points = [
        Point(
            x=row[paid],
            y=row["value"],
            **_interval(row),
            name=", ".join([*([row["experiment"]] if several else []), *row["facets"].values()]),
            note=_counts(row),
        )
        for row in rows
    ]
    across = (
        "cost of the responses in dollars" if paid == "cost" else "median seconds of a response"
    )
    about = f"The dashed line joins what no other is better and {'cheaper' if paid == 'cost' else 'faster'} than."
    title, less = f"{_title(rows[0])} against {paid}", rows[0]["lower_is_better"]
    return scatter(title, points, across=across, upwards=rows[0]["metric"], less=less, about=about)


def _with_spent(experiments: Experiments, rows: list[JsonObject]) -> list[JsonObject]:
    """Return the rows with latency and cost of their responses."""
    facets = {(row["experiment"], tuple(row["facets"])) for row in rows}
    costs = {place: spent(experiments, *place, wait=True) for place in facets}
    found: list[JsonObject] = []
    for row in rows:
        index = costs[row["experiment"], tuple(row["facets"])]
        latency, cost = index.of(row["facets"]) if index is not None else (None, None)
        found.append({**row, "latency": latency, "cost": cost})
    return found


# ---- distributions


def _distribution(experiments: Experiments, query: Query) -> Chart:
    by = query.by or "model_name"
    samples, _ = view(experiments, query.experiment, query.label, wait=True)
    drawn = samples.numbers(column_of("score" if query.name == "scores" else query.name))
    if query.name != "scores":
        drawn = np.where(are_answers(samples), drawn, np.nan)
    groups = {group: drawn[rows] for (group,), rows in group_rows_by(samples, [by])}
    failed = {group: int(np.isnan(own).sum()) for group, own in groups.items()}
    values = {
        group: own[~np.isnan(own)]
        for group, own in sorted(groups.items())
        if failed[group] < len(own)
    }
    if not values:
        raise UserError(
            f"no row has {query.name} to draw", fix="choose another label or experiment"
        )
    if len(values) > _MOST_GROUPS:
        raise UserError(
            f"{by!r} has {len(values):,} values", fix="choose `by`, a facet with few values"
        )
    return _drawn(msgspec.structs.replace(query, label=samples.label), by, values, failed)


def _drawn(query: Query, by: str, groups: dict[str, FloatArray], failed: dict[str, int]) -> Chart:
    everything = np.concatenate(list(groups.values()))
    low, high = float(everything.min()), float(everything.max())
    log = low > 0 and high / low > 50
    if log:
        edges = np.geomspace(low, high, _BARS + 1)
    elif query.name == "tokens" and high - low < _BARS:
        edges = np.arange(low, high + 2) - 0.5
    else:
        low, high = (0.0, 1.0) if query.name == "scores" and low >= 0 and high <= 1 else (low, high)
        edges = np.linspace(low, high if high > low else low + 1, _BARS + 1)
    edges[-1] = max(edges[-1], high)
    counts = [
        (
            f"{name} ({failed[name]:,} without)" if failed.get(name) else name,
            np.histogram(values, edges)[0].tolist(),
        )
        for name, values in groups.items()
    ]
    axis = {"scores": "score", "latency": "seconds", "tokens": "tokens of prompt and answer"}[
        query.name
    ]
    what = f"scores of {query.label}" if query.name == "scores" and query.label else query.name
    about = f"Bars are as tall as their share of the tallest of the same {by}."
    return histogram(f"{what} by {by}", edges.tolist(), counts, axis=axis, log=log, about=about)


# ---- pass@k


def _pass_at_k(experiments: Experiments, query: Query) -> Chart:
    ids = query.experiment or list(experiments.list())
    key = ("pass_at_k", *ids, "", *query.facet)
    curves = experiments.cached(key, ids, lambda: _curves(experiments, ids, query.facet))
    label = query.label or next(iter(curves), "")
    lines = curves.get(label, ())
    if not any(len(line.points) > 1 for line in lines):
        raise UserError(
            "every item has one sample, so there is no pass@k to draw",
            fix="`num_samples: 8` in the config",
        )
    if len(lines) > _MOST_GROUPS:
        raise UserError(
            f"{len(lines):,} lines are too many",
            fix="choose one experiment, or a facet with fewer values",
        )
    about = "The chance that at least one of k samples passes; bands are 95% intervals."
    return curve(f"pass@k of {label}", lines, across="k", upwards="pass@k", about=about)


def _curves(
    experiments: Experiments, ids: Sequence[str], facets: Sequence[str]
) -> dict[str, list[Line]]:
    """Return the lines of each label, from one pass over the rows of each experiment."""
    labels: dict[str, dict[str, Line]] = {}
    for id in ids:
        for row in _rows_over_k(experiments, id, facets):
            name = ", ".join([*([id] if len(ids) > 1 else []), *facets_of(row).values()])
            lines = labels.setdefault(str(row["label"]), {})
            line = lines.setdefault(name, Line(name=name, points=[]))
            line.points.append(Point(x=row.get("k"), y=row["value"], **_interval(row)))
    return {label: list(lines.values()) for label, lines in labels.items()}


def _rows_over_k(experiments: Experiments, id: str, facets: Sequence[str]) -> list[MetricRow]:
    source = experiments.source(id)
    most = _most_samples(open_index(experiments, id, wait=True)[0])
    own = next(filter(None, map(facet_names, stored(experiments, id).rows)), None)
    by = facets or own or ["task" if source.manifest("run") else "model_name"]
    ks = [2**power for power in range(12) if 2**power < most] + [most]
    bound = [
        bind_metric(name=f"pass@{k}", type="pass_at_k", params={"k": k}, facets=by) for k in ks
    ]
    return measured(source, bound) if most > 1 else []


def _most_samples(index: Index) -> int:
    """How many samples the items have of each task, on average."""
    cells = group_rows(index.column("response", "item"), index.column("response", "task"))
    return len(index) // max(1, len(cells)) or 1


_CHARTS: dict[str, Callable[[Experiments, Query], Chart]] = {
    "intervals": _intervals,
    "heat": _heat,
    "scatter": _scatter,
    "scores": _distribution,
    "latency": _distribution,
    "tokens": _distribution,
    "pass_at_k": _pass_at_k,
}
