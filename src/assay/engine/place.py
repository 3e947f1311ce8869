"""Who makes the rows of an experiment: this process alone, or workers in one of several places."""

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from assay.config import Config
from assay.engine.experiment.existing import aggregate, evaluate
from assay.engine.experiment.experiment import Experiment, Options
from assay.engine.experiment.resolve import find_source
from assay.engine.experiment.sources import ConfigSource
from assay.reading import Paths, each_of, is_foreign, is_remote
from assay.sdk import JsonMapping, JsonObject, UserError

_WHERE = ("workers", "shard", "on")


def run_of(config: Config, options: JsonMapping) -> Experiment:
    """The run of a config. `workers`, `shard` and `on` among the options say who makes the rows, `locked` whether it is
    held to a lock, the others are those of `Options`."""
    where, own = _parted(options)
    if config.on is not None and config.on.ray is not None and "shard" not in where:
        where.setdefault("on", "ray")
    locked = own.pop("locked", None)
    place = str(own.get("output_dir") or config.output_dir)
    return _experiment_at(place, where, own, partial(_experiment, config, locked))


def _experiment_at(
    place: str,
    where: JsonObject,
    own: JsonObject,
    make: Callable[[JsonObject], Experiment],
    paths: Sequence[str] = (),
) -> Experiment:
    """Return an experiment with its own options, whose rows this process makes, or workers."""
    if not where and not is_remote(place):
        return make(own)
    from assay.engine.cluster.placement import Placement
    from assay.engine.cluster.root import Root

    root = Root(place)
    experiment = make({**own, "output_dir": str(root.folder)})
    experiment.by_workers = Placement(root, paths=paths, **where)
    return experiment


def _experiment(
    config: Config, locked: bool | str | Path | None, options: JsonObject
) -> Experiment:
    """`locked`: held to its lock, the one beside the config or in this file."""
    if not locked:
        return Experiment(config, Options(**options))
    from assay.engine.experiment.locks import LockedExperiment

    return LockedExperiment(config, Options(**options), lock="" if locked is True else str(locked))


def _place_of(paths: Sequence[str | Path], output_dir: str | None) -> str:
    """Return where evaluations go: to the folder named, or to that of the one experiment; empty
    if there are several."""
    if output_dir or len(paths) != 1:
        return output_dir or ""
    if is_remote(paths[0]):
        return str(paths[0])
    source = find_source(paths[0], "run")
    return str(source.folder or source.path)


def evaluation(paths: Paths, config: ConfigSource | None = None, **options: Any) -> Experiment:
    """The responses of folders or files bound to a config's scorers, not yet scored; options as those of `evaluate`."""
    where, own = _parted(options)
    listed = each_of(paths)
    place = _place_of(listed, own.get("output_dir"))
    by_workers = where or is_remote(place)
    if by_workers and own.get("budget") is not None:
        what = "a budget of matches is for one process: the next match depends on all before it"
        raise UserError(what, fix="leave out --budget, or the workers")
    if by_workers and not place:
        fix = "name a folder with -o"
        raise UserError(
            f"it is not clear where the evaluations of {len(listed)} sources should go", fix=fix
        )
    absolute = [str(path) if is_remote(path) else str(Path(path).absolute()) for path in listed]
    make = lambda own: evaluate(listed, config, **own)  # noqa: E731
    return _experiment_at(place, where, own, make, absolute)


def aggregation(
    paths: Paths, config: ConfigSource | None, on: str | None, **options: Any
) -> Experiment:
    """Metrics over existing evaluations; options as those of `aggregate`."""
    experiment = aggregate(paths, config, **options)
    if on == "ray":
        from assay.engine.cluster.engines.ray import aggregate_on_ray

        listed = [*map(str, each_of(paths))]
        experiment.by_workers = lambda one, _: asyncio.to_thread(
            aggregate_on_ray, listed, one, options["output_dir"]
        )
    return experiment


def _parted(options: JsonMapping) -> tuple[JsonObject, JsonObject]:
    if is_foreign(place := options.get("output_dir") or ""):
        raise UserError(
            f"rows cannot be kept at {str(place)!r}", fix="give a folder, or s3://, gs:// or az://"
        )
    where = {word: options[word] for word in _WHERE if options.get(word) or options.get(word) == 0}
    if "shard" in where and len(where) > 1:
        raise UserError(
            "a shard is for one of many processes, and cannot start workers",
            fix="leave out --shard",
        )
    if "shard" in where:
        where["shard"] = shard_of(where["shard"])
    return where, {word: value for word, value in options.items() if word not in _WHERE}


def shard_of(text: Any) -> tuple[int, int]:
    """Return `3/16` as (3, 16)."""
    if isinstance(text, tuple):
        return cast("tuple[int, int]", text)
    match = re.fullmatch(r"(\d+)/(\d+)", str(text))
    number, parts = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= parts:
        what = f"a shard is I/N with I from 1 to N, not {text!r}"
        raise UserError(what, fix="--shard 3/16 for the third of sixteen processes")
    return number, parts
