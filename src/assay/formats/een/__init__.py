"""The names of een-eval for programs that use it: replace `een_eval` by `assay.formats.een`.

They write an ordinary config, which the ordinary engine runs; functions may be any objects of Python.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from assay import api
from assay.formats.een.dialect import translate

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.api import Result


class Entry(dict[str, Any]):
    """An entry of a config: a model, an evaluation method or a metric."""

    @property
    def name(self) -> str:
        return str(self["name"])

    @classmethod
    def from_name(cls, name: str) -> "Entry":
        return cls(name=name)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Entry":
        return cls(config)

    from_dict = from_config

    @classmethod
    def from_function(cls, name: str, function: "Callable[..., Any]", **params: Any) -> "Entry":
        return cls(name=name, type=function, **_settings(params))

    @classmethod
    def from_file(
        cls, name: str, file_path: str, function_name: str | None = None, **params: Any
    ) -> "Entry":
        function = function_name or name
        return cls(
            name=name, type="custom", path=file_path, function_name=function, **_settings(params)
        )

    @classmethod
    def built_in(cls, name: str, type: str | None = None, **params: Any) -> "Entry":
        return cls(name=name, type=type or name, **_settings(params))

    create = built_in


class DatasetEntry(Entry):
    """The dataset of a config: a file, rows, or a function that gives them."""

    @classmethod
    def from_file(cls, file_path: str) -> "Entry":  # type: ignore[override]
        return cls(path=file_path)

    @classmethod
    def from_function(cls, function: "Callable[..., Any]", **params: Any) -> "Entry":  # type: ignore[override]
        return cls(type=function, params=params)

    @classmethod
    def from_list(cls, data: Sequence[Any]) -> "Entry":
        return cls(type=list(data))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Entry":
        return cls.from_list(data["items"])


def _settings(params: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of an entry: its own ones, and `params` by that name or each as a keyword."""
    own = {key: params.pop(key) for key in ("facets", "labels") if key in params}
    return {**own, "params": {**params.pop("params", {}), **params}}


class ModelType:
    """The types of models that the original names."""

    OPENAI = "openai"
    VLLM = "vllm"
    LLAMA_CPP = "llama.cpp"


class WorkflowStatus(msgspec.Struct, kw_only=True):
    """The `status.json` of a folder, with the original's fields."""

    mode: str = "inference"
    total_samples: int = 0
    processed_samples: int = 0
    failed_samples: int = 0
    progress_percent: float = 0.0
    current_model: str | None = None
    start_time: float | None = None
    last_update: float | None = None
    errors: list[str] = []


class EvalWorkflow:
    """A config in the making: `config`, a path or a dict, below what is said here. `settings` are further
    keys of a config, such as `sample_params`, `output_dir`, `mode`, `resume` and `limit`."""

    def __init__(
        self,
        models: Sequence[Any] | None = None,
        dataset: Any = None,
        evaluation_methods: Sequence[Any] | None = None,
        metrics: Sequence[Any] | None = None,
        *,
        config: str | Path | Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        given = {
            "models": models and _named(models),
            "dataset": dataset,
            "evaluation_methods": evaluation_methods,
            "metrics": metrics,
            **settings,
        }
        self._source = {"name": "een"} if config is None else config
        self._keys = {key: value for key, value in given.items() if value is not None}
        self._result: Result | None = None

    @classmethod
    def from_config(
        cls, config_path: str | Path, overrides: Mapping[str, Any] | None = None
    ) -> "EvalWorkflow":
        return cls(config=config_path, **(overrides or {}))

    def add_models(self, models: Sequence[Any]) -> "EvalWorkflow":
        """Add models; those of a config file no longer count."""
        self._keys["models"] = [*self._keys.get("models", ()), *_named(models)]
        return self

    def load_dataset(self, dataset: Any) -> "EvalWorkflow":
        return self._set("dataset", dataset)

    def add_evaluation_method(self, name_or_method: Any, *of: Any, **params: Any) -> "EvalWorkflow":
        """Add one to those of the config: `path` and `function_name`, or a built-in's name."""
        return self._add("evaluation_methods", _entry(name_or_method, *of, **params))

    def add_metric(self, name_or_metric: Any, *of: Any, **params: Any) -> "EvalWorkflow":
        """Add one to those of the config, as `add_evaluation_method` does."""
        return self._add("metrics", _entry(name_or_metric, *of, **params))

    def set_sample_params(self, **params: Any) -> "EvalWorkflow":
        return self._set("sample_params", {**self._keys.get("sample_params", {}), **params})

    def set_prompt_template(self, template: str) -> "EvalWorkflow":
        return self._set("eval_prompt_template", template)

    def set_output_dir(self, output_dir: str) -> "EvalWorkflow":
        return self._set("output_dir", output_dir)

    def set_mode(self, mode: str) -> "EvalWorkflow":
        return self._set("mode", mode)

    def run(self) -> "Result":
        """Run as `assay.run` does: what is there already is kept."""
        from assay.config import load
        from assay.config.source import copied

        keys = copied(self._keys)
        translate(keys)
        sampling: dict[str, Any] = keys.pop("sample_params", {})
        changes = {f"sample_params.{name}": value for name, value in sampling.items()}
        self._result = api.run(load(self._source, arguments=keys, overrides=changes))
        return self._result

    @property
    def status(self) -> WorkflowStatus:
        """What the folder's `status.json` says; a new one before the first run."""
        folder = self._result.folder if self._result else self._keys.get("output_dir")
        file = Path(folder or "") / "status.json"
        if folder is None or not file.is_file():
            return WorkflowStatus(mode=self._keys.get("mode", "inference"))
        return msgspec.json.decode(file.read_bytes(), type=WorkflowStatus)

    def is_complete(self) -> bool:
        return self.status.mode == "complete"

    def get_results(self) -> dict[str, Any] | None:
        """Return the labels, metrics and status of the last run as plain values; None before it."""
        if self._result is None:
            return None
        labels = api.EvaluationRepository(store := api.open_store(self._result.folder))
        rows = [labels.evaluations(id) for id in store.ids("evaluation")]
        return {
            "evaluation": msgspec.to_builtins([row for part in rows for row in part]),
            "metrics": msgspec.to_builtins(self._result.metrics),
            "status": msgspec.to_builtins(self.status),
        }

    def _set(self, key: str, value: Any) -> "EvalWorkflow":
        self._keys[key] = value
        return self

    def _add(self, key: str, entry: Any) -> "EvalWorkflow":
        from assay.config.source import read

        if key not in self._keys:
            document = read(self._source)
            self._keys[key] = [
                _anchored(each, document.base) for each in document.data.get(key) or ()
            ]
        self._keys[key] = [*self._keys[key], entry]
        return self


def _anchored(entry: Any, base: Path) -> Any:
    """Return an entry whose file is named by a path from anywhere."""
    has_file = isinstance(entry, dict) and entry.get("path")
    return {**entry, "path": str(base / entry["path"])} if has_file else entry


def _named(models: Sequence[Any]) -> list[Any]:
    return [{"name": model} if isinstance(model, str) else model for model in models]


def _entry(
    name: Any, path: str | None = None, function_name: str | None = None, **params: Any
) -> Any:
    if not isinstance(name, str):
        return name
    if path:
        return Entry.from_file(name, path, function_name, **params)
    return Entry.built_in(name, **params)


Model = ModelConfig = EvaluationMethod = Metric = BuiltInEvaluationMethod = BuiltInMetric = Entry
Dataset = DatasetEntry
