"""`schema_config` as a function from a record to what is wrong with it.

Types convert as lax pydantic does (`"3"` is an int, `"yes"` a bool); rules look at the converted value. A record is
never changed, only judged.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.data.transform import Load
from assay.registry import nearest

Check = Callable[[Mapping[str, Any]], list[str]]
Convert = Callable[[Any], Any]

_TOKEN = re.compile(r"\s*([A-Za-z_]+|[\[\],])\s*")
_WHOLE = re.compile(r"\s*([-+]?[0-9]+(?:_[0-9]+)*)(?:\.0+)?\s*", re.ASCII)
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})
_RULES: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "is_greater_than": ("greater than", lambda value, bound: value > bound),
    "is_equal_to": ("equal to", lambda value, bound: value == bound),
    "is_less_than": ("less than", lambda value, bound: value < bound),
}


def row_schema(config: Mapping[str, Any], *, load: Load, where: str = "schema_config") -> Check:
    """The check that a `schema_config` means: a pydantic class under `schema`, or `fields`."""
    if config.get("schema"):
        return _by_class(load(str(config["schema"]), f"{where}.schema"), f"{where}.schema")
    fields: Any = config.get("fields")
    if not isinstance(fields, list) or not fields:
        fix = "name a pydantic class with `schema:`, or list `fields:` with `name` and `type`"
        raise UserError("a schema needs 'schema' or 'fields'", where=where, fix=fix)
    checks = [_field(field, f"{where}.fields[{number}]") for number, field in enumerate(fields)]
    return lambda record: [problem for check in checks for problem in check(record)]


def _by_class(schema: Any, where: str) -> Check:
    validate = getattr(schema, "model_validate", None) or getattr(schema, "parse_obj", None)
    if not callable(validate):
        raise UserError(f"{schema!r} is not a schema", where=where, fix="name a class that inherits pydantic.BaseModel")

    def check(record: Mapping[str, Any]) -> list[str]:
        try:
            validate(dict(record))
        except Exception as error:  # a user's validator may raise anything
            errors: Any = getattr(error, "errors", None)
            if not callable(errors):
                return [f"{type(error).__name__}: {error}"]
            problems: Any = errors()
            return [f"{'.'.join(map(str, problem['loc'])) or 'record'}: {problem['msg']}" for problem in problems]
        return []

    return check


def _field(field: Any, where: str) -> Check:
    if not isinstance(field, Mapping) or not field.get("name") or not field.get("type"):
        raise UserError(f"a field needs 'name' and 'type', got {field!r}", where=where)
    name = str(field["name"])
    convert = parsed_type(str(field["type"]), f"{where}.type")
    rules = [(key, bound) for key, bound in field.items() if key not in ("name", "type")]
    for key, _ in rules:
        if key not in _RULES:
            raise UserError(f"unknown rule {key!r}", where=where, fix=nearest(str(key), _RULES))

    def check(record: Mapping[str, Any]) -> list[str]:
        if name not in record:
            return [f"{name}: it is missing"]
        try:
            value = convert(record[name])
        except (TypeError, ValueError, OverflowError) as error:
            return [f"{name}: {error}"]
        return [
            f"{name}: {_short(value)} is not {_RULES[key][0]} {bound!r}"
            for key, bound in rules
            if _broken(key, value, bound)
        ]

    return check


def _broken(rule: str, value: Any, bound: Any) -> bool:
    try:
        return not _RULES[rule][1](value, bound)
    except TypeError:  # text is not less than a number
        return True


def parsed_type(text: str, where: str) -> Convert:
    """The converter of a type such as `list[dict[str, any]]`."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise _unknown(text, text, where)
    convert, rest = _parse(tokens, text, where)
    if rest:
        raise _unknown(rest[0], text, where)
    return convert


def _parse(tokens: list[str], text: str, where: str) -> tuple[Convert, list[str]]:
    name, rest = (tokens[0].lower(), tokens[1:]) if tokens else ("", [])
    if name not in _TYPES:
        raise _unknown(name, text, where)
    inner: list[Convert] = []
    if rest[:1] == ["["]:
        while rest[0] != "]":
            convert, rest = _parse(rest[1:], text, where)
            inner.append(convert)
            if rest[:1] not in (["]"], [","]):
                raise _unknown(rest[0] if rest else "", text, where)
        rest = rest[1:]
    make = _TYPES[name]
    return (lambda value: make(value, inner)), rest


def _unknown(part: str, text: str, where: str) -> UserError:
    return UserError(f"{text!r} is not a type: {part!r} is not understood", where=where, fix=nearest(part, _TYPES))


def _text(value: Any, inner: list[Convert]) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"{_short(value)} is not text")


def _whole(value: Any, inner: list[Convert]) -> int:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (match := _WHOLE.fullmatch(value)):
        return int(match[1])
    raise ValueError(f"{_short(value)} is not a whole number")


def _number(value: Any, inner: list[Convert]) -> float:
    try:
        if isinstance(value, int | float) or (isinstance(value, str) and value.isascii()):
            return float(value)
    except ValueError:
        pass
    raise ValueError(f"{_short(value)} is not a number")


def _boolean(value: Any, inner: list[Convert]) -> bool:
    if isinstance(value, bool) or (isinstance(value, int | float) and value in (0, 1)):
        return bool(value)
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise ValueError(f"{_short(value)} is not true or false")


def _list(value: Any, inner: list[Convert]) -> list[Any]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise ValueError(f"{_short(value)} is not a list")
    return [inner[0](entry) if inner else entry for entry in value]


def _set(value: Any, inner: list[Convert]) -> set[Any]:
    return set(_list(value, inner))


def _tuple(value: Any, inner: list[Convert]) -> tuple[Any, ...]:
    entries = _list(value, [])
    if inner and len(inner) != len(entries):
        raise ValueError(f"{_short(value)} has {len(entries)} entries, not {len(inner)}")
    return tuple(convert(entry) for convert, entry in zip(inner, entries, strict=True)) if inner else tuple(entries)


def _mapping(value: Any, inner: list[Convert]) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{_short(value)} is not an object")
    if not inner:
        return dict(value)
    keys, values = inner[0], inner[-1]
    return {keys(key): values(entry) for key, entry in value.items()}


def _nothing(value: Any, inner: list[Convert]) -> None:
    if value is not None:
        raise ValueError(f"{_short(value)} is not null")


def _anything(value: Any, inner: list[Convert]) -> Any:
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


_TYPES: dict[str, Callable[[Any, list[Convert]], Any]] = {
    "str": _text,
    "int": _whole,
    "float": _number,
    "bool": _boolean,
    "list": _list,
    "dict": _mapping,
    "tuple": _tuple,
    "set": _set,
    "none": _nothing,
    "any": _anything,
}
