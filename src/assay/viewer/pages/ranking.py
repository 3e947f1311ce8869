"""Who wins: the ranking of the players in the matches of experiments, as `assay rank` has it."""

import msgspec

from assay.analysis.rank.rank import METHODS, Ranking, WinMatrix, rank
from assay.reports.notebook import pictures
from assay.sdk import JsonObject, UserError, nearest
from assay.viewer.experiments import Experiments
from assay.viewer.metrics import FirstLabel, error_line, first_rows


class Query(msgspec.Struct, kw_only=True):
    experiment: list[str] = []
    label: str = ""
    method: str = "bradley-terry"


def page(experiments: Experiments, query: Query) -> JsonObject:
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
        return _empty(query.label, query.method, f"there are no matches: {fix}")
    label = query.label or min(labels)
    ids = labels.get(label, query.experiment)
    try:
        key = ("ranking", *ids, "", label, query.method)
        ranking = experiments.cached(key, ids, lambda: _rank(experiments, ids, label, query.method))
    except UserError as error:
        return _empty(label, query.method, error_line(error))
    others = [f"there are also matches under {other}" for other in sorted(labels) if other != label]
    partial = [f"partial: {ranking.partial}"] if ranking.partial else []
    return {
        "label": ranking.label,
        "method": ranking.method,
        "standings": ranking.standings,
        "win_matrix": ranking.win_matrix,
        "charts": pictures(ranking),
        "notes": [*ranking.notes, *partial, *others],
        "reason": "",
    }


def _empty(label: str, method: str, reason: str) -> JsonObject:
    """Return a page that says why there is no ranking."""
    nothing: JsonObject = {name: [] for name in ("standings", "charts", "notes")}
    matrix = WinMatrix([], [], [])
    return {"label": label, "method": method, "win_matrix": matrix, "reason": reason, **nothing}


def _rank(experiments: Experiments, ids: list[str], label: str, method: str) -> Ranking:
    return rank([experiments.folder(id) for id in ids], label=label, method=method)
