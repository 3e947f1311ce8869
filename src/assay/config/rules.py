"""What the types cannot say: names that must exist and differ, ranges of sampling, and what a step needs."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal

import assay.registry as registry
from assay.config.environment import is_address, shown
from assay.config.prompts import check_prompt
from assay.config.providers import providers
from assay.config.source import Document, Key
from assay.config.types import Config, DatasetConfig, GateConfig, MethodConfig, MetricConfig

Need = Literal["run", "evaluate", "aggregate", "gate"]
_RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
_OTHER_NAMES = {
    "n": "use `num_samples`: each sample is a call of its own, so that it can be resumed",
}


_NAMED_ELSEWHERE: dict[str, dict[str, str]] = {  # what other tools call our plug-ins
    "metric": {
        **dict.fromkeys(("accuracy", "acc"), "pass_rate"),
        **dict.fromkeys(("average", "avg"), "mean"),
        "stdev": "std",
        "pass_k": "pass_at_k",
    },
    "scorer": {
        **dict.fromkeys(("em", "equals", "exact", "accuracy", "match"), "exact_match"),
        "includes": "contains",
        "llm_rubric": "judge_rubric",
        "model_graded_qa": "judge_correctness",
        "levenshtein": "edit_similarity",
        "multiple_choice": "choice",
    },
}


_NEEDED = (  # by a step: one of these keys
    ("run", ("models", "tasks"), "model", "add `models:` with at least one name, or `tasks:`"),
    ("run", ("dataset",), "dataset", "add `dataset: path/to/items.jsonl`"),
    (
        "evaluate",
        ("evaluation_methods",),
        "evaluation method",
        "add `evaluation_methods: [exact_match]`",
    ),
    ("aggregate", ("metrics",), "metric", "add `metrics: [mean]`"),
)


def check_rules(config: Config, document: Document, need: Need | None) -> None:
    _check_models(config, document)
    _check_dataset(config, document)
    _check_prompts(config, document)
    for n, task in enumerate(config.tasks):
        if not task.function and not task.graph and not (task.path and task.function_name):
            fix = "add `function: file.py:name`, or `graph: path/to/graph_config.yaml`"
            document.report(f"the task {task.name!r} has no function", ("tasks", n), fix)
    _check_methods("evaluation_methods", config.evaluation_methods, registry.scorer, document)
    _check_methods("metrics", config.metrics, registry.metric, document)
    for n, metric in enumerate(config.metrics):
        _check_metric(metric, ("metrics", n), document)
    for n, gate in enumerate(config.gates):
        _check_gate(gate, ("gates", n), document)
    for n, output in enumerate(config.outputs):
        _check_name(output.type, registry.writer, ("outputs", n, "type"), document)
    _check_sampling(config.sample_params, ("sample_params",), document)
    for name in ("models", "tasks", "evaluation_methods"):
        _differ(
            name,
            [entry.name for entry in getattr(config, name)],
            document,
            "give one of them another `name`",
        )
    _check_need(config, document, need)


def _check_need(config: Config, document: Document, need: Need | None) -> None:
    if need == "run" and config.mode == "evaluation":
        need = "evaluate"
    given = document.data
    for step, names, what, fix in _NEEDED:
        if need == step and not any(map(given.get, names)):
            document.report(f"there is no {what}", names[:1], fix)


def _check_models(config: Config, document: Document) -> None:
    for n, model in enumerate(config.models):
        key: Key = ("models", n)
        _check_name(model.type, registry.model, (*key, "type"), document, also=providers())
        _check_sampling(model.inference, (*key, "inference"), document)
        if "num_samples" in model.inference:
            fix = "set `num_samples` for the whole config"
            document.report(
                "a model has no num_samples of its own", (*key, "inference", "num_samples"), fix
            )
        endpoint = model.params.get("endpoint")
        if endpoint is not None and not is_address(endpoint):
            fix = "write it like http://localhost:1234"
            document.report(
                f"the endpoint is not an address: {shown(endpoint)}",
                (*key, "params", "endpoint"),
                fix,
            )
        for name in ("config", "params", "headers"):
            if not isinstance(model.params.get(name, {}), Mapping):
                document.report(f"{name} must be a mapping", (*key, name))
        variable = model.params.get("api_key_env")
        if variable is not None:
            fix = (
                "remove `api_key`" if "api_key" in model.params else "write the name of a variable"
            )
            document.report("api_key_env cannot be used", (*key, "params", "api_key_env"), fix)


def _check_dataset(config: Config, document: Document) -> None:
    dataset = config.dataset
    written: Any = document.data.get("dataset")
    if dataset is None or not written or not isinstance(written, Mapping):
        return
    if dataset.type == "function":
        if (
            not dataset.function_name
            or not (dataset.path or dataset.module)
            or isinstance(dataset.path, list)
        ):
            fix = "add `path: file.py` and `function_name:`"
            document.report(
                "a dataset function needs a file or a module, and its name", ("dataset",), fix
            )
    elif dataset.type:
        _check_name(dataset.type, registry.dataset, ("dataset", "type"), document)
        if not written.get("path") and not written.get("name"):
            need = "name" if dataset.type in ("hf", "stored") else "path"
            document.report(f"the dataset has no {need}", ("dataset",), f"add `{need}:`")
    elif written.get("path"):
        fix = f"add `type:`, one of {', '.join(registry.dataset.names())}"
        document.report(
            f"what {written['path']!r} holds is not clear from its name", ("dataset", "path"), fix
        )
    else:
        document.report("the dataset has no path", ("dataset",), "add `path:`")
    _check_split(dataset, document)


def _check_split(dataset: DatasetConfig, document: Document) -> None:
    split = dataset.split
    if split is None or not split.name:
        return
    if not split.ratio and dataset.type != "hf" and dataset.type in registry.dataset.names():
        fix = "say how to divide it: `split: {name: train, ratio: 0.8}`"
        document.report(
            f"a {dataset.type} dataset has no splits of its own", ("dataset", "split"), fix
        )
    if split.ratio and split.name not in split.ratio:
        fix = registry.nearest(split.name, split.ratio)
        document.report(f"the ratio has no part {split.name!r}", ("dataset", "split", "name"), fix)
    if sum(split.ratio.values()) > 1 + 1e-9:
        document.report(
            "the parts of a split are more than the whole", ("dataset", "split", "ratio")
        )


def _check_prompts(config: Config, document: Document) -> None:
    for n, prompt in enumerate(config.prompts):
        check_prompt(prompt, ("prompts", n), document)
    labels = [
        p.name or (p.text, str([p.messages, p.few_shot, p.likelihood])) for p in config.prompts
    ]
    _differ("prompts", labels, document, "name them differently, or remove one")


def _check_methods(
    name: str,
    methods: Iterable[MethodConfig | MetricConfig],
    plug_ins: registry.Registry,
    document: Document,
) -> None:
    for n, method in enumerate(methods):
        key: Key = (name, n)
        if method.type and method.type != "custom":
            _check_name(method.type, plug_ins, (*key, "type"), document)
            for field in ("path", "module", "function_name"):
                if getattr(method, field):
                    document.report(
                        f"{field} is only for type custom", (*key, field), "remove it, or the type"
                    )
        elif method.type and not method.path and not method.module:
            document.report(
                f"{method.name!r} is custom but has no file", key, "add `path: file.py`"
            )


def _check_metric(metric: MetricConfig, key: Key, document: Document) -> None:
    if metric.labels.include and metric.labels.exclude:
        document.report(
            "labels are included or excluded, not both",
            (*key, "labels"),
            "remove one of the two lists",
        )
    if metric.labels.together and not metric.labels.include:
        document.report(
            "`together` needs the labels that it joins", (*key, "labels"), 'add `include: ["*"]`'
        )
    for name in ("k", "num_trials"):
        value = metric.params.get(name, 1)
        if metric.type != "custom" and (
            not isinstance(value, int) or isinstance(value, bool) or value < 1
        ):
            place = (*key, "params", name)
            document.report(
                f"{name} must be a whole number of at least 1, got {shown(value)}", place
            )


def _check_gate(gate: GateConfig, key: Key, document: Document) -> None:
    if gate.min is None and gate.max is None and gate.max_drop is None and gate.calibration is None:
        document.report(
            "a gate needs a bound", key, "add `min:`, `max:`, `max_drop:` or `calibration:`"
        )
    if gate.baseline and gate.max_drop is None:
        document.report(
            "a baseline is only for max_drop", (*key, "baseline"), "add `max_drop: 0.02`"
        )


def _check_sampling(params: Mapping[str, Any], key: Key, document: Document) -> None:
    for name, value in params.items():
        if name in _OTHER_NAMES:
            document.report(
                f"{name!r} is not a sample parameter here", (*key, name), _OTHER_NAMES[name]
            )
        if name == "stream" and not isinstance(value, bool):
            document.report(f"stream must be true or false, got {shown(value)}", (*key, name))
        if name not in _RANGES or value is None:
            continue
        low, high = _RANGES[name]
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not low <= value <= high
        ):
            place = (*key, name)
            document.report(
                f"{name} must be a number from {low} to {high}, got {shown(value)}", place
            )


def _check_name(
    name: str, plug_ins: registry.Registry, key: Key, document: Document, also: Iterable[str] = ()
) -> None:
    """Dotted names and files are looked up when they are bound: that runs the user's code."""
    known = [*plug_ins.names(), *also]
    if name and "." not in name and name not in known and plug_ins.of_format(name) is None:
        elsewhere = _NAMED_ELSEWHERE.get(plug_ins.kind, {})
        here = elsewhere.get(name.lower().replace("-", "_"))
        fix = f"here it is called {here!r}" if here else registry.nearest(name, known)
        document.report(f"unknown {plug_ins.kind} {name!r}", key, fix)


def _differ(name: str, labels: Iterable[Hashable], document: Document, fix: str) -> None:
    first: dict[Hashable, int] = {}
    for n, label in enumerate(labels):
        if label and first.setdefault(label, n) != n:
            shown_name = f"called {label!r}" if isinstance(label, str) else "the same"
            document.report(
                f"{name}[{first[label]}] and {name}[{n}] are {shown_name}", (name, n), fix
            )
