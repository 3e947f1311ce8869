"""The names of een-eval for programs that use it, under `assay.formats.een` in place of `een_eval`.

They make an ordinary config, which the ordinary engine runs: nothing is run or stored here.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

from msgspec import to_builtins

from assay import api
from assay.sdk import JsonMapping, JsonObject

_NO_STATUS = {"mode": "inference", "total_samples": 0, "processed_samples": 0, "errors": []}


class ConfigEntry(JsonObject):
    """An entry of a config: a model, an evaluation method or a metric."""

    @property
    def name(self) -> str:
        return self["name"]

    @classmethod
    def from_name(cls, name: str) -> Self:
        return cls(name=name)

    @classmethod
    def from_config(cls, config: JsonMapping) -> Self:
        return cls(config)

    from_dict = from_config

    @classmethod
    def from_function(cls, name: str, function: Callable[..., Any], **params: Any) -> Self:
        return cls.built_in(name, function, **params)

    @classmethod
    def built_in(cls, name: str, type: Any = None, **params: Any) -> Self:
        """Return an entry with its own keys, and `params` by that name or each as a keyword."""
        own = {key: params.pop(key) for key in ("facets", "labels") if key in params}
        given = params.pop("params", {})
        return cls(name=name, type=type or name, params={**given, **params}, **own)


class ModelType:
    """The types of models that the original names."""

    OPENAI = "openai"
    VLLM = "vllm"
    LLAMA_CPP = "llama.cpp"


class EvalWorkflow:
    """A config in the making: `config`, a path or a dict, below what is said here. `settings` are
    further keys of a config: `sample_params`, `output_dir`, `mode`, `resume`, `limit` …"""

    def __init__(
        self,
        models: Sequence[Any] | None = None,
        dataset: Any = None,
        evaluation_methods: Sequence[Any] | None = None,
        metrics: Sequence[Any] | None = None,
        *,
        config: str | Path | JsonMapping | None = None,
        **settings: Any,
    ) -> None:
        lists = {"models": models, "evaluation_methods": evaluation_methods, "metrics": metrics}
        given = {**lists, "dataset": dataset, **settings}
        self._source = {"name": "een"} if config is None else config
        self._keys: JsonObject = {key: value for key, value in given.items() if value is not None}
        self._result: api.Result | None = None

    @classmethod
    def from_config(cls, config_path: str | Path, overrides: JsonMapping | None = None) -> Self:
        return cls(config=config_path, **(overrides or {}))

    def add_models(self, models: Sequence[Any]) -> Self:
        """Add models; those of a config file no longer count."""
        return self._with("models", [*self._keys.get("models", ()), *models])

    def load_dataset(self, dataset: Any) -> Self:
        return self._with("dataset", dataset)

    def add_evaluation_method(self, name_or_method: Any, *file: Any, **params: Any) -> Self:
        """Add one to those of the config: a built-in's name, or a name with path and function."""
        return self._with_entry("evaluation_methods", name_or_method, *file, **params)

    def add_metric(self, name_or_metric: Any, *file: Any, **params: Any) -> Self:
        """Add one to those of the config, as `add_evaluation_method` does."""
        return self._with_entry("metrics", name_or_metric, *file, **params)

    def set_sample_params(self, **params: Any) -> Self:
        return self._with("sample_params", {**self._keys.get("sample_params", {}), **params})

    def set_prompt_template(self, template: str) -> Self:
        return self._with("eval_prompt_template", template)

    def set_output_dir(self, output_dir: str) -> Self:
        return self._with("output_dir", output_dir)

    def set_mode(self, mode: str) -> Self:
        return self._with("mode", mode)

    def run(self) -> api.Result:
        """Run as `assay.run` does: what is there already is kept."""
        from assay.config import load

        keys = dict(self._keys)
        sampling: JsonObject = keys.pop("sample_params", {})
        changes = {f"sample_params.{name}": value for name, value in sampling.items()}
        self._result = api.run(load(self._source, arguments=keys, overrides=changes))
        return self._result

    @property
    def status(self) -> SimpleNamespace:
        """Return what the folder's `status.json` says; that nothing is done where there is none."""
        folder = self._result.folder if self._result else self._keys.get("output_dir")
        file = Path(folder or "") / "status.json"
        told = json.loads(file.read_bytes()) if folder and file.is_file() else _NO_STATUS
        return SimpleNamespace(**told)

    def is_complete(self) -> bool:
        return self.status.mode == "complete"

    def get_results(self) -> JsonObject | None:
        """Return the labels, metrics and status of the last run; None before it."""
        if self._result is None:
            return None
        store = api.open_store(self._result.folder)
        labels = api.EvaluationRepository(store)
        rows = [row for id in store.ids("evaluation") for row in labels.evaluations(id)]
        metrics, status = self._result.metrics, vars(self.status)
        return {"evaluation": to_builtins(rows), "metrics": metrics, "status": status}

    def _with(self, key: str, value: Any) -> Self:
        self._keys[key] = value
        return self

    def _with_entry(
        self, key: str, name: Any, path: str = "", function_name: str = "", **params: Any
    ) -> Self:
        from assay.config import load

        if isinstance(name, str):
            file = f"{path}:{function_name or name}" if path else None
            name = ConfigEntry.built_in(name, file, **params)
        if key not in self._keys:
            self._keys[key] = to_builtins(getattr(load(self._source, need="gate"), key))
        return self._with(key, [*self._keys[key], name])


Model = ModelConfig = EvaluationMethod = Metric = ConfigEntry
