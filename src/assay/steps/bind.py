"""From a config's names to things that work: models, tasks, scorers, metrics, rows of a dataset."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assay import registry
from assay.config import Config, DatasetConfig, ModelConfig, secret
from assay.errors import ConfigError, UserError
from assay.interfaces import Limits, Model, Prompt, Task
from assay.steps.measure import BoundMetric, bind_metric
from assay.steps.scoring import BoundScorer, bind_scorer, load_scorer

DEFAULT_CONCURRENCY = 64


class Problems:
    """Collects the problems of several bindings, so that a user sees all of them at once."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[UserError] = []

    def __enter__(self) -> "Problems":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, ConfigError):
            self.found.extend(error.problems)
        elif isinstance(error, UserError):
            self.found.append(error)
        else:
            return False
        return True

    def raise_any(self) -> None:
        if self.found:
            raise ConfigError(self.found, source=self.source)


def bind_models(config: Config, environ: Mapping[str, str] | None = None) -> dict[str, Model]:
    problems = Problems(config.source)
    models: dict[str, Model] = {}
    for number, entry in enumerate(config.models):
        with problems:
            models[entry.name] = _bind_model(config, entry, environ or os.environ, f"models[{number}]")
    problems.raise_any()
    return models


def _bind_model(config: Config, entry: ModelConfig, environ: Mapping[str, str], where: str) -> Model:
    factory = registry.model.get(entry.type, base=Path(config.base), where=f"{where}.type")
    params = dict(entry.params)
    if "api_key" in params:
        params["api_key"] = secret(params["api_key"], environ)
    return factory(entry.name, **registry.check_params(factory, params, where=where))


def bind_limits(config: Config) -> dict[str, Limits]:
    """By lane. The command line's and the config's own concurrency bound each model's."""
    return {entry.name: _limits(config, entry) for entry in config.models}


def default_limits(config: Config) -> Limits:
    return Limits(config.max_concurrency or DEFAULT_CONCURRENCY, config.timeout, config.max_retries)


def _limits(config: Config, entry: ModelConfig) -> Limits:
    wanted = [n for n in (entry.max_concurrency, config.max_concurrency) if n is not None]
    return Limits(
        max_concurrency=min(wanted, default=DEFAULT_CONCURRENCY),
        timeout=entry.timeout or config.timeout,
        max_retries=config.max_retries if entry.max_retries is None else entry.max_retries,
    )


def bind_prompts(config: Config) -> list[Prompt]:
    make = registry.prompt.get("jinja")
    problems = Problems(config.source)
    prompts: list[Prompt] = []
    for number, entry in enumerate(config.prompts):
        with problems:
            where = entry.path or f"prompts[{number}]"
            prompts.append(make(entry.text if entry.messages is None else entry.messages, name=entry.name, where=where))
    problems.raise_any()
    return prompts


def bind_tasks(config: Config, models: Mapping[str, Model], samples: int | None = None) -> list[Task]:
    """Every model with every prompt, then the config's own function tasks."""
    make_prompt_task = registry.task.get("prompt")
    make_function_task = registry.task.get("function")
    problems = Problems(config.source)
    count = samples or config.num_samples
    tasks: list[Task] = []
    prompts = bind_prompts(config)
    for entry in config.models:
        params = {**config.sample_params, **entry.inference}
        for prompt in prompts:
            timeout = entry.timeout or config.timeout
            tasks.append(make_prompt_task(prompt, models[entry.name], params=params, samples=count, timeout=timeout))
    for number, entry in enumerate(config.tasks):
        where = f"tasks[{number}]"
        with problems:
            base = Path(config.base)
            if entry.path:
                function = registry.load_function(entry.path, entry.function_name or entry.name, base=base, where=where)
            else:
                function = registry.task.get(entry.function or entry.name, base=base, where=where)
            tasks.append(make_function_task(function, name=entry.name, params=entry.params))
    problems.raise_any()
    return tasks


def bind_scorers(config: Config) -> list[BoundScorer]:
    problems = Problems(config.source)
    scorers: list[BoundScorer] = []
    for number, entry in enumerate(config.evaluation_methods):
        where = f"evaluation_methods[{number}]"
        with problems:
            function = load_scorer(
                entry.type,
                path=entry.path or None,
                module=entry.module or None,
                function_name=entry.function_name or None,
                base=Path(config.base),
                where=where,
            )
            bound = bind_scorer(function, name=entry.name, params=entry.params, timeout=entry.timeout, where=where)
            scorers.append(bound)
    problems.raise_any()
    return scorers


def bind_metrics(config: Config) -> list[BoundMetric]:
    problems = Problems(config.source)
    metrics: list[BoundMetric] = []
    for number, entry in enumerate(config.metrics):
        with problems:
            metrics.append(
                bind_metric(
                    name=entry.name,
                    type=entry.type,
                    params=entry.params,
                    facets=entry.facets,
                    include=entry.labels.include,
                    exclude=entry.labels.exclude,
                    policy={
                        "on_error": entry.on_error or config.policy.on_error,
                        "on_unparsed": entry.on_unparsed or config.policy.on_unparsed,
                        "on_refused": entry.on_refused or config.policy.on_refused,
                    },
                    path=entry.path or None,
                    module=entry.module or None,
                    function_name=entry.function_name or None,
                    base=Path(config.base),
                    where=f"metrics[{number}]",
                )
            )
    problems.raise_any()
    return metrics


def open_dataset(source: DatasetConfig, base: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row) of every row of a config's dataset."""
    read = registry.dataset.get(source.type, base=base, where="dataset.type")
    if source.type != "function":
        return read(Path(source.path), **registry.check_params(read, source.params, where="dataset.params"))
    if source.path:
        function = registry.load_function(source.path, source.function_name, base=base, where="dataset")
    else:
        name = f"{source.module}.{source.function_name}" if source.module else source.function_name
        function = registry.dataset.get(name, base=base, where="dataset")
    return read(function, params=registry.check_params(function, source.params, where="dataset.params"))
