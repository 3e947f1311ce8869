"""What a log says about its run: the header, or, where a run never ended, what it began with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from assay.engine.experiment.imports.foreign import Rest, unknown_version, without_secrets
from assay.formats.inspect_ai.shapes import VERSION, finite

Row = dict[str, Any]
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
_OF_EVAL = {
    "eval_set_id",
    "eval_id",
    "run_id",
    "created",
    "task",
    "task_id",
    "task_version",
    "task_file",
    "task_display_name",
    "task_description",
    "task_registry_name",
    "task_attribs",
    "task_args",
    "task_args_passed",
    "solver",
    "solver_args",
    "solver_args_passed",
    "tags",
    "dataset",
    "sandbox",
    "model",
    "model_generate_config",
    "model_base_url",
    "model_args",
    "model_roles",
    "config",
    "revision",
    "packages",
    "metadata",
    "viewer",
    "scorers",
    "metrics",
    "headline_metric",
    "shards",
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


class Header(msgspec.Struct):
    """The parts of a header that are looked at; a part that is not what it should be is empty."""

    version: int = VERSION
    status: str = "started"
    eval: Row = {}
    plan: Row = {}
    results: Row = {}
    stats: Row = {}
    error: Row = {}
    invalidated: bool = False
    rest: Row = {}

    @property
    def task(self) -> str:
        return str(self.eval.get("task") or "inspect_ai")

    @property
    def model(self) -> str:
        return str(self.eval.get("model") or "")

    @property
    def log(self) -> str:
        """What tells this run from others."""
        return str(
            self.eval.get("eval_id") or self.eval.get("run_id") or self.eval.get("created") or ""
        )

    @property
    def epochs(self) -> int:
        return _count(_dict(self.eval.get("config")).get("epochs")) or 1

    @property
    def ids(self) -> list[Any]:
        ids = _dict(self.eval.get("dataset")).get("sample_ids")
        return cast("list[Any]", ids) if isinstance(ids, list) else []

    @property
    def alike(self) -> set[str]:
        """The ids that are a number in one place and the same text in another."""
        texts = {id for id in self.ids if isinstance(id, str)}
        return {str(id) for id in self.ids if not isinstance(id, str) and str(id) in texts}

    @property
    def planned(self) -> int | None:
        """How many samples the run should have had."""
        dataset = _dict(self.eval.get("dataset"))
        samples = len(self.ids) or _count(dataset.get("samples"))
        return _count(self.results.get("total_samples")) or samples * self.epochs or None

    @property
    def scores(self) -> list[Row]:
        """The results of each scorer, or of each key of its scores."""
        scores = self.results.get("scores")
        return [_dict(row) for row in cast("list[Any]", scores)] if isinstance(scores, list) else []

    @property
    def scorers(self) -> list[str]:
        scorers = self.eval.get("scorers")
        rows = (
            [_dict(row) for row in cast("list[Any]", scores)]
            if isinstance(scores := scorers, list)
            else []
        )
        return [str(row["name"]) for row in rows if row.get("name")]

    def facts(self) -> Row:
        """What goes into the manifest, without secrets."""
        facts = {
            name: self.eval[name]
            for name in _FACTS
            if self.eval.get(name) not in (None, "", [], {})
        }
        dataset = {
            name: value
            for name, value in _dict(self.eval.get("dataset")).items()
            if name != "sample_ids"
        }
        more = {"dataset": dataset, "plan": self.plan, "stats": self.stats, **self.rest}
        for name in (
            "total_samples",
            "completed_samples",
            "headline",
            "early_stopping",
            "metadata",
        ):
            if self.results.get(name) not in (None, [], {}):
                more[f"results.{name}"] = self.results[name]
        facts["model_args"] = {
            name: value
            for name, value in _dict(facts.get("model_args")).items()
            if _is_plain(value)
        }
        return without_secrets({**facts, **{name: value for name, value in more.items() if value}})


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def header_of(data: bytes | Mapping[str, Any], path: Path, rest: Rest) -> Header:
    """The header in a file; ValueError if it is not an object, UserError for a version that is not known."""
    fields: Any = data if isinstance(data, Mapping) else _decode(data)
    if not isinstance(fields, Mapping):
        raise ValueError("the header is not an object")
    row = cast("Row", {**fields})
    version = row.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise unknown_version("a log of inspect_ai", version, path, set(row) - _KNOWN)
    others = rest.of(row, _KNOWN, _KNOWN, "header.")
    spec = _dict(row.get("eval"))
    others |= {
        f"eval.{name}": value for name, value in rest.of(spec, _OF_EVAL, _OF_EVAL, "eval.").items()
    }
    for name in ("log_updates", "config_updates"):
        if row.get(name):
            others[name] = row[name]
    return Header(
        version=version,
        status=str(row.get("status") or "started"),
        eval=spec,
        plan=_dict(row.get("plan")),
        results=_dict(row.get("results")),
        stats=_dict(row.get("stats")),
        error=_dict(row.get("error")),
        invalidated=bool(row.get("invalidated")),
        rest=others,
    )


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return msgspec.json.decode(finite(data))


def _dict(value: Any) -> Row:
    return cast("Row", value) if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
