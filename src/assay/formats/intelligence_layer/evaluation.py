"""The evaluation library by the original's names, `intelligence_layer.evaluation`."""

import typing

from assay.formats.intelligence_layer.aggregations import AggregationOverview as AggregationOverview
from assay.formats.intelligence_layer.aggregations import AggregationRepository as AggregationRepository
from assay.formats.intelligence_layer.aggregations import FileAggregationRepository as FileAggregationRepository
from assay.formats.intelligence_layer.aggregations import (
    HuggingFaceAggregationRepository as HuggingFaceAggregationRepository,
)
from assay.formats.intelligence_layer.aggregations import InMemoryAggregationRepository as InMemoryAggregationRepository
from assay.formats.intelligence_layer.aggregator import Aggregator as Aggregator
from assay.formats.intelligence_layer.aggregator import MeanAccumulator as MeanAccumulator
from assay.formats.intelligence_layer.argilla import ArgillaEvaluationLogic as ArgillaEvaluationLogic
from assay.formats.intelligence_layer.argilla import ArgillaEvaluator as ArgillaEvaluator
from assay.formats.intelligence_layer.argilla import AsyncEvaluator as AsyncEvaluator
from assay.formats.intelligence_layer.argilla import (
    InstructComparisonArgillaEvaluationLogic as InstructComparisonArgillaEvaluationLogic,
)
from assay.formats.intelligence_layer.argilla import RecordDataSequence as RecordDataSequence
from assay.formats.intelligence_layer.benchmarks import Benchmark as Benchmark
from assay.formats.intelligence_layer.benchmarks import BenchmarkRepository as BenchmarkRepository
from assay.formats.intelligence_layer.benchmarks import FileBenchmark as FileBenchmark
from assay.formats.intelligence_layer.benchmarks import FileBenchmarkRepository as FileBenchmarkRepository
from assay.formats.intelligence_layer.dataset_files import FileDatasetRepository as FileDatasetRepository
from assay.formats.intelligence_layer.dataset_files import HuggingFaceDatasetRepository as HuggingFaceDatasetRepository
from assay.formats.intelligence_layer.dataset_files import HuggingFaceRepository as HuggingFaceRepository
from assay.formats.intelligence_layer.dataset_files import MultipleChoiceInput as MultipleChoiceInput
from assay.formats.intelligence_layer.dataset_files import (
    SingleHuggingfaceDatasetRepository as SingleHuggingfaceDatasetRepository,
)
from assay.formats.intelligence_layer.datasets import DatasetRepository as DatasetRepository
from assay.formats.intelligence_layer.datasets import InMemoryDatasetRepository as InMemoryDatasetRepository
from assay.formats.intelligence_layer.domain import AggregatedEvaluation as AggregatedEvaluation
from assay.formats.intelligence_layer.domain import Dataset as Dataset
from assay.formats.intelligence_layer.domain import Evaluation as Evaluation
from assay.formats.intelligence_layer.domain import EvaluationFailed as EvaluationFailed
from assay.formats.intelligence_layer.domain import EvaluationOverview as EvaluationOverview
from assay.formats.intelligence_layer.domain import Example as Example
from assay.formats.intelligence_layer.domain import ExampleEvaluation as ExampleEvaluation
from assay.formats.intelligence_layer.domain import ExampleOutput as ExampleOutput
from assay.formats.intelligence_layer.domain import ExpectedOutput as ExpectedOutput
from assay.formats.intelligence_layer.domain import FailedExampleEvaluation as FailedExampleEvaluation
from assay.formats.intelligence_layer.domain import FailedExampleRun as FailedExampleRun
from assay.formats.intelligence_layer.domain import PartialEvaluationOverview as PartialEvaluationOverview
from assay.formats.intelligence_layer.domain import RecoveryData as RecoveryData
from assay.formats.intelligence_layer.domain import RunOverview as RunOverview
from assay.formats.intelligence_layer.domain import SuccessfulExampleOutput as SuccessfulExampleOutput
from assay.formats.intelligence_layer.elo import AggregatedComparison as AggregatedComparison
from assay.formats.intelligence_layer.elo import ComparisonEvaluation as ComparisonEvaluation
from assay.formats.intelligence_layer.elo import (
    ComparisonEvaluationAggregationLogic as ComparisonEvaluationAggregationLogic,
)
from assay.formats.intelligence_layer.elo import EloCalculator as EloCalculator
from assay.formats.intelligence_layer.elo import EloGradingInput as EloGradingInput
from assay.formats.intelligence_layer.elo import Matches as Matches
from assay.formats.intelligence_layer.elo import MatchesAggregationLogic as MatchesAggregationLogic
from assay.formats.intelligence_layer.elo import MatchOutcome as MatchOutcome
from assay.formats.intelligence_layer.elo import PlayerScore as PlayerScore
from assay.formats.intelligence_layer.elo import WinRateCalculator as WinRateCalculator
from assay.formats.intelligence_layer.evaluation_files import (
    AsyncFileEvaluationRepository as AsyncFileEvaluationRepository,
)
from assay.formats.intelligence_layer.evaluation_files import FileEvaluationRepository as FileEvaluationRepository
from assay.formats.intelligence_layer.evaluations import AsyncEvaluationRepository as AsyncEvaluationRepository
from assay.formats.intelligence_layer.evaluations import (
    AsyncInMemoryEvaluationRepository as AsyncInMemoryEvaluationRepository,
)
from assay.formats.intelligence_layer.evaluations import EvaluationRepository as EvaluationRepository
from assay.formats.intelligence_layer.evaluations import InMemoryEvaluationRepository as InMemoryEvaluationRepository
from assay.formats.intelligence_layer.evaluator import Evaluator as Evaluator
from assay.formats.intelligence_layer.graders import BleuGrader as BleuGrader
from assay.formats.intelligence_layer.graders import FScores as FScores
from assay.formats.intelligence_layer.graders import HighlightCoverageGrader as HighlightCoverageGrader
from assay.formats.intelligence_layer.graders import LanguageMatchesGrader as LanguageMatchesGrader
from assay.formats.intelligence_layer.graders import RougeGrader as RougeGrader
from assay.formats.intelligence_layer.incremental import EloEvaluationLogic as EloEvaluationLogic
from assay.formats.intelligence_layer.incremental import IncrementalEvaluationLogic as IncrementalEvaluationLogic
from assay.formats.intelligence_layer.incremental import IncrementalEvaluator as IncrementalEvaluator
from assay.formats.intelligence_layer.logics import AggregationLogic as AggregationLogic
from assay.formats.intelligence_layer.logics import EvaluationLogic as EvaluationLogic
from assay.formats.intelligence_layer.logics import SingleOutputEvaluationLogic as SingleOutputEvaluationLogic
from assay.formats.intelligence_layer.navigator import EvaluationLineage as EvaluationLineage
from assay.formats.intelligence_layer.navigator import RepositoryNavigator as RepositoryNavigator
from assay.formats.intelligence_layer.navigator import RunLineage as RunLineage
from assay.formats.intelligence_layer.navigator import (
    aggregation_overviews_to_pandas as aggregation_overviews_to_pandas,
)
from assay.formats.intelligence_layer.navigator import evaluation_lineages_to_pandas as evaluation_lineages_to_pandas
from assay.formats.intelligence_layer.navigator import run_lineages_to_pandas as run_lineages_to_pandas
from assay.formats.intelligence_layer.runner import Runner as Runner
from assay.formats.intelligence_layer.runs import FileRunRepository as FileRunRepository
from assay.formats.intelligence_layer.runs import InMemoryRunRepository as InMemoryRunRepository
from assay.formats.intelligence_layer.runs import RunRepository as RunRepository

__path__: list[str] = []  # its modules are those of the table in `__init__`

if not typing.TYPE_CHECKING:
    from assay.formats.intelligence_layer import not_offered as __getattr__  # noqa: F401
