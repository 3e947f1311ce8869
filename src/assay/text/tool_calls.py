"""Calls of tools, as answers have them and as datasets expect them.

A model may write anything where arguments should be: what is not a JSON object stays as it is, with the reason.
"""

import ast
import re
from typing import Any

import msgspec

from assay.records import JsonObject, as_list, as_object
from assay.text.json_out import NoJson, fenced, read_json

_LONGEST = 100_000  # letters of a text that is read as Python
_BEGINS_A_CALL = re.compile(r"\[|[A-Za-z_][\w.]*\s*\(")


class ToolCall(msgspec.Struct, frozen=True):
    """`problem` says why there are no arguments."""

    name: str
    arguments: Any = None
    problem: str = ""


def read_call(call: Any) -> ToolCall:
    """A call as OpenAI ({function: {name, arguments}}) or Anthropic ({name, input}) has it, or {name, arguments}."""
    fields = as_object(call)
    function: Any = fields.get("function")
    held: JsonObject = function if isinstance(function, dict) else fields
    name = held.get("name")
    if not isinstance(name, str) or not name:
        return ToolCall("", problem="the call names no tool")
    given: Any = next(
        (held[key] for key in ("arguments", "input", "args") if held.get(key) is not None), {}
    )
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given) if given.strip() else {}
        except (msgspec.DecodeError, RecursionError) as error:
            return ToolCall(name, problem=f"the arguments are not JSON: {error}")
    if not isinstance(given, dict):
        return ToolCall(name, problem=f"the arguments are not an object: {str(given)[:60]}")
    return ToolCall(name, given)


def invalid_calls(calls: list[Any]) -> list[str]:
    """Return what is wrong with the calls of an answer."""
    read = ((number, read_call(call)) for number, call in enumerate(calls, 1))
    return [
        f"call {number}{f' of {call.name}' if call.name else ''}: {call.problem}"
        for number, call in read
        if call.problem
    ]


def written_calls(text: str) -> list[ToolCall]:
    """The calls that a text, or its last fenced block, consists of: Python (`[f(a=1), g.h()]`, or one on each line;
    parsed, never run) or JSON. None in prose; ValueError where calls begin but cannot be read."""
    blocks = fenced(text)
    text = (blocks[-1][1] if blocks else text).strip().strip("`").strip()
    try:
        value = read_json(text)
    except NoJson:
        return _python_calls(text)
    calls = [read_call(call) for call in as_list(value) if isinstance(call, dict)]
    problem = next((call.problem for call in calls if call.problem), "")
    if problem:
        raise ValueError(problem)
    return calls


def _python_calls(text: str) -> list[ToolCall]:
    if not _BEGINS_A_CALL.match(text):
        return []
    try:
        if len(text) > _LONGEST:
            raise ValueError(f"it has more than {_LONGEST:,} letters")
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"the calls in the text are not Python: {error}") from None
    values = [statement.value for statement in statements if isinstance(statement, ast.Expr)]
    parts = [
        part
        for value in values
        for part in (value.elts if isinstance(value, ast.List | ast.Tuple) else [value])
    ]
    return [_python_call(part) for part in parts if isinstance(part, ast.Call)]


def _python_call(call: ast.Call) -> ToolCall:
    name = ast.unparse(call.func)
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        raise ValueError(f"the call of {name} has arguments without a name")
    return ToolCall(
        name, {str(keyword.arg): _python_value(keyword.value) for keyword in call.keywords}
    )


def _python_value(node: ast.expr) -> Any:
    """A literal as JSON has it; what is not a literal (a variable, a call, a sum) as its source."""
    match node:
        case ast.Constant(value=str() | int() | float() | None as value) if not _is_huge(value):
            return value
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_python_value(part) for part in parts]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {
                str(_python_value(key)): _python_value(value)
                for key, value in zip(keys, values, strict=True)
                if key is not None
            }
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if (
            not _is_huge(value)
        ):
            return -value
        case ast.Name(id="true" | "false" as name):
            return name == "true"
        case ast.Name(id="null"):
            return None
        case _:
            return ast.unparse(node)


def _is_huge(value: Any) -> bool:
    """Return whether a number is none of JSON's that other programs read."""
    return isinstance(value, int | float) and not -(2**63) < value < 2**63
