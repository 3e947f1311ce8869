"""From a config's names to things that work: prompts, tasks, scorers, metrics, outputs; its models are in `models.py`.

Every name and parameter is checked before anything is spent.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from assay import registry
from assay.config import Config, FewShotConfig, TaskConfig
from assay.config.types import MethodConfig, MetricConfig, OutputConfig, PromptConfig
from assay.engine.aggregate.measure import BoundMetric, bind_metric
from assay.engine.evaluate.bind import (
    Binding,
    BoundScorer,
    bind_pairwise,
    bind_scorer,
    is_pairwise,
)
from assay.engine.evaluate.directions import LOWER, SCALE, checked_scale
from assay.engine.experiment.dataset import (
    Checked,
    media_folder,
    open_dataset as open_dataset,
    plug_in_of,
)
from assay.engine.experiment.models import Problems, sampling
from assay.sdk import JsonMapping, JsonObject, Model, Prompt, Task, UserError
from assay.store.items import normalise_placed
from assay.store.shared.mirror import remembered
from assay.tasks.likelihood import ItemChoices
from assay.usercode import marks_of

if TYPE_CHECKING:
    from assay.prompts._few_shot import FewShot


def bind_prompts(config: Config) -> list[Prompt]:
    make = registry.prompt.get("jinja")

    def bind(entry: PromptConfig) -> Prompt | None:
        if entry.requests:
            return None
        shots = None if entry.few_shot is None else _few_shot(config, entry.few_shot)
        return make(
            entry.text if entry.messages is None else entry.messages,
            name=entry.name,
            where=entry.path,
            few_shot=shots,
            media_folder=media_folder(config.dataset),
            **{name: getattr(entry, name) for name in ("system", "prefill", "turns", "row_params")},
        )

    return [prompt for prompt in Problems(config).each("prompts", bind) if prompt is not None]


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


def bind_checks(config: Config) -> list[Checked]:
    """Return what every item must have: the fields of the prompts, and those of their choices."""
    asked = (entry.likelihood or {} for entry in config.prompts)
    tasks = [registry.check_params(registry.task.get("likelihood"), params) for params in asked]
    return [
        *bind_prompts(config),
        *(ItemChoices(params["choices"]) for params in tasks if params.get("choices")),
    ]


def bind_tasks(
    config: Config, models: Mapping[str, Model], samples: int | None = None
) -> list[Task]:
    """Return tasks of every model with every prompt, then those of the config's own functions and graphs."""
    problems, tasks = Problems(config), list[Task]()
    prompts = bind_prompts(config) if config.models else []
    for entry in (entry for entry in config.models if not entry.helper):
        model, templates = models[entry.name], iter(prompts)
        timeout = entry.timeout or config.timeout
        asked: JsonObject = {"params": sampling(config, entry), "timeout": timeout}
        for number, source in enumerate(config.prompts):
            if source.requests:
                make = registry.task.get("requests")
                tasks.append(make(source.requests, model, name=source.name, **asked))
            elif source.likelihood is None:
                make, count = registry.task.get("prompt"), samples or config.num_samples
                tasks.append(make(next(templates), model, samples=count, **asked))
            else:
                with problems.at("prompts", number, "likelihood"):
                    prompt = next(templates)
                    tasks.append(_likelihood_task(prompt, model, source.likelihood, timeout))

    def bind(entry: TaskConfig) -> Task:
        if entry.graph:
            return _graph_task(config, entry, models)
        name = (entry.function_name if entry.path else entry.function) or entry.name
        function = plug_in_of(registry.task, name, entry.path, "", Path(config.base))
        return registry.task.get("function")(function, name=entry.name, params=entry.params)

    return tasks + problems.each("tasks", bind)


def _likelihood_task(prompt: Prompt, model: Model, asked: JsonMapping, timeout: float) -> Task:
    make = registry.task.get("likelihood")
    params = registry.check_params(make, asked, reserved=["timeout"], given=2)
    return make(prompt, model, timeout=timeout, **params)


def _graph_task(config: Config, entry: TaskConfig, models: Mapping[str, Model]) -> Task:
    """A graph with the config's models, which keep their own sampling parameters."""
    make = registry.task.get("graph")
    params = registry.check_params(make, entry.params, reserved=["name", "models", "inference"])
    inference = {model.name: sampling(config, model) for model in config.models}
    return make(entry.graph, name=entry.name, models=models, inference=inference, **params)


def bind_scorers(config: Config, models: Mapping[str, Model]) -> list[BoundScorer]:
    """`models` are those that judges may ask."""
    helpers = [entry.name for entry in config.models if entry.helper]

    def bind(entry: MethodConfig) -> BoundScorer:
        custom = entry.path or entry.module or entry.type == "custom"
        own = (custom and entry.function_name) or entry.type
        base = Path(config.base)
        function = plug_in_of(registry.scorer, own, entry.path, entry.module, base)
        binding: Binding = {
            "name": entry.name,
            "params": entry.params,
            "timeout": entry.timeout,
            "models": models,
            "helpers": helpers,
            "base": base,
        }
        if is_pairwise(function):
            bound = bind_pairwise(function, folder=remembered(config.output_dir), **binding)
        else:
            bound = bind_scorer(function, **binding)
        told = {SCALE: checked_scale(entry.scale), LOWER: entry.lower_is_better}
        bound.declared |= {name: value for name, value in told.items() if value is not None}
        return bound

    return Problems(config).each("evaluation_methods", bind)


def bind_metrics(config: Config) -> list[BoundMetric]:
    def bind(entry: MetricConfig) -> BoundMetric:
        return bind_metric(
            name=entry.name,
            type=entry.type,
            params=entry.params,
            facets=entry.facets,
            **msgspec.structs.asdict(entry.labels),
            policy={
                name: getattr(entry, name) or getattr(config.policy, name)
                for name in config.policy.__struct_fields__
            },
            path=entry.path,
            module=entry.module,
            function_name=entry.function_name,
            base=Path(config.base),
            level=config.ci_level,
            interval=entry.interval,
            scale=checked_scale(entry.scale),
            cluster_by=config.cluster_by,
        )

    return Problems(config).each("metrics", bind)


class BoundOutput(msgspec.Struct):
    """A format of `assay export` with its parameters, and where it writes to."""

    write: Callable[..., Any]
    params: JsonObject
    table: str
    path: str


def bind_outputs(config: Config) -> list[BoundOutput]:
    """Every output of a config; one that writes the `whole` experiment says what to call it, any other gets a
    file named like its table."""

    def bind(output: OutputConfig) -> BoundOutput:
        write = registry.writer.get(output.type, base=Path(config.base), where="outputs")
        params = registry.check_params(write, output.params, where="outputs.params")
        name = output.type.rpartition(":")[2].rpartition(".")[2]
        own = marks_of(write).get("whole") or f"{output.table}.{name}"
        path = output.path or f"{config.output_dir}/{own}"
        return BoundOutput(write, params, output.table, path)

    return Problems(config).each("outputs", bind)
