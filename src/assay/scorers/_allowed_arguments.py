"""Arguments of a call against lists of allowed values, as the Berkeley Function-Calling Leaderboard compares them."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from assay.scorers.json_match import equal
from assay.sdk import JsonMapping, JsonObject, as_list, as_object
from assay.text.tool_calls import ToolCall

_DROPPED = re.compile(r"[ ,./\-_*^]")
_KINDS: JsonObject = {
    "string": str,
    "integer": int,
    **dict.fromkeys(("float", "number", "double"), (int, float)),
    "boolean": bool,
    **dict.fromkeys(("array", "tuple"), list),
    **dict.fromkeys(("dict", "object"), dict),
    "null": type(None),
}


class Rules(NamedTuple):
    """How values are compared. `any_of`: an expected argument is a list of allowed values; `further`: a call may have
    other arguments as well; `tools` has the declared arguments of each tool, where they count."""

    any_of: bool
    loose_text: bool
    tolerance: float
    further: bool
    tools: Mapping[str, JsonMapping] | None = None

    def fits(self, wanted: ToolCall, made: ToolCall) -> bool:
        """Each argument has one of its allowed values, and its declared type or that of the values: an argument may be
        a variable, and descriptions are not always right."""
        tool = (self.tools or {}).get(wanted.name)
        if tool is not None:
            declared: JsonObject = tool["properties"]
            if any(name not in made.arguments for name in tool.get("required") or ()):
                return False
            if not self.further and made.arguments.keys() - declared.keys():
                return False
            for name, value in made.arguments.items():
                allowed = self._allowed_values(wanted.arguments.get(name))
                if not _is_of(declared.get(name), value) and type(value) not in {
                    type(each) for each in allowed
                }:
                    return False
        return self._object(wanted.arguments, made.arguments)

    def _allowed_values(self, value: Any) -> list[Any]:
        return (
            [each for each in value if each != ""]
            if self.any_of and isinstance(value, list)
            else [value]
        )

    def _object(self, wanted: JsonMapping, actual: JsonMapping) -> bool:
        if not self.further and actual.keys() - wanted.keys():
            return False
        for name, allowed in wanted.items():
            values: list[Any] = allowed if self.any_of and isinstance(allowed, list) else [allowed]
            if name not in actual:
                if not self.any_of or "" not in values:  # an empty text stands for none
                    return False
            elif not any(self._equal(value, actual[name]) for value in values):
                return False
        return True

    def _equal(self, wanted: Any, actual: Any) -> bool:
        if isinstance(wanted, dict):
            return isinstance(actual, dict) and self._object(wanted, actual)
        if isinstance(wanted, list):
            same = isinstance(actual, list) and len(wanted) == len(actual)
            return same and all(map(self._equal, wanted, actual))
        if self.loose_text and isinstance(wanted, str) and isinstance(actual, str):
            return _loose(wanted) == _loose(actual)
        return equal(wanted, actual, False, self.tolerance)


def declared_arguments(tools: Any) -> dict[str, JsonObject]:
    """The JSON Schema of each tool's arguments, from descriptions as OpenAI, Anthropic or the leaderboard has them."""
    found: dict[str, JsonObject] = {}
    for tool in as_list(tools):
        held: Any = tool.get("function", tool) if isinstance(tool, dict) else {}
        schema: Any = held.get("parameters") or held.get("input_schema") or {}
        properties: Any = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(held.get("name"), str) or not isinstance(properties, dict):
            raise LookupError("a tool needs a `name` and the `properties` of its `parameters`")
        found[held["name"]] = schema
    return found


def _is_of(schema: Any, value: Any) -> bool:
    """Return whether a value has the declared type; a whole number is a float too, but not the
    other way round."""
    fields = as_object(schema)
    kinds = [_KINDS.get(str(name), object) for name in as_list(fields.get("type"))]
    if isinstance(value, bool):
        return bool in kinds or object in kinds
    if not isinstance(value, tuple(kinds)):
        return False
    items: Any = fields.get("items")
    return not isinstance(value, list) or not items or all(_is_of(items, part) for part in value)


def _loose(text: str) -> str:
    return _DROPPED.sub("", text).lower().replace("'", '"')
