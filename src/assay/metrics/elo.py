"""Ratings of all players."""

import numpy as np

from assay.interfaces import Group, Values
from assay.metrics._matches import COLUMNS, NO_MATCH, pairs_of, seats_of
from assay.registry import metric
from assay.stats.elo import elo as ratings
from assay.stats.intervals import codes_of
from assay.stats.matches import Matches, counted, pieces


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
    seats = seats_of(pairs)
    judged = [pair for pair in pairs if pair.payoffs and pair.players[0] != pair.players[1]]
    names = sorted({name for pair in judged for name in pair.players})
    if not judged:
        return Values(reason="no verdict could be read" if pairs else NO_MATCH)
    if player and player not in names:
        return Values(reason=f"{player!r} is none of the players: {', '.join(names)}")
    number = {name: at for at, name in enumerate(names)}
    matches = Matches(
        item=codes_of([pair.item for pair in judged]).astype(np.int32),
        first=np.array([number[pair.players[0]] for pair in judged], np.int32),
        second=np.array([number[pair.players[1]] for pair in judged], np.int32),
        half_points=np.array([round(2 * pair.decision(seats)) for pair in judged], np.int32),
        players=len(names),
    )
    table = counted(matches)
    groups = pieces(table.played > 0)
    if len(groups) > 1:
        return Values(reason=f"the players fall into {len(groups)} groups that never met")
    shuffled, ranked = ratings(matches, level=group.level, rounds=rounds, seed=seed)
    played = table.played.sum(axis=1)
    rated = [
        Values(
            value=float(ranked.value[at]),
            facets={"player": name},
            fields={
                "elo_standard_error": float(shuffled.standard_error[at]),
                "win_rate": float((table.wins[at].sum() + table.ties[at].sum() / 2) / played[at]),
                "num_matches": int(played[at]),
            },
            interval=None if np.isnan(low) else (low, high, ranked.method),
            reason=ranked.method.removeprefix("none: "),
        )
        for at, (name, low, high) in enumerate(
            zip(names, ranked.low.tolist(), ranked.high.tolist(), strict=True)
        )
    ]
    return rated[number[player]] if player else rated
