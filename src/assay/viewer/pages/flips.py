"""The items whose value changed between two sides: those that `compare` counts as gained and lost."""

from typing import Literal

import msgspec
import numpy as np

from assay.analysis.compare.measured import (
    Matched,
    bound_metric,
    match_sides,
    measured,
    shared_policy,
)
from assay.analysis.compare.notes import answer_of, telling_rows
from assay.analysis.compare.paired import Side, read_side, shared_label
from assay.sdk import IntArray, JsonObject, UserError
from assay.viewer.experiments import Experiments
from assay.viewer.index.opening import open_index
from assay.viewer.pages.compare import spec_of
from assay.viewer.query import page_of
from assay.viewer.rows import beginning, question_of, read_row

_LEVEL = 0.95
_MOST_KEPT = 4


class Query(msgspec.Struct, kw_only=True):
    """A side is an experiment, or the part of it that has values of facets: `id::facet=value`."""

    a: str
    b: str
    label: str = ""
    direction: Literal["gained", "lost", ""] = ""
    offset: int = 0
    limit: int = 50


def page(experiments: Experiments, query: Query) -> JsonObject:
    part = page_of(query)
    ids = [spec_of(text).id for text in (query.a, query.b)]
    key = "flips", query.a, query.b, query.label
    # one pages through it
    match = experiments.cached(key, ids, lambda: _matched(experiments, query), _MOST_KEPT)
    gains = match.gains
    wanted = {"gained": gains > 0, "lost": gains < 0, "": gains != 0}[query.direction]
    rows = np.flatnonzero(wanted)
    rows = rows[np.lexsort((match.items[rows], gains[rows] > 0, -np.abs(gains[rows])))]
    shown = _rows(experiments, query, match, rows[part])
    return {
        "total": len(rows),
        "gained": int((gains > 0).sum()),
        "lost": int((gains < 0).sum()),
        "rows": shown,
    }


def _matched(experiments: Experiments, query: Query) -> Matched:
    """Both sides on the items that they share."""
    sides = [
        read_side(experiments.source(spec.id), spec.where)
        for spec in map(spec_of, (query.a, query.b))
    ]
    policy, _ = shared_policy([side.source for side in sides])
    bound = bound_metric("mean", policy, _LEVEL)
    label, scorer = shared_label(sides, query.label or _first_label(sides), bound)
    baseline, candidate = (measured(bound, side, label, scorer) for side in sides)
    for side in (baseline, candidate):
        if side.values is None:
            raise UserError(
                f"there is no mean score of {side.side.name!r} under {label!r}",
                fix="choose another label",
            )
    return match_sides(candidate, baseline)


def _first_label(sides: list[Side]) -> str:
    shared = [label for label in sides[0].labels() if all(label in side.labels() for side in sides)]
    return shared[0] if shared else ""


def _rows(
    experiments: Experiments, query: Query, match: Matched, rows: IntArray
) -> list[JsonObject]:
    """Each item with a sample of each side that shows the change."""
    rose, items = match.changes[rows] > 0, match.items[rows]
    shown: list[JsonObject] = [
        {"item": "", "question": "", "direction": "gained" if gain > 0 else "lost"}
        for gain in match.gains[rows]
    ]
    for name, text, side, highest in (
        ("a", query.a, match.baseline, ~rose),
        ("b", query.b, match.candidate, rose),
    ):
        id = spec_of(text).id
        index, _ = open_index(experiments, id)
        for flip, at, evaluation in zip(
            shown, rows.tolist(), telling_rows(side, items, highest), strict=True
        ):
            row = index.judged_by(evaluation)
            response = read_row(index, row)
            flip["item"] = item = str(evaluation["item_id"])
            flip["question"] = flip["question"] or beginning(question_of(index, item, response))
            flip[name] = {
                "value": float(side.own[at]),
                "answer": beginning(answer_of(response)),
                "experiment": id,
            }
    return shown
