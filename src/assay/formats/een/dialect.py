"""Configs as users of een-eval write them: its keys under the names that Assay has for them.

Only what no config of ours can hold is changed, so what loaded before means what it meant. A key
that changes no result in the original either is left out.
"""

from typing import Any

from assay.sdk import JsonObject

_MODEL_TYPES = (None, "openai", "vllm", "llama.cpp")
_SAMPLING = ("temperature", "max_tokens", "top_p", "top_k", "seed", "stop")
_DOCKER = {"docker_image": "image", "gpu_count": "gpus"}
# where a server listens inside of its container, which nobody sees
_INSIDE = ("container_port", "host")
_COMPARING = ("exact_match", "contains", "regex_match", "json_match", "numeric_match")
_PARAMS = {"ground_truth_field": "expected", "required_keys": "expected_keys"}
_DATASET = {"file_path": "path", "sample_size": "sample", "filter_condition": "filter"}
_FILES = (".jsonl", ".json", ".csv", ".tsv")
_TEMPLATES = {"prompt_template", "eval_prompt_template", "prompts", "prompt_templates"}
# sections of a config, and what their keys are called on top; "" has no effect
_SECTIONS = {
    "output": {
        "directory": "output_dir",
        **dict.fromkeys(("save_predictions", "save_evaluations", "save_intermediate"), ""),
    },
    "inference": {"max_workers": "max_workers", "timeout": "timeout", "batch_size": ""},
}


def translate(data: JsonObject) -> None:
    """Write the keys of a config as Assay has them."""
    for section, names in _SECTIONS.items():
        holder = data.get(section)
        if isinstance(holder, dict) and holder.keys() <= names.keys():
            moved = {names[key]: value for key, value in holder.items() if names[key]}
            if not moved.keys() & data.keys():
                del data[section]
                data |= moved
    for model in _mappings(data.get("models")):
        if model.get("type") in _MODEL_TYPES:
            _translate_model(model)
    for entry in _mappings(data.get("evaluation_methods")) + _mappings(data.get("metrics")):
        _translate_method(entry)
    for dataset in _mappings(data.get("dataset")):
        _translate_dataset(dataset, data)


def _mappings(entries: Any) -> list[JsonObject]:
    listed = entries if isinstance(entries, list) else [entries]
    return [entry for entry in listed if isinstance(entry, dict)]


def _rename(holder: JsonObject, names: dict[str, str]) -> None:
    for old, new in names.items():
        if old in holder and new not in holder:
            holder[new] = holder.pop(old)


def _translate_model(model: JsonObject) -> None:
    """`config` has sampling parameters beside the rest, and `docker` the flags of the server."""
    config: JsonObject = next(iter(_mappings(model.get("config"))), {})
    own = model.get("inference", config.get("inference", {}))
    if isinstance(own, dict) and config.keys() & {*_SAMPLING}:
        sampling = {name: config.pop(name) for name in _SAMPLING if name in config}
        model["inference"] = sampling | own
    _rename(config, {"model": "model_name"})
    _rename(model, {"docker_params": "docker"})
    given: JsonObject = {}
    for layer in (config, model):
        given |= {name: str(layer.pop(key)) for key, name in _DOCKER.items() if key in layer}
    for docker in _mappings(model.get("docker") or given or None):
        model["docker"] = _container(given | docker)
        config.setdefault("model_path", config.get("model_name"))


def _container(docker: JsonObject) -> JsonObject:
    """Return the container's keys, with all others as flags of its server, as in the original."""
    from assay.models._local_openai import Docker

    _rename(docker, {"context_size": "ctx_size"})
    known = {key: value for key, value in docker.items() if key in Docker.__struct_fields__}
    flags: list[str] = []
    for key, value in docker.items():
        if key in known or key in _INSIDE:
            continue
        flag = [] if value is False else [f"--{key.replace('_', '-')}"]
        flags += flag if isinstance(value, bool) else [*flag, str(value)]
    return {**known, "args": [*flags, *known.get("args", ())]} if flags else known


def _translate_method(entry: JsonObject) -> None:
    _rename(entry, {"config": "params"})
    if isinstance(function := entry.get("function"), str):
        del entry["function"]
        module, _, name = function.rpartition(".")
        custom = {"type": "custom", "module": module or None, "function_name": name}
        entry |= {"type": function} if ".py:" in function else custom
    type = entry.get("type")
    if (entry.get("name") if type in (None, "built_in") else type) in _COMPARING:
        for params in _mappings(entry.get("params")):
            if "ground_truth_field" in params:
                # a field of the original's rows, which it does not look at either
                params.pop("response_field", None)
            _rename(params, _PARAMS)


def _translate_dataset(dataset: JsonObject, data: JsonObject) -> None:
    _rename(dataset, _DATASET)
    field = dataset.get("input_field")
    if isinstance(field, str) and field.isidentifier():
        del dataset["input_field"]
        if not _TEMPLATES & data.keys():
            data["prompt_template"] = f"{{{{ {field} }}}}"
    if "fields" not in dataset and "expected_output_field" in dataset:
        dataset["fields"] = {"ground_truth": dataset.pop("expected_output_field")}
    is_file = dataset.get("type") in (None, "built_in", "file") and "function_name" not in dataset
    if is_file and str(dataset.get("path")).endswith(_FILES):
        for params in _mappings(dataset.get("params")):
            params.pop("save", None)
