"""Plain values to Structs, by the Structs themselves: every unknown key and every wrong value, all reported.

What is wrong is left out of the result, so the rules can still look at the rest.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from assay.config.environment import FromEnvironment, shown_safely
from assay.config.source import Document, Key, brief, core_type, flag_value, map_values
from assay.records import JsonObject
from assay.registry import nearest

S = TypeVar("S", bound=Struct)
_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
}
_BOUNDS = {"ge": "of at least", "gt": "above", "le": "of at most", "lt": "below"}
_TRUTH: dict[str, bool] = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_MISSING = object()


def build(struct: type[S], value: Any, key: Key, document: Document) -> S:
    """The Struct of a mapping; null is the same as not given, a required text that is wrong becomes empty."""
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    required = [name for name, field in fields.items() if field.required]
    values: JsonObject = dict.fromkeys(required, "")
    if not isinstance(value, Mapping):
        document.report(f"{brief(key)} must be a mapping, got {shown_safely(value)}", key)
        return struct(**values)
    unknown = [name for name in value if name not in fields]
    for name in unknown:
        document.report(f"unknown key {name!r}", (*key, name), nearest(name, fields))
    needed = [] if unknown else required
    for name, field in fields.items():
        if value.get(name) is not None:
            converted = _convert(value[name], field.type, (*key, name), document)
            values |= {} if converted is _MISSING else {name: converted}
        elif name in needed:
            document.report(f"{brief(key)} needs a {name}", key, f"add `{name}:`")
    return struct(**values)


def _convert(value: Any, hint: Any, key: Key, document: Document) -> Any:
    core = core_type(hint)
    if isinstance(core, type) and issubclass(core, Struct):
        return build(core, value, key, document)
    if get_origin(core) is list and isinstance(value, list):
        entry = get_args(core)[0]
        converted = [_convert(part, entry, (*key, n), document) for n, part in enumerate(value)]
        return [part for part in converted if part is not _MISSING]
    if get_origin(core) is Literal and value not in get_args(core):
        what = f"{brief(key)}: {shown_safely(value)} is not possible"
        document.report(what, key, nearest(str(value), get_args(core)))
        return _MISSING
    value = _plain(value, core, key, document)
    if value is _MISSING:
        return _MISSING
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError:
        document.report(
            f"{brief(key)} must be {_wanted_type(hint)}, got {shown_safely(value)}", key
        )
        return _MISSING


def _plain(value: Any, hint: Any, key: Key, document: Document) -> Any:
    """A JSON value; the text of a variable becomes a number or a truth value where `hint` is not text."""
    inside = isinstance(value, Mapping | list)
    return map_values(
        value, lambda leaf, at: _leaf(leaf, Any if inside else hint, at, document), key
    )


def _leaf(value: Any, hint: Any, key: Key, document: Document) -> Any:
    if isinstance(value, FromEnvironment):
        return str(value) if hint is str else _typed_value(value, hint)
    if isinstance(value, float) and not math.isfinite(value):
        document.report(f"{brief(key)} must be a finite number, got {value}", key)
        return _MISSING
    if value is None or isinstance(value, str | int | float):
        return value
    document.report(f"{brief(key)} must be a JSON value, got {type(value).__name__}", key)
    return _MISSING


def _typed_value(text: FromEnvironment, hint: Any) -> Any:
    """A number or a truth value if the text is one; where only a number will do, text that still has its origin."""
    if hint is bool:
        return _TRUTH.get(text.lower(), text)
    value = flag_value(str(text))
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    return text if hint in (int, float) else str(text)


def _wanted_type(hint: Any) -> str:
    """`a whole number of at least 1`."""
    core = core_type(hint)
    words = [_WORDS.get(get_origin(core) or core, str(core))]
    marks = [mark for part in (hint, *get_args(hint)) for mark in getattr(part, "__metadata__", ())]
    for meta in marks:
        if isinstance(meta, Meta):
            bounds = {text: getattr(meta, name) for name, text in _BOUNDS.items()}
            words += [f"{text} {bound:g}" for text, bound in bounds.items() if bound is not None]
            words += ["that is not empty"] if meta.min_length else []
    return " and ".join([" ".join(words[:2]), *words[2:]])
