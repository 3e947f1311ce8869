"""The types of values that JSON can hold, for annotations."""

from collections.abc import Mapping, Sequence
from typing import Any

JsonSerializable = int | float | str | bool | Sequence[Any] | Mapping[str, Any] | None
SerializableDict = dict[str, JsonSerializable]
