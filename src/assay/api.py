"""Assay from Python: what the command line does, by the same words.

    import assay
    result = assay.run("config.yaml", limit=100)
    print(assay.sheet(result))

`run`, `plan` and `validate` take a config's path or a dict; the other verbs take folders and files. Runner, Evaluator
and Aggregator are the three steps by themselves, over a FlatStore (an experiment folder), a FolderStore (a repository)
or a MemoryStore. Nothing is imported before it is used: the command line's start-up depends on it.
"""

# pyright: reportUnusedImport=false
# ruff: noqa: F401 - what is imported for type checkers is what this module offers
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.analysis.compare.compare import compare
    from assay.analysis.compare.gate import gate
    from assay.analysis.judge.calibrate import calibrate
    from assay.analysis.judge.label import Labelling, label
    from assay.analysis.look.dataset import dataset_add, dataset_ls, dataset_show, dataset_verify
    from assay.analysis.look.export import export
    from assay.analysis.look.ls import ls
    from assay.analysis.look.plugins import list_plugins as list  # noqa: A004
    from assay.analysis.look.plugins import show
    from assay.analysis.look.sql import frame, sql
    from assay.analysis.look.sql import sql as query
    from assay.analysis.look.trace import trace
    from assay.analysis.rank.rank import rank
    from assay.config import Config
    from assay.engine.aggregate.aggregate import Aggregator
    from assay.engine.aggregate.measure import bind_metric
    from assay.engine.calls.stop import Stop
    from assay.engine.evaluate.bind import bind_scorer
    from assay.engine.evaluate.evaluate import Evaluator
    from assay.engine.experiment.experiment import Experiment, Options, Result
    from assay.engine.experiment.import_rows import import_results as import_
    from assay.engine.experiment.plan import Plan
    from assay.engine.run.run import Runner
    from assay.examples import init
    from assay.registry import dataset, metric, model, prompt, reader, scorer, task, writer
    from assay.reports.sheet import Sheet, save, sheet
    from assay.store.repositories import AggregationRepository, DatasetRepository, EvaluationRepository, RunRepository
    from assay.store.stores import FlatStore, FolderStore, MemoryStore, open_store
    from assay.tasks.function import function as function_task
    from assay.tasks.prompt import prompt as prompt_task

    Source = str | Path | Mapping[str, Any] | Config

# Where each name is; `there=here` where it is called otherwise there.
_HOMES = {
    "analysis.compare.compare": "compare",
    "analysis.compare.gate": "gate",
    "analysis.judge.calibrate": "calibrate",
    "analysis.judge.label": "Labelling label",
    "analysis.look.dataset": "dataset_add dataset_ls dataset_show dataset_verify",
    "analysis.look.export": "export",
    "analysis.look.ls": "ls",
    "analysis.look.plugins": "kinds list_plugins=list show",
    "analysis.look.sql": "ask frame sql sql=query",
    "analysis.look.trace": "trace",
    "analysis.rank.rank": "rank",
    "config": "parse_override",
    "engine.aggregate.aggregate": "Aggregator",
    "engine.aggregate.measure": "bind_metric",
    "engine.evaluate.bind": "bind_scorer",
    "engine.evaluate.evaluate": "Evaluator",
    "engine.experiment.experiment": "Experiment Options Result",
    "engine.experiment.import_rows": "import_results=import_",
    "engine.experiment.plan": "Plan",
    "engine.run.run": "Runner",
    "examples": "examples init",
    "registry": "dataset metric model nearest prompt reader scorer task writer",
    "reports": "label_screen",
    "reports.junit": "junit",
    "reports.progress": "emit watch",
    "reports.sheet": "Sheet checked_suffix save sheet",
    "reports.writers.csv": "csv_lines",
    "store.files": "write_file",
    "store.repositories": "AggregationRepository DatasetRepository EvaluationRepository RunRepository",
    "store.stores": "FlatStore FolderStore MemoryStore open_store",
    "tasks.function": "function=function_task",
    "tasks.prompt": "prompt=prompt_task",
    "text.plain": "plain",
}
_FOR_COMMANDS = {  # not public: they serve the command line
    *("ask", "checked_suffix", "csv_lines", "emit", "examples", "junit", "kinds", "label_screen", "nearest"),
    *("parse_override", "plain", "watch", "write_file"),
}


def _names() -> dict[str, tuple[str, str]]:
    """By name, the module that has it, and what it is called there."""
    entries = [(module, *entry.partition("=")) for module, names in _HOMES.items() for entry in names.split()]
    return {here or there: (f"assay.{module}", there) for module, there, _, here in entries}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _names():
        raise AttributeError(f"module 'assay.api' has no attribute {name!r}")
    module, there = _names()[name]
    globals()[name] = value = getattr(import_module(module), there, None) or import_module(f"{module}.{there}")
    return value


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
    """A config bound to its folder, not yet run, with the options of `assay run` (see Options).

    Without a config the arguments are one: rows, a function or a path as the dataset; functions, Model objects or
    `type:name[@url]` as models; functions, names or mappings as scorers and metrics. Beside a config they replace what
    it says; only models that are all texts choose among the config's, as `-m` does.
    """
    from assay.config import Config, has_objects, load
    from assay.engine.experiment.experiment import Experiment, Options
    from assay.errors import UserError

    if source is not None and models is not None and not has_objects(models):
        options["models"] = [models] if isinstance(models, str) else models
        models = None
    objects = {"dataset": dataset, "models": models, "prompts": prompts, "scorers": scorers, "metrics": metrics}
    given = {**objects, "samples": samples, "name": name}
    arguments = {key: value for key, value in given.items() if value is not None}
    if source is None:
        source = {"name": "notebook"}
    elif isinstance(source, Config) and arguments:
        raise UserError(f"a Config is finished: {min(arguments)!r} cannot be added", fix="pass its path or its dict")
    config = source if isinstance(source, Config) else load(source, overrides=overrides or {}, arguments=arguments)
    return Experiment(config, Options(**options))


def run(source: "Source | None" = None, **options: Any) -> "Result":
    """Run a config, or what the arguments of `experiment` describe, all its steps; in a notebook too. The same call
    resumes where an earlier one stopped."""
    from assay.threads import run_blocking

    return run_blocking(lambda: run_async(source, **options))


async def run_async(source: "Source | None" = None, **options: Any) -> "Result":
    """`run`, to be awaited."""
    return await finish(experiment(source, **options))


async def finish(step: "Experiment", stop: "Stop | None" = None) -> "Result":
    """Run an experiment, or an evaluation, that is bound already; then write the `outputs:` of its config."""
    from asyncio import to_thread

    result = await step.run(stop)
    if step.config.outputs and result.folder:
        from assay.analysis.look.export import write_outputs

        for note in await to_thread(write_outputs, step.config, result.folder):
            step.progress.note(note)  # the result's notes are the progress's
    return result


def plan(source: "Source | None" = None, **options: Any) -> "Plan":
    """How many cells a config has, how many have rows, how many would run; nothing is written or spent. Arguments as
    those of `experiment`."""
    from assay.engine.experiment import plan

    return plan.plan(experiment(source, **options))


def validate(source: "Source | None" = None, **options: Any) -> Sequence[str]:
    """Everything that can be known before spending: raises a ConfigError with all problems, returns warnings. Arguments
    as those of `experiment`."""
    return experiment(source, **options).validate()


def evaluation(
    paths: str | Path | Sequence[str | Path], config: "Source | None" = None, **options: Any
) -> "Experiment":
    """The responses of folders or files bound to a config's scorers, not yet scored; options as those of `evaluate`."""
    from assay.engine.experiment.evaluate import evaluate

    return evaluate(paths, config, **options)


def evaluate(
    paths: str | Path | Sequence[str | Path],
    config: "Source | None" = None,
    *,
    scorers: Any = None,
    metrics: Any = None,
    overrides: Mapping[str, Any] | None = None,
    **options: Any,
) -> "Result":
    """Score the responses of folders or files, again or for the first time, and compute the metrics; `scorers` and
    `metrics` (functions, names or mappings) replace the config's. With a `budget` only this many matches are played,
    those that tell most about who is better. Further options: `output_dir`, `retry_errors`."""
    from assay.threads import run_blocking

    overrides = _with_objects(overrides, evaluation_methods=scorers, metrics=metrics)
    return run_blocking(lambda: finish(evaluation(paths, config, overrides=overrides, **options)))


def aggregate(
    paths: str | Path | Sequence[str | Path],
    config: "Source | None" = None,
    *,
    metrics: Any = None,
    overrides: Mapping[str, Any] | None = None,
    **options: Any,
) -> "Result":
    """Compute metrics from the evaluations of folders or files, several taken together; `metrics` (functions, names or
    mappings) replace the config's. Further options: `output_dir`, `retry_errors`."""
    from assay.engine.experiment.aggregate import aggregate
    from assay.threads import run_blocking

    step = aggregate(paths, config, overrides=_with_objects(overrides, metrics=metrics), **options)
    return run_blocking(lambda: finish(step))


def _with_objects(overrides: Mapping[str, Any] | None, **arguments: Any) -> dict[str, Any]:
    return {**{key: value for key, value in arguments.items() if value is not None}, **(overrides or {})}


def schema() -> str:
    """The JSON Schema of a config file, made by `assay.config.resolved.write_schema`; a test compares them."""
    from importlib.resources import files

    return (files("assay") / "data" / "config.schema.json").read_text(encoding="utf-8").rstrip() + "\n"


def mock_server(**options: Any) -> None:
    """Serve an OpenAI-compatible demo model on loopback until it is interrupted; options as those of the command."""
    from assay.server import Options, serve

    serve(Options(**options))


_defined = [
    name for name, value in globals().items() if getattr(value, "__module__", "") == __name__ and name[0] != "_"
]
__all__ = sorted({*_names(), *_defined} - _FOR_COMMANDS)  # pyright: ignore[reportUnsupportedDunderAll]
