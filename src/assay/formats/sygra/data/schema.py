"""`schema_config` as a function from a record to what is wrong with it.

Types convert as lax pydantic does (`"3"` is an int, `"yes"` a bool); rules look at the converted value. A record is
never changed, only judged.
"""

import ast
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from assay.formats.sygra.data.transforms import Load
from assay.formats.sygra.types import Config, YamlPlace
from assay.sdk import UserError, nearest

Check = Callable[[Config], list[str]]
Convert = Callable[[Any], Any]

_WHOLE = re.compile(r"\s*([-+]?[0-9]+(?:_[0-9]+)*)(?:\.0+)?\s*", re.ASCII)
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})
_RULES: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "is_greater_than": ("greater than", lambda value, bound: value > bound),
    "is_equal_to": ("equal to", lambda value, bound: value == bound),
    "is_less_than": ("less than", lambda value, bound: value < bound),
}


def row_schema(config: Config, *, load: Load, where: str = "schema_config") -> Check:
    """Return the check that a `schema_config` means: a pydantic class under `schema`, or `fields`."""
    at = YamlPlace(config, where)
    if config.get("schema"):
        return _by_class(load(str(config["schema"]), f"{where}.schema"), f"{where}.schema")
    fix = "name a pydantic class with `schema:`, or list `fields:` with `name` and `type`"
    fields = at.inside("fields")
    fields.require_some(list, "a schema needs 'schema' or 'fields'", fix)
    checks = [_field(field) for field in at("fields").entries()]
    return lambda record: [problem for check in checks for problem in check(record)]


def _by_class(schema: Any, where: str) -> Check:
    validate = getattr(schema, "model_validate", None) or getattr(schema, "parse_obj", None)
    if not callable(validate):
        fix = "name a class that inherits pydantic.BaseModel"
        raise UserError(f"{schema!r} is not a schema", where=where, fix=fix)

    def check(record: Config) -> list[str]:
        try:
            validate(dict(record))
        except Exception as error:  # a user's validator may raise anything
            errors: Any = getattr(error, "errors", None)
            if not callable(errors):
                return [f"{type(error).__name__}: {error}"]
            problems: Any = errors()
            return [
                f"{'.'.join(map(str, problem['loc'])) or 'record'}: {problem['msg']}"
                for problem in problems
            ]
        return []

    return check


def _field(at: YamlPlace) -> Check:
    field: Any = at.value
    if not isinstance(field, Mapping) or not field.get("name") or not field.get("type"):
        raise at.error(f"a field needs 'name' and 'type', got {field!r}")
    name = str(field["name"])
    convert = parsed_type(str(field["type"]), f"{at.where}.type")
    rules = {key: bound for key, bound in field.items() if key not in ("name", "type")}
    for key in rules.keys() - _RULES:
        raise at.error(f"unknown rule {key!r}", nearest(str(key), _RULES))

    def check(record: Config) -> list[str]:
        if name not in record:
            return [f"{name}: it is missing"]
        try:
            value = convert(record[name])
        except (TypeError, ValueError, OverflowError) as error:
            return [f"{name}: {error}"]
        broken = (_broken(key, value, bound) for key, bound in rules.items())
        return [f"{name}: {problem}" for problem in broken if problem]

    return check


def _broken(rule: str, value: Any, bound: Any) -> str:
    """Return how a value breaks a rule, if it does."""
    words, holds = _RULES[rule]
    with suppress(TypeError):  # text is not less than a number
        if holds(value, bound):
            return ""
    return f"{_short(value)} is not {words} {bound!r}"


def parsed_type(text: str, where: str) -> Convert:
    """Return the converter of a type such as `list[dict[str, any]]`."""
    try:
        return _converter(ast.parse(text.strip(), mode="eval").body, text, where)
    except (SyntaxError, ValueError):
        raise _unknown(text, text, where) from None


def _converter(node: ast.expr, text: str, where: str) -> Convert:
    parts: list[ast.expr] = []
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        node = node.value
    name = ast.unparse(node).lower()
    if name not in _TYPES:
        raise _unknown(name, text, where)
    inner = [_converter(part, text, where) for part in parts]
    fits, word, make = _TYPES[name]

    def convert_value(value: Any) -> Any:
        if not fits(value):
            raise ValueError(f"{_short(value)} is not {word}")
        return make(value, inner)

    return convert_value


def _unknown(part: str, text: str, where: str) -> UserError:
    what = f"{text!r} is not a type: {part!r} is not understood"
    return UserError(what, where=where, fix=nearest(part, _TYPES))


def _is_whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) or (
        isinstance(value, str) and _WHOLE.fullmatch(value) is not None
    )


def _whole(value: Any, inner: list[Convert]) -> int:
    match = _WHOLE.fullmatch(value) if isinstance(value, str) else None
    return int(match[1] if match else value)


def _is_number(value: Any) -> bool:
    if not isinstance(value, str):
        return isinstance(value, int | float)
    try:
        float(value)
    except ValueError:
        return False
    return value.isascii()


def _is_boolean(value: Any) -> bool:
    if isinstance(value, str):
        return value.lower() in _TRUE | _FALSE
    return isinstance(value, int | float) and value in (0, 1)


def _boolean(value: Any, inner: list[Convert]) -> bool:
    return value.lower() in _TRUE if isinstance(value, str) else bool(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _list(value: Any, inner: list[Convert]) -> list[Any]:
    return [inner[0](entry) for entry in value] if inner else list(value)


def _tuple(value: Any, inner: list[Convert]) -> tuple[Any, ...]:
    if not inner:
        return tuple(value)
    if len(inner) != len(value):
        raise ValueError(f"{_short(value)} has {len(value)} entries, not {len(inner)}")
    return tuple(convert(entry) for convert, entry in zip(inner, value, strict=True))


def _mapping(value: Any, inner: list[Convert]) -> dict[Any, Any]:
    if not inner:
        return dict(value)
    return {inner[0](key): inner[-1](entry) for key, entry in value.items()}


def _same(value: Any, inner: list[Convert]) -> Any:
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


_Type = tuple[Callable[[Any], bool], str, Callable[[Any, list[Convert]], Any]]
_TYPES: dict[str, _Type] = {  # what fits, as what
    "str": (lambda value: isinstance(value, str), "text", _same),
    "int": (_is_whole, "a whole number", _whole),
    "float": (_is_number, "a number", lambda value, inner: float(value)),
    "bool": (_is_boolean, "true or false", _boolean),
    "list": (_is_list, "a list", _list),
    "dict": (lambda value: isinstance(value, Mapping), "an object", _mapping),
    "tuple": (_is_list, "a list", _tuple),
    "set": (_is_list, "a list", lambda value, inner: set(_list(value, inner))),
    "none": (lambda value: value is None, "null", _same),
    "any": (lambda value: True, "", _same),
}
