"""Calls of tools, as answers have them and as datasets expect them.

A model may write anything where arguments should be: what is not a JSON object stays as it is, with the reason.
"""

from typing import Any

import msgspec


class ToolCall(msgspec.Struct, frozen=True):
    """`problem` says why there are no arguments."""

    name: str
    arguments: Any = None
    problem: str = ""


def read_call(call: Any) -> ToolCall:
    """A call as OpenAI ({function: {name, arguments}}) or Anthropic ({name, input}) has it, or {name, arguments}."""
    fields: dict[str, Any] = call if isinstance(call, dict) else {}
    function: Any = fields.get("function")
    held: dict[str, Any] = function if isinstance(function, dict) else fields
    name = held.get("name")
    if not isinstance(name, str) or not name:
        return ToolCall("", problem="the call names no tool")
    given: Any = next((held[key] for key in ("arguments", "input", "args") if held.get(key) is not None), {})
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given) if given.strip() else {}
        except (msgspec.DecodeError, RecursionError) as error:
            return ToolCall(name, problem=f"the arguments are not JSON: {error}")
    if not isinstance(given, dict):
        return ToolCall(name, problem=f"the arguments are not an object: {str(given)[:60]}")
    return ToolCall(name, given)


def invalid_calls(calls: list[Any]) -> list[str]:
    """What is wrong with the calls of an answer."""
    read = ((number, read_call(call)) for number, call in enumerate(calls, 1))
    return [
        f"call {number}{f' of {call.name}' if call.name else ''}: {call.problem}"
        for number, call in read
        if call.problem
    ]
