"""Configs as users of een-eval write them: its keys under the names that Assay has for them.

Only what no config of ours can hold is changed, so what loaded before means what it meant. A key that
changes no result in the original either is left out.
"""

from typing import Any

_MODEL_TYPES = (None, "openai", "vllm", "llama.cpp")
_SAMPLING = (
    "temperature max_tokens top_p top_k min_p seed stop presence_penalty frequency_penalty".split()
)
_COMPARING = ("exact_match", "contains", "regex_match", "json_match", "numeric_match")
_FILE_TYPES = (None, "built_in", "file")
_TEMPLATES = {"prompt_template", "eval_prompt_template", "prompts", "prompt_templates"}
# sections of the whole config, and what their keys are called on top; "" has no effect
_SECTIONS = {
    "output": {
        "directory": "output_dir",
        "save_predictions": "",
        "save_evaluations": "",
        "save_intermediate": "",
    },
    "inference": {"max_workers": "max_workers", "timeout": "timeout", "batch_size": ""},
}
_DATASET = {"file_path": "path", "sample_size": "sample", "filter_condition": "filter"}
# where a server listens inside of its container, which nobody sees
_INSIDE = ("container_port", "host")


def translate(data: dict[str, Any]) -> None:
    """Write the keys of a config as Assay has them."""
    for section, names in _SECTIONS.items():
        holder = data.get(section)
        if isinstance(holder, dict) and holder.keys() <= names.keys() - data.keys():
            del data[section]
            data |= {names[key]: value for key, value in holder.items() if names[key]}
    for model in _mappings(data.get("models")):
        _translate_model(model)
    for kind in ("evaluation_methods", "metrics"):
        for entry in _mappings(data.get(kind)):
            _translate_method(entry)
    if isinstance(data.get("dataset"), dict):
        _translate_dataset(data["dataset"], data)


def _mappings(entries: Any) -> list[dict[str, Any]]:
    listed = entries if isinstance(entries, list) else [entries]
    return [entry for entry in listed if isinstance(entry, dict)]


def _rename(holder: dict[str, Any], names: dict[str, str]) -> None:
    for old, new in names.items():
        if old in holder and new not in holder:
            holder[new] = holder.pop(old)


def _translate_model(model: dict[str, Any]) -> None:
    """`config` has the sampling parameters beside the rest, and `docker` the flags of the server."""
    config, own = model.get("config"), model.get("inference")
    if model.get("type") not in _MODEL_TYPES or "function_name" in model:
        return
    if isinstance(config, dict) and isinstance(own, dict | None):
        sampling = {name: config.pop(name) for name in _SAMPLING if name in config}
        if sampling:
            model["inference"] = sampling | (own or {})
        if model.get("type") == "vllm" and "docker_image" in config:
            model.setdefault("model_path", config.get("model"))
        _rename(config, {"model": "model_name"})
    _rename(model, {"docker_params": "docker"})
    docker = model.get("docker") or {}
    if isinstance(docker, dict):
        for holder in (layer for layer in (model, config) if isinstance(layer, dict)):
            docker |= {"image": holder.pop("docker_image")} if "docker_image" in holder else {}
            docker |= {"gpus": str(holder.pop("gpu_count"))} if "gpu_count" in holder else {}
        if docker:
            model["docker"] = _container(docker, model)


def _container(docker: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    """Return the container's keys with all others as flags of its server, as the original has them."""
    from assay.models._served import Docker

    _rename(docker, {"context_size": "ctx_size"})
    if "max_wait" in docker:
        model.setdefault("start_timeout", docker.pop("max_wait"))
    known = {key: value for key, value in docker.items() if key in Docker.__struct_fields__}
    flags: list[str] = []
    for key, value in docker.items():
        if key not in known and key not in _INSIDE and value is not False:
            flags.append(f"--{key.replace('_', '-')}")
            flags += [] if value is True else [str(value)]
    return {**known, "args": [*flags, *known.get("args", ())]} if flags else known


def _translate_method(entry: dict[str, Any]) -> None:
    _rename(entry, {"config": "params"})
    function = entry.get("function")
    if isinstance(function, str) and ".py:" in function:
        entry["type"] = entry.pop("function")
    elif isinstance(function, str):
        module, _, entry["function_name"] = entry.pop("function").rpartition(".")
        entry |= {"type": "custom", "module": module or None}
    type, params = entry.get("type"), entry.get("params")
    if (entry.get("name") if type in (None, "built_in") else type) not in _COMPARING:
        return
    if isinstance(params, dict):
        if "ground_truth_field" in params:
            # a field of the original's rows, which it never looks at
            params.pop("response_field", None)
        _rename(params, {"ground_truth_field": "expected", "required_keys": "expected_keys"})


def _translate_dataset(dataset: dict[str, Any], data: dict[str, Any]) -> None:
    _rename(dataset, _DATASET)
    field = dataset.get("input_field")
    if isinstance(field, str) and field.isidentifier():
        del dataset["input_field"]
        if not _TEMPLATES & data.keys():
            data["prompt_template"] = f"{{{{ {field} }}}}"
    if "fields" not in dataset and "expected_output_field" in dataset:
        dataset["fields"] = {"ground_truth": dataset.pop("expected_output_field")}
    path, params = str(dataset.get("path")), dataset.get("params")
    is_file = dataset.get("type") in _FILE_TYPES and "function_name" not in dataset
    if is_file and isinstance(params, dict) and path.endswith((".jsonl", ".json", ".csv", ".tsv")):
        params.pop("save", None)
