"""A config's dataset as rows with their places, and what tells that its source is still the one that was read."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay import registry
from assay.config import DatasetConfig
from assay.datasets._files import files
from assay.datasets._shape import shaped
from assay.errors import UserError
from assay.steps.ingest import file_stamp


def open_dataset(source: DatasetConfig, base: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row) of every row of a config's dataset, one file after the other, then shaped as the config says."""
    return shaped(_read(source, base), source)


def stamp_of(source: DatasetConfig, base: Path) -> dict[str, Any] | None:
    """Equal stamps mean equal rows; None where nothing can tell, as for a function."""
    read = registry.dataset.get(source.type, base=base, where="dataset.type")
    own: Callable[..., dict[str, Any]] | None = getattr(read, "__assay__", {}).get("stamp")
    if source.type == "function":
        return None
    if own is not None:
        found = own(_name(source), **_params(read, source))
    else:
        paths = files(source.path or source.name)
        if not all(path.is_file() for path in paths):
            return None
        found = {"files": [file_stamp(path) for path in paths]}
    return {**found, "dataset": msgspec.to_builtins(source)}


def _read(source: DatasetConfig, base: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    read = registry.dataset.get(source.type, base=base, where="dataset.type")
    if source.type == "function":
        function = _function(source, base)
        params = registry.check_params(function, source.params, where="dataset.params", given=0)
        yield from read(function, params=params)
    elif _takes_name(read):
        yield from read(_name(source), **_params(read, source))
    else:
        params = _params(read, source)
        for path in files(source.path or source.name):
            yield from read(path, **params)


def _function(source: DatasetConfig, base: Path) -> Callable[..., Any]:
    if source.path:
        return registry.load_function(str(source.path), source.function_name, base=base, where="dataset")
    name = f"{source.module}.{source.function_name}" if source.module else source.function_name
    return registry.dataset.get(name, base=base, where="dataset")


def _takes_name(read: Callable[..., Any]) -> bool:
    """A format's first argument is the `path` of one file; a source's is the `name` of the whole."""
    return next(iter(inspect.signature(read).parameters), "") == "name"


def _name(source: DatasetConfig) -> str:
    name = source.name or source.path
    if isinstance(name, list):
        raise UserError(f"a {source.type} dataset is one, not a list", where="dataset.path", fix="name one of them")
    return name


def _params(read: Callable[..., Any], source: DatasetConfig) -> dict[str, Any]:
    keys = {"subset": source.subset, "revision": source.revision, "repository": source.repository}
    if source.split is not None and not source.split.ratio:
        keys["split"] = source.split.name
    given = {**source.params, **{key: value for key, value in keys.items() if value}}
    return registry.check_params(read, given, where="dataset")
