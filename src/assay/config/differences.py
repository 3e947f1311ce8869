"""What differs between two configs, or between any two trees of values, key by key, with nothing secret in it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from assay.config.environment import shown_safely, stays_reference
from assay.config.source import read
from assay.errors import AssayError
from assay.records import JsonMapping, JsonObject, list_of

_NOT_SHOWN = "(not shown)"


def comparable(file: Path) -> JsonObject:
    """A config's values, those that may be secret left out; entries with a name stand under it. Empty if the file
    cannot be read."""
    try:
        return _without_secrets(read(file).data, ())
    except (AssayError, OSError):
        return {}


def _without_secrets(value: Any, key: tuple[Any, ...]) -> Any:
    if key and stays_reference(key):
        return _NOT_SHOWN
    if isinstance(value, dict):
        return {
            str(name): _without_secrets(part, (*key, name))
            for name, part in cast("dict[Any, Any]", value).items()
        }
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        if names := _names(parts):
            named = enumerate(zip(names, parts, strict=True))
            return {name: _without_secrets(part, (*key, at)) for at, (name, part) in named}
        return [_without_secrets(part, (*key, at)) for at, part in enumerate(parts)]
    return (
        _NOT_SHOWN
        if isinstance(value, str) and shown_safely(value).startswith("a value")
        else value
    )


def _names(entries: list[Any]) -> list[str]:
    """The names of a list's entries, if each has its own; otherwise none."""
    names = [
        str(entry["name"]) for entry in entries if isinstance(entry, dict) and entry.get("name")
    ]
    return names if len(names) == len(entries) == len(set(names)) else []


def by_name(entries: Any) -> JsonObject:
    """The entries of a list under their names; empty for anything else."""
    parts = list_of(entries)
    return dict(zip(_names(parts), parts, strict=False))


def unequal(what: str, first: Any, second: Any) -> Iterator[tuple[str, Any, Any]]:
    """(dotted key, value, other value) of every leaf that differs; None where there is none."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        left, right = cast("JsonMapping", first), cast("JsonMapping", second)
        for key in dict.fromkeys([*left, *right]):
            yield from unequal(f"{what}.{key}".lstrip("."), left.get(key), right.get(key))
    elif first != second:
        yield what, first, second
