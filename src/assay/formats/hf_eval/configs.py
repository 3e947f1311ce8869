"""An `eval.yaml` as one of Assay's configs, and where its rows are. The loader of configs finds `config_in` by name."""

import re
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.config.environment import escape
from assay.config.source import scalar
from assay.formats.hf_eval.definition import (
    ChoiceArguments,
    EvalTask,
    JudgeArguments,
    Sampling,
    Step,
    is_eval,
    task_of,
)
from assay.sdk import JsonObject, UserError, as_object, list_of, rows_of

NAME = "eval.yaml"
_FORMATS = "jsonl|json|csv|tsv|parquet"
_FRONT = re.compile(r"---\r?\n(.*?)\r?\n---", re.DOTALL)


def config_in(data: JsonObject, file: Path, task: str) -> JsonObject | None:
    """The config that a file stands for, if it is an eval.yaml."""
    return config_of(file, task) if is_eval(data) else None


def config_of(
    path: str | Path, task: str = "", *, repository: str = "", revision: str = ""
) -> JsonObject:
    """The config of a task of an eval.yaml, or of the one in a folder; it has no models. The rows are files beside it,
    or the dataset `repository` of the hub."""
    file = Path(path)
    file = file / NAME if file.is_dir() else file
    definition = task_of(file, task)
    params = {"task": task, "repository": repository, "revision": revision}
    config: JsonObject = {
        "name": definition.id or file.absolute().parent.name,
        "dataset": {
            "type": "hf_eval",
            "path": str(file.absolute()),
            "params": {name: value for name, value in params.items() if value},
        },
        "evaluation_methods": [
            _scorer(step, at, definition) for at, step in enumerate(definition.scorers)
        ],
        "metrics": _metrics(definition),
        "num_samples": definition.epochs,
    }
    if sampling := _sampling(definition):
        config["sample_params"] = sampling
    return escape(config)  # no variable of the user's for a stranger's file


def _scorer(step: Step, at: int, task: EvalTask) -> JsonObject:
    names = [other.name for other in task.scorers]
    name = step.name if names.count(step.name) == 1 else f"{step.name}_{at + 1}"
    if step.name.startswith("model_graded"):
        judged = msgspec.convert(step.args, JudgeArguments)
        params: JsonObject = {"verdicts": "ternary"} if judged.partial_credit else {}
        params |= {"model": judged.model} if judged.model else {}
        return {"name": name, "type": "judge_correctness", "params": params}
    params = dict(step.args)
    if step.name == "choice":
        params["multiple"] = any(solver.args.get("multiple_correct") for solver in task.solvers)
    return {"name": name, "type": f"hf_eval.{step.name}", "params": params}


def _metrics(task: EvalTask) -> list[JsonObject]:
    """The mean over items of what the reducer makes of their samples."""
    reducer = task.epoch_reducer or "mean"
    if reducer == "mean":
        return [{"name": "mean", "type": "mean", "facets": ["model_name"]}]
    graded = any(step.name == "f1" or step.args.get("partial_credit") for step in task.scorers)
    kind, k, name = "pass_at_k", task.epochs, reducer
    if reducer != "max":
        k = int(reducer.removeprefix("pass_at_"))
        name = f"pass@{k}"
    elif graded:
        kind = "best_of_k"
    return [{"name": name, "type": kind, "params": {"k": k}, "facets": ["model_name"]}]


def _sampling(task: EvalTask) -> JsonObject:
    last = task.solvers[-1]
    if last.name == "multiple_choice":
        most = msgspec.convert(last.args, ChoiceArguments).max_tokens
        return {"max_tokens": most} if most else {}
    params = msgspec.to_builtins(msgspec.convert(last.args, Sampling))
    if "stop_seqs" in params:
        params["stop"] = params.pop("stop_seqs")
    return params


# ---- where the rows are


def source_of(file: Path, task: EvalTask, repository: str, revision: str) -> JsonObject:
    """The rows of a task, as a config's dataset: files of the folder, found by the README or by their names, else the
    hub's."""
    folder = file.parent
    if repository:
        place = {"name": repository, "subset": _subset(task), "split": task.split}
        return {"type": "hf", **place, "revision": revision}
    paths = _declared_files(folder, task) or _usual_files(folder, task)
    if paths:
        return {"path": paths}
    raise UserError(
        f"there is no file with the split {task.split!r} of the config {task.config!r} beside {NAME}",
        where=str(folder),
        fix=f"put {task.split}.jsonl (or {_FORMATS.replace('|', ', ')}) there, or name the dataset's repository",
    )


def _subset(task: EvalTask) -> str:
    return "" if task.config == "default" else task.config


def _declared_files(folder: Path, task: EvalTask) -> list[str]:
    """The files that the front matter of the README names for this config and split."""
    card = folder / "README.md"
    try:
        front = _FRONT.match(reading.text(card)) if card.is_file() else None
        card_data: Any = scalar(front[1]) if front else None
    except (UserError, UnicodeDecodeError, OSError) as error:
        raise UserError(
            f"the front matter of the README cannot be read: {error}", where=str(card)
        ) from None
    for config in rows_of(as_object(card_data).get("configs")):
        if config.get("config_name", "default") == task.config:
            patterns = _patterns(config, task)
            return [str(path) for pattern in patterns for path in _inside(folder, pattern)]
    return []


def _patterns(config: JsonObject, task: EvalTask) -> list[str]:
    """`data_files` is a path, a list of them, or a list of {split, path}."""
    patterns: list[str] = []
    for entry in _several(config.get("data_files")):
        is_named = isinstance(entry, dict)
        named = as_object(entry) if is_named else {"split": task.split, "path": entry}
        if named.get("split") == task.split and named.get("path") is not None:
            patterns += map(str, _several(named["path"]))
    return patterns


def _several(value: Any) -> list[Any]:
    return list_of(value) if isinstance(value, list) else [value]


def _inside(folder: Path, pattern: str) -> list[Path]:
    """The files of a pattern; a repository names none outside itself."""
    root = folder.resolve()
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise UserError(
            f"the path {pattern!r} leaves the repository", where=str(folder / "README.md")
        )
    return sorted(
        path
        for path in folder.glob(pattern)
        if path.is_file() and path.resolve().is_relative_to(root)
    )


def _usual_files(folder: Path, task: EvalTask) -> list[str]:
    """Files that are called like the split, in the usual places."""
    name = re.compile(rf"{re.escape(task.split)}([-_.].*)?\.({_FORMATS})(\.gz|\.zst)?")
    inner = _subset(task)
    for place in (folder / inner, folder / "data" / inner):
        files = place.iterdir() if place.is_dir() else ()
        if named := sorted(path for path in files if name.fullmatch(path.name)):
            return [*map(str, named)]
    return []
