"""Comparisons to a ranking: matches, logics in which a later run meets the earlier ones, Elo ratings averaged over
shuffles of the matches, and win rates.

Elo depends on the order of the matches, which means nothing here. So the mean over shuffles is taken; its standard
error says how much the order still matters, not how sure the ranking is: `assay rank` answers that.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from assay.formats.intelligence_layer.domain import (
    Evaluation,
    Example,
    ExpectedOutput,
    SuccessfulExampleOutput,
)
from assay.formats.intelligence_layer.logics import AggregationLogic, EvaluationLogic
from assay.formats.intelligence_layer.types import BadValue, Input, ModelRecord, Output
from assay.stats import elo
from assay.stats.matches import Matches as Columns


class MatchOutcome(str, Enum):  # noqa: UP042
    """Text as well, as JSON holds it; `str(outcome)` is what the original's is, which a StrEnum's is not."""

    A_WINS = "a_wins"
    DRAW = "draw"
    B_WINS = "b_wins"

    @property
    def payoff(self) -> tuple[float, float]:
        """Return what the match is worth to the first and to the second player."""
        first = {"a_wins": 1.0, "draw": 0.5, "b_wins": 0.0}[self.value]
        return first, 1.0 - first

    @staticmethod
    def from_rank_literal(rank: int) -> "MatchOutcome":
        """1 for the first player, 2 for the second, 3 for neither."""
        outcomes = {1: MatchOutcome.A_WINS, 2: MatchOutcome.B_WINS, 3: MatchOutcome.DRAW}
        if rank not in outcomes:
            raise ValueError(
                f"Got unexpected rank {rank}: 1 is the first player, 2 the second, 3 a draw"
            )
        return outcomes[rank]


@dataclass(kw_only=True)
class ComparisonEvaluation(ModelRecord):
    first_player: str
    second_player: str
    outcome: MatchOutcome

    def __post_init__(self) -> None:
        self.outcome = MatchOutcome(self.outcome)


@dataclass(kw_only=True)
class Matches(ModelRecord):
    """All matches of one example."""

    comparison_evaluations: Sequence[ComparisonEvaluation]


@dataclass(kw_only=True)
class EloGradingInput(ModelRecord):
    """What a judge is shown of a match."""

    instruction: str
    first_completion: str
    second_completion: str


@dataclass(kw_only=True)
class PlayerScore(ModelRecord):
    elo: float
    elo_standard_error: float
    win_rate: float
    num_matches: int


@dataclass(kw_only=True)
class AggregatedComparison(ModelRecord):
    scores: Mapping[str, PlayerScore]


class EloCalculator:
    """Ratings after matches in the order in which they are given; `ratings` has them by player. The more matches a
    player has behind it, the less a match moves it: k falls from `k_start` to `k_floor`."""

    def __init__(
        self,
        players: Iterable[str],
        k_start: float = elo.K_START,
        k_floor: float = elo.K_FLOOR,
        decay_factor: float = elo.DECAY,
    ) -> None:
        self._elo = elo.Elo(players, k_start, k_floor, decay_factor)
        self.ratings = self._elo.ratings

    def calculate(self, matches: Iterable[ComparisonEvaluation]) -> None:
        for match in matches:
            self._elo.play(match.first_player, match.second_player, match.outcome.payoff[0])


class WinRateCalculator:
    def __init__(self, players: Iterable[str]) -> None:
        self.match_count: dict[str, int] = dict.fromkeys(players, 0)
        self.win_count: dict[str, float] = dict.fromkeys(self.match_count, 0.0)

    def calculate(self, matches: Iterable[ComparisonEvaluation]) -> Mapping[str, float]:
        """Points per match of each player, where a draw is half a point."""
        for match in matches:
            for player, payoff in zip(
                (match.first_player, match.second_player), match.outcome.payoff, strict=True
            ):
                self.match_count[player] += 1
                self.win_count[player] += payoff
        idle = [player for player, count in self.match_count.items() if not count]
        if idle:
            raise BadValue(
                f"{idle[0]!r} has played no match, so it has no win rate",
                fix="leave it out of the players",
            )
        return {
            player: self.win_count[player] / count for player, count in self.match_count.items()
        }


class EloAggregationAdapter:
    @staticmethod
    def aggregate(
        evaluations: Iterable[ComparisonEvaluation],
        *,
        players: Mapping[str, str] | None = None,
        seed: int = 0,
    ) -> AggregatedComparison:
        """The score of each player. `players` names the player that a run belongs to, so that several runs can be one;
        matches of a player with itself do not count. Equal matches give equal scores, whatever their order."""
        matches = [_with_players(match, players or {}) for match in evaluations]
        matches = [match for match in matches if match.first_player != match.second_player]
        names = sorted(
            {name for match in matches for name in (match.first_player, match.second_player)}
        )
        if not names:
            return AggregatedComparison(scores={})
        rated = elo.shuffled(_columns(matches, names), seed=seed)
        rates = WinRateCalculator(names)
        win_rate = rates.calculate(matches)
        return AggregatedComparison(
            scores={
                name: PlayerScore(
                    elo=float(rated.mean[number]),
                    elo_standard_error=float(rated.standard_error[number]),
                    win_rate=win_rate[name],
                    num_matches=rates.match_count[name],
                )
                for number, name in enumerate(names)
            }
        )


class ComparisonEvaluationAggregationLogic(
    AggregationLogic[ComparisonEvaluation, AggregatedComparison]
):
    """For evaluations that are one match each."""

    def __init__(self, *, players: Mapping[str, str] | None = None, seed: int = 0) -> None:
        self._players, self._seed = players, seed

    def aggregate(self, evaluations: Iterable[ComparisonEvaluation]) -> AggregatedComparison:
        return EloAggregationAdapter.aggregate(evaluations, players=self._players, seed=self._seed)


class MatchesAggregationLogic(AggregationLogic[Matches, AggregatedComparison]):
    """For evaluations that are all matches of an example."""

    def __init__(self, *, players: Mapping[str, str] | None = None, seed: int = 0) -> None:
        self._players, self._seed = players, seed

    def aggregate(self, evaluations: Iterable[Matches]) -> AggregatedComparison:
        matches = (
            match for evaluation in evaluations for match in evaluation.comparison_evaluations
        )
        return EloAggregationAdapter.aggregate(matches, players=self._players, seed=self._seed)


class IncrementalEvaluationLogic(EvaluationLogic[Input, Output, ExpectedOutput, Evaluation]):
    """Implement `do_incremental_evaluate`."""

    def __init__(self) -> None:
        super().__init__()
        self._previous_run_output_ids: list[set[str]] = []
        self._previous_example_ids: list[set[str]] = []

    def set_previous_run_output_ids(self, previous_run_output_ids: list[set[str]]) -> None:
        """The runs that each earlier evaluation took together."""
        self._previous_run_output_ids = previous_run_output_ids
        self._previous_example_ids = []

    def set_previous_example_ids(self, previous_example_ids: list[set[str]]) -> None:
        """The examples for which each earlier evaluation has a result; without this, all of them."""
        self._previous_example_ids = previous_example_ids

    def do_evaluate(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> Evaluation:
        seen = [
            [answer for answer in output if answer.run_id in runs]
            if not self._previous_example_ids or example.id in self._previous_example_ids[number]
            else []
            for number, runs in enumerate(self._previous_run_output_ids)
        ]
        return self.do_incremental_evaluate(example, list(output), seen)

    @abstractmethod
    def do_incremental_evaluate(
        self,
        example: Example[Input, ExpectedOutput],
        outputs: list[SuccessfulExampleOutput[Output]],
        already_evaluated_outputs: list[list[SuccessfulExampleOutput[Output]]],
    ) -> Evaluation:
        """The result from all outputs; `already_evaluated_outputs` has those that each earlier evaluation saw."""


class EloEvaluationLogic(IncrementalEvaluationLogic[Input, Output, ExpectedOutput, Matches]):
    """Lets every two runs meet once on each example; implement `grade`. The run that was named first is the first
    player. Two runs that an earlier evaluation took together do not meet again."""

    def do_incremental_evaluate(
        self,
        example: Example[Input, ExpectedOutput],
        outputs: list[SuccessfulExampleOutput[Output]],
        already_evaluated_outputs: list[list[SuccessfulExampleOutput[Output]]],
    ) -> Matches:
        met = [{output.run_id for output in together} for together in already_evaluated_outputs]
        return Matches(
            comparison_evaluations=[
                ComparisonEvaluation(
                    first_player=first.run_id,
                    second_player=second.run_id,
                    outcome=self.grade(first, second, example),
                )
                for first, second in combinations(outputs, 2)
                if not any(first.run_id in runs and second.run_id in runs for runs in met)
            ]
        )

    @abstractmethod
    def grade(
        self,
        first: SuccessfulExampleOutput[Output],
        second: SuccessfulExampleOutput[Output],
        example: Example[Input, ExpectedOutput],
    ) -> MatchOutcome:
        """Who of the two is better on this example."""


def _with_players(match: ComparisonEvaluation, players: Mapping[str, str]) -> ComparisonEvaluation:
    if not players:
        return match
    return ComparisonEvaluation(
        first_player=players.get(match.first_player, match.first_player),
        second_player=players.get(match.second_player, match.second_player),
        outcome=match.outcome,
    )


def _columns(matches: list[ComparisonEvaluation], names: list[str]) -> Columns:
    import numpy as np

    number = {name: place for place, name in enumerate(names)}
    return Columns(
        item=np.zeros(len(matches), np.int32),
        first=np.array([number[match.first_player] for match in matches], np.int32),
        second=np.array([number[match.second_player] for match in matches], np.int32),
        half_points=np.array([int(2 * match.outcome.payoff[0]) for match in matches], np.int32),
        players=len(names),
    )
