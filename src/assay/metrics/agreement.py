"""How far the judges of a panel agree, or one judge with itself."""

import re
from typing import Any

import numpy as np

from assay.sdk import FloatArray, Group, JsonObject, Values, metric
from assay.stats.agreement import Coefficient, Level, agreement as agreement_of

VOTES = "detailed_results.votes"


@metric(
    columns=[VOTES, "seat"],
    verdicts=False,
    scale=lambda params: (0 if params.get("coefficient") == "percent" else -1, 1),
)
def agreement(
    group: Group,
    *,
    coefficient: Coefficient = "krippendorff_alpha",
    level: Level = "nominal",
    members: list[str] | None = None,
    of: str = "",
) -> Values:
    """How far several votes on the same answers agree: of a panel's members, or of one judge that was asked repeatedly.

    `percent` is the share of pairs of votes that are equal, averaged over answers. The other
    coefficients are 1 if all agree and 0 if they agree as often as by chance. `cohen_kappa` (1960)
    is for two raters; of more, the mean over all pairs (Light 1971). `fleiss_kappa` (1971) is for
    any number, which may differ between answers (Gwet 2014). `krippendorff_alpha` (2004) also takes
    votes on a scale. Intervals are made by the jackknife over items.

    The votes are those that the label of a panel, or of a judge with `repeats`, keeps in `detailed_results.votes`. What
    is missing there is left out. In a match a vote is the payoff of the first player, whatever its seat.

    Parameters:
    coefficient: which coefficient is the value
    level: how far two votes lie apart: equal or not (nominal), by rank (ordinal), or by distance (interval). With
        cohen_kappa these are its weights: none, linear, quadratic. The other two are nominal
    members: the names of the votes that count, such as `[judge-a, judge-b]`; all if null
    of: only the repeated votes of this model: how far one judge agrees with itself
    """
    rows = [at for at, votes in enumerate(group.columns[VOTES]) if isinstance(votes, dict)]
    votes, names = _votes([group.columns[VOTES][at] for at in rows], members, of)
    if len(names) < 2:
        return Values(
            fields={"raters": len(names)},
            reason=f"agreement needs the votes of two raters, found {', '.join(names) or 'none'}",
        )
    swapped = np.array([[group.columns["seat"][at] == 1] for at in rows])
    votes = np.where(swapped, 1 - votes, votes)
    result = agreement_of(votes, group.item[rows], coefficient=coefficient, level=level)
    low, high, method = result.interval(group.level)
    return Values(
        value=result.value,
        fields={
            "coefficient": coefficient,
            "raters": result.raters,
            "members": names,
            "pairs": result.pairs,
            "missing_votes": result.missing,
        },
        interval=None if low is None or high is None else (low, high, method),
        rows=rows,
        reason=result.reason if result.value is None else method.removeprefix("none: "),
    )


def _votes(
    rows: list[JsonObject], members: list[str] | None, of: str
) -> tuple[FloatArray, list[str]]:
    """The votes as a matrix, NaN where there is none, and whose they are."""
    repeated = re.compile(rf"{re.escape(of)}\.\d+" if of else ".*", re.DOTALL)
    names = sorted({name for votes in rows for name in votes if repeated.fullmatch(name)})
    names = [name for name in names if members is None or name in members]
    table = [[_vote(votes.get(name)) for name in names] for votes in rows]
    return np.array(table, dtype=np.float64).reshape(len(rows), len(names)), names


def _vote(vote: Any) -> float:
    return float(vote) if isinstance(vote, (int, float)) else np.nan
