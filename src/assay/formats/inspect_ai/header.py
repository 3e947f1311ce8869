"""What a log says about its run: the header, or, where a run never ended, what it began with."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from assay.foreign import Rest, unknown_version, without_secrets
from assay.formats.inspect_ai.shapes import VERSION, finite_value
from assay.sdk import JsonMapping, JsonObject, as_object, list_of, rows_of

_KNOWN = {
    "version",
    "status",
    "eval",
    "plan",
    "results",
    "stats",
    "error",
    "invalidated",
    "log_updates",
    "config_updates",
    "tags",
    "metadata",
    "samples",
    "reductions",
}
_FACTS = (
    "task",
    "task_version",
    "task_file",
    "task_args",
    "run_id",
    "eval_id",
    "task_id",
    "eval_set_id",
    "created",
    "tags",
    "metadata",
    "solver",
    "solver_args",
    "model",
    "model_args",
    "model_generate_config",
    "model_base_url",
    "model_roles",
    "config",
    "scorers",
    "packages",
    "revision",
    "sandbox",
    "shards",
)
_OF_RESULTS = (
    "total_samples",
    "completed_samples",
    "headline",
    "early_stopping",
    "metadata",
)
_OF_EVAL = {
    *_FACTS,
    "task_display_name",
    "task_description",
    "task_registry_name",
    "task_attribs",
    "task_args_passed",
    "solver_args_passed",
    "dataset",
    "viewer",
    "metrics",
    "headline_metric",
}


class LogHeader:
    """The parts of a header that are looked at; a part that is not what it should be is empty. `scores` are
    the results of each scorer, or of each key of its scores."""

    def __init__(self, row: JsonObject, others: JsonObject) -> None:
        self.eval, self.results = as_object(row.get("eval")), as_object(row.get("results"))
        self.error = as_object(row.get("error"))
        further = {name: as_object(row.get(name)) for name in ("plan", "stats")}
        self._further = {**further, **others}
        self._dataset = as_object(self.eval.get("dataset"))
        self.status = str(row.get("status") or "started")
        self.invalidated = bool(row.get("invalidated"))
        self.task = str(self.eval.get("task") or "inspect_ai")
        self.model = str(self.eval.get("model") or "")
        self.epochs = _count(as_object(self.eval.get("config")).get("epochs")) or 1
        self.ids = list_of(self._dataset.get("sample_ids"))
        self.scores = rows_of(self.results.get("scores"))

    @property
    def log(self) -> str:
        """Return what tells this run from others."""
        ids = (self.eval.get(name) for name in ("eval_id", "run_id", "created"))
        return str(next(filter(None, ids), ""))

    @property
    def planned(self) -> int | None:
        """Return how many samples the run should have had."""
        samples = len(self.ids) or _count(self._dataset.get("samples"))
        return _count(self.results.get("total_samples")) or samples * self.epochs or None

    @property
    def alike(self) -> set[str]:
        """The ids that are a number in one place and the same text in another."""
        texts = {id for id in self.ids if isinstance(id, str)}
        return {str(id) for id in self.ids if not isinstance(id, str) and str(id) in texts}

    @property
    def scorers(self) -> list[str]:
        return [str(row["name"]) for row in rows_of(self.eval.get("scorers")) if row.get("name")]

    def facts(self) -> JsonObject:
        """Return what goes into the manifest, without secrets."""
        facts = _present(self.eval, _FACTS)
        dataset = {name: value for name, value in self._dataset.items() if name != "sample_ids"}
        further = {"dataset": dataset, **self._further}
        results = _present(self.results, _OF_RESULTS)
        further |= {f"results.{name}": value for name, value in results.items()}
        facts["model_args"] = {
            name: value
            for name, value in as_object(facts.get("model_args")).items()
            if not isinstance(value, (dict, list))
        }
        facts |= {name: value for name, value in further.items() if value}
        return without_secrets(facts)


def _present(row: JsonObject, names: Iterable[str]) -> JsonObject:
    return {name: row[name] for name in names if row.get(name) not in (None, "", [], {})}


def header_of(data: bytes | JsonMapping, path: Path, rest: Rest) -> LogHeader:
    """The header in a file; ValueError if it is not an object, UserError for a version that is not known."""
    fields: Any = data if isinstance(data, Mapping) else finite_value(data)
    if not isinstance(fields, Mapping):
        raise ValueError("the header is not an object")
    row: JsonObject = {**fields}
    version = row.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise unknown_version("a log of inspect_ai", version, path, set(row) - _KNOWN)
    others = rest.of(row, _KNOWN, _KNOWN, "header.")
    inner = rest.of(as_object(row.get("eval")), _OF_EVAL, _OF_EVAL, "eval.")
    others |= {f"eval.{name}": value for name, value in inner.items()}
    return LogHeader(row, others | _present(row, ("log_updates", "config_updates")))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
