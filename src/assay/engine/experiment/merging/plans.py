"""Whether several folders are parts of one plan, and the plan and the config of them all.

Models and items may be shared out among folders. What determines an answer, a label or a number may not differ:
prompts, sampling, scorers, metrics, and the settings of a task that two folders have.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import msgspec

from assay.config.differences import by_name, comparable, unequal
from assay.config.source import read
from assay.engine.experiment.sources import Source
from assay.engine.experiment.trust import CONFIG
from assay.errors import UserError
from assay.records import Manifest
from assay.store.shared.mirror import named

_AGREED = (
    "prompts",
    "sample_params",
    "num_samples",
    "benchmarks",
    "evaluation_methods",
    "metrics",
    "policy",
    "ci_level",
    "cluster_by",
    "seed",
)
_SHARED_OUT = ("models", "tasks")
_MOST_NAMED = 10
_LONGEST = 60


class OnePlan(msgspec.Struct, kw_only=True):
    """Of the merged run: `tasks` is empty for rows that were imported. `meets` says that scorers look at answers of
    several tasks at once, and folders have different ones: then labels are missing."""

    tasks: list[dict[str, Any]]
    samples: int
    imported: list[Any]
    scorers: list[dict[str, Any]]
    config: dict[str, Any] | None
    meets: bool


def one_plan(sources: Sequence[Source]) -> OnePlan:
    """The plan that the sources are parts of; all differences at once if there is none."""
    problems = list(
        dict.fromkeys(
            problem for pair in combinations(sources, 2) for problem in _differences(*pair)
        )
    )
    if problems:
        what = "these are not parts of one plan, and nothing was written"
        raise refusal(what, problems[:_MOST_NAMED], len(problems), _FIX)
    runs = [*map(_run, sources)]
    tasks: dict[str, Any] = {}
    scorers: dict[str, Any] = {}
    for source, run in zip(sources, runs, strict=True):
        tasks |= {name: task for name, task in _tasks(run).items() if name not in tasks}
        scorers |= _scorers(source)
    several = any("player" in scorer for scorer in scorers.values())
    return OnePlan(
        tasks=list(tasks.values()),
        samples=runs[0].plan.get("samples", 1),
        imported=[run.plan["adopted"] for run in runs if "adopted" in run.plan],
        scorers=list(scorers.values()),
        config=_config(sources),
        meets=several and any(set(_tasks(run)) != set(tasks) for run in runs),
    )


def refusal(what: str, problems: Sequence[str], count: int, fix: str) -> UserError:
    """One error that names these problems of so many."""
    more = [f"and {count - len(problems):,} more"] if count > len(problems) else []
    return UserError("\n  - ".join([what, *problems, *more]), fix=fix)


_FIX = "merge folders that were run with one config; `assay compare` and `assay diff` take different ones"


def _differences(first: Source, second: Source) -> Iterator[str]:
    def said(pairs: Iterator[tuple[str, Any, Any]]) -> Iterator[str]:
        for key, *values in pairs:
            texts = [
                f"{_short(value)} in {source.name}"
                for value, source in zip(values, (first, second), strict=True)
            ]
            yield f"{key}: {', '.join(texts)}"

    configs = [
        comparable(source.folder / CONFIG) if source.folder else {} for source in (first, second)
    ]
    if all(configs):
        agreed = [{key: config.get(key) for key in _AGREED} for config in configs]
        yield from said(unequal("", *agreed))
    runs = [*map(_run, (first, second))]
    if ("adopted" in runs[0].plan) != ("adopted" in runs[1].plan):
        kinds = ["imported" if "adopted" in run.plan else "run by Assay" for run in runs]
        yield f"responses: {kinds[0]} in {first.name}, {kinds[1]} in {second.name}"
        return
    yield from said(unequal("samples", *(run.plan.get("samples") for run in runs)))
    tasks = [_tasks(run) for run in runs]
    for name in tasks[0].keys() & tasks[1].keys():
        yield from said(unequal(f"task {name}", *(task[name].get("identity") for task in tasks)))
    if first.manifest("evaluation") is not None and second.manifest("evaluation") is not None:
        yield from said(unequal("scorer", _scorers(first), _scorers(second)))


def _run(source: Source) -> Manifest:
    manifest = source.manifest("run")
    assert manifest is not None  # folders without one were refused
    return manifest


def _tasks(run: Manifest) -> dict[str, Any]:
    return by_name(run.plan.get("tasks"))


def _scorers(source: Source) -> dict[str, Any]:
    manifest = source.manifest("evaluation")
    return by_name(manifest.plan.get("scorers")) if manifest else {}


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _config(sources: Sequence[Source]) -> dict[str, Any] | None:
    """The config of the first folder that has one, with the models and tasks of all."""
    files = [
        file for source in sources if source.folder and (file := source.folder / CONFIG).is_file()
    ]
    if not files:
        return None
    whole, *others = ({**read(file).data} for file in files)
    for other in others:
        for part in _SHARED_OUT:
            mine, theirs = cast("list[Any]", whole.get(part) or []), by_name(other.get(part))
            known = by_name(mine)
            whole[part] = [*mine, *(entry for name, entry in theirs.items() if name not in known)]
    return whole


def placed_config(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The config as the merged folder has it: its dataset are the folder's own items, wherever they came from."""
    placed = {**config, "output_dir": named(folder), "limit": None}
    dataset: Any = config.get("dataset")
    if isinstance(dataset, Mapping) and not config.get("benchmarks"):
        kept = {key: dataset[key] for key in ("media",) if dataset.get(key)}
        placed["dataset"] = {"type": "jsonl", "path": named(folder / "items.jsonl"), **kept}
    return placed
