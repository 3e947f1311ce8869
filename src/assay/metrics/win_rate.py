"""How often one player's answers are better."""

import numpy as np

from assay.metrics._matches import COLUMNS, NO_MATCH, pairs_of, rows_of, seats_of
from assay.sdk import FloatArray, Group, Values, metric
from assay.stats.intervals import item_contributions, item_weights


@metric(columns=COLUMNS, lower_is_better=False, scale=(0, 1))
def win_rate(group: Group, *, player: str = "") -> Values:
    """The share of matches that a player wins, a tie counting half: (wins + ties / 2) / pairs.

    A pair that was judged in both orders of the seats is one match: the player wins it if it wins in both. Where the
    seats disagree it is a tie, counted in `disagreements`, and so it is where only one of the verdicts can be read.
    Pairs without any verdict are left out. The player is the first of the two in alphabetical order.

    Parameters:
    player: whose share, over all its opponents; where it is not named, a group must have only two players
    """
    pairs = pairs_of(group)
    if not pairs:
        return Values(reason=NO_MATCH)
    if not player and len({pair.players for pair in pairs}) > 1:
        many = "there are several pairs of players: add the facet `model_name`, or name one of them in `player`"
        return Values(reason=many)
    player = player or pairs[0].players[0]
    seats = seats_of(pairs)
    played = [pair for pair in pairs if player in pair.players]
    judged = [pair for pair in played if pair.payoffs]
    if not judged:
        known = ", ".join(sorted({name for pair in pairs for name in pair.players}))
        missing = (
            f"no verdict could be read on {player!r}"
            if played
            else f"{player!r} is none of the players: {known}"
        )
        return Values(reason=missing)
    payoffs = np.array([pair.decision(seats) for pair in judged])
    payoffs = np.where([pair.players[0] == player for pair in judged], payoffs, 1 - payoffs)
    items = np.array([pair.item for pair in judged])
    return Values(
        value=float(payoffs.mean()),
        fields={
            "player": player,
            **_results(payoffs),
            "disagreements": sum(len(set(pair.payoffs.values())) > 1 for pair in judged),
            "unread": sum(pair.unread for pair in played),
        },
        rows=rows_of(judged),
        per_item=item_contributions(items, payoffs),
        weights=item_weights(items),
    )


def _results(payoffs: FloatArray) -> dict[str, int]:
    worth = {"wins": 1, "ties": 0.5, "losses": 0}
    return {name: int((payoffs == each).sum()) for name, each in worth.items()}
