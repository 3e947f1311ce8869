"""The evaluation library's public names in one place: datasets, runs, evaluations, aggregations."""

from assay.formats.intelligence_layer.evaluation.aggregation.accumulator import MeanAccumulator as MeanAccumulator
from assay.formats.intelligence_layer.evaluation.aggregation.aggregation_repository import (
    AggregationRepository as AggregationRepository,
)
from assay.formats.intelligence_layer.evaluation.aggregation.aggregator import AggregationLogic as AggregationLogic
from assay.formats.intelligence_layer.evaluation.aggregation.aggregator import Aggregator as Aggregator
from assay.formats.intelligence_layer.evaluation.aggregation.domain import AggregatedEvaluation as AggregatedEvaluation
from assay.formats.intelligence_layer.evaluation.aggregation.domain import AggregationOverview as AggregationOverview
from assay.formats.intelligence_layer.evaluation.aggregation.elo_aggregation import (
    AggregatedComparison as AggregatedComparison,
)
from assay.formats.intelligence_layer.evaluation.aggregation.elo_aggregation import (
    ComparisonEvaluationAggregationLogic as ComparisonEvaluationAggregationLogic,
)
from assay.formats.intelligence_layer.evaluation.aggregation.elo_aggregation import EloCalculator as EloCalculator
from assay.formats.intelligence_layer.evaluation.aggregation.elo_aggregation import (
    MatchesAggregationLogic as MatchesAggregationLogic,
)
from assay.formats.intelligence_layer.evaluation.aggregation.elo_aggregation import PlayerScore as PlayerScore
from assay.formats.intelligence_layer.evaluation.aggregation.elo_aggregation import (
    WinRateCalculator as WinRateCalculator,
)
from assay.formats.intelligence_layer.evaluation.aggregation.file_aggregation_repository import (
    FileAggregationRepository as FileAggregationRepository,
)
from assay.formats.intelligence_layer.evaluation.aggregation.hugging_face_aggregation_repository import (
    HuggingFaceAggregationRepository as HuggingFaceAggregationRepository,
)
from assay.formats.intelligence_layer.evaluation.aggregation.in_memory_aggregation_repository import (
    InMemoryAggregationRepository as InMemoryAggregationRepository,
)
from assay.formats.intelligence_layer.evaluation.benchmark.benchmark import Benchmark as Benchmark
from assay.formats.intelligence_layer.evaluation.benchmark.benchmark import BenchmarkRepository as BenchmarkRepository
from assay.formats.intelligence_layer.evaluation.benchmark.file_benchmark import FileBenchmark as FileBenchmark
from assay.formats.intelligence_layer.evaluation.benchmark.file_benchmark import (
    FileBenchmarkRepository as FileBenchmarkRepository,
)
from assay.formats.intelligence_layer.evaluation.benchmark.studio_benchmark import StudioBenchmark as StudioBenchmark
from assay.formats.intelligence_layer.evaluation.benchmark.studio_benchmark import (
    StudioBenchmarkRepository as StudioBenchmarkRepository,
)
from assay.formats.intelligence_layer.evaluation.dataset.dataset_repository import (
    DatasetRepository as DatasetRepository,
)
from assay.formats.intelligence_layer.evaluation.dataset.domain import Dataset as Dataset
from assay.formats.intelligence_layer.evaluation.dataset.domain import Example as Example
from assay.formats.intelligence_layer.evaluation.dataset.domain import ExpectedOutput as ExpectedOutput
from assay.formats.intelligence_layer.evaluation.dataset.file_dataset_repository import (
    FileDatasetRepository as FileDatasetRepository,
)
from assay.formats.intelligence_layer.evaluation.dataset.hugging_face_dataset_repository import (
    HuggingFaceDatasetRepository as HuggingFaceDatasetRepository,
)
from assay.formats.intelligence_layer.evaluation.dataset.in_memory_dataset_repository import (
    InMemoryDatasetRepository as InMemoryDatasetRepository,
)
from assay.formats.intelligence_layer.evaluation.dataset.single_huggingface_dataset_repository import (
    MultipleChoiceInput as MultipleChoiceInput,
)
from assay.formats.intelligence_layer.evaluation.dataset.single_huggingface_dataset_repository import (
    SingleHuggingfaceDatasetRepository as SingleHuggingfaceDatasetRepository,
)
from assay.formats.intelligence_layer.evaluation.dataset.studio_dataset_repository import (
    StudioDatasetRepository as StudioDatasetRepository,
)
from assay.formats.intelligence_layer.evaluation.evaluation.domain import Evaluation as Evaluation
from assay.formats.intelligence_layer.evaluation.evaluation.domain import EvaluationFailed as EvaluationFailed
from assay.formats.intelligence_layer.evaluation.evaluation.domain import EvaluationOverview as EvaluationOverview
from assay.formats.intelligence_layer.evaluation.evaluation.domain import ExampleEvaluation as ExampleEvaluation
from assay.formats.intelligence_layer.evaluation.evaluation.domain import (
    FailedExampleEvaluation as FailedExampleEvaluation,
)
from assay.formats.intelligence_layer.evaluation.evaluation.domain import (
    PartialEvaluationOverview as PartialEvaluationOverview,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluation_repository import (
    EvaluationRepository as EvaluationRepository,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.argilla_evaluator import (
    ArgillaEvaluationLogic as ArgillaEvaluationLogic,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.argilla_evaluator import (
    ArgillaEvaluator as ArgillaEvaluator,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.argilla_evaluator import (
    InstructComparisonArgillaEvaluationLogic as InstructComparisonArgillaEvaluationLogic,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.argilla_evaluator import (
    RecordDataSequence as RecordDataSequence,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.async_evaluator import (
    AsyncEvaluationRepository as AsyncEvaluationRepository,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.async_evaluator import (
    AsyncEvaluator as AsyncEvaluator,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.evaluator import (
    EvaluationLogic as EvaluationLogic,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.evaluator import Evaluator as Evaluator
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.evaluator import (
    SingleOutputEvaluationLogic as SingleOutputEvaluationLogic,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.incremental_evaluator import (
    ComparisonEvaluation as ComparisonEvaluation,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.incremental_evaluator import (
    EloEvaluationLogic as EloEvaluationLogic,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.incremental_evaluator import (
    EloGradingInput as EloGradingInput,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.incremental_evaluator import (
    IncrementalEvaluationLogic as IncrementalEvaluationLogic,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.incremental_evaluator import (
    IncrementalEvaluator as IncrementalEvaluator,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.incremental_evaluator import Matches as Matches
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.incremental_evaluator import (
    MatchOutcome as MatchOutcome,
)
from assay.formats.intelligence_layer.evaluation.evaluation.file_evaluation_repository import (
    AsyncFileEvaluationRepository as AsyncFileEvaluationRepository,
)
from assay.formats.intelligence_layer.evaluation.evaluation.file_evaluation_repository import (
    FileEvaluationRepository as FileEvaluationRepository,
)
from assay.formats.intelligence_layer.evaluation.evaluation.graders import BleuGrader as BleuGrader
from assay.formats.intelligence_layer.evaluation.evaluation.graders import FScores as FScores
from assay.formats.intelligence_layer.evaluation.evaluation.graders import (
    HighlightCoverageGrader as HighlightCoverageGrader,
)
from assay.formats.intelligence_layer.evaluation.evaluation.graders import (
    LanguageMatchesGrader as LanguageMatchesGrader,
)
from assay.formats.intelligence_layer.evaluation.evaluation.graders import RougeGrader as RougeGrader
from assay.formats.intelligence_layer.evaluation.evaluation.in_memory_evaluation_repository import (
    AsyncInMemoryEvaluationRepository as AsyncInMemoryEvaluationRepository,
)
from assay.formats.intelligence_layer.evaluation.evaluation.in_memory_evaluation_repository import (
    InMemoryEvaluationRepository as InMemoryEvaluationRepository,
)
from assay.formats.intelligence_layer.evaluation.infrastructure.hugging_face_repository import (
    HuggingFaceRepository as HuggingFaceRepository,
)
from assay.formats.intelligence_layer.evaluation.infrastructure.repository_navigator import (
    EvaluationLineage as EvaluationLineage,
)
from assay.formats.intelligence_layer.evaluation.infrastructure.repository_navigator import (
    RepositoryNavigator as RepositoryNavigator,
)
from assay.formats.intelligence_layer.evaluation.infrastructure.repository_navigator import RunLineage as RunLineage
from assay.formats.intelligence_layer.evaluation.infrastructure.repository_navigator import (
    aggregation_overviews_to_pandas as aggregation_overviews_to_pandas,
)
from assay.formats.intelligence_layer.evaluation.infrastructure.repository_navigator import (
    evaluation_lineages_to_pandas as evaluation_lineages_to_pandas,
)
from assay.formats.intelligence_layer.evaluation.infrastructure.repository_navigator import (
    run_lineages_to_pandas as run_lineages_to_pandas,
)
from assay.formats.intelligence_layer.evaluation.run.domain import ExampleOutput as ExampleOutput
from assay.formats.intelligence_layer.evaluation.run.domain import FailedExampleRun as FailedExampleRun
from assay.formats.intelligence_layer.evaluation.run.domain import RunOverview as RunOverview
from assay.formats.intelligence_layer.evaluation.run.domain import SuccessfulExampleOutput as SuccessfulExampleOutput
from assay.formats.intelligence_layer.evaluation.run.file_run_repository import FileRunRepository as FileRunRepository
from assay.formats.intelligence_layer.evaluation.run.in_memory_run_repository import (
    InMemoryRunRepository as InMemoryRunRepository,
)
from assay.formats.intelligence_layer.evaluation.run.run_repository import RecoveryData as RecoveryData
from assay.formats.intelligence_layer.evaluation.run.run_repository import RunRepository as RunRepository
from assay.formats.intelligence_layer.evaluation.run.runner import Runner as Runner
