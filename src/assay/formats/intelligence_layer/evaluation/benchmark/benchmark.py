"""What a benchmark is: a dataset, an evaluation logic and an aggregation logic that stay the same for every task."""

from abc import ABC, abstractmethod
from typing import Any

from assay.formats.intelligence_layer.core.task import Task
from assay.formats.intelligence_layer.evaluation.aggregation.aggregator import AggregationLogic
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.evaluator import EvaluationLogic


class Benchmark(ABC):
    @abstractmethod
    def __init__(
        self,
        benchmark_id: str,
        dataset_id: str,
        eval_logic: EvaluationLogic[Any, Any, Any, Any],
        aggregation_logic: AggregationLogic[Any, Any],
        **kwargs: Any,
    ) -> None: ...

    @abstractmethod
    def execute(
        self,
        task: Task[Any, Any],
        name: str,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        """Run, evaluate and aggregate; the id of the execution."""


class BenchmarkRepository(ABC):
    @abstractmethod
    def create_benchmark(
        self,
        dataset_id: str,
        eval_logic: EvaluationLogic[Any, Any, Any, Any],
        aggregation_logic: AggregationLogic[Any, Any],
        name: str,
        metadata: dict[str, Any] | None = None,
        description: str | None = None,
    ) -> Benchmark:
        """A new benchmark; a ValueError for an unknown dataset or a name that is taken."""

    @abstractmethod
    def get_benchmark(
        self,
        benchmark_id: str,
        eval_logic: EvaluationLogic[Any, Any, Any, Any],
        aggregation_logic: AggregationLogic[Any, Any],
        allow_diff: bool = False,
    ) -> Benchmark | None:
        """The benchmark, or None if there is none. Logics other than those that it was created with are refused,
        unless `allow_diff`."""
