"""Assay from Python: what the command line does, by the same words.

    import assay
    result = assay.run("config.yaml", limit=100)
    print(assay.sheet(result))

`run`, `plan` and `validate` take a config's path or a dict; the other verbs take folders and files. Runner, Evaluator
and Aggregator are the three steps by themselves, over a store. Nothing is imported before it is used.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.analysis.compare.compare import compare
    from assay.analysis.compare.gate import gate
    from assay.analysis.diff.diff import diff
    from assay.analysis.judge.calibrate import calibrate
    from assay.analysis.judge.label import Labelling, label
    from assay.analysis.look.benchmarks import (
        list_benchmarks as benchmarks_list,
        pull_benchmarks as benchmarks_pull,
    )
    from assay.analysis.look.convert import convert
    from assay.analysis.look.dataset import dataset_add, dataset_ls, dataset_show, dataset_verify
    from assay.analysis.look.export import export
    from assay.analysis.look.ls import ls
    from assay.analysis.look.plugins import (
        list_plugins as list,  # noqa: A004
        show,
    )
    from assay.analysis.look.sql import frame, sql, sql as query
    from assay.analysis.look.status import status
    from assay.analysis.look.trace import trace
    from assay.analysis.rank.rank import rank
    from assay.analysis.verify.verify import verify
    from assay.config import Config
    from assay.config.resolved import stored_schema as schema
    from assay.engine.aggregate.aggregate import Aggregator
    from assay.engine.aggregate.measure import bind_metric
    from assay.engine.calls.stop import Stop
    from assay.engine.cluster.worker import work
    from assay.engine.evaluate.bind import bind_scorer
    from assay.engine.evaluate.evaluate import Evaluator
    from assay.engine.experiment.experiment import Experiment, Options, Result
    from assay.engine.experiment.imports.results import import_results as import_
    from assay.engine.experiment.locks import Locked
    from assay.engine.experiment.merging.merge import merge
    from assay.engine.experiment.plan import Plan
    from assay.engine.experiment.trust import trust
    from assay.engine.place import evaluation
    from assay.engine.run.run import Runner
    from assay.examples import init
    from assay.models.local import local_models as local_list, pull as local_pull
    from assay.reading import Paths
    from assay.registry import dataset, metric, model, prompt, reader, scorer, task, writer
    from assay.reports.sheet import Sheet, save, sheet
    from assay.server.process import mock_server
    from assay.store.repositories import (
        AggregationRepository,
        DatasetRepository,
        EvaluationRepository,
        RunRepository,
    )
    from assay.store.stores import FlatStore, FolderStore, MemoryStore, open_store
    from assay.tasks.function import function as function_task
    from assay.tasks.prompt import prompt as prompt_task
    from assay.viewer.report import report
    from assay.viewer.server import view

    Source = str | Path | Mapping[str, Any] | Config

# fmt: off
__all__ = [
    "AggregationRepository", "Aggregator", "DatasetRepository", "EvaluationRepository", "Evaluator", "Experiment",
    "FlatStore", "FolderStore", "Labelling", "Locked", "MemoryStore", "Options", "Plan", "Result",
    "RunRepository", "Runner", "Sheet", "aggregate", "benchmarks_list", "benchmarks_pull", "bind_metric",
    "bind_scorer", "calibrate", "compare", "convert", "dataset", "dataset_add", "dataset_ls", "dataset_show",
    "dataset_verify", "diff", "evaluate", "evaluation", "experiment", "export", "finish", "frame", "function_task",
    "gate", "import_", "init", "label", "list", "local_list", "local_pull", "lock", "ls", "merge",
    "metric", "mock_server", "model", "open_store", "plan", "prompt", "prompt_task", "query", "rank", "reader",
    "report", "run", "run_async", "save", "schema", "scorer", "sheet", "show", "sql", "status", "task", "trace",
    "trust", "validate", "verify", "view", "work", "writer",
]
# fmt: on

# Where each name is; `there=here` where it is called otherwise there. Others than those of __all__ serve the CLI.
_HOMES = {
    "analysis.compare.compare": "compare",
    "analysis.compare.gate": "gate",
    "analysis.diff.diff": "diff",
    "analysis.judge.calibrate": "calibrate",
    "analysis.judge.label": "Labelling label",
    "analysis.look.benchmarks": "list_benchmarks=benchmarks_list pull_benchmarks=benchmarks_pull",
    "analysis.look.convert": "convert",
    "analysis.look.dataset": "dataset_add dataset_ls dataset_show dataset_verify",
    "analysis.look.export": "export",
    "analysis.look.ls": "ls",
    "analysis.look.plugins": "kinds list_plugins=list show",
    "analysis.look.sql": "ask frame sql sql=query",
    "analysis.look.status": "status watches=status_watches",
    "analysis.look.trace": "trace",
    "analysis.rank.rank": "rank",
    "analysis.verify.verify": "verify",
    "config": "parse_override",
    "config.resolved": "stored_schema=schema",
    "engine.aggregate.aggregate": "Aggregator",
    "engine.aggregate.measure": "bind_metric",
    "engine.calls.progress": "Progress=new_progress",
    "engine.cluster.engines.scripts": "script=worker_script",
    "engine.place": "evaluation shard_of",
    "engine.cluster.worker": "work",
    "engine.evaluate.bind": "bind_scorer",
    "engine.evaluate.evaluate": "Evaluator",
    "engine.experiment.experiment": "Experiment Options Result",
    "engine.experiment.imports.results": "import_results=import_",
    "engine.experiment.locks": "Locked",
    "engine.experiment.merging.merge": "merge",
    "engine.experiment.plan": "Plan",
    "engine.experiment.trust": "trust",
    "engine.run.run": "Runner",
    "examples": "EXAMPLES=examples_folder examples init",
    "models.local": "is_missing=local_is_missing local_models=local_list pull=local_pull",
    "registry": "dataset metric model nearest prompt reader scorer task writer",
    "reports.junit": "junit",
    "reports.outputs": "commands=output_commands output_schema",
    "reports.progress": "emit for_programs program_output watch",
    "reports.sheet": "Sheet checked_suffix listing save sheet",
    "reports.documents": "csv_lines",
    "server.process": "mock_server",
    "store.repositories": "AggregationRepository DatasetRepository EvaluationRepository RunRepository",
    "store.stores": "FlatStore FolderStore MemoryStore open_store",
    "store.ledger": "write_named",
    "tasks.function": "function=function_task",
    "tasks.prompt": "prompt=prompt_task",
    "text.plain": "plain plain_json",
    "viewer.report": "report",
    "viewer.server": "view",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in _HOMES.items():
        for entry in names.split():
            there, _, here = entry.partition("=")
            if name == (here or there):
                value = getattr(import_module(f"assay.{module}"), there)
                return globals().setdefault(name, value)
    raise AttributeError(f"module 'assay.api' has no attribute {name!r}")


def experiment(
    source: "Source | None" = None,
    *,
    dataset: Any = None,
    models: Any = None,
    prompts: Any = None,
    scorers: Any = None,
    metrics: Any = None,
    samples: int | None = None,
    name: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    **options: Any,
) -> "Experiment":
    """A config bound to its folder, not yet run, with the options of `assay run` (see Options,
    `engine.place`).

    Without a config the arguments are one: rows, a function or a path as the dataset; functions, Model objects or
    `provider:name` as models; functions, names or mappings as scorers and metrics. Beside a config they replace what
    it says; only models that are all texts choose among the config's, as `-m` does.
    """
    from assay.config import Config, has_objects, load
    from assay.engine.place import run_of
    from assay.errors import UserError

    if source is not None and models is not None and not has_objects(models):
        options["models"] = [models] if isinstance(models, str) else models
        models = None
    arguments = _with_objects(
        None,
        dataset=dataset,
        models=models,
        prompts=prompts,
        scorers=scorers,
        metrics=metrics,
        samples=samples,
        name=name,
    )
    if isinstance(source, Config) and arguments:
        what = f"a Config is finished: {min(arguments)!r} cannot be added"
        raise UserError(what, fix="pass its path or its dict")
    if not isinstance(source, Config):
        named = {"name": "notebook"} if source is None else source
        chosen = options.get("models") or ()
        source = load(named, overrides=overrides or {}, arguments=arguments, models=chosen)
    return run_of(source, options)


def run(source: "Source | None" = None, **options: Any) -> "Result":
    """Run a config, or what the arguments of `experiment` describe. The same call resumes where it
    stopped."""
    from assay.threads import run_blocking

    return run_blocking(lambda: run_async(source, **options))


async def run_async(source: "Source | None" = None, **options: Any) -> "Result":
    """`run`, to be awaited."""
    return await finish(experiment(source, **options))


async def finish(step: "Experiment", stop: "Stop | None" = None) -> "Result":
    """Run an experiment, or an evaluation, that is bound already; then write the `outputs:` of its
    config."""
    from asyncio import to_thread

    result = await step.run(stop)
    # or else other processes are still at work
    whole = result.run or result.evaluation or result.metrics
    if step.config.outputs and result.folder and whole:
        from assay.analysis.look.export import write_outputs

        for note in await to_thread(write_outputs, step.config, result.folder):
            step.progress.note(note)  # the result's notes are the progress's
    return result


def lock(
    source: "Source | None" = None, *, output: str | Path | None = None, **options: Any
) -> "Locked":
    """Write what determines the numbers of a config to `output`, by default beside it; arguments as
    those of `experiment`. `run(config, locked=True)` refuses anything else."""
    from assay.engine.experiment.locks import lock

    return lock(experiment(source, **options), output)


def plan(source: "Source | None" = None, **options: Any) -> "Plan":
    """Tell how many cells a config has, how many have rows, how many would run; arguments as those
    of `experiment`."""
    from assay.engine.experiment import plan

    return plan.plan(experiment(source, **options))


def validate(source: "Source | None" = None, **options: Any) -> Sequence[str]:
    """All that can be known before spending: raises a ConfigError with all problems, returns
    warnings."""
    return experiment(source, **options).validate()


def evaluate(
    paths: "Paths",
    config: "Source | None" = None,
    *,
    scorers: Any = None,
    metrics: Any = None,
    overrides: Mapping[str, Any] | None = None,
    **options: Any,
) -> "Result":
    """Score responses, then measure. Options: `output_dir`; `retry_errors`; `budget`, how many
    matches are played; `workers`, `shard` and `on`, by whom."""
    from assay.engine.place import evaluation
    from assay.threads import run_blocking

    changes = _with_objects(overrides, evaluation_methods=scorers, metrics=metrics)
    step = evaluation(paths, config, overrides=changes, **options)
    return run_blocking(lambda: finish(step))


def aggregate(
    paths: "Paths",
    config: "Source | None" = None,
    *,
    metrics: Any = None,
    output_dir: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    on: str | None = None,
    **options: Any,
) -> "Result":
    """Compute metrics from the evaluations of folders or files together; `metrics` replace the
    config's. Options are `retry_errors` and `workers`."""
    from assay.engine.place import aggregation
    from assay.threads import run_blocking

    options["overrides"] = _with_objects(overrides, metrics=metrics)
    step = aggregation(paths, config, on, output_dir=output_dir, **options)
    return run_blocking(lambda: finish(step))


def _with_objects(overrides: Mapping[str, Any] | None, **arguments: Any) -> dict[str, Any]:
    given = {key: value for key, value in arguments.items() if value is not None}
    return {**given, **(overrides or {})}
