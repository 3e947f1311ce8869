"""Matches between two runs on one example: who won, and how that counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from assay.formats.intelligence_layer.record import Record


class MatchOutcome(str, Enum):  # noqa: UP042
    """Text as well, as JSON holds it; `str(outcome)` is what the original's is, which a StrEnum's is not."""

    A_WINS = "a_wins"
    DRAW = "draw"
    B_WINS = "b_wins"

    @property
    def payoff(self) -> tuple[float, float]:
        """What the match is worth to the first and to the second player."""
        first = {"a_wins": 1.0, "draw": 0.5, "b_wins": 0.0}[self.value]
        return first, 1.0 - first

    @staticmethod
    def from_rank_literal(rank: int) -> "MatchOutcome":
        """1 for the first player, 2 for the second, 3 for neither."""
        outcomes = {1: MatchOutcome.A_WINS, 2: MatchOutcome.B_WINS, 3: MatchOutcome.DRAW}
        if rank not in outcomes:
            raise ValueError(f"Got unexpected rank {rank}: 1 is the first player, 2 the second, 3 a draw")
        return outcomes[rank]


@dataclass(kw_only=True)
class ComparisonEvaluation(Record):
    first_player: str
    second_player: str
    outcome: MatchOutcome

    def __post_init__(self) -> None:
        self.outcome = MatchOutcome(self.outcome)


@dataclass(kw_only=True)
class Matches(Record):
    """All matches of one example."""

    comparison_evaluations: Sequence[ComparisonEvaluation]


@dataclass(kw_only=True)
class EloGradingInput(Record):
    """What a judge is shown of a match."""

    instruction: str
    first_completion: str
    second_completion: str
