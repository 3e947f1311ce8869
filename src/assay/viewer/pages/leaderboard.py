"""Metric rows of experiments with their counts, bounds, cost and latency. No row of theirs is read, unless other facets
are asked for: then the engine computes the metrics by those."""

import math
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from assay.engine.calls.usage import CALLS, USAGE
from assay.engine.run.evidence import PARTIAL
from assay.records import OUTCOMES, JsonMapping, JsonObject, MetricRow
from assay.reports.sheet import passed_text
from assay.store.table.facets import text_of
from assay.viewer.choices import choices
from assay.viewer.experiments import Experiments
from assay.viewer.metrics import Board, Stored, Ways, board, facet_names

_MODEL = ("model_name", "metadata.model_id", "model_id")


class Query(msgspec.Struct, kw_only=True):
    experiment: list[str] = []
    facet: list[str] = []


def page(experiments: Experiments, query: Query) -> JsonObject:
    made = leaders(experiments, query.experiment, query.facet)
    return {
        "facets": list(dict.fromkeys(name for row in made.rows for name in row["facets"])),
        "choices": choices(experiments, made.board.stored),
        "rows": made.rows,
        "usage": [used for entry in made.board.stored for used in _usage(entry)],
        "notes": made.board.notes,
    }


class Leaders(msgspec.Struct):
    """The rows of a board as the page has them, and the places of those of each metric and label."""

    board: Board
    rows: list[JsonObject]
    places: dict[tuple[str, str], list[int]]


def leaders(experiments: Experiments, ids: Sequence[str], facets: Sequence[str]) -> Leaders:
    """Return the rows of these experiments or of all, made once for all pages of a metric and label."""
    chosen = list(dict.fromkeys(ids)) or list(experiments.list())

    def make() -> Leaders:
        made = board(experiments, chosen, facets, strict=bool(ids))
        ways, beside = Ways(experiments), _beside(made)
        rows = [_row(entry, row, ways.lower(entry, row), beside) for entry, row in made.rows]
        places: dict[tuple[str, str], list[int]] = {}
        for at, row in enumerate(rows):
            places.setdefault((row["metric"], row["label"]), []).append(at)
        return Leaders(made, rows, places)

    return experiments.cached(("leaders", bool(ids), *chosen, "", *facets), chosen, make)


def facets_of(row: MetricRow) -> dict[str, str]:
    """The facets of a metric row with their values as texts."""
    return {name: text_of(row.get(name)) for name in facet_names(row)}


Beside = dict[tuple[str, str, str], MetricRow]


def _beside(made: Board) -> Beside:
    """Rows of latency and cost, which also stand beside the other metrics of their group."""
    kinds = ("latency", "cost")
    rows = [(entry, row) for entry, row in made.rows if row.get("metric_type") in kinds]
    return {(entry.id, str(row["metric_type"]), _group(row)): row for entry, row in reversed(rows)}


def _group(row: MetricRow) -> str:
    return msgspec.json.encode(sorted(facets_of(row).items())).decode()


def _row(entry: Stored, row: MetricRow, lower: bool, beside: Beside) -> JsonObject:
    group = _group(row)
    latency, cost = (beside.get((entry.id, kind, group), {}) for kind in ("latency", "cost"))
    policy = row.get("policy")
    return {
        "experiment": entry.id,
        "facets": facets_of(row),
        "metric": str(row.get("metric_name") or row.get("metric_type") or ""),
        "label": str(row.get("label") or ""),
        **{name: number(row.get(name)) for name in ("value", "ci_low", "ci_high", "ci_level")},
        "ci_method": str(row.get("ci_method") or ""),
        "lower_is_better": lower,
        **_counts(row),
        "if_wrong": number(row.get("value_if_missing_wrong")),
        "if_right": number(row.get("value_if_missing_right")),
        "policy": {str(key): str(value) for key, value in cast("dict[Any, Any]", policy).items()}
        if isinstance(policy, dict)
        else {},
        "partial": str(row.get(PARTIAL) or entry.partial),
        "latency": number(latency.get("median")),
        "cost": _whole_cost(cost) if cost else _cost(entry, row),
    }


def _counts(row: MetricRow) -> JsonObject:
    """Return how many samples were planned, are there and are used."""
    total, planned = (_count(row, f"{what}_sample_count") for what in ("total", "planned"))
    return {
        "items": _count(row, "total_item_count"),
        "samples": total,
        "planned": max(planned, total),
        "used": _count(row, "used_sample_count", total),
        "passed": passed_text(row),
        "counts": {name: _count(row, f"{name}_count") for name in OUTCOMES},
    }


def number(value: Any) -> float | None:
    """A finite number of a row that anybody may have written."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _count(row: MetricRow, name: str, otherwise: int = 0) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else otherwise


def _whole_cost(cost: MetricRow) -> float | None:
    """The sum of a cost row, if every response that succeeded has a price."""
    priced = sum(
        _count(cost, name) for name in ("response_count", "errored_count", "skipped_count")
    )
    return number(cost.get("sum")) if priced >= _count(cost, "total_sample_count") else None


def _cost(entry: Stored, row: MetricRow) -> float | None:
    """What the row's responses cost, if they are all responses of a model, or of the run, and every price is known."""
    used = _used(entry)
    names = [text_of(row.get(name)) for name in _MODEL if name in facet_names(row)]
    behind = [used[name] for name in names[:1] if name in used] if names else list(used.values())
    whole = behind and sum(_count(each, "responses") for each in behind) == _count(
        row, "total_sample_count"
    )
    costs = [_known_cost(each) for each in behind]
    return sum(cost for cost in costs if cost is not None) if whole and None not in costs else None


def _used(entry: Stored) -> dict[str, JsonObject]:
    """What the responses of all runs used, by model."""
    used: dict[str, JsonObject] = {}
    for run in entry.runs:
        for model, own in (run.metadata.get(USAGE) or {}).items():
            before = used.get(model, {})
            used[model] = {
                name: before.get(name, 0) + value
                for name, value in own.items()
                if number(value) is not None
            }
    return used


def _known_cost(used: JsonMapping) -> float | None:
    return None if used.get("unpriced") else number(used.get("cost"))


def _usage(entry: Stored) -> list[JsonObject]:
    """Of responses by model, then of the calls inside of tasks and scorers."""
    used = _used(entry)
    for manifest in (*entry.runs, *filter(None, [entry.manifests.get("evaluation")])):
        for owner, models in (manifest.metadata.get(CALLS) or {}).items():
            used |= {f"{model} for {owner}": usage for model, usage in models.items()}
    counts = ("responses", "errors", "prompt_tokens", "completion_tokens")
    return [
        {
            "experiment": entry.id,
            "model": model,
            **{name: _count(each, name) for name in counts},
            "cost": _known_cost(each),
        }
        for model, each in used.items()
    ]
