"""Every public name of the original's evaluation package, under its module path, with its signature.

The list was written from the specification of the original. What follows a `|` is an addition of ours, always with
a default that keeps the original's behaviour.
"""

import importlib
import inspect
import re
import subprocess
import sys
from typing import Any, TypeVar

import pytest

from assay.formats.intelligence_layer.names import MODULES

ROOT = "assay.formats.intelligence_layer"

NAMES = """
core
  Input
  Output
  Task()
  Task.do_run(input, task_span)
  Task.run(input, tracer)
  Task.run_concurrently(inputs, tracer, concurrency_limit=20)
  utc_now()
  TaskSpan.record_output(output)
  Span.log(message, value, timestamp=None)
  Span.end(timestamp=None)
  Tracer.span(name, timestamp=None)
  Tracer.task_span(task_name, input, timestamp=None)
  Tracer.export_for_viewing()
  InMemoryTracer()
  NoOpTracer(context=None)
  ExportedSpan
  ErrorValue
connectors
  JsonSerializable
  SerializableDict
evaluation.dataset.domain
  ExpectedOutput
  Example(input, expected_output, id=…, metadata=None)
  Dataset(id=…, name, labels=…, metadata=…)
evaluation.dataset.dataset_repository
  DatasetRepository()
  DatasetRepository.create_dataset(examples, dataset_name, id=None, labels=None, metadata=None)
  DatasetRepository.delete_dataset(dataset_id)
  DatasetRepository.dataset(dataset_id)
  DatasetRepository.datasets()
  DatasetRepository.dataset_ids()
  DatasetRepository.example(dataset_id, example_id, input_type, expected_output_type)
  DatasetRepository.examples(dataset_id, input_type, expected_output_type, examples_to_skip=None)
evaluation.dataset.in_memory_dataset_repository
  InMemoryDatasetRepository()
evaluation.dataset.file_dataset_repository
  FileDatasetRepository(root_directory)
evaluation.run.domain
  ExampleOutput(run_id, example_id, output)
  SuccessfulExampleOutput(run_id, example_id, output)
  FailedExampleRun(error_message)
  FailedExampleRun.from_exception(exception)
  RunOverview(dataset_id, id, start, end, failed_example_count, successful_example_count, description, labels=…, \
metadata=…)
evaluation.run.run_repository
  RecoveryData(run_id, finished_examples=…)
  RunRepository()
  RunRepository.store_run_overview(overview)
  RunRepository.run_overview(run_id)
  RunRepository.run_overviews()
  RunRepository.run_overview_ids()
  RunRepository.store_example_output(example_output)
  RunRepository.store_example_output_parallel(tmp_hash, example_output)
  RunRepository.example_output(run_id, example_id, output_type)
  RunRepository.example_outputs(run_id, output_type)
  RunRepository.example_output_ids(run_id)
  RunRepository.successful_example_outputs(run_id, output_type)
  RunRepository.failed_example_outputs(run_id, output_type)
  RunRepository.example_tracer(run_id, example_id)
  RunRepository.create_tracer_for_example(run_id, example_id)
  RunRepository.create_temporary_run_data(tmp_hash, run_id)
  RunRepository.temp_store_finished_example(tmp_hash, example_id)
  RunRepository.finished_examples(tmp_hash)
  RunRepository.delete_temporary_run_data(tmp_hash)
evaluation.run.in_memory_run_repository
  InMemoryRunRepository()
evaluation.run.file_run_repository
  FileRunRepository(root_directory)
evaluation.run.runner
  Runner(task, dataset_repository, run_repository, description)
  Runner.input_type()
  Runner.output_type()
  Runner.run_dataset(dataset_id, tracer=None, num_examples=None, abort_on_error=False, max_workers=10, \
description=None, trace_examples_individually=True, labels=None, metadata=None, resume_from_recovery_data=False)
  Runner.run_is_already_computed(metadata | dataset_id=None)
evaluation.evaluation.domain
  Evaluation
  FailedExampleEvaluation(error_message)
  FailedExampleEvaluation.from_exception(exception)
  ExampleEvaluation(evaluation_id, example_id, result)
  EvaluationOverview(run_overviews, id, start_date, end_date, successful_evaluation_count, failed_evaluation_count, \
description, labels=…, metadata=… | skipped_evaluation_count=None)
  EvaluationFailed(evaluation_id, failed_count)
evaluation.evaluation.evaluation_repository
  EvaluationRepository()
  EvaluationRepository.initialize_evaluation()
  EvaluationRepository.store_evaluation_overview(evaluation_overview)
  EvaluationRepository.evaluation_overview(evaluation_id)
  EvaluationRepository.evaluation_overviews()
  EvaluationRepository.evaluation_overview_ids()
  EvaluationRepository.store_example_evaluation(example_evaluation)
  EvaluationRepository.example_evaluation(evaluation_id, example_id, evaluation_type)
  EvaluationRepository.example_evaluations(evaluation_id, evaluation_type)
  EvaluationRepository.successful_example_evaluations(evaluation_id, evaluation_type)
  EvaluationRepository.failed_example_evaluations(evaluation_id, evaluation_type)
evaluation.evaluation.in_memory_evaluation_repository
  InMemoryEvaluationRepository()
evaluation.evaluation.file_evaluation_repository
  FileEvaluationRepository(root_directory)
evaluation.evaluation.evaluator.evaluator
  EvaluationLogic()
  EvaluationLogic.do_evaluate(example, *output)
  SingleOutputEvaluationLogic()
  SingleOutputEvaluationLogic.do_evaluate(example, *output)
  SingleOutputEvaluationLogic.do_evaluate_single_output(example, output)
  Evaluator(dataset_repository, run_repository, evaluation_repository, description, evaluation_logic \
| max_workers=10)
  Evaluator.input_type()
  Evaluator.output_type()
  Evaluator.expected_output_type()
  Evaluator.evaluation_type()
  Evaluator.evaluate_runs(*run_ids, num_examples=None, abort_on_error=False, skip_example_on_any_failure=True, \
description=None, labels=None, metadata=None | items='refuse', \
retry_errors=False)
  Evaluator.evaluate(example, evaluation_id, abort_on_error, *example_outputs)
  Evaluator.evaluation_lineages(evaluation_id)
  EvaluationLineage(example, outputs, evaluation)
evaluation.evaluation.evaluator.incremental_evaluator
  IncrementalEvaluationLogic()
  IncrementalEvaluationLogic.set_previous_run_output_ids(previous_run_output_ids)
  IncrementalEvaluationLogic.do_evaluate(example, *output)
  IncrementalEvaluationLogic.do_incremental_evaluate(example, outputs, already_evaluated_outputs)
  IncrementalEvaluator(dataset_repository, run_repository, evaluation_repository, description, \
incremental_evaluation_logic | max_workers=10)
  IncrementalEvaluator.evaluate_additional_runs(*run_ids, previous_evaluation_ids=None, num_examples=None, \
abort_on_error=False, labels=None, metadata=None | description=None, skip_example_on_any_failure=True, items='refuse', \
retry_errors=False)
  IncrementalEvaluator.evaluate_runs(*run_ids, num_examples=None, abort_on_error=False, \
skip_example_on_any_failure=True, description=None, labels=None, metadata=None | items='refuse', \
retry_errors=False)
  MatchOutcome
  MatchOutcome.payoff
  MatchOutcome.from_rank_literal(rank)
  ComparisonEvaluation(first_player, second_player, outcome)
  Matches(comparison_evaluations)
  EloGradingInput(instruction, first_completion, second_completion)
  EloEvaluationLogic()
  EloEvaluationLogic.grade(first, second, example)
evaluation.aggregation.accumulator
  MeanAccumulator()
  MeanAccumulator.add(value)
  MeanAccumulator.extract()
  MeanAccumulator.standard_deviation()
  MeanAccumulator.standard_error()
evaluation.aggregation.domain
  AggregatedEvaluation
  AggregationOverview(evaluation_overviews, id, start, end, successful_evaluation_count, \
crashed_during_evaluation_count, description, statistics, labels=…, metadata=…)
  AggregationOverview.run_ids
  AggregationOverview.run_overviews()
  AggregationOverview.failed_evaluation_count
  AggregationOverview.raise_on_evaluation_failure()
evaluation.aggregation.aggregator
  AggregationLogic()
  AggregationLogic.aggregate(evaluations)
  Aggregator(evaluation_repository, aggregation_repository, description, aggregation_logic)
  Aggregator.evaluation_type()
  Aggregator.aggregated_evaluation_type()
  Aggregator.aggregate_evaluation(*eval_ids, description=None, labels=None, metadata=None)
evaluation.aggregation.aggregation_repository
  AggregationRepository()
  AggregationRepository.store_aggregation_overview(aggregation_overview)
  AggregationRepository.aggregation_overview(aggregation_id, aggregation_type)
  AggregationRepository.aggregation_overviews(aggregation_type)
  AggregationRepository.aggregation_overview_ids()
evaluation.aggregation.in_memory_aggregation_repository
  InMemoryAggregationRepository()
evaluation.aggregation.file_aggregation_repository
  FileAggregationRepository(root_directory)
evaluation.aggregation.elo_aggregation
  PlayerScore(elo, elo_standard_error, win_rate, num_matches)
  AggregatedComparison(scores)
  EloCalculator(players, k_start=20.0, k_floor=10.0, decay_factor=0.0005)
  EloCalculator.calculate(matches)
  WinRateCalculator(players)
  WinRateCalculator.calculate(matches)
  ComparisonEvaluationAggregationLogic( | players=None, seed=0)
  ComparisonEvaluationAggregationLogic.aggregate(evaluations)
  MatchesAggregationLogic( | players=None, seed=0)
  MatchesAggregationLogic.aggregate(evaluations)
"""


def listed() -> list[tuple[str, str]]:
    """(module, entry) of every line."""
    found: list[tuple[str, str]] = []
    module = ""
    for line in NAMES.strip().splitlines():
        if line.startswith(" "):
            found.append((module, line.strip()))
        else:
            module = line
    return found


def signature(thing: Any, bound: bool) -> str:
    """The parameters as the list writes them: no annotations, no marks for keywords, `…` for a made default."""
    parameters = list(inspect.signature(thing).parameters.values())[0 if bound else 1 :]
    shown: list[str] = []
    for parameter in parameters:
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = parameter.default
        made = (
            ""
            if default is parameter.empty
            else f"={'…' if 'factory' in repr(default) else repr(default)}"
        )
        shown.append(f"{stars}{parameter.name}{made}")
    return ", ".join(shown)


@pytest.mark.parametrize(
    ("module", "entry"), listed(), ids=lambda part: str(part).partition("(")[0]
)
def test_the_name_is_there_with_its_signature(module: str, entry: str) -> None:
    path, _, parameters = entry.partition("(")
    owner: Any = importlib.import_module(f"{ROOT}.{module}")
    *classes, name = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    found = getattr(owner, name)
    if "(" not in entry:
        return
    static = inspect.getattr_static(owner, name)
    bound = inspect.isclass(found) or isinstance(static, staticmethod) or not classes
    wanted = parameters.removesuffix(")").replace(" | ", ", ").removeprefix(", ").removeprefix("| ")
    assert signature(found, bound) == wanted


def test_the_list_has_every_public_name_and_the_package_every_listed_one() -> None:
    package = importlib.import_module(f"{ROOT}.evaluation")
    public = {
        name
        for name in dir(package)
        if name[0] != "_" and not inspect.ismodule(getattr(package, name))
    }
    names = {
        entry.partition("(")[0] for module, entry in listed() if module.startswith("evaluation.")
    }
    top_level = {name for name in names if "." not in name}
    assert public == top_level


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("connectors", "StudioClient"),
        ("connectors.studio.studio", "StudioClient"),
        ("evaluation", "StudioBenchmark"),
        ("evaluation", "StudioBenchmarkRepository"),
        ("evaluation", "StudioDatasetRepository"),
        ("evaluation.benchmark.studio_benchmark", "StudioBenchmark"),
        ("evaluation.benchmark.studio_benchmark", "StudioBenchmarkRepository"),
        ("evaluation.dataset.studio_dataset_repository", "StudioDatasetRepository"),
    ],
)
def test_a_name_that_is_not_offered_has_its_reason(module: str, name: str) -> None:
    with pytest.raises(ImportError, match=f"{name} .*PhariaStudio is a closed service") as raised:
        exec(f"from {ROOT}.{module} import {name}", {})
    assert "file repositories" in str(raised.value)


@pytest.mark.parametrize(
    "module",
    [
        "core.chunk",
        "core.prompt_template",
        "connectors.document_index",
        "evaluation.run_evaluation",
        "examples",
        "learning",
    ],
)
def test_a_module_that_is_not_offered_has_its_reason(module: str) -> None:
    with pytest.raises(ImportError, match=f"{module} of the Intelligence Layer is not offered: .+"):
        importlib.import_module(f"{ROOT}.{module}")


@pytest.mark.parametrize(
    ("module", "name", "hint"),
    [
        ("core", "Llama3InstructModel", "models are Assay's own"),
        ("core", "PromptTemplate", "Jinja templates"),
        ("core", "TextChunk", "write the task itself"),
        ("core.model", "Pharia1ChatModel", "models are Assay's own"),
        ("connectors", "LimitedConcurrencyClient", "models are Assay's own"),
        ("connectors", "DataClient", "closed service"),
        ("connectors.studio.studio", "BenchmarkLineage", "closed service"),
        ("evaluation", "Evaluatr", "did you mean Evaluator?"),
        ("evaluation.run.runner", "Runer", "did you mean Runner?"),
        ("core", "InMemoryTrace", "did you mean InMemoryTracer?"),
        ("connectors", "SerializableDct", "did you mean SerializableDict?"),
        ("connectors", "AlephAlphaClientProtocol", "models are Assay's own"),
        ("connectors.limited_concurrency_client", "AlephAlphaClientProtocol", "models are Assay's"),
        ("connectors.argilla.argilla_client", "ArgillaClient", "assay view"),
        ("evaluation", "ArgillaEvaluator", "assay judge calibrate --labels"),
        ("evaluation", "AsyncFileEvaluationRepository", "assay view"),
        ("evaluation.benchmark.benchmark", "Benchmark", "one after another"),
        ("evaluation", "FileBenchmarkRepository", "one after another"),
        ("evaluation.benchmark.trace_information", "extract_latency_from_trace", "assay compare"),
        ("core", "FileTracer", "use InMemoryTracer"),
        ("core.tracer.open_telemetry_tracer", "OpenTelemetryTracer", "assay trace"),
        ("core.tracer.composite_tracer", "CompositeTracer", "use InMemoryTracer"),
        ("core", "JsonSerializer", "dataclasses.asdict"),
        ("evaluation", "HuggingFaceDatasetRepository", "use the file repositories"),
        (
            "evaluation.infrastructure.hugging_face_repository",
            "HuggingFaceRepository",
            "use the file repositories",
        ),
        ("evaluation.evaluation.graders", "BleuGrader", "scorer-reference"),
        ("evaluation", "RepositoryNavigator", "Evaluator.evaluation_lineages"),
        (
            "evaluation.infrastructure.repository_navigator",
            "run_lineages_to_pandas",
            "assay export --table samples",
        ),
    ],
)
def test_a_missing_name_has_a_hint(module: str, name: str, hint: str) -> None:
    with pytest.raises(ImportError, match=f"{name} .*{re.escape(hint)}"):
        exec(f"from {ROOT}.{module} import {name}", {})


@pytest.mark.parametrize("module", ["evaluation.runs", "core.tracer.nothing", "nothing"])
def test_what_the_original_never_had_is_not_found(module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=module.rpartition(".")[2]):
        importlib.import_module(f"{ROOT}.{module}")


def test_every_row_of_the_table_serves_names_once() -> None:
    """A deep path and the flat one give one object; a module without names is a folder of the original."""
    for module, homes in MODULES.items():
        served = importlib.import_module(f"{ROOT}.{module}")
        assert bool(homes) == bool(dir(served)), module
    deep = importlib.import_module(f"{ROOT}.evaluation.run.file_run_repository")
    flat = importlib.import_module(f"{ROOT}.evaluation")
    assert deep.FileRunRepository is flat.FileRunRepository
    assert not hasattr(deep, "nothing")
    scope: dict[str, Any] = {}
    exec(f"from {ROOT}.evaluation.aggregation.accumulator import *", scope)
    assert scope["MeanAccumulator"] is flat.MeanAccumulator


def test_type_variables_are_type_variables() -> None:
    package = importlib.import_module(f"{ROOT}.evaluation")
    core = importlib.import_module(f"{ROOT}.core")
    for variable in (
        core.Input,
        core.Output,
        package.ExpectedOutput,
        package.Evaluation,
        package.AggregatedEvaluation,
    ):
        assert isinstance(variable, TypeVar)


def test_the_library_needs_none_of_its_extras() -> None:
    """Imported and used without pydantic and what others install."""
    code = """
import sys
for name in ("pydantic", "pandas", "fsspec", "huggingface_hub", "datasets", "scipy", "rich"):
    sys.modules[name] = None
from assay.formats.intelligence_layer.core import Task, TaskSpan
from assay.formats.intelligence_layer.evaluation import *
class Echo(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        return input
class Same(SingleOutputEvaluationLogic[str, str, str, bool]):
    def do_evaluate_single_output(self, example, output):
        return output == example.expected_output
class Share(AggregationLogic[bool, float]):
    def aggregate(self, evaluations):
        return sum(evaluations) / 2
datasets, runs = InMemoryDatasetRepository(), InMemoryRunRepository()
evaluations, aggregations = InMemoryEvaluationRepository(), InMemoryAggregationRepository()
examples = [Example(input="a", expected_output="a"), Example(input="b", expected_output="")]
dataset = datasets.create_dataset(examples, "d")
run = Runner(Echo(), datasets, runs, "").run_dataset(dataset.id)
evaluation = Evaluator(datasets, runs, evaluations, "", Same()).evaluate_runs(run.id)
print(Aggregator(evaluations, aggregations, "", Share()).aggregate_evaluation(evaluation.id).statistics)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "0.5\n"), done.stderr
