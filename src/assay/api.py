"""Assay from Python: the same engine as the command line.

    import assay
    result = assay.run("config.yaml", limit=100)

`run`, `plan` and `validate` take a config's path or a dict; Runner, Evaluator and Aggregator are the three steps by
themselves, over a FlatStore (an experiment folder), a FolderStore (a repository) or a MemoryStore.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from assay.config import Config, has_objects, load
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import bind_metric
from assay.engine.evaluate.bind import bind_scorer
from assay.engine.evaluate.evaluate import Evaluator
from assay.engine.experiment.experiment import Experiment, Options, Result
from assay.engine.experiment.plan import Survey, survey
from assay.engine.run.run import Runner
from assay.errors import UserError
from assay.registry import dataset, metric, model, prompt, scorer, task, writer
from assay.store.repositories import (
    AggregationRepository,
    DatasetRepository,
    EvaluationRepository,
    RunRepository,
)
from assay.store.stores import FlatStore, FolderStore, MemoryStore, open_store
from assay.tasks.function import function as function_task
from assay.tasks.prompt import prompt as prompt_task
from assay.threads import run_blocking

Source = str | Path | Mapping[str, Any] | Config

__all__ = [
    "AggregationRepository",
    "Aggregator",
    "DatasetRepository",
    "EvaluationRepository",
    "Evaluator",
    "Experiment",
    "FlatStore",
    "FolderStore",
    "MemoryStore",
    "Options",
    "Result",
    "RunRepository",
    "Runner",
    "Survey",
    "aggregate",
    "bind_metric",
    "bind_scorer",
    "calibrate",
    "dataset",
    "evaluate",
    "experiment",
    "frame",
    "function_task",
    "metric",
    "model",
    "open_store",
    "plan",
    "prompt",
    "prompt_task",
    "query",
    "run",
    "run_async",
    "scorer",
    "task",
    "validate",
    "writer",
]


def experiment(
    source: Source | None = None,
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
) -> Experiment:
    """A config bound to its folder, with the options of `assay run` (see Options).

    Without a config the arguments are one: rows, a function or a path as the dataset; functions, Model objects or
    `type:name[@url]` as models; functions, names or mappings as scorers and metrics. Beside a config they replace what
    it says; only models that are all texts choose among the config's, as `-m` does.
    """
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


def run(source: Source | None = None, **options: Any) -> Result:
    """Run a config, or what the arguments describe, all its steps; in a notebook too. Arguments as for `experiment`.
    The same call resumes where an earlier one stopped."""
    return run_blocking(lambda: run_async(source, **options))


async def run_async(source: Source | None = None, **options: Any) -> Result:
    """Like `run`, to be awaited."""
    made = experiment(source, **options)
    result = await made.run()
    if made.config.outputs:
        from assay.analysis.look.export import write_outputs

        result.notes += await asyncio.to_thread(write_outputs, made.config, result.folder)
    return result


def plan(source: Source, *, overrides: Mapping[str, Any] | None = None, **options: Any) -> Survey:
    """How many cells a config has, how many are there, how many would run; nothing is written or spent."""
    return survey(experiment(source, overrides=overrides, **options))


def validate(source: Source, *, overrides: Mapping[str, Any] | None = None, **options: Any) -> list[str]:
    """Everything that can be known before spending: raises a ConfigError with all problems, returns warnings."""
    return experiment(source, overrides=overrides, **options).validate()


def evaluate(
    paths: str | Path | Sequence[str | Path],
    config: Source | None = None,
    *,
    output_dir: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    retry_errors: bool = False,
    budget: int | None = None,
) -> Result:
    """Score the responses of folders or files, again or for the first time, and compute the metrics. With a `budget`
    only so many matches are played, those that tell most about who is better."""
    from assay.engine.experiment.evaluate import Rescoring

    step = Rescoring(
        paths, config, output_dir=output_dir, overrides=overrides, retry_errors=retry_errors, budget=budget
    )
    return run_blocking(step.run)


def aggregate(
    paths: str | Path | Sequence[str | Path],
    config: Source | None = None,
    *,
    output_dir: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    retry_errors: bool = False,
) -> Result:
    """Compute metrics from the evaluations of folders or files, several taken together."""
    from assay.engine.experiment.aggregate import Reaggregation

    several = [paths] if isinstance(paths, (str, Path)) else paths
    step = Reaggregation(several, config, output_dir=output_dir, overrides=overrides, retry_errors=retry_errors)
    return step.run()


def calibrate(path: str | Path, labels: str | Path | Iterable[Mapping[str, Any]] | None = None, **options: Any) -> Any:
    """Compare the judges of an experiment with people's labels (a file, rows, or those of `assay judge label`) and keep
    what is found; options and result as in `assay.analysis.judge.calibrate`."""
    from assay.analysis.judge.calibrate import calibrate as made

    return made(path, labels, **options)


def query(paths: str | Path | Sequence[str | Path], sql: str) -> list[dict[str, Any]]:
    """The rows that a SELECT over items, responses, evaluations and metrics finds; nothing can be written."""
    from assay.analysis.look.sql import ask

    with ask([paths] if isinstance(paths, (str, Path)) else paths, sql) as answer:
        return list(answer.rows())


def frame(path: str | Path, table: str = "evaluations", *, library: Literal["pandas", "polars"] = "pandas") -> Any:
    """A table of an experiment as a pandas or polars data frame; nested values are JSON text."""
    from assay.analysis.look.sql import frame as made

    return made(path, table, library=library)
