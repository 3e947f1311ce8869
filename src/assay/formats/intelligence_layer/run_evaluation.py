"""`python -m assay.formats.intelligence_layer.evaluation.run_evaluation`: all three steps from a shell."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from assay.errors import AssayError, UserError
from assay.formats.intelligence_layer.aggregations import Aggregator, FileAggregationRepository
from assay.formats.intelligence_layer.dataset_files import FileDatasetRepository
from assay.formats.intelligence_layer.evaluations import FileEvaluationRepository
from assay.formats.intelligence_layer.evaluator import Evaluator
from assay.formats.intelligence_layer.models import EnvironmentClient
from assay.formats.intelligence_layer.runner import Runner
from assay.formats.intelligence_layer.runs import FileRunRepository


def function_from_string(fully_qualified_function_name: str) -> Callable[..., Any]:
    """The class or function of a dotted name; modules are looked for in the current folder as well."""
    module, _, name = fully_qualified_function_name.rpartition(".")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"{fully_qualified_function_name!r} cannot be imported: {error}",
            fix="write package.module.name",
        ) from None


def create_task(
    factory: Callable[..., Any], make_client: Callable[[], Any] = EnvironmentClient
) -> Any:
    """What the factory makes; one with a single parameter that must be given gets a client."""
    needed = [
        parameter.name
        for parameter in signature(factory).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if len(needed) > 1:
        raise UserError(
            f"the task {getattr(factory, '__name__', factory)!r} cannot be made: it needs {', '.join(needed)}",
            fix="name a function that returns the task, without arguments or with a client as its only one",
        )
    return factory(**{name: make_client() for name in needed})


def parse_args(cli_args: Sequence[str]) -> Namespace:
    parser = ArgumentParser(
        description="Run a task on a dataset, evaluate its outputs and aggregate the results."
    )
    parser.add_argument(
        "--eval-logic", required=True, help="dotted name of what makes the evaluation logic"
    )
    parser.add_argument(
        "--aggregation-logic", required=True, help="dotted name of what makes the aggregation logic"
    )
    parser.add_argument("--task", required=True, help="dotted name of what makes the task")
    parser.add_argument(
        "--client", help="dotted name of what makes the client of a task that takes one"
    )
    parser.add_argument(
        "--dataset-repository-path",
        required=True,
        type=Path,
        help="folder of the dataset repository",
    )
    parser.add_argument("--dataset-id", required=True, help="which of its datasets")
    parser.add_argument(
        "--target-dir",
        required=True,
        type=Path,
        help="folder for runs, evaluations and aggregations",
    )
    parser.add_argument("--description", required=True, help="what the evaluation is called")
    return parser.parse_args(cli_args[1:])


def main(cli_args: Sequence[str]) -> None:
    """`cli_args` are those of a process: the first is its name."""
    args = parse_args(cli_args)
    factory = function_from_string(args.task)
    eval_logic = function_from_string(args.eval_logic)()
    aggregation_logic = function_from_string(args.aggregation_logic)()
    datasets, runs = (
        FileDatasetRepository(args.dataset_repository_path),
        FileRunRepository(args.target_dir),
    )
    evaluations = FileEvaluationRepository(args.target_dir)
    client = function_from_string(args.client) if args.client else EnvironmentClient
    runner = Runner(
        create_task(factory, client), datasets, runs, getattr(factory, "__name__", args.task)
    )
    evaluator = Evaluator(datasets, runs, evaluations, args.description, eval_logic)
    aggregator = Aggregator(
        evaluations, FileAggregationRepository(args.target_dir), args.description, aggregation_logic
    )
    run = runner.run_dataset(args.dataset_id)
    evaluation = evaluator.evaluate_runs(run.id)
    print(aggregator.aggregate_evaluation(evaluation.id))


if __name__ == "__main__":
    try:
        main(sys.argv)
    except AssayError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
