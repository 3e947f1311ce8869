"""Who wins: the ranking of the players in the matches of experiments, as `assay rank` has it."""

from typing import Any

import msgspec

from assay.analysis.rank.rank import METHODS, Ranking, WinMatrix, rank
from assay.errors import UserError
from assay.registry import nearest
from assay.reports.charts import Chart
from assay.reports.notebook import pictures
from assay.viewer.experiments import Experiments
from assay.viewer.metrics import FirstLabel, error_line, first_rows


class Query(msgspec.Struct, kw_only=True):
    experiment: list[str] = []
    label: str = ""
    method: str = "bradley-terry"


class Page(msgspec.Struct, kw_only=True):
    label: str
    method: str
    standings: list[Any] = []
    win_matrix: WinMatrix = msgspec.field(default_factory=lambda: WinMatrix([], [], []))
    charts: list[Chart] = []
    notes: list[str] = []
    reason: str = ""


def page(experiments: Experiments, query: Query) -> Page:
    if query.method not in METHODS:
        raise UserError(f"there is no method {query.method!r}", fix=nearest(query.method, METHODS))
    labels: dict[str, list[str]] = {}
    for id in query.experiment or list(experiments.list()):
        for label in {
            row.label
            for row in first_rows(experiments, id, "evaluation", FirstLabel)
            if row.players
        }:
            labels.setdefault(label, []).append(id)
    if not labels:
        fix = "judge pairs of answers, with an evaluation method such as `judge_pairwise`, then `assay evaluate`"
        return Page(label=query.label, method=query.method, reason=f"there are no matches: {fix}")
    label = query.label or min(labels)
    ids = labels.get(label, query.experiment)
    try:
        key = ("ranking", *ids, "", label, query.method)
        ranking = experiments.cached(key, ids, lambda: _rank(experiments, ids, label, query.method))
    except UserError as error:
        return Page(label=label, method=query.method, reason=error_line(error))
    others = [f"there are also matches under {other}" for other in sorted(labels) if other != label]
    partial = [f"partial: {ranking.partial}"] if ranking.partial else []
    return Page(
        label=ranking.label,
        method=ranking.method,
        standings=list(ranking.standings),
        win_matrix=ranking.win_matrix,
        charts=pictures(ranking),
        notes=[*ranking.notes, *partial, *others],
    )


def _rank(experiments: Experiments, ids: list[str], label: str, method: str) -> Ranking:
    return rank([experiments.folder(id) for id in ids], label=label, method=method)
