"""Ratings of all players."""

import numpy as np

from assay.metrics._matches import COLUMNS, NO_MATCH, Pair, pairs_of, seats_of
from assay.sdk import Group, Values, metric
from assay.stats.elo import Shuffled, elo as ratings
from assay.stats.intervals import codes_of
from assay.stats.matches import Counted, Matches, counted, pieces
from assay.stats.ranking import Ranked


@metric(columns=COLUMNS, lower_is_better=False)
def elo(
    group: Group, *, player: str = "", rounds: int = 1000, seed: int = 0
) -> Values | list[Values]:
    """The Elo rating of each player, a row each: all begin at 1500, and a win against a stronger player counts more.

    A rating depends on the order of the matches, which means nothing here: it is the mean over 100 shuffles, and
    `elo_standard_error` is the noise of these. The interval comes from a bootstrap over items. A pair that was judged
    in both orders of the seats is one match, as for `win_rate`. Players that no chain of matches links have no ratings
    on one scale. `assay rank` has further methods and the ranks that the matches leave open.

    Parameters:
    player: only this player's rating
    rounds: resamples of the bootstrap
    seed: of the shuffles and the resamples
    """
    pairs = pairs_of(group)
    judged = [pair for pair in pairs if pair.payoffs and pair.players[0] != pair.players[1]]
    names = sorted({name for pair in judged for name in pair.players})
    if not judged:
        return Values(reason="no verdict could be read" if pairs else NO_MATCH)
    if player and player not in names:
        return Values(reason=f"{player!r} is none of the players: {', '.join(names)}")
    matches = _matches(judged, names, seats_of(pairs))
    groups = pieces(counted(matches).played > 0)
    if len(groups) > 1:
        return Values(reason=f"the players fall into {len(groups)} groups that never met")
    rows = _player_rows(
        names, counted(matches), *ratings(matches, level=group.level, rounds=rounds, seed=seed)
    )
    return rows[names.index(player)] if player else rows


def _matches(pairs: list[Pair], names: list[str], seats: int) -> Matches:
    number = {name: at for at, name in enumerate(names)}
    return Matches(
        item=codes_of([pair.item for pair in pairs]).astype(np.int32),
        first=np.array([number[pair.players[0]] for pair in pairs], np.int32),
        second=np.array([number[pair.players[1]] for pair in pairs], np.int32),
        half_points=np.array([round(2 * pair.decision(seats)) for pair in pairs], np.int32),
        players=len(names),
    )


def _player_rows(
    names: list[str], table: Counted, shuffled: Shuffled, ranked: Ranked
) -> list[Values]:
    """Return the row of each player."""
    played = table.played.sum(axis=1)
    points = table.wins.sum(axis=1) + table.ties.sum(axis=1) / 2
    reason = ranked.method.removeprefix("none: ")
    made: list[Values] = []
    for at, name in enumerate(names):
        low, high = float(ranked.low[at]), float(ranked.high[at])
        row = Values(value=float(ranked.value[at]), facets={"player": name}, reason=reason)
        row.fields = {
            "elo_standard_error": float(shuffled.standard_error[at]),
            "win_rate": float(points[at] / played[at]),
            "num_matches": int(played[at]),
        }
        row.interval = None if np.isnan(low) else (low, high, ranked.method)
        made.append(row)
    return made
