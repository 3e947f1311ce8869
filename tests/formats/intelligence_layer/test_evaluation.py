"""Evaluator: which examples and outputs reach the logic, what is stored, what is refused."""

import asyncio
import dataclasses
import threading
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import pytest
from pydantic import BaseModel

from assay.errors import TransientError
from assay.formats.intelligence_layer.core import Input, NoOpTracer
from assay.formats.intelligence_layer.evaluation import (
    AggregationRepository,
    Dataset,
    DatasetRepository,
    Evaluation,
    EvaluationLogic,
    EvaluationOverview,
    EvaluationRepository,
    Evaluator,
    Example,
    FailedExampleEvaluation,
    InMemoryEvaluationRepository,
    RunOverview,
    RunRepository,
    SingleOutputEvaluationLogic,
    SuccessfulExampleOutput,
)
from tests.formats.intelligence_layer.worlds import (
    FAIL_IN_EVALUATION,
    FAIL_IN_TASK,
    Accuracy,
    Correct,
    Equality,
    World,
)


class Seen(BaseModel):
    outputs: list[str]


class See(EvaluationLogic[str, str, str, Seen]):
    """Says which runs it was given, in order."""

    def do_evaluate(
        self, example: Example[str, str], *output: SuccessfulExampleOutput[str]
    ) -> Seen:
        assert all(each.example_id == example.id for each in output)
        return Seen(outputs=[each.run_id for each in output])


@pytest.fixture(params=["memory", "files"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path / "root" if request.param == "files" else None)


def test_good_examples_failed_runs_and_failed_evaluations_are_told_apart(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = world.dataset("a", "b", "c", FAIL_IN_TASK, FAIL_IN_TASK, FAIL_IN_EVALUATION)
    run = world.ran(dataset)
    overview = world.evaluator().evaluate_runs(run.id)
    assert (run.failed_example_count, run.successful_example_count) == (2, 4)
    assert (overview.successful_evaluation_count, overview.failed_evaluation_count) == (3, 1)
    assert overview.skipped_evaluation_count == 2
    assert world.evaluations.example_evaluation(overview.id, "e3", Correct) is None
    failed = world.evaluations.example_evaluation(overview.id, "e5", Correct)
    assert failed is not None
    assert isinstance(failed.result, FailedExampleEvaluation)
    assert failed.result.error_message.startswith(
        "<class 'RuntimeError'>: cannot judge FAIL IN EVALUATION\n"
    )
    assert "Traceback" in failed.result.error_message
    assert 'FAILED EVALUATION: example "e5", RuntimeError: "cannot judge' in capsys.readouterr().out
    stored = world.evaluations.evaluation_overview(overview.id)
    assert stored == overview
    assert {each.id for each in overview.run_overviews} == {run.id}


def test_an_abort_raises_what_the_logic_raised_and_stores_no_overview(world: World) -> None:
    run = world.ran(world.dataset("a", FAIL_IN_EVALUATION))
    with pytest.raises(RuntimeError, match="cannot judge"):
        world.evaluator().evaluate_runs(run.id, abort_on_error=True)
    try:
        assert list(world.evaluations.evaluation_overviews()) == []
    except FileNotFoundError:
        pass


def test_no_run_and_unknown_runs_are_refused(world: World) -> None:
    evaluator = world.evaluator()
    with pytest.raises(ValueError, match="At least one run-id needs to be provided"):
        evaluator.evaluate_runs()
    with pytest.raises(ValueError, match="No RunOverview found for run-id: nobody"):
        evaluator.evaluate_runs("nobody")


def test_runs_over_different_datasets_are_refused(world: World) -> None:
    one, other = world.ran(world.dataset("a", id="one")), world.ran(world.dataset("a", id="other"))
    with pytest.raises(ValueError, match="same dataset"):
        world.evaluator(See()).evaluate_runs(one.id, other.id)


def test_one_run_over_a_part_of_the_dataset_is_fine(world: World) -> None:
    run = world.ran(world.dataset("a", "b", "c"), num_examples=2)
    assert world.evaluator().evaluate_runs(run.id).successful_evaluation_count == 2


def test_runs_of_different_sizes_are_refused_or_compared_on_what_they_share(world: World) -> None:
    dataset = world.dataset("a", "b", "c")
    one = world.run("one", dataset, {"e0": "A", "e1": "B", "e2": "C"})
    other = world.run("other", dataset, {"e1": "B", "e2": "C"})
    evaluator = world.evaluator(See())
    with pytest.raises(ValueError, match="number of items"):
        evaluator.evaluate_runs(one, other)
    with pytest.warns(UserWarning, match="share 2 examples; 1 that not all"):
        overview = evaluator.evaluate_runs(one, other, items="intersection")
    found = world.evaluations.example_evaluations(overview.id, Seen)
    assert [each.example_id for each in found] == ["e1", "e2"]


def test_runs_of_one_size_over_different_examples_are_refused_too(world: World) -> None:
    dataset = world.dataset("a", "b", "c")
    one, other = (
        world.run("one", dataset, {"e0": "A", "e1": "B"}),
        world.run("other", dataset, {"e1": "B", "e2": "C"}),
    )
    with pytest.raises(ValueError, match="2 examples are not in all of them"):
        world.evaluator(See()).evaluate_runs(one, other)


def test_an_output_that_was_lost_costs_only_its_example(world: World) -> None:
    dataset = world.dataset("a", "b", "c")
    run = world.run("one", dataset, {"e0": "A", "e2": "C"})
    overview = world.evaluator().evaluate_runs(run)
    found = world.evaluations.example_evaluations(overview.id, Correct)
    assert [each.example_id for each in found] == ["e0", "e2"]


@pytest.mark.parametrize("stray", ["a0", "e1x", "z"])
def test_an_output_without_an_example_is_refused(world: World, stray: str) -> None:
    dataset = world.dataset("a", "b", "c")
    run = world.run("one", dataset, {"e0": "A", "e1": "B", stray: "?"})
    with pytest.raises(ValueError, match="ids of example and output do not match.*" + stray):
        world.evaluator().evaluate_runs(run)


def test_a_run_named_twice_is_one_run(world: World) -> None:
    run = world.ran(world.dataset("a"))
    overview = world.evaluator().evaluate_runs(run.id, run.id)
    assert (overview.successful_evaluation_count, len(overview.run_overviews)) == (1, 1)


def test_outputs_come_in_the_order_of_the_arguments(world: World) -> None:
    dataset = world.dataset("a", "b")
    runs = [world.run(f"run-{number}", dataset, {"e0": "A", "e1": "B"}) for number in range(6)]
    for order in (runs, runs[::-1], [*runs[3:], *runs[:3]]):
        overview = world.evaluator(See()).evaluate_runs(*order)
        for each in world.evaluations.example_evaluations(overview.id, Seen):
            assert each.result == Seen(outputs=order)


def test_an_example_that_failed_in_one_run_is_skipped_or_has_fewer_outputs(world: World) -> None:
    dataset = world.dataset("a", "b", FAIL_IN_EVALUATION)
    good = world.run("good", dataset, {"e0": "A", "e1": "B", "e2": "C"})
    bad = world.run("bad", dataset, {"e0": "A", "e1": None, "e2": "C"})
    skipping = world.evaluator(See()).evaluate_runs(good, bad)
    assert (skipping.successful_evaluation_count, skipping.skipped_evaluation_count) == (2, 1)
    assert world.evaluations.example_evaluation(skipping.id, "e1", Seen) is None
    keeping = world.evaluator(See()).evaluate_runs(good, bad, skip_example_on_any_failure=False)
    assert (keeping.successful_evaluation_count, keeping.skipped_evaluation_count) == (3, 0)
    found = world.evaluations.example_evaluation(keeping.id, "e1", Seen)
    assert found is not None
    assert found.result == Seen(outputs=["good"])


def test_without_any_output_a_single_output_logic_fails_the_example(world: World) -> None:
    dataset = world.dataset("a", FAIL_IN_TASK)
    run = world.ran(dataset)
    overview = world.evaluator().evaluate_runs(run.id, skip_example_on_any_failure=False)
    assert (overview.successful_evaluation_count, overview.failed_evaluation_count) == (1, 1)


def test_two_runs_fail_each_example_of_a_single_output_logic(world: World) -> None:
    dataset = world.dataset("a", "b")
    one, other = (
        world.run("one", dataset, {"e0": "A", "e1": "B"}),
        world.run("other", dataset, {"e0": "A", "e1": "B"}),
    )
    overview = world.evaluator().evaluate_runs(one, other)
    assert (overview.successful_evaluation_count, overview.failed_evaluation_count) == (0, 2)
    (first, _) = world.evaluations.failed_example_evaluations(overview.id, Correct)
    assert isinstance(first.result, FailedExampleEvaluation)
    assert first.result.error_message.startswith("<class 'AssertionError'>")


def test_the_number_of_examples_counts_those_that_are_not_skipped(world: World) -> None:
    run = world.ran(world.dataset(FAIL_IN_TASK, "b", FAIL_IN_TASK, "d", "e"))
    assert world.evaluator().evaluate_runs(run.id, num_examples=2).successful_evaluation_count == 2
    assert world.evaluator().evaluate_runs(run.id, num_examples=0).successful_evaluation_count == 3


def test_descriptions_labels_and_metadata_are_kept(world: World) -> None:
    run = world.ran(world.dataset("a"))
    overview = world.evaluator().evaluate_runs(
        run.id, description="again", labels={"x", "y"}, metadata={"k": [1]}
    )
    assert overview.description == "evaluator : again"
    stored = world.evaluations.evaluation_overview(overview.id)
    assert stored is not None
    assert (stored.labels, stored.metadata) == ({"x", "y"}, {"k": [1]})
    plain = world.evaluator().evaluate_runs(run.id)
    assert (plain.description, plain.labels, plain.metadata) == ("evaluator", set(), {})


def test_ids_with_dots_and_slashes_stay_apart(world: World) -> None:
    examples = [
        Example(input="a", expected_output="A", id=each)
        for each in ("a.1", "a.2", "b/c", "../d", "ü x")
    ]
    dataset = world.datasets.create_dataset(examples, "odd ids").id
    overview = world.evaluator().evaluate_runs(world.ran(dataset).id)
    found = world.evaluations.example_evaluations(overview.id, Correct)
    assert [each.example_id for each in found] == sorted(each.id for each in examples)
    single = world.evaluations.example_evaluation(overview.id, "b/c", Correct)
    assert single is not None
    assert single.result == Correct(correct=True)


# ---- workers


def test_no_more_than_max_workers_are_at_work() -> None:
    lock = threading.Lock()
    meeting = threading.Barrier(4, timeout=10)
    begun = now = most = 0

    class Meet(EvaluationLogic[str, str, str, Correct]):
        def do_evaluate(
            self, example: Example[str, str], *output: SuccessfulExampleOutput[str]
        ) -> Correct:
            nonlocal begun, now, most
            with lock:
                begun, now = begun + 1, now + 1
                most, is_early = max(most, now), begun <= 4
            if is_early:
                meeting.wait()  # only four at once come through
            with lock:
                now -= 1
            return Correct(correct=True)

    world = World(None)
    run = world.ran(world.dataset(*"abcdefghijkl"))
    evaluator = Evaluator(world.datasets, world.runs, world.evaluations, "", Meet(), max_workers=4)
    assert evaluator.evaluate_runs(run.id).successful_evaluation_count == 12
    assert most == 4


def test_it_works_inside_a_running_loop() -> None:
    world = World(None)
    run = world.ran(world.dataset("a"))

    async def notebook() -> int:
        return world.evaluator().evaluate_runs(run.id).successful_evaluation_count

    assert asyncio.run(notebook()) == 1


def test_an_own_repository_gets_every_result_and_the_overview() -> None:
    class Own(InMemoryEvaluationRepository):
        def __init__(self) -> None:
            super().__init__()
            self.got: list[str] = []

        def initialize_evaluation(self) -> str:
            return "chosen"

        def store_example_evaluation(self, example_evaluation: Any) -> None:
            self.got.append(example_evaluation.example_id)
            super().store_example_evaluation(example_evaluation)

    world = World(None)
    world.evaluations = Own()
    overview = world.evaluator().evaluate_runs(world.ran(world.dataset("a", "b")).id)
    assert overview.id == "chosen"
    assert sorted(world.evaluations.got) == ["e0", "e1"]


class OwnDatasets(DatasetRepository):
    """Repositories that know nothing of our stores: a dict each."""

    def __init__(self, examples: list[Example[str, str]]) -> None:
        self._examples = {example.id: example for example in examples}

    def create_dataset(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    delete_dataset = create_dataset

    def dataset(self, dataset_id: str) -> Dataset | None:
        return Dataset(id=dataset_id, name="own")

    def dataset_ids(self) -> list[str]:
        return ["own"]

    def example(
        self, dataset_id: str, example_id: str, input_type: Any, expected_output_type: Any
    ) -> Any:
        return self._examples.get(example_id)

    def examples(
        self,
        dataset_id: str,
        input_type: Any,
        expected_output_type: Any,
        examples_to_skip: Any = None,
    ) -> list[Any]:
        return [
            example
            for id, example in sorted(self._examples.items())
            if id not in (examples_to_skip or ())
        ]


class OwnRuns(RunRepository):
    def __init__(self) -> None:
        super().__init__()
        self._outputs: dict[str, dict[str, Any]] = {}
        self._overviews: dict[str, RunOverview] = {}

    def store_run_overview(self, overview: RunOverview) -> None:
        self._overviews[overview.id] = overview

    def run_overview(self, run_id: str) -> RunOverview | None:
        return self._overviews.get(run_id)

    def run_overview_ids(self) -> list[str]:
        return sorted(self._overviews)

    def store_example_output(self, example_output: Any) -> None:
        self._outputs.setdefault(example_output.run_id, {})[example_output.example_id] = (
            example_output
        )

    def example_output(self, run_id: str, example_id: str, output_type: Any) -> Any:
        return self._outputs[run_id].get(example_id)

    def example_outputs(self, run_id: str, output_type: Any) -> list[Any]:
        return [output for _, output in sorted(self._outputs[run_id].items())]

    def example_output_ids(self, run_id: str) -> list[str]:
        return sorted(self._outputs[run_id])

    def example_tracer(self, run_id: str, example_id: str) -> None:
        return None

    def create_tracer_for_example(self, run_id: str, example_id: str) -> Any:
        return NoOpTracer()

    def finished_examples(self, tmp_hash: str) -> None:
        return None

    def _create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None: ...

    def _temp_store_finished_example(self, tmp_hash: str, example_id: str) -> None: ...

    def _delete_temporary_run_data(self, tmp_hash: str) -> None: ...


class OwnEvaluations(EvaluationRepository):
    def __init__(self) -> None:
        self.results: dict[str, dict[str, Any]] = {}
        self._overviews: dict[str, EvaluationOverview] = {}

    def store_evaluation_overview(self, evaluation_overview: EvaluationOverview) -> None:
        self._overviews[evaluation_overview.id] = evaluation_overview

    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None:
        return self._overviews.get(evaluation_id)

    def evaluation_overview_ids(self) -> list[str]:
        return sorted(self._overviews)

    def store_example_evaluation(self, example_evaluation: Any) -> None:
        self.results.setdefault(example_evaluation.evaluation_id, {})[
            example_evaluation.example_id
        ] = example_evaluation

    def example_evaluation(self, evaluation_id: str, example_id: str, evaluation_type: Any) -> Any:
        return self.results[evaluation_id].get(example_id)

    def example_evaluations(self, evaluation_id: str, evaluation_type: Any) -> list[Any]:
        return [result for _, result in sorted(self.results[evaluation_id].items())]


class OwnAggregations(AggregationRepository):
    def __init__(self) -> None:
        self.overviews: dict[str, Any] = {}

    def store_aggregation_overview(self, aggregation_overview: Any) -> None:
        self.overviews[aggregation_overview.id] = aggregation_overview

    def aggregation_overview(self, aggregation_id: str, aggregation_type: Any) -> Any:
        return self.overviews.get(aggregation_id)

    def aggregation_overview_ids(self) -> list[str]:
        return sorted(self.overviews)


@pytest.mark.parametrize("own", ["datasets", "runs", "evaluations", "aggregations", "all"])
def test_repositories_of_the_users_own_work_in_every_step(own: str, tmp_path: Path) -> None:
    texts = ["a", "b", "c", FAIL_IN_TASK, FAIL_IN_EVALUATION]
    world = World(tmp_path)
    dataset = world.dataset(*texts, id="own")
    if own in ("datasets", "all"):
        world.datasets = OwnDatasets(list(world.datasets.examples(dataset, str, str)))
    if own in ("runs", "all"):
        world.runs = OwnRuns()
    if own in ("evaluations", "all"):
        world.evaluations = OwnEvaluations()
    if own in ("aggregations", "all"):
        world.aggregations = OwnAggregations()
    run = world.ran(dataset)
    overview = world.evaluator().evaluate_runs(run.id)
    counts = (
        overview.successful_evaluation_count,
        overview.failed_evaluation_count,
        overview.skipped_evaluation_count,
    )
    assert counts == (3, 1, 1)
    assert world.evaluations.evaluation_overview(overview.id) == overview
    found = world.evaluations.example_evaluations(overview.id, Correct)
    assert [each.example_id for each in found] == ["e0", "e1", "e2", "e4"]
    assert found[0].result == Correct(correct=True)
    assert isinstance(found[3].result, FailedExampleEvaluation)
    fewer = world.evaluator(See()).evaluate_runs(
        run.id, skip_example_on_any_failure=False, num_examples=4
    )
    seen = [each.result.outputs for each in world.evaluations.example_evaluations(fewer.id, Seen)]  # type: ignore[union-attr]
    assert seen == [[run.id], [run.id], [run.id], []]
    aggregation = world.aggregator().aggregate_evaluation(overview.id)
    assert (aggregation.statistics.share, aggregation.statistics.count) == (1.0, 3)
    assert world.aggregations.aggregation_overview(aggregation.id, Accuracy) == aggregation


def test_what_a_logic_calls_transient_is_tried_again(world: World) -> None:
    class Moody(SingleOutputEvaluationLogic[str, str, str, Correct]):
        calls = 0

        def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Correct:
            type(self).calls += 1
            if type(self).calls == 1:
                raise TransientError("busy")
            return Correct(correct=True)

    run = world.ran(world.dataset("a"))
    first = world.evaluator(Moody()).evaluate_runs(run.id)
    assert (first.successful_evaluation_count, first.failed_evaluation_count) == (0, 1)
    again = world.evaluator(Moody()).evaluate_runs(run.id, retry_errors=True)
    assert (again.id, again.successful_evaluation_count, again.failed_evaluation_count) == (
        first.id,
        1,
        0,
    )


# ---- types


T = TypeVar("T")


class Half(EvaluationLogic[Input, str, None, Evaluation]):
    pass


class Other(Generic[T]):
    pass


class Mixed(Other[int], Half[dict[str, int], Correct]):
    def do_evaluate(self, example: Any, *output: Any) -> Correct:
        return Correct(correct=True)


class Wrapped(EvaluationLogic[list[T], str, str, Correct], Generic[T]):
    def do_evaluate(self, example: Any, *output: Any) -> Correct:
        return Correct(correct=True)


class Settled(Wrapped[int]):
    pass


class Bare(Half):  # type: ignore[type-arg]
    def do_evaluate(self, example: Any, *output: Any) -> Any: ...


def types_of(logic: Any) -> tuple[Any, ...]:
    evaluator = World(None).evaluator(logic)
    return (
        evaluator.input_type(),
        evaluator.output_type(),
        evaluator.expected_output_type(),
        evaluator.evaluation_type(),
    )


def test_types_are_found_through_the_whole_inheritance() -> None:
    assert types_of(Equality()) == (str, str, str, Correct)
    assert types_of(Mixed()) == (dict[str, int], str, type(None), Correct)
    assert types_of(Settled()) == (list[int], str, str, Correct)


def test_a_type_that_nobody_gives_is_an_error_that_says_how_to_give_it() -> None:
    evaluator = World(None).evaluator(Bare())
    assert evaluator.output_type() is str
    with pytest.raises(TypeError, match=r"override input_type\(\)"):
        evaluator.input_type()
    with pytest.raises(TypeError, match="evaluation_type"):
        evaluator.evaluation_type()


@dataclasses.dataclass
class PlainMark:
    points: float


class StructMark(msgspec.Struct):
    points: float


class ModelMark(BaseModel):
    points: float


@pytest.mark.parametrize("mark", [PlainMark, StructMark, ModelMark, dict, float])
def test_results_may_be_of_any_kind_of_type(mark: Any, world: World) -> None:
    def made() -> Any:
        return 0.5 if mark is float else mark(points=0.5)

    class Score(SingleOutputEvaluationLogic[str, str, str, mark]):  # type: ignore[valid-type]
        def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Any:
            return made()

    overview = world.evaluator(Score()).evaluate_runs(world.ran(world.dataset("a")).id)
    found = world.evaluations.example_evaluation(overview.id, "e0", mark)
    assert found is not None
    assert found.result == made()
    assert type(found.result) is mark


def test_a_result_that_is_no_json_value_is_an_error_of_its_own(world: World) -> None:
    class Odd(SingleOutputEvaluationLogic[str, str, str, Any]):  # type: ignore[type-arg]
        def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Any:
            return object()

    run = world.ran(world.dataset("a"))
    with pytest.raises(TypeError, match="object"):
        world.evaluator(Odd()).evaluate_runs(run.id)
