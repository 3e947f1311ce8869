"""Values of foreign rows as JSON has them: what is not a number is null, arrays are lists, times are text."""

import base64
from collections.abc import Mapping
from datetime import date, time
from typing import Any

_PLAIN = frozenset({str, int, bool, type(None)})
_MISSING = frozenset({"NAType", "NaTType"})  # what pandas has for null


def cleaned(record: dict[str, Any]) -> dict[str, Any]:
    """The record with plain values."""
    return {
        name if type(name) is str else str(name): value if type(value) in _PLAIN else plain_value(value)
        for name, value in record.items()
    }


def plain_value(value: Any) -> Any:
    """One value; what cannot be told stays as it is."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        return None if value != value else float(value)
    if isinstance(value, Mapping):
        return cleaned(dict(value))
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, date | time):
        return value.isoformat()
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return plain_value(value.tolist())
    return value


def as_text(value: Any) -> str:
    """What `json.dumps` should write for a value that JSON does not have."""
    return base64.b64encode(value).decode() if isinstance(value, bytes | bytearray) else str(value)
