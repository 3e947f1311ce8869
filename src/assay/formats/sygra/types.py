"""Values as YAML and JSON have them: their types and places, a merge, a change in every text."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from assay.sdk import JsonMapping, JsonObject, UserError

Config = JsonMapping  # only read
Row = JsonObject


class YamlPlace(NamedTuple):
    """A value of a YAML and where it stands, which its errors tell."""

    value: Any
    where: str

    def __call__(self, key: Any) -> "YamlPlace":
        """Return what a mapping has under a key."""
        return YamlPlace(self.value.get(key), f"{self.where}.{key}")

    def inside(self, key: str) -> "YamlPlace":
        """Return what a mapping has under a key, at the place of the mapping."""
        return YamlPlace(self.value.get(key), self.where)

    def entries(self) -> "Iterator[YamlPlace]":
        """Yield the entries of a list."""
        return (YamlPlace(entry, f"{self.where}[{n}]") for n, entry in enumerate(self.value))

    def error(self, what: str, fix: str = "") -> UserError:
        return UserError(what, where=self.where, fix=fix)

    def require(self, kind: Any, what: str, fix: str = "") -> Any:
        """Return the value if it is of this type, and refuse it otherwise."""
        if not isinstance(self.value, kind):
            raise self.error(what, fix)
        return self.value

    def require_some(self, kind: Any, what: str, fix: str = "") -> Any:
        """Return the value if it is of this type and not empty, and refuse it otherwise."""
        return YamlPlace(self.value or None, self.where).require(kind, what, fix)


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
