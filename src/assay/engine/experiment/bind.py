"""From a config's names to things that work: models, tasks, scorers, metrics, outputs.

Every name and parameter is checked before anything is spent. Scoring what needs no call must not need a model's key:
models that cannot be made say so when they are called.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from assay import registry
from assay.config import Config, FewShotConfig, ModelConfig, TaskConfig, environment, secret, where
from assay.engine.aggregate.measure import BoundMetric, bind_metric
from assay.engine.evaluate.bind import Binding, BoundScorer, bind_pairwise, bind_scorer, is_pairwise, load_scorer
from assay.engine.experiment.dataset import open_dataset as open_dataset
from assay.engine.experiment.prices import price_of
from assay.errors import AssayError, ConfigError, LaneError, UserError
from assay.interfaces import Completion, Limits, Model, Prompt, Request, Task
from assay.store.items import normalise_placed

if TYPE_CHECKING:
    from assay.prompts._few_shot import FewShot

DEFAULT_CONCURRENCY = 64


class Problems:
    """Collects the problems of several bindings, so that a user sees all of them at once, each with its place."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.found: list[UserError] = []

    @contextmanager
    def at(self, *key: str | int) -> Generator[None]:
        """Keep the problem of one binding; if it does not say where it is, it is at this key of the config."""
        try:
            yield
        except ConfigError as error:
            self.found.extend(error.problems)
        except UserError as error:
            error.where = error.where or (where(self.config, *key) if key else "")
            self.found.append(error)

    def raise_any(self) -> None:
        if self.found:
            raise ConfigError(self.found, source=self.config.source)


def bind_models(config: Config, environ: Mapping[str, str] | None = None) -> dict[str, Model]:
    """By name. `environ` holds the keys that the config refers to; by default the process's, `.env` included."""
    variables = environment(config, environ)
    problems = Problems(config)
    models: dict[str, Model] = {}
    for number, entry in enumerate(config.models):
        with problems.at("models", number):
            models[entry.name] = bind_model(config, entry, variables)
    problems.raise_any()
    return models


def bind_model(config: Config, entry: ModelConfig, variables: Mapping[str, str]) -> Model:
    factory = registry.model.get(entry.type, base=Path(config.base))
    return factory(entry.name, **registry.check_params(factory, _with_secrets(entry.params, variables)))


def _with_secrets(params: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a model, and of the one that it wraps, with what their references stand for."""
    found = dict(params)
    if isinstance(found.get("api_key"), str):
        found["api_key"] = _revealed(found["api_key"], variables)
    if isinstance(found.get("headers"), dict):
        found["headers"] = {name: _revealed(text, variables) for name, text in found["headers"].items()}
    if isinstance(found.get("of"), dict):
        found["of"] = _with_secrets(found["of"], variables)
    return found


def _revealed(reference: str, variables: Mapping[str, str]) -> str:
    value = secret(reference, variables)
    if value is None:
        raise UserError(f"{reference} is not set", fix="put it into the environment or into `.env`")
    return value


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
        requests_per_minute=entry.requests_per_minute,
        tokens_per_minute=entry.tokens_per_minute,
        price=price_of(config, entry),
    )


def check_budget(config: Config) -> None:
    """A budget in dollars needs to know what every model costs, before the first call."""
    if config.budget.usd is None:
        return
    problems = Problems(config)
    for number, entry in enumerate(config.models):
        with problems.at("models", number):
            if price_of(config, entry) is None:
                raise UserError(
                    f"the price of {entry.name!r} is unknown, so a budget in dollars cannot hold",
                    fix="add `price: {input: …, output: …}` (dollars per million tokens), or budget `tokens`",
                )
    problems.raise_any()


def bind_prompts(config: Config) -> list[Prompt]:
    make = registry.prompt.get("jinja")
    problems = Problems(config)
    prompts: list[Prompt] = []
    for number, entry in enumerate(config.prompts):
        with problems.at("prompts", number):
            source = entry.text if entry.messages is None else entry.messages
            shots = None if entry.few_shot is None else _few_shot(config, entry.few_shot)
            prompts.append(make(source, name=entry.name, where=entry.path, few_shot=shots))
    problems.raise_any()
    return prompts


def _few_shot(config: Config, entry: FewShotConfig) -> "FewShot":
    from assay.prompts._few_shot import FewShot

    source = entry.dataset or config.dataset
    if source is None:
        raise UserError("few_shot has no examples", fix="add `path: examples.jsonl`")
    items = [item for _, item in normalise_placed(open_dataset(source, Path(config.base)))]
    return FewShot(
        items=items,
        n=entry.n,
        seed=entry.seed,
        pick=entry.pick,
        text=entry.text,
        messages=entry.messages,
        separator=entry.separator,
    )


def bind_tasks(config: Config, models: Mapping[str, Model], samples: int | None = None) -> list[Task]:
    """Every model with every prompt, then the config's own functions and graphs."""
    make_prompt_task = registry.task.get("prompt")
    make_function_task = registry.task.get("function")
    problems = Problems(config)
    count = samples or config.num_samples
    tasks: list[Task] = []
    prompts = bind_prompts(config)
    for entry in config.models:
        if entry.helper:
            continue
        params = {**config.sample_params, **entry.inference}
        for prompt in prompts:
            timeout = entry.timeout or config.timeout
            tasks.append(make_prompt_task(prompt, models[entry.name], params=params, samples=count, timeout=timeout))
    for number, entry in enumerate(config.tasks):
        with problems.at("tasks", number):
            base = Path(config.base)
            if entry.graph:
                tasks.append(_graph_task(config, entry, models))
                continue
            if entry.path:
                function = registry.load_function(entry.path, entry.function_name or entry.name, base=base)
            else:
                function = registry.task.get(entry.function or entry.name, base=base)
            tasks.append(make_function_task(function, name=entry.name, params=entry.params))
    problems.raise_any()
    return tasks


def _graph_task(config: Config, entry: TaskConfig, models: Mapping[str, Model]) -> Task:
    """A graph with the config's models, which keep their own sampling parameters."""
    make = registry.task.get("graph")
    params = registry.check_params(make, entry.params, reserved=["name", "models", "inference"])
    inference = {model.name: {**config.sample_params, **model.inference} for model in config.models}
    return make(entry.graph, name=entry.name, models=models, inference=inference, **params)


def bind_scorers(config: Config, models: Mapping[str, Model]) -> list[BoundScorer]:
    """`models` are those that judges may ask."""
    problems = Problems(config)
    helpers = [entry.name for entry in config.models if entry.helper]
    scorers: list[BoundScorer] = []
    for number, entry in enumerate(config.evaluation_methods):
        with problems.at("evaluation_methods", number):
            function = load_scorer(
                entry.type,
                path=entry.path or None,
                module=entry.module or None,
                function_name=entry.function_name or None,
                base=Path(config.base),
            )
            binding: Binding = {
                "name": entry.name,
                "params": entry.params,
                "timeout": entry.timeout,
                "models": models,
                "helpers": helpers,
                "base": Path(config.base),
            }
            if is_pairwise(function):
                scorers.append(bind_pairwise(function, folder=Path(config.output_dir), **binding))
            else:
                scorers.append(bind_scorer(function, **binding))
    problems.raise_any()
    return scorers


def bind_metrics(config: Config) -> list[BoundMetric]:
    problems = Problems(config)
    metrics: list[BoundMetric] = []
    for number, entry in enumerate(config.metrics):
        with problems.at("metrics", number):
            metrics.append(
                bind_metric(
                    name=entry.name,
                    type=entry.type,
                    params=entry.params,
                    facets=entry.facets,
                    include=entry.labels.include,
                    exclude=entry.labels.exclude,
                    together=entry.labels.together,
                    policy={
                        "on_error": entry.on_error or config.policy.on_error,
                        "on_unparsed": entry.on_unparsed or config.policy.on_unparsed,
                        "on_refused": entry.on_refused or config.policy.on_refused,
                    },
                    path=entry.path or None,
                    module=entry.module or None,
                    function_name=entry.function_name or None,
                    base=Path(config.base),
                    level=config.ci_level,
                    interval=entry.interval,
                )
            )
    problems.raise_any()
    return metrics


class Unusable:
    """A model that could not be made (a key is missing): only a scorer that calls it needs to hear why."""

    def __init__(self, name: str, identity: Mapping[str, Any], problem: UserError) -> None:
        self.name = name
        self.identity = identity
        self._problem = problem

    async def complete(self, request: Request) -> Completion:
        raise LaneError(self._problem.what, where=self._problem.where, fix=self._problem.fix)

    async def close(self) -> None:
        pass


class _AnySecret(dict[str, str]):
    """Variables that are all set: no secret is part of a model's identity."""

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, "unknown")


def bind_usable(config: Config, environ: Mapping[str, str] | None) -> dict[str, Model]:
    """By name; one that cannot be made says so when it is called."""
    models: dict[str, Model] = {}
    for entry in config.models:
        try:
            models |= bind_models(msgspec.structs.replace(config, models=[entry]), environ)
        except ConfigError as error:
            try:
                identity = bind_model(config, entry, _AnySecret()).identity
            except AssayError:
                identity = {"name": entry.name}
            models[entry.name] = Unusable(entry.name, identity, error.problems[0])
    return models


class BoundOutput(msgspec.Struct):
    """A format of `assay export` with its parameters, and where it writes to."""

    write: Callable[..., Any]
    params: dict[str, Any]
    table: str
    path: Path


def bind_outputs(config: Config) -> list[BoundOutput]:
    """Every output of a config; a format that makes a folder gets one of its name, any other a file of its table's."""
    problems = Problems(config)
    bound: list[BoundOutput] = []
    for number, output in enumerate(config.outputs):
        with problems.at("outputs", number):
            write = registry.writer.get(output.type, base=Path(config.base), where="outputs")
            params = registry.check_params(write, output.params, where="outputs.params")
            marks: dict[str, Any] = getattr(write, "__assay__", {})
            name = output.type.rpartition(":")[2].rpartition(".")[2]
            own = name if marks.get("folder") else f"{output.table}.{name}"
            bound.append(BoundOutput(write, params, output.table, Path(output.path or Path(config.output_dir, own))))
    problems.raise_any()
    return bound
