"""Values as YAML and JSON have them: their names, a check, a merge, a change in every text."""

from collections.abc import Callable, Mapping
from typing import Any

from assay.errors import UserError

Config = Mapping[str, Any]  # only read
Row = dict[str, Any]


def fields(value: Any) -> Row:
    """An object as it is; empty for anything else."""
    return value if isinstance(value, dict) else {}


def required(value: Any, kind: type, what: str, where: str, fix: str = "") -> Any:
    """Return a value that has to be of this type; refuse any other."""
    if not isinstance(value, kind):
        raise UserError(what, where=where, fix=fix)
    return value


def deep_update(target: Row, src: Config) -> None:
    """Merge `src` into `target`; only mappings on both sides are merged, all else is replaced."""
    for key, value in src.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), dict):
            deep_update(target[key], value)
        else:
            target[key] = value


def with_texts(content: Any, change: Callable[[str], Any]) -> Any:
    """Return the content with what `change` makes of each text in it."""
    if isinstance(content, str):
        return change(content)
    if isinstance(content, list):
        return [with_texts(entry, change) for entry in content]
    if isinstance(content, Mapping):
        return {key: with_texts(value, change) for key, value in content.items()}
    return content
