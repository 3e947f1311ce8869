"""Benchmarks: a dataset with its two logics, and what each task made of them, kept in a folder."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from assay.formats.intelligence_layer.aggregations import Aggregator, FileAggregationRepository
from assay.formats.intelligence_layer.core import Task
from assay.formats.intelligence_layer.datasets import DatasetRepository
from assay.formats.intelligence_layer.evaluations import FileEvaluationRepository
from assay.formats.intelligence_layer.evaluator import Evaluator
from assay.formats.intelligence_layer.graders import (
    extract_latency_from_trace,
    extract_token_count_from_trace,
)
from assay.formats.intelligence_layer.logics import (
    AggregationLogic,
    AggregationLogicIdentifier,
    EvaluationLogic,
    EvaluationLogicIdentifier,
    create_aggregation_logic_identifier,
    create_evaluation_logic_identifier,
)
from assay.formats.intelligence_layer.navigator import EvaluationLineage
from assay.formats.intelligence_layer.runner import Runner
from assay.formats.intelligence_layer.runs import FileRunRepository
from assay.formats.intelligence_layer.tracer import utc_now
from assay.formats.intelligence_layer.types import BadValue, Record, to_json
from assay.store.files import safe_name, write_file

AnyLogic = EvaluationLogic[Any, Any, Any, Any]
AnyAggregation = AggregationLogic[Any, Any]


class Benchmark(ABC):
    @abstractmethod
    def __init__(
        self,
        benchmark_id: str,
        dataset_id: str,
        eval_logic: AnyLogic,
        aggregation_logic: AnyAggregation,
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
        eval_logic: AnyLogic,
        aggregation_logic: AnyAggregation,
        name: str,
        metadata: dict[str, Any] | None = None,
        description: str | None = None,
    ) -> Benchmark:
        """A new benchmark; a ValueError for an unknown dataset or a name that is taken."""

    @abstractmethod
    def get_benchmark(
        self,
        benchmark_id: str,
        eval_logic: AnyLogic,
        aggregation_logic: AnyAggregation,
        allow_diff: bool = False,
    ) -> Benchmark | None:
        """The benchmark, or None if there is none. Logics other than those that it was created with are refused,
        unless `allow_diff`."""


@dataclass(kw_only=True)
class StoredBenchmark(Record):
    id: str
    name: str
    dataset_id: str
    description: str | None
    metadata: dict[str, Any] | None
    evaluation_logic: EvaluationLogicIdentifier
    aggregation_logic: AggregationLogicIdentifier


@dataclass(kw_only=True)
class BenchmarkExecution(Record):
    """What one task made of a benchmark. Latencies are microseconds; averages are over successful runs, 0 for none."""

    id: str
    name: str
    description: str | None
    labels: set[str] | None
    metadata: dict[str, Any] | None
    start: datetime
    end: datetime
    run_id: str
    run_start: datetime
    run_end: datetime
    run_successful_count: int
    run_failed_count: int
    run_success_avg_latency: float
    run_success_avg_token_count: float
    evaluation_id: str
    eval_start: datetime
    eval_end: datetime
    eval_successful_count: int
    eval_failed_count: int
    aggregation_id: str
    aggregation_start: datetime
    aggregation_end: datetime
    statistics: Any


class FileBenchmark(Benchmark):
    def __init__(
        self,
        benchmark_id: str,
        dataset_id: str,
        eval_logic: AnyLogic,
        aggregation_logic: AnyAggregation,
        *,
        name: str,
        dataset_repository: DatasetRepository,
        root_directory: Path,
    ) -> None:
        self.id = benchmark_id
        self.name = name
        self.dataset_id = dataset_id
        self.eval_logic = eval_logic
        self.aggregation_logic = aggregation_logic
        self.dataset_repository = dataset_repository
        self.run_repository = FileRunRepository(root_directory)
        evaluations = FileEvaluationRepository(root_directory)
        self.evaluator: Evaluator[Any, Any, Any, Any] = Evaluator(
            dataset_repository,
            self.run_repository,
            evaluations,
            f"benchmark-{self.id}-evaluator",
            eval_logic,
        )
        self.aggregator: Aggregator[Any, Any] = Aggregator(
            evaluations,
            FileAggregationRepository(root_directory),
            f"benchmark-{self.id}-aggregator",
            aggregation_logic,
        )
        self._folder = Path(root_directory) / "benchmarks" / safe_name(benchmark_id)

    def execute(
        self,
        task: Task[Any, Any],
        name: str,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: dict[str, Any] | None = None,
        max_workers: int = 10,
    ) -> str:
        start = utc_now()
        about: dict[str, Any] = {"description": description, "labels": labels, "metadata": metadata}
        runner = Runner(
            task, self.dataset_repository, self.run_repository, f"benchmark-{self.id}-runner"
        )
        run = runner.run_dataset(self.dataset_id, max_workers=max_workers, **about)
        evaluation = self.evaluator.evaluate_runs(run.id, **about)
        aggregation = self.aggregator.aggregate_evaluation(evaluation.id, **about)
        latency, tokens = _averages(self.evaluator.evaluation_lineages(evaluation.id))
        execution = BenchmarkExecution(
            id=str(uuid4()),
            name=name,
            **about,
            start=start,
            end=utc_now(),
            run_id=run.id,
            run_start=run.start,
            run_end=run.end,
            run_successful_count=run.successful_example_count,
            run_failed_count=run.failed_example_count,
            run_success_avg_latency=latency,
            run_success_avg_token_count=tokens,
            evaluation_id=evaluation.id,
            eval_start=evaluation.start_date,
            eval_end=evaluation.end_date,
            eval_successful_count=evaluation.successful_evaluation_count,
            eval_failed_count=evaluation.failed_evaluation_count,
            aggregation_id=aggregation.id,
            aggregation_start=aggregation.start,
            aggregation_end=aggregation.end,
            statistics=to_json(aggregation.statistics),
        )
        write_file(
            self._folder / f"{execution.id}.json",
            execution.model_dump_json(indent=2).encode() + b"\n",
        )
        return execution.id

    def execution(self, execution_id: str) -> BenchmarkExecution | None:
        file = self._folder / f"{safe_name(execution_id)}.json"
        return BenchmarkExecution.model_validate_json(file.read_bytes()) if file.is_file() else None

    def executions(self) -> Sequence[BenchmarkExecution]:
        """All executions, the oldest first."""
        executions = (
            BenchmarkExecution.model_validate_json(file.read_bytes())
            for file in self._folder.glob("*.json")
        )
        return sorted(executions, key=lambda execution: (execution.start, execution.id))


class FileBenchmarkRepository(BenchmarkRepository):
    """Benchmarks over the datasets of `dataset_repository`, kept in a folder."""

    def __init__(self, dataset_repository: DatasetRepository, root_directory: Path) -> None:
        self._dataset_repository = dataset_repository
        self._root = Path(root_directory)

    def create_benchmark(
        self,
        dataset_id: str,
        eval_logic: AnyLogic,
        aggregation_logic: AnyAggregation,
        name: str,
        metadata: dict[str, Any] | None = None,
        description: str | None = None,
    ) -> FileBenchmark:
        if self._dataset_repository.dataset(dataset_id) is None:
            raise BadValue(
                f"Dataset with ID {dataset_id} not found", fix="create the dataset first"
            )
        if any(stored.name == name for stored in self._stored()):
            raise BadValue(
                f'Benchmark with name "{name}" already exists', fix="give it another name"
            )
        stored = StoredBenchmark(
            id=str(uuid4()),
            name=name,
            dataset_id=dataset_id,
            description=description,
            metadata=metadata,
            evaluation_logic=create_evaluation_logic_identifier(eval_logic),
            aggregation_logic=create_aggregation_logic_identifier(aggregation_logic),
        )
        write_file(self._file(stored.id), stored.model_dump_json(indent=2).encode() + b"\n")
        return self._benchmark(stored, eval_logic, aggregation_logic)

    def get_benchmark(
        self,
        benchmark_id: str,
        eval_logic: AnyLogic,
        aggregation_logic: AnyAggregation,
        allow_diff: bool = False,
    ) -> FileBenchmark | None:
        if not self._file(benchmark_id).is_file():
            return None
        stored = StoredBenchmark.model_validate_json(self._file(benchmark_id).read_bytes())
        logics = (
            create_evaluation_logic_identifier(eval_logic),
            create_aggregation_logic_identifier(aggregation_logic),
        )
        if not allow_diff and logics != (stored.evaluation_logic, stored.aggregation_logic):
            raise BadValue(
                f"the logics are not those that the benchmark {stored.name!r} was created with",
                fix="create a new benchmark, or pass allow_diff=True: then its executions cannot be compared",
            )
        return self._benchmark(stored, eval_logic, aggregation_logic)

    def _benchmark(
        self, stored: StoredBenchmark, eval_logic: Any, aggregation_logic: Any
    ) -> FileBenchmark:
        return FileBenchmark(
            stored.id,
            stored.dataset_id,
            eval_logic,
            aggregation_logic,
            name=stored.name,
            dataset_repository=self._dataset_repository,
            root_directory=self._root,
        )

    def _stored(self) -> Iterable[StoredBenchmark]:
        files = sorted((self._root / "benchmarks").glob("*.json"))
        return (StoredBenchmark.model_validate(json.loads(file.read_bytes())) for file in files)

    def _file(self, benchmark_id: str) -> Path:
        return self._root / "benchmarks" / f"{safe_name(benchmark_id)}.json"


def _averages(lineages: Iterable[EvaluationLineage[Any, Any, Any, Any]]) -> tuple[float, float]:
    """Mean latency and tokens of the runs that were evaluated: only successful ones are."""
    traces = [
        tracer.export_for_viewing()
        for lineage in lineages
        for tracer in lineage.tracers
        if tracer is not None
    ]
    if not traces:
        return 0.0, 0.0
    latency = sum(extract_latency_from_trace(trace) for trace in traces)
    tokens = sum(extract_token_count_from_trace(trace) for trace in traces)
    return latency / len(traces), tokens / len(traces)
