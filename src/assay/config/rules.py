"""What the types cannot say: names that must exist and differ, ranges of sampling, and what a step needs."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Literal

import assay.registry as registry
from assay.config.environment import is_address, shown_safely
from assay.config.prompts import check_prompt
from assay.config.providers import providers
from assay.config.source import Document, Key
from assay.config.types import (
    Config,
    DatasetConfig,
    GateConfig,
    MetricConfig,
    ModelConfig,
    OutputConfig,
    PlugInConfig,
    TaskConfig,
)
from assay.records import JsonMapping
from assay.registry import Registry

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
    for name, check in _OF_ENTRIES.items():
        for n, entry in enumerate(getattr(config, name)):
            check(entry, (name, n), document)
    _check_dataset(config, document)
    _check_sampling(config.sample_params, ("sample_params",), document)
    for name in ("models", "tasks", "evaluation_methods"):
        labels = [entry.name for entry in getattr(config, name)]
        _differ(name, labels, document, "give one of them another `name`")
    labels = [
        p.name or (p.text, str([p.messages, p.few_shot, p.likelihood])) for p in config.prompts
    ]
    _differ("prompts", labels, document, "name them differently, or remove one")
    _check_need(config, document, need)


def _check_need(config: Config, document: Document, need: Need | None) -> None:
    if need == "run" and config.mode == "evaluation":
        need = "evaluate"
    given = document.data
    for step, names, what, fix in _NEEDED:
        if need == step and not any(map(given.get, names)):
            document.report(f"there is no {what}", names[:1], fix)


def _check_model(model: ModelConfig, key: Key, document: Document) -> None:
    _check_name(model.type, registry.model, (*key, "type"), document, also=providers())
    _check_sampling(model.inference, (*key, "inference"), document)
    if "num_samples" in model.inference:
        place = (*key, "inference", "num_samples")
        fix = "set `num_samples` for the whole config"
        document.report("a model has no num_samples of its own", place, fix)
    params = model.params
    endpoint = params.get("endpoint")
    if endpoint is not None and not is_address(endpoint):
        what = f"the endpoint is not an address: {shown_safely(endpoint)}"
        place = (*key, "params", "endpoint")
        document.report(what, place, "write it like http://localhost:1234")
    for name in ("config", "params", "headers"):
        if not isinstance(params.get(name, {}), Mapping):
            document.report(f"{name} must be a mapping", (*key, name))
    if params.get("api_key_env") is not None:
        fix = "remove `api_key`" if "api_key" in params else "write the name of a variable"
        document.report("api_key_env cannot be used", (*key, "params", "api_key_env"), fix)


def _check_task(task: TaskConfig, key: Key, document: Document) -> None:
    if not task.function and not task.graph and not (task.path and task.function_name):
        fix = "add `function: file.py:name`, or `graph: path/to/graph_config.yaml`"
        document.report(f"the task {task.name!r} has no function", key, fix)


def _check_output(output: OutputConfig, key: Key, document: Document) -> None:
    _check_name(output.type, registry.writer, (*key, "type"), document)


def _check_dataset(config: Config, document: Document) -> None:
    dataset = config.dataset
    written: Any = document.data.get("dataset")
    if dataset is None or not written or not isinstance(written, Mapping):
        return
    key: Key = ("dataset",)
    if dataset.type == "function":
        is_file = dataset.path and not isinstance(dataset.path, list)
        if not dataset.function_name or not (is_file or dataset.module):
            what = "a dataset function needs a file or a module, and its name"
            document.report(what, key, "add `path: file.py` and `function_name:`")
    elif dataset.type:
        _check_name(dataset.type, registry.dataset, (*key, "type"), document)
        _check_place(dataset.type, written, document)
    elif path := written.get("path"):
        what = f"what {path!r} holds is not clear from its name"
        names = ", ".join(registry.dataset.names())
        document.report(what, (*key, "path"), f"add `type:`, one of {names}")
    else:
        document.report("the dataset has no path", key, "add `path:`")
    _check_split(dataset, document)


def _check_place(type: str, written: JsonMapping, document: Document) -> None:
    if not written.get("path") and not written.get("name"):
        need = "name" if type in ("hf", "stored") else "path"
        document.report(f"the dataset has no {need}", ("dataset",), f"add `{need}:`")


def _check_split(dataset: DatasetConfig, document: Document) -> None:
    split = dataset.split
    if split is None or not split.name:
        return
    key: Key = ("dataset", "split")
    if not split.ratio and dataset.type != "hf" and dataset.type in registry.dataset.names():
        fix = "say how to divide it: `split: {name: train, ratio: 0.8}`"
        document.report(f"a {dataset.type} dataset has no splits of its own", key, fix)
    if split.ratio and split.name not in split.ratio:
        fix = registry.nearest(split.name, split.ratio)
        document.report(f"the ratio has no part {split.name!r}", (*key, "name"), fix)
    if sum(split.ratio.values()) > 1 + 1e-9:
        document.report("the parts of a split are more than the whole", (*key, "ratio"))


def _check_method(
    method: PlugInConfig, key: Key, document: Document, plug_ins: Registry = registry.scorer
) -> None:
    if method.type and method.type != "custom":
        _check_name(method.type, plug_ins, (*key, "type"), document)
        for field in ("path", "module", "function_name"):
            if getattr(method, field):
                what = f"{field} is only for type custom"
                document.report(what, (*key, field), "remove it, or the type")
    elif method.type and not method.path and not method.module:
        what = f"{method.name!r} is custom but has no file"
        document.report(what, key, "add `path: file.py`")


def _check_metric(metric: MetricConfig, key: Key, document: Document) -> None:
    _check_method(metric, key, document, registry.metric)
    labels: Key = (*key, "labels")
    if metric.labels.include and metric.labels.exclude:
        what = "labels are included or excluded, not both"
        document.report(what, labels, "remove one of the two lists")
    if metric.labels.together and not metric.labels.include:
        what = "`together` needs the labels that it joins"
        document.report(what, labels, 'add `include: ["*"]`')
    for name in ("k", "num_trials") if metric.type != "custom" else ():
        value = metric.params.get(name, 1)
        if not _is_number(value, 1, math.inf) or not isinstance(value, int):
            what = f"{name} must be a whole number of at least 1, got {shown_safely(value)}"
            document.report(what, (*key, "params", name))


def _is_number(value: Any, low: float, high: float) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and low <= value <= high


def _check_gate(gate: GateConfig, key: Key, document: Document) -> None:
    if {gate.min, gate.max, gate.max_drop, gate.calibration} == {None}:
        fix = "add `min:`, `max:`, `max_drop:` or `calibration:`"
        document.report("a gate needs a bound", key, fix)
    if gate.baseline and gate.max_drop is None:
        what = "a baseline is only for max_drop"
        document.report(what, (*key, "baseline"), "add `max_drop: 0.02`")


_OF_ENTRIES: dict[str, Callable[[Any, Key, Document], None]] = {
    "models": _check_model,
    "prompts": check_prompt,
    "tasks": _check_task,
    "evaluation_methods": _check_method,
    "metrics": _check_metric,
    "gates": _check_gate,
    "outputs": _check_output,
}


def _check_sampling(params: JsonMapping, key: Key, document: Document) -> None:
    for name, value in params.items():
        place = (*key, name)
        if name in _OTHER_NAMES:
            what = f"{name!r} is not a sample parameter here"
            document.report(what, place, _OTHER_NAMES[name])
        if name == "stream" and not isinstance(value, bool):
            document.report(f"stream must be true or false, got {shown_safely(value)}", place)
        low, high = _RANGES.get(name, (-math.inf, math.inf))
        if name in _RANGES and value is not None and not _is_number(value, low, high):
            what = f"{name} must be a number from {low} to {high}, got {shown_safely(value)}"
            document.report(what, place)


def _check_name(
    name: str, plug_ins: Registry, key: Key, document: Document, also: Iterable[str] = ()
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
            same = f"called {label!r}" if isinstance(label, str) else "the same"
            document.report(f"{name}[{first[label]}] and {name}[{n}] are {same}", (name, n), fix)
