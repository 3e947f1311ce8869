"""Benchmarks in a folder, what traces tell, and what identifies a logic."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from pydantic import BaseModel

from assay.formats.intelligence_layer.core import (
    Context,
    ExportedSpan,
    InMemoryTracer,
    SpanAttributes,
    SpanStatus,
    Task,
    TaskSpan,
    TaskSpanAttributes,
)
from assay.formats.intelligence_layer.evaluation import (
    Benchmark,
    FileBenchmark,
    FileBenchmarkRepository,
)
from assay.formats.intelligence_layer.graders import (
    extract_latency_from_trace,
    extract_token_count_from_trace,
)
from assay.formats.intelligence_layer.logics import (
    create_aggregation_logic_identifier,
    create_evaluation_logic_identifier,
    type_to_schema,
)
from tests.formats.intelligence_layer.worlds import (
    FAIL_IN_TASK,
    NOON,
    Accuracy,
    Correct,
    CountCorrect,
    Equality,
    Upper,
    World,
)


class _Complete(Task[str, dict[str, int]]):
    """Stands for the original's task that calls a model."""

    def do_run(self, input: str, task_span: TaskSpan) -> dict[str, int]:
        return {"num_tokens_generated": len(input)}


class Asking(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if input == FAIL_IN_TASK:
            raise RuntimeError(input)
        _Complete().run("x" * 7, task_span)
        _Complete().run("x" * 3, task_span)
        return input.upper()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def benchmarks(world: World, tmp_path: Path) -> FileBenchmarkRepository:
    return FileBenchmarkRepository(world.datasets, tmp_path)


def test_a_benchmark_is_executed_with_one_task_after_another(world: World, tmp_path: Path) -> None:
    dataset = world.dataset("a", "b", FAIL_IN_TASK)
    repository = benchmarks(world, tmp_path)
    created = repository.create_benchmark(
        dataset, Equality(), CountCorrect(), "mine", {"k": 1}, "about it"
    )
    assert isinstance(created, Benchmark)
    found = benchmarks(world, tmp_path).get_benchmark(created.id, Equality(), CountCorrect())
    assert found is not None
    assert (found.id, found.name, found.dataset_id) == (created.id, "mine", dataset)
    first = found.execute(Upper(), "plain", "described", {"l"}, {"m": 2})
    second = found.execute(Asking(), "asking", max_workers=2)
    plain, asking = created.executions()
    assert (plain.id, asking.id) == (first, second)
    assert (plain.name, plain.description, plain.labels, plain.metadata) == (
        "plain",
        "described",
        {"l"},
        {"m": 2},
    )
    assert (plain.run_successful_count, plain.run_failed_count) == (2, 1)
    assert (plain.eval_successful_count, plain.eval_failed_count) == (2, 0)
    assert plain.statistics == {"share": 1.0, "count": 2}
    assert plain.start <= plain.run_start <= plain.run_end <= plain.eval_start <= plain.eval_end
    assert plain.eval_end <= plain.aggregation_start <= plain.aggregation_end <= plain.end
    assert plain.run_success_avg_latency > 0
    assert (plain.run_success_avg_token_count, asking.run_success_avg_token_count) == (0, 10)
    assert created.execution(first) == plain
    assert created.execution("nothing") is None
    aggregation = world.aggregations.aggregation_overview(plain.aggregation_id, Accuracy)
    assert aggregation is not None
    assert aggregation.run_ids == [plain.run_id]


@pytest.mark.parametrize("inputs", [(), (FAIL_IN_TASK,)])
def test_averages_of_nothing_are_zero(
    inputs: tuple[str, ...], world: World, tmp_path: Path
) -> None:
    created = benchmarks(world, tmp_path).create_benchmark(
        world.dataset(*inputs), Equality(), CountCorrect(), "b"
    )
    execution = created.execution(created.execute(Asking(), "x"))
    assert execution is not None
    assert (execution.run_success_avg_latency, execution.run_success_avg_token_count) == (0, 0)
    assert (execution.run_successful_count, execution.run_failed_count) == (0, len(inputs))


def test_bad_benchmarks_are_refused(world: World, tmp_path: Path) -> None:
    repository = benchmarks(world, tmp_path)
    with pytest.raises(ValueError, match="Dataset with ID nothing not found"):
        repository.create_benchmark("nothing", Equality(), CountCorrect(), "b")
    dataset = world.dataset("a")
    repository.create_benchmark(dataset, Equality(), CountCorrect(), "b")
    with pytest.raises(ValueError, match='Benchmark with name "b" already exists'):
        repository.create_benchmark(dataset, Equality(), CountCorrect(), "b")
    assert repository.get_benchmark("../nothing", Equality(), CountCorrect()) is None


class Stricter(Equality):
    pass


def test_other_logics_are_refused_unless_allowed(world: World, tmp_path: Path) -> None:
    repository = benchmarks(world, tmp_path)
    created = repository.create_benchmark(world.dataset("a"), Equality(), CountCorrect(), "b")
    with pytest.raises(ValueError, match="logics are not those"):
        repository.get_benchmark(created.id, Stricter(), CountCorrect())
    found = repository.get_benchmark(created.id, Stricter(), CountCorrect(), allow_diff=True)
    assert isinstance(found, FileBenchmark)
    assert isinstance(found.eval_logic, Stricter)


# ---- identifiers


@dataclass
class Plain:
    name: str


class Struct(msgspec.Struct):
    age: int


class Model(BaseModel):
    tags: list[str]


def test_types_have_schemas() -> None:
    assert type_to_schema(int) == {"type": "integer"}
    assert type_to_schema(str) == {"type": "string"}
    assert type_to_schema(bool) == {"type": "boolean"}
    assert type_to_schema(float) == {"type": "number"}
    assert type_to_schema(None) == {"type": "null"}
    assert type_to_schema(int | None) == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert type_to_schema(list[int]) == {"type": "array", "items": {"type": "integer"}}
    assert type_to_schema(dict[str, int]) == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }
    assert type_to_schema(Model)["properties"]["tags"]["items"] == {"type": "string"}
    for kind, field in ((Plain, "name"), (Struct, "age")):
        assert field in str(type_to_schema(kind))
    assert type_to_schema(list[Model])["type"] == "array"


def test_logics_are_identified_by_source_and_types() -> None:
    evaluation = create_evaluation_logic_identifier(Equality())
    assert "output == example.expected_output" in evaluation.logic
    assert evaluation.input_schema == evaluation.output_schema == evaluation.expected_output_schema
    assert evaluation.evaluation_schema == Correct.model_json_schema()
    aggregation = create_aggregation_logic_identifier(CountCorrect())
    assert aggregation.logic.startswith("class CountCorrect(")
    assert aggregation.aggregation_schema == Accuracy.model_json_schema()
    assert create_evaluation_logic_identifier(Stricter()) != evaluation


def test_code_that_no_file_holds_is_identified_too() -> None:
    def made(sign: str) -> Any:
        names: dict[str, Any] = {"Equality": Equality}
        exec(f"class Own(Equality):\n    def helper(self): return 1 {sign} 2", names)
        return names["Own"]()

    one, same, other = (create_evaluation_logic_identifier(made(sign)) for sign in "++-")
    assert one == same
    assert one != other


# ---- traces


def span(name: str, parent: Any = None, output: Any = None, microseconds: int = 0) -> ExportedSpan:
    return ExportedSpan(
        context=Context(trace_id=uuid4(), span_id=uuid4()),
        name=name,
        parent_id=parent,
        start_time=NOON,
        end_time=NOON + timedelta(microseconds=microseconds),
        attributes=SpanAttributes()
        if output is None
        else TaskSpanAttributes(input=None, output=output),
        events=[],
        status=SpanStatus.OK,
    )


def test_latency_is_that_of_the_one_root() -> None:
    assert (
        extract_latency_from_trace(
            [span("root", microseconds=1500), span("in", uuid4(), microseconds=9)]
        )
        == 1500
    )
    tracer = InMemoryTracer()
    Upper().run("a", tracer)
    assert extract_latency_from_trace(tracer.export_for_viewing()) >= 0
    for trace in ([], [span("a"), span("b")]):
        with pytest.raises(ValueError, match="exactly one root"):
            extract_latency_from_trace(trace)


@dataclass
class Response:
    num_tokens_generated: int


def test_tokens_are_those_of_all_completions() -> None:
    trace = [
        span("root"),
        span("_Complete", uuid4(), {"num_tokens_generated": 5}),
        span("_Complete", uuid4(), Response(7)),
        span("Other", uuid4(), {"num_tokens_generated": 100}),
        span("_Complete", uuid4()),  # a plain span of that name is no task
    ]
    assert extract_token_count_from_trace(trace) == 12
    assert extract_token_count_from_trace([]) == 0
    with pytest.raises(ValueError, match="number of generated tokens"):
        extract_token_count_from_trace([span("_Complete", None, {"text": "x"})])
