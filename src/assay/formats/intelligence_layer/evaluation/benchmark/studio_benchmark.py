"""Benchmarks in PhariaStudio, a closed service that Assay has no client for. The logics' identifiers are ours."""

from typing import Any

from assay.errors import UserError
from assay.formats.intelligence_layer.core.task import Task
from assay.formats.intelligence_layer.evaluation.aggregation.aggregator import AggregationLogic
from assay.formats.intelligence_layer.evaluation.benchmark.benchmark import Benchmark, BenchmarkRepository
from assay.formats.intelligence_layer.evaluation.benchmark.identifiers import (
    create_aggregation_logic_identifier as create_aggregation_logic_identifier,
)
from assay.formats.intelligence_layer.evaluation.benchmark.identifiers import (
    create_evaluation_logic_identifier as create_evaluation_logic_identifier,
)
from assay.formats.intelligence_layer.evaluation.benchmark.identifiers import type_to_schema as type_to_schema
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.evaluator import EvaluationLogic


class StudioBenchmark(Benchmark):
    """Only a name to import."""

    def __init__(
        self,
        benchmark_id: str,
        name: str,
        dataset_id: str,
        eval_logic: EvaluationLogic[Any, Any, Any, Any],
        aggregation_logic: AggregationLogic[Any, Any],
        studio_client: Any,
        **kwargs: Any,
    ) -> None:
        raise closed()

    def execute(
        self,
        task: Task[Any, Any],
        name: str,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: dict[str, Any] | None = None,
        max_workers: int = 10,
    ) -> str:
        raise closed()


class StudioBenchmarkRepository(BenchmarkRepository):
    """Only a name to import."""

    def __init__(self, studio_client: Any) -> None:
        raise closed()

    def create_benchmark(
        self,
        dataset_id: str,
        eval_logic: EvaluationLogic[Any, Any, Any, Any],
        aggregation_logic: AggregationLogic[Any, Any],
        name: str,
        metadata: dict[str, Any] | None = None,
        description: str | None = None,
    ) -> StudioBenchmark:
        raise closed()

    def get_benchmark(
        self,
        benchmark_id: str,
        eval_logic: EvaluationLogic[Any, Any, Any, Any],
        aggregation_logic: AggregationLogic[Any, Any],
        allow_diff: bool = False,
    ) -> StudioBenchmark | None:
        raise closed()


def closed() -> UserError:
    return UserError(
        "benchmarks in PhariaStudio cannot be reached: it is a closed service",
        fix="use FileBenchmarkRepository, which keeps benchmarks in a folder",
    )
