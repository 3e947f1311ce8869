"""The evaluation library by the original's names, `intelligence_layer.evaluation`."""

from typing import TYPE_CHECKING

from assay.formats.intelligence_layer.names import names_of

if TYPE_CHECKING:
    from assay.formats.intelligence_layer.aggregations import *  # noqa: F403
    from assay.formats.intelligence_layer.datasets import *  # noqa: F403  # noqa: F403
    from assay.formats.intelligence_layer.domain import *  # noqa: F403
    from assay.formats.intelligence_layer.elo import *  # noqa: F403
    from assay.formats.intelligence_layer.evaluations import *  # noqa: F403
    from assay.formats.intelligence_layer.evaluator import *  # noqa: F403
    from assay.formats.intelligence_layer.logics import *  # noqa: F403
    from assay.formats.intelligence_layer.runner import *  # noqa: F403
    from assay.formats.intelligence_layer.runs import *  # noqa: F403

_HOMES = {
    "aggregations": (
        "AggregationRepository Aggregator FileAggregationRepository InMemoryAggregationRepository "
        "MeanAccumulator"
    ),
    "datasets": "DatasetRepository FileDatasetRepository InMemoryDatasetRepository",
    "domain": (
        "AggregatedEvaluation AggregationOverview Dataset Evaluation EvaluationFailed "
        "EvaluationOverview Example ExampleEvaluation ExampleOutput ExpectedOutput "
        "FailedExampleEvaluation FailedExampleRun RecoveryData RunOverview "
        "SuccessfulExampleOutput"
    ),
    "elo": (
        "AggregatedComparison ComparisonEvaluation ComparisonEvaluationAggregationLogic "
        "EloCalculator EloEvaluationLogic EloGradingInput IncrementalEvaluationLogic MatchOutcome "
        "Matches MatchesAggregationLogic PlayerScore WinRateCalculator"
    ),
    "evaluations": "EvaluationRepository FileEvaluationRepository InMemoryEvaluationRepository",
    "evaluator": "EvaluationLineage Evaluator IncrementalEvaluator",
    "logics": "AggregationLogic EvaluationLogic SingleOutputEvaluationLogic",
    "runner": "Runner",
    "runs": "FileRunRepository InMemoryRunRepository RunRepository",
}
__path__: list[str] = []  # its modules are those of the table in `__init__`
__getattr__, __dir__ = names_of(__name__, _HOMES)
