"""Two JSON values, compared path by path."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Comparison:
    """How many expectations there were, and the paths of those that do not hold."""

    total: int = 0
    missing: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])
    unexpected: list[str] = field(default_factory=list[str])


def compare(wanted: Any, given: Any, found: Comparison, strict: bool, tolerance: float, path: str = "") -> None:
    """Add to `found` what `wanted` expects of `given`: one expectation for each value at the end of a path."""
    if isinstance(wanted, dict) and wanted:
        if not isinstance(given, dict):
            _count_all(wanted, found)
            found.wrong.extend(_ends(wanted, path))
            return
        for key, value in wanted.items():
            place = f"{path}.{key}" if path else str(key)
            if key in given:
                compare(value, given[key], found, strict, tolerance, place)
            else:
                _count_all(value, found)
                found.missing.extend(_ends(value, place))
        if strict:
            found.unexpected += [f"{path}.{key}" if path else str(key) for key in given if key not in wanted]
        return
    if isinstance(wanted, list) and wanted and isinstance(given, list) and len(wanted) == len(given):
        for number, (value, other) in enumerate(zip(wanted, given, strict=True)):
            compare(value, other, found, strict, tolerance, f"{path}.{number}" if path else str(number))
        return
    found.total += 1
    if not _equal(wanted, given, strict, tolerance):
        found.wrong.append(path or "value")


def _equal(wanted: Any, given: Any, strict: bool, tolerance: float) -> bool:
    if isinstance(wanted, dict):  # an empty object: any object has what it expects
        return isinstance(given, dict) and not (strict and given)
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, (int, float)) and isinstance(given, (int, float)):
        return wanted == given or abs(wanted - given) <= tolerance
    return type(wanted) is type(given) and wanted == given


def _ends(value: Any, path: str) -> list[str]:
    """The paths at which a value's expectations end."""
    if isinstance(value, dict) and value:
        return [end for key, entry in value.items() for end in _ends(entry, f"{path}.{key}" if path else str(key))]
    return [path or "value"]


def _count_all(value: Any, found: Comparison) -> None:
    found.total += len(_ends(value, ""))
