"""Relative evaluation: who meets whom, once, and what is added later."""

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from assay.formats.intelligence_layer.evaluation import (
    ComparisonEvaluation,
    EloGradingInput,
    Evaluation,
    Example,
    IncrementalEvaluationLogic,
    Matches,
    MatchesAggregationLogic,
    MatchOutcome,
    SuccessfulExampleOutput,
)
from tests.formats.intelligence_layer.worlds import Longer, World, pairs


@pytest.fixture(params=["memory", "files"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path / "root" if request.param == "files" else None)


def runs(world: World, count: int = 4, examples: int = 3) -> list[str]:
    """Runs A, B, … whose outputs have the lengths 1, 2, …; each started a minute after the one before."""
    dataset = world.dataset(*"abcdef"[:examples])
    return [
        world.run(
            name, dataset, {f"e{i}": "x" * (number + 1) for i in range(examples)}, minutes=number
        )
        for number, name in enumerate("ABCDEFGH"[:count])
    ]


def all_matches(world: World, *evaluation_ids: str) -> set[tuple[str, str, str, str]]:
    found = [
        (each.example_id, match.first_player, match.second_player, match.outcome.value)
        for evaluation_id in evaluation_ids
        for each in world.evaluations.successful_example_evaluations(evaluation_id, Matches)
        for match in each.result.comparison_evaluations  # type: ignore[union-attr]
    ]
    assert len(found) == len(set(found)), "some pair met twice"
    return set(found)


# ---- records


def test_outcomes_have_payoffs_and_ranks() -> None:
    assert [outcome.payoff for outcome in MatchOutcome] == [(1, 0), (0.5, 0.5), (0, 1)]
    ranks = [MatchOutcome.from_rank_literal(rank) for rank in (1, 2, 3)]
    assert ranks == [MatchOutcome.A_WINS, MatchOutcome.B_WINS, MatchOutcome.DRAW]
    assert MatchOutcome("a_wins") == "a_wins"
    for rank in (0, 4, -1):
        with pytest.raises(ValueError, match=f"unexpected rank {rank}"):
            MatchOutcome.from_rank_literal(rank)


def test_comparisons_become_json_and_back() -> None:
    match = ComparisonEvaluation(first_player="a", second_player="b", outcome="draw")  # type: ignore[arg-type]
    assert match.outcome is MatchOutcome.DRAW
    matches = Matches(comparison_evaluations=[match])
    assert matches.model_dump(mode="json") == {
        "comparison_evaluations": [{"first_player": "a", "second_player": "b", "outcome": "draw"}]
    }
    assert Matches.model_validate_json(matches.model_dump_json()) == matches
    assert (
        EloGradingInput(instruction="i", first_completion="1", second_completion="2").instruction
        == "i"
    )


# ---- all at once


def test_every_two_runs_meet_once_on_each_example_and_the_first_named_is_first(
    world: World,
) -> None:
    names = runs(world, count=4)
    logic = Longer()
    overview = world.comparing(logic).evaluate_runs(*names)
    assert overview.successful_evaluation_count == 3
    assert len(logic.graded) == 3 * 6
    assert pairs(logic.graded) == set(combinations(names, 2))
    turned = Longer()
    world.comparing(turned).evaluate_runs(*names[::-1])
    assert pairs(turned.graded) == set(combinations(names[::-1], 2))
    found = all_matches(world, overview.id)
    assert {outcome for *_, outcome in found} == {"b_wins"}


def test_the_plain_evaluator_takes_such_logics_too(world: World) -> None:
    names = runs(world, count=2)
    overview = world.evaluator(Longer()).evaluate_runs(*names)
    assert len(all_matches(world, overview.id)) == 3


def test_one_run_alone_has_no_match(world: World) -> None:
    (name,) = runs(world, count=1)
    overview = world.comparing(Longer()).evaluate_runs(name)
    assert overview.successful_evaluation_count == 3
    assert all_matches(world, overview.id) == set()


# ---- later


def test_a_run_added_later_costs_only_its_own_matches_and_need_not_name_the_others(
    world: World,
) -> None:
    a, b, c, d = runs(world)
    whole = world.comparing(Longer()).evaluate_runs(a, b, c, d)
    first = world.comparing(Longer()).evaluate_runs(a, b, c)
    logic = Longer()
    second = world.comparing(logic).evaluate_additional_runs(d, previous_evaluation_ids=[first.id])
    assert pairs(logic.graded) == {(a, d), (b, d), (c, d)}
    assert all_matches(world, first.id, second.id) == all_matches(world, whole.id)
    aggregate = world.aggregator(MatchesAggregationLogic()).aggregate_evaluation
    assert aggregate(first.id, second.id).statistics == aggregate(whole.id).statistics
    assert {run.id for run in second.run_overviews} == {a, b, c, d}


def test_naming_the_old_runs_as_well_changes_nothing(world: World) -> None:
    a, b, c, d = runs(world)
    first = world.comparing(Longer()).evaluate_runs(a, b, c)
    logic = Longer()
    world.comparing(logic).evaluate_additional_runs(a, b, c, d, previous_evaluation_ids=[first.id])
    assert pairs(logic.graded) == {(a, d), (b, d), (c, d)}


def test_runs_of_two_earlier_evaluations_that_never_met_meet(world: World) -> None:
    a, b, c, d = runs(world)
    one, other = (
        world.comparing(Longer()).evaluate_runs(a, b),
        world.comparing(Longer()).evaluate_runs(c, d),
    )
    logic = Longer()
    third = world.comparing(logic).evaluate_additional_runs(
        previous_evaluation_ids=[one.id, other.id]
    )
    assert pairs(logic.graded) == {(a, c), (a, d), (b, c), (b, d)}
    whole = world.comparing(Longer()).evaluate_runs(a, b, c, d)
    assert all_matches(world, one.id, other.id, third.id) == all_matches(world, whole.id)


def test_a_chain_of_additions_is_the_whole(world: World) -> None:
    names = runs(world, count=6)
    done = [world.comparing(Longer()).evaluate_runs(*names[:2]).id]
    for name in names[2:]:
        done.append(
            world.comparing(Longer())
            .evaluate_additional_runs(name, previous_evaluation_ids=done)
            .id
        )
    whole = world.comparing(Longer()).evaluate_runs(*names)
    assert all_matches(world, *done) == all_matches(world, whole.id)


def test_examples_that_an_earlier_evaluation_left_out_are_made_up_for(world: World) -> None:
    a, b, c = runs(world, count=3)
    first = world.comparing(Longer()).evaluate_runs(a, b, num_examples=1)
    second = world.comparing(Longer()).evaluate_additional_runs(
        c, previous_evaluation_ids=[first.id]
    )
    whole = world.comparing(Longer()).evaluate_runs(a, b, c)
    assert all_matches(world, first.id, second.id) == all_matches(world, whole.id)


def test_what_could_not_be_graded_is_graded_with_the_next(world: World) -> None:
    class Moody(Longer):
        def grade(self, first: Any, second: Any, example: Any) -> MatchOutcome:
            if example.id == "e1":
                raise RuntimeError("not today")
            return super().grade(first, second, example)

    a, b, c = runs(world, count=3)
    first = world.comparing(Moody()).evaluate_runs(a, b)
    assert first.failed_evaluation_count == 1
    second = world.comparing(Longer()).evaluate_additional_runs(
        c, previous_evaluation_ids=[first.id]
    )
    whole = world.comparing(Longer()).evaluate_runs(a, b, c)
    assert all_matches(world, first.id, second.id) == all_matches(world, whole.id)


def test_without_earlier_evaluations_all_runs_meet(world: World) -> None:
    a, b, c = runs(world, count=3)
    logic = Longer()
    world.comparing(logic).evaluate_additional_runs(a, b, c)
    assert pairs(logic.graded) == {(a, b), (a, c), (b, c)}


def test_an_unknown_earlier_evaluation_is_refused(world: World) -> None:
    (a,) = runs(world, count=1)
    with pytest.raises(ValueError, match="no previous evaluation 'nothing'"):
        world.comparing(Longer()).evaluate_additional_runs(a, previous_evaluation_ids=["nothing"])


def test_nothing_at_all_to_evaluate_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="At least one run-id"):
        world.comparing(Longer()).evaluate_additional_runs()


def test_evaluating_anew_forgets_earlier_evaluations(world: World) -> None:
    a, b, c = runs(world, count=3)
    logic = Longer()
    evaluator = world.comparing(logic)
    first = evaluator.evaluate_runs(a, b)
    evaluator.evaluate_additional_runs(c, previous_evaluation_ids=[first.id])
    logic.graded.clear()
    evaluator.evaluate_runs(a, b)
    assert pairs(logic.graded) == {(a, b)}


def test_descriptions_labels_and_metadata_are_kept_by_both_ways(world: World) -> None:
    a, b, c = runs(world, count=3)
    about: dict[str, Any] = {"description": "x", "labels": {"l"}, "metadata": {"k": 1}}
    first = world.comparing(Longer()).evaluate_runs(a, b, **about)
    second = world.comparing(Longer()).evaluate_additional_runs(
        c, previous_evaluation_ids=[first.id], **about
    )
    for overview in (first, second):
        stored = world.evaluations.evaluation_overview(overview.id)
        assert stored is not None
        assert (stored.description, stored.labels, stored.metadata) == (
            "comparison : x",
            {"l"},
            {"k": 1},
        )


def test_failures_can_be_played_around(world: World) -> None:
    dataset = world.dataset("a", "b")
    a = world.run("A", dataset, {"e0": "x", "e1": None})
    b, c = (world.run(name, dataset, {"e0": "xx", "e1": "y"}, minutes=1) for name in "BC")
    first = world.comparing(Longer()).evaluate_runs(a, b)
    logic = Longer()
    world.comparing(logic).evaluate_additional_runs(
        c, previous_evaluation_ids=[first.id], skip_example_on_any_failure=False
    )
    assert set(logic.graded) == {("e0", "A", "C"), ("e0", "B", "C"), ("e1", "B", "C")}


# ---- own logics


class Remember(IncrementalEvaluationLogic[str, str, str, Evaluation]):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[list[str], list[list[str]]]] = []

    def do_incremental_evaluate(
        self,
        example: Example[str, str],
        outputs: list[SuccessfulExampleOutput[str]],
        already_evaluated_outputs: list[list[SuccessfulExampleOutput[str]]],
    ) -> Any:
        seen = [[each.run_id for each in group] for group in already_evaluated_outputs]
        self.calls.append(([each.run_id for each in outputs], seen))
        return {"all": len(outputs)}


class RememberDict(Remember[dict]):  # type: ignore[type-arg]
    pass


def test_own_logics_are_given_all_outputs_and_those_already_seen_by_evaluation(
    world: World,
) -> None:
    a, b, c, d = runs(world, examples=1)
    evaluator = world.comparing(RememberDict())  # type: ignore[arg-type]
    one, other = evaluator.evaluate_runs(a, b), evaluator.evaluate_runs(b, c)
    logic = RememberDict()
    world.comparing(logic).evaluate_additional_runs(d, previous_evaluation_ids=[one.id, other.id])  # type: ignore[arg-type]
    assert logic.calls == [([a, b, c, d], [[a, b], [b, c]])]


def test_previous_runs_can_be_set_by_hand() -> None:
    logic = RememberDict()
    logic.set_previous_run_output_ids([{"A"}, {"A", "B"}])
    outputs = [SuccessfulExampleOutput(run_id=run, example_id="e", output="x") for run in "ABC"]
    logic.do_evaluate(Example(input="", expected_output="", id="e"), *outputs)
    assert logic.calls == [(["A", "B", "C"], [["A"], ["A", "B"]])]
