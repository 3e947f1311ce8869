"""Rows of matches for tests: what a judge said of two players' answers, in one or both orders of the seats."""

from typing import Any

from tests.analysis.rows import Verdict, evaluation


def match(
    item: str, players: tuple[str, str], *said: Verdict, sample: int = 0, **more: Any
) -> list[dict[str, Any]]:
    """A row for each seat, with the payoff of the first player."""
    rows = [
        evaluation(
            item, verdict, sample, label="better", scorer="better", players=list(players), seat=seat
        )
        for seat, verdict in enumerate(said)
    ]
    return [row | more for row in rows]


def won(
    first: str, second: str, wins: int, losses: int = 0, ties: int = 0, start: int = 0
) -> list[dict[str, Any]]:
    """Matches in both orders of the seats that agree, one an item."""
    payoffs = [1.0] * wins + [0.0] * losses + [0.5] * ties
    return [
        row
        for number, payoff in enumerate(payoffs, start)
        for row in match(f"q{number:04}", (first, second), payoff, payoff)
    ]
