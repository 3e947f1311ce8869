"""Aggregation: counts, overviews, repositories, accumulators, Elo and win rates."""

import json
import math
import random
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, ValidationError

from assay.formats.intelligence_layer.elo import EloAggregationAdapter
from assay.formats.intelligence_layer.evaluation import (
    AggregatedComparison,
    AggregationLogic,
    AggregationOverview,
    AggregationRepository,
    ComparisonEvaluation,
    ComparisonEvaluationAggregationLogic,
    EloCalculator,
    EvaluationFailed,
    EvaluationOverview,
    FileAggregationRepository,
    InMemoryAggregationRepository,
    Matches,
    MatchesAggregationLogic,
    MatchOutcome,
    MeanAccumulator,
    PlayerScore,
    RunOverview,
    WinRateCalculator,
)
from assay.store.repositories import AggregationRepository as Rows
from assay.store.stores import FolderStore
from tests.formats.intelligence_layer.worlds import (
    FAIL_IN_EVALUATION,
    FAIL_IN_TASK,
    NOON,
    Accuracy,
    Correct,
    World,
)


@pytest.fixture(params=["memory", "files"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path / "root" if request.param == "files" else None)


# ---- the aggregator


def test_absolute_evaluation_from_end_to_end(world: World) -> None:
    run = world.ran(world.dataset("a", "b", "c", FAIL_IN_TASK, FAIL_IN_TASK, FAIL_IN_EVALUATION))
    evaluation = world.evaluator().evaluate_runs(run.id)
    overview = world.aggregator().aggregate_evaluation(
        evaluation.id, description="all", labels={"l"}, metadata={"k": "v"}
    )
    assert overview.statistics == Accuracy(share=1.0, count=3)
    assert (overview.successful_evaluation_count, overview.crashed_during_evaluation_count) == (
        3,
        1,
    )
    assert overview.failed_evaluation_count == 3
    assert (overview.run_ids, overview.description) == ([run.id], "aggregator : all")
    assert world.aggregations.aggregation_overview(overview.id, Accuracy) == overview
    with pytest.raises(EvaluationFailed, match="1 failed") as raised:
        overview.raise_on_evaluation_failure()
    assert raised.value.failed_count == 1


class FirstOnly(AggregationLogic[Correct, Accuracy]):
    def aggregate(self, evaluations: Iterable[Correct]) -> Accuracy:
        return Accuracy(share=float(next(iter(evaluations)).correct), count=1)


class Nothing(AggregationLogic[Correct, Accuracy]):
    def aggregate(self, evaluations: Iterable[Correct]) -> Accuracy:
        return Accuracy(share=0.0, count=0)


@pytest.mark.parametrize("logic", [FirstOnly, Nothing])
def test_counts_are_right_if_the_logic_reads_only_a_part(logic: Any, world: World) -> None:
    run = world.ran(world.dataset("a", "b", FAIL_IN_EVALUATION, "d", FAIL_IN_EVALUATION, "f"))
    evaluation = world.evaluator().evaluate_runs(run.id)
    overview = world.aggregator(logic()).aggregate_evaluation(evaluation.id)
    assert (overview.successful_evaluation_count, overview.crashed_during_evaluation_count) == (
        4,
        2,
    )


def test_results_can_be_read_once(world: World) -> None:
    class Twice(AggregationLogic[Correct, Accuracy]):
        def aggregate(self, evaluations: Iterable[Correct]) -> Accuracy:
            return Accuracy(share=len(list(evaluations)), count=len(list(evaluations)))

    evaluation = world.evaluator().evaluate_runs(world.ran(world.dataset("a", "b")).id)
    assert world.aggregator(Twice()).aggregate_evaluation(evaluation.id).statistics == Accuracy(
        share=2, count=0
    )


def test_several_evaluations_are_taken_as_one_and_repeated_ids_once(world: World) -> None:
    run = world.ran(world.dataset("a", "b"))
    one, other = world.evaluator().evaluate_runs(run.id), world.evaluator().evaluate_runs(run.id)
    overview = world.aggregator().aggregate_evaluation(one.id, other.id, one.id)
    assert overview.statistics.count == 4
    assert overview.evaluation_overviews == frozenset([one, other])
    assert overview.run_ids == [run.id]


def test_no_evaluation_is_an_empty_aggregation_and_an_unknown_one_an_error(world: World) -> None:
    overview = world.aggregator().aggregate_evaluation()
    assert (overview.statistics.count, overview.successful_evaluation_count) == (0, 0)
    overview.raise_on_evaluation_failure()
    with pytest.raises(ValueError, match="no finished evaluation 'nothing'"):
        world.aggregator().aggregate_evaluation("nothing")


def test_types_come_from_the_logic() -> None:
    class Bare(AggregationLogic):  # type: ignore[type-arg]
        def aggregate(self, evaluations: Any) -> Any: ...

    aggregator = World(None).aggregator()
    assert (aggregator.evaluation_type(), aggregator.aggregated_evaluation_type()) == (
        Correct,
        Accuracy,
    )
    bare = World(None).aggregator(Bare())
    with pytest.raises(TypeError, match="evaluation_type"):
        bare.evaluation_type()
    with pytest.raises(TypeError, match="aggregated_evaluation_type"):
        bare.aggregated_evaluation_type()


# ---- overviews


def run_overview(id: str, failed: int) -> RunOverview:
    return RunOverview(
        dataset_id="d",
        id=id,
        start=NOON,
        end=NOON,
        failed_example_count=failed,
        successful_example_count=5,
        description="",
    )


def evaluation_overview(
    id: str, *runs: RunOverview, skipped: int | None = None
) -> EvaluationOverview:
    return EvaluationOverview(
        run_overviews=frozenset(runs),
        id=id,
        start_date=NOON,
        end_date=NOON,
        successful_evaluation_count=5,
        failed_evaluation_count=3,
        description="",
        skipped_evaluation_count=skipped,
    )


def aggregation_overview(
    *evaluations: EvaluationOverview, id: str = "aggregation", statistics: Any = None, **more: Any
) -> AggregationOverview[Any]:
    return AggregationOverview(
        evaluation_overviews=frozenset(evaluations),
        id=id,
        start=NOON,
        end=NOON + timedelta(microseconds=5),
        successful_evaluation_count=5,
        crashed_during_evaluation_count=3,
        description="described",
        statistics=Accuracy(share=0.5, count=5) if statistics is None else statistics,
        **more,
    )


def test_failures_of_evaluations_that_did_not_count_them_are_those_of_their_distinct_runs() -> None:
    a, b = run_overview("a", 2), run_overview("b", 1)
    overview = aggregation_overview(evaluation_overview("x", a, b), evaluation_overview("y", a))
    assert overview.failed_evaluation_count == 3 + 2 + 1
    assert overview.run_ids == ["a", "b"]
    assert set(overview.run_overviews()) == {a, b}


def test_an_example_that_failed_in_two_runs_counts_once(world: World) -> None:
    dataset = world.dataset("a", "b", "c")
    one = world.run("one", dataset, {"e0": "A", "e1": None, "e2": None})
    other = world.run("other", dataset, {"e0": "A", "e1": None, "e2": "C"})

    class Count(AggregationLogic[Any, Accuracy]):  # type: ignore[type-arg]
        def aggregate(self, evaluations: Iterable[Any]) -> Accuracy:
            return Accuracy(share=0, count=len(list(evaluations)))

    from tests.formats.intelligence_layer.test_evaluation import See

    skipping = world.evaluator(See()).evaluate_runs(one, other)
    assert world.aggregator(Count()).aggregate_evaluation(skipping.id).failed_evaluation_count == 2
    keeping = world.evaluator(See()).evaluate_runs(one, other, skip_example_on_any_failure=False)
    assert world.aggregator(Count()).aggregate_evaluation(keeping.id).failed_evaluation_count == 0


def test_the_text_of_an_overview_tells_crashes_from_all_that_failed() -> None:
    text = str(aggregation_overview(evaluation_overview("x", run_overview("a", 2))))
    assert "Count of examples crashed during evaluation = 3\n" in text
    assert "Count of examples without a result = 5\n" in text
    assert "IDs of aggregated Run Overviews = ['a']" in text
    assert "share=0.5" in text


def test_overviews_are_hashed_by_id_and_cannot_be_changed() -> None:
    overview = aggregation_overview()
    assert hash(overview) == hash(aggregation_overview())
    with pytest.raises(AttributeError):
        overview.id = "x"  # type: ignore[misc]
    with pytest.raises(EvaluationFailed):
        overview.raise_on_evaluation_failure()


# ---- repositories


class Shares(BaseModel):
    other: str


KINDS: dict[str, Callable[[Path], AggregationRepository]] = {
    "memory": lambda _: InMemoryAggregationRepository(),
    "files": FileAggregationRepository,
}


@pytest.fixture(params=KINDS)
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> AggregationRepository:
    return KINDS[request.param](tmp_path / "root")


def test_overviews_are_read_as_they_were_stored_and_sorted(
    repository: AggregationRepository,
) -> None:
    inner = evaluation_overview("x", run_overview("a", 2), skipped=1)
    stored = [
        aggregation_overview(inner, id=id, labels={"l"}, metadata={"k": [1, None]})
        for id in ("b", "a.1", "a.2", "x/y")
    ]
    for each in stored:
        repository.store_aggregation_overview(each)
    assert list(repository.aggregation_overview_ids()) == ["a.1", "a.2", "b", "x/y"]
    assert list(repository.aggregation_overviews(Accuracy)) == sorted(
        stored, key=lambda each: each.id
    )
    assert repository.aggregation_overview("nothing", Accuracy) is None


def test_statistics_of_another_type_are_pydantics_error(repository: AggregationRepository) -> None:
    repository.store_aggregation_overview(aggregation_overview())
    with pytest.raises(ValidationError):
        repository.aggregation_overview("aggregation", Shares)
    with pytest.raises(ValidationError):
        list(repository.aggregation_overviews(Shares))


class Struct(msgspec.Struct):
    share: float


@pytest.mark.parametrize(
    "statistics",
    [
        Struct(share=0.5),
        {"share": 0.5},
        0.5,
        [1, 2],
        AggregatedComparison(
            scores={
                "a": PlayerScore(elo=1500.0, elo_standard_error=0.0, win_rate=0.5, num_matches=1)
            }
        ),
    ],
)
def test_statistics_may_be_of_any_kind_of_type(
    statistics: Any, repository: AggregationRepository
) -> None:
    repository.store_aggregation_overview(aggregation_overview(statistics=statistics))
    found = repository.aggregation_overview("aggregation", type(statistics))
    assert found is not None
    assert found.statistics == statistics


def test_numbers_are_metric_rows(tmp_path: Path) -> None:
    score = PlayerScore(elo=1510.0, elo_standard_error=0.0, win_rate=1.0, num_matches=1)
    statistics = AggregatedComparison(scores={"some run": score})
    FileAggregationRepository(tmp_path).store_aggregation_overview(
        aggregation_overview(statistics=statistics)
    )
    rows = Rows(FolderStore(tmp_path)).metrics("aggregation")
    assert {row["metric_name"]: row["value"] for row in rows} == {
        "scores.some run.elo": 1510.0,
        "scores.some run.elo_standard_error": 0.0,
        "scores.some run.win_rate": 1.0,
        "scores.some run.num_matches": 1.0,
    }


def test_an_empty_root_has_no_aggregations_and_reading_makes_no_folder(tmp_path: Path) -> None:
    repository = FileAggregationRepository(tmp_path / "root")
    assert repository.aggregation_overview("x", Accuracy) is None
    with pytest.raises(FileNotFoundError):
        repository.aggregation_overview_ids()
    assert list((tmp_path / "root").iterdir()) == []


def test_files_of_the_original_are_read(tmp_path: Path) -> None:
    (tmp_path / "aggregations").mkdir()
    row = {
        "evaluation_overviews": [],
        "id": "11-22",
        "start": "2024-05-01T10:00:00.123456Z",
        "end": "2024-05-01T10:00:01Z",
        "successful_evaluation_count": 2,
        "crashed_during_evaluation_count": 0,
        "description": "old",
        "statistics": {"share": 0.25, "count": 2},
        "labels": ["l"],
        "metadata": {},
    }
    (tmp_path / "aggregations" / "11-22.json").write_text(json.dumps(row, indent=2))
    repository = FileAggregationRepository(tmp_path)
    found = repository.aggregation_overview("11-22", Accuracy)
    assert found is not None
    assert (found.statistics, found.labels, found.start.microsecond) == (
        Accuracy(share=0.25, count=2),
        {"l"},
        123456,
    )
    repository.store_aggregation_overview(aggregation_overview(id="ours"))
    assert repository.aggregation_overview_ids() == ["11-22", "ours"]


# ---- accumulators


def test_the_mean_of_nothing_is_zero() -> None:
    empty = MeanAccumulator()
    assert (empty.extract(), empty.standard_deviation(), empty.standard_error()) == (0.0, 0.0, 0.0)
    empty.add(3.0)
    assert (empty.extract(), empty.standard_deviation(), empty.standard_error()) == (3.0, 0.0, 0.0)


def test_the_spread_is_that_of_the_values_themselves() -> None:
    accumulator = MeanAccumulator()
    for value in (1, 0):
        accumulator.add(value)
    assert accumulator.extract() == 0.5
    assert accumulator.standard_deviation() == 0.5
    assert accumulator.standard_error() == pytest.approx(0.354, abs=5e-4)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_mean_and_spread_are_those_of_the_statistics_module(values: list[float]) -> None:
    accumulator = MeanAccumulator()
    for value in values:
        accumulator.add(value)
    assert accumulator.extract() == pytest.approx(fmean(values), rel=1e-9, abs=1e-6)
    assert accumulator.standard_deviation() == pytest.approx(pstdev(values), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-9, 1510.123])
def test_equal_values_have_no_spread_at_all(value: float) -> None:
    accumulator = MeanAccumulator()
    for _ in range(39):
        accumulator.add(value)
        assert accumulator.standard_deviation() == pytest.approx(0.0, abs=1e-12)
        assert isinstance(accumulator.standard_error(), float)


# ---- Elo


def match(first: str, second: str, outcome: str = "a_wins") -> ComparisonEvaluation:
    return ComparisonEvaluation(
        first_player=first, second_player=second, outcome=MatchOutcome(outcome)
    )


@pytest.mark.parametrize(
    ("wins", "losses", "first", "second"),
    [
        (1, 0, 1510.0, 1490.0),
        (2, 0, 1519.4226330639376, 1480.5773669360624),
        (10, 0, 1578.281121893458, 1421.718878106542),
        (10, 10, 1466.2147976704962, 1533.7852023295038),
    ],
)
def test_ratings_are_the_originals(wins: int, losses: int, first: float, second: float) -> None:
    calculator = EloCalculator(["a", "b"])
    calculator.calculate([match("a", "b")] * wins + [match("a", "b", "b_wins")] * losses)
    assert calculator.ratings == pytest.approx({"a": first, "b": second}, abs=1e-9)


def test_a_round_robin_is_rated_as_in_the_original() -> None:
    players = [f"p{number}" for number in range(10)]
    calculator = EloCalculator(players)
    calculator.calculate([match(a, b) for i, a in enumerate(players) for b in players[i + 1 :]])
    ratings = list(calculator.ratings.values())
    assert ratings[0] == pytest.approx(1580.3102888421104, abs=1e-9)
    assert ratings[-1] == pytest.approx(1418.8952676314775, abs=1e-9)
    assert ratings == sorted(ratings, reverse=True)


def test_experience_makes_a_match_weigh_less_and_constants_can_be_given() -> None:
    calculator = EloCalculator(["a", "b", "c"])
    calculator.calculate([match("a", "b")])
    before = calculator.ratings["a"]
    calculator.calculate([match("c", "a")])
    lost, won = before - calculator.ratings["a"], calculator.ratings["c"] - 1500.0
    assert lost / won == pytest.approx(19.99500124979169 / 20, abs=1e-12)
    steady = EloCalculator(["a", "b"], k_start=40.0, k_floor=40.0, decay_factor=1.0)
    steady.calculate([match("a", "b")])
    assert steady.ratings == {"a": 1520.0, "b": 1480.0}


def test_an_unknown_player_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        EloCalculator(["a"]).calculate([match("a", "b")])
    with pytest.raises(KeyError):
        WinRateCalculator(["a"]).calculate([match("a", "b")])


def test_win_rates_are_points_per_match() -> None:
    matches = [match("a", "b"), match("a", "b", "draw"), match("b", "c", "b_wins")]
    assert WinRateCalculator(["a", "b", "c"]).calculate(matches) == {
        "a": 0.75,
        "b": 0.5 / 3,
        "c": 1.0,
    }


def test_a_player_without_matches_is_named() -> None:
    with pytest.raises(ValueError, match="'idle' has played no match"):
        WinRateCalculator(["a", "b", "idle"]).calculate([match("a", "b")])


def some_matches(count: int = 200, seed: int = 3) -> list[ComparisonEvaluation]:
    draw = random.Random(seed)
    players = ["a", "b", "c", "d"]
    return [
        match(*draw.sample(players, 2), outcome=draw.choice(["a_wins", "a_wins", "draw", "b_wins"]))
        for _ in range(count)
    ]


def test_the_mean_over_shuffles_is_that_of_the_calculator() -> None:
    """An independent estimate: many shuffles through the sequential calculator."""
    matches = some_matches(60)
    accumulators = {player: MeanAccumulator() for player in "abcd"}
    draw = random.Random(0)
    for _ in range(400):
        calculator = EloCalculator("abcd")
        calculator.calculate(draw.sample(matches, len(matches)))
        for player, rating in calculator.ratings.items():
            accumulators[player].add(rating)
    scores = EloAggregationAdapter.aggregate(matches).scores
    for player, score in scores.items():
        near = 5 * score.elo_standard_error + 5 * accumulators[player].standard_error()
        assert abs(score.elo - accumulators[player].extract()) < near
        expected = accumulators[player].standard_deviation() / math.sqrt(100)
        assert score.elo_standard_error == pytest.approx(expected, rel=0.35)


def test_elo_is_the_same_in_every_order_and_for_every_call() -> None:
    matches = some_matches()
    first = ComparisonEvaluationAggregationLogic().aggregate(matches)
    assert ComparisonEvaluationAggregationLogic().aggregate(reversed(matches)) == first
    assert ComparisonEvaluationAggregationLogic(seed=1).aggregate(matches) != first
    assert sum(score.num_matches for score in first.scores.values()) == 400


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20, 39])
def test_where_the_order_has_no_effect_the_error_is_zero_and_never_nan(
    count: int, tmp_path: Path
) -> None:
    statistics = MatchesAggregationLogic().aggregate(
        [Matches(comparison_evaluations=[match("a", "b")] * count)]
    )
    for score in statistics.scores.values():
        assert score.elo_standard_error == pytest.approx(0.0, abs=1e-9)
    repository = FileAggregationRepository(tmp_path)
    repository.store_aggregation_overview(aggregation_overview(statistics=statistics))
    found = repository.aggregation_overview("aggregation", AggregatedComparison)
    assert found is not None
    assert found.statistics == statistics


def test_matches_of_examples_are_taken_together() -> None:
    matches = some_matches(30)
    nested = [
        Matches(comparison_evaluations=matches[:10]),
        Matches(comparison_evaluations=matches[10:]),
    ]
    flat = ComparisonEvaluationAggregationLogic().aggregate(matches)
    assert MatchesAggregationLogic().aggregate(iter(nested)) == flat


def test_nothing_gives_no_scores() -> None:
    assert MatchesAggregationLogic().aggregate([]).scores == {}
    assert ComparisonEvaluationAggregationLogic().aggregate(iter([])).scores == {}


def test_several_runs_can_be_one_player() -> None:
    matches = [match("m1", "n"), match("m2", "n"), match("m1", "m2")]
    players = {"m1": "model", "m2": "model"}
    scores = ComparisonEvaluationAggregationLogic(players=players).aggregate(matches).scores
    assert {name: (score.num_matches, score.win_rate) for name, score in scores.items()} == {
        "model": (2, 1.0),
        "n": (2, 0.0),
    }


def test_who_won_more_is_rated_higher_and_who_played_less_is_less_sure() -> None:
    draw = random.Random(1)
    outcomes = draw.choices(["a_wins", "b_wins", "draw"], [0.5, 0.25, 0.25], k=3000)
    matches = [match("1", "2" if i < 2700 else "3", outcome) for i, outcome in enumerate(outcomes)]
    scores = ComparisonEvaluationAggregationLogic().aggregate(matches).scores
    assert scores["1"].elo > scores["2"].elo
    assert scores["3"].elo_standard_error > scores["1"].elo_standard_error
