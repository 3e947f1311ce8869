"""JSON out of what a model wrote: the whole answer, a fenced block, or a value in prose."""

import json
import re
from typing import Any

from assay.records import JsonObject

_LANGUAGE = re.compile(r"[ \t]*([\w+-]*)")
_OPENING = re.compile(r"[{\[]")
_OBJECT = re.compile(r"\{\s*\"")
_ATTEMPTS = 200  # so that a text of brackets costs little,
_MOST_READ = 5_000_000  # as does one of brackets before a long text: letters that are read in vain


class NoJson(ValueError):
    """The text holds no JSON value."""


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)
_lenient = json.JSONDecoder(parse_constant=_refuse, strict=False)


def read_json(text: str) -> Any:
    """The value that the whole text is; NoJson says where it is not (NaN and Infinity are not JSON)."""
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise NoJson(str(error)) from None


def fenced(text: str) -> list[tuple[str, str]]:
    """(language, content) of each fenced block; a last one that is not closed counts."""
    blocks: list[tuple[str, str]] = []
    at = text.find("```")
    while at >= 0 and (line := text.find("\n", at)) >= 0:
        language = _LANGUAGE.match(text, at + 3, line)
        end = text.find("```", line)
        blocks.append(
            (
                language[1].lower() if language else "",
                text[line + 1 : end if end >= 0 else len(text)],
            )
        )
        at = text.find("```", end + 3) if end >= 0 else -1
    return blocks


def find_json(text: str) -> Any:
    """The JSON value of an answer: all of it, else its last fenced block, else the last object or list in its prose."""
    try:
        return read_json(text)
    except NoJson:
        pass
    for _, content in reversed(fenced(text)):
        try:
            return read_json(content)
        except NoJson:
            continue
    values = _in_prose(text)
    objects = [value for value in values if isinstance(value, dict)]
    if not values:
        raise NoJson("the answer holds no JSON object or list")
    return (objects or values)[-1]


def _in_prose(text: str) -> list[Any]:
    values: list[Any] = []
    at = read = 0
    for _ in range(_ATTEMPTS):
        found = _OPENING.search(text, at)
        if found is None or read > _MOST_READ:
            break
        try:
            value, at = _decoder.raw_decode(text, found.start())
            values.append(value)
        except (ValueError, RecursionError) as error:
            at = found.end()
            read += getattr(error, "pos", at) - at
    return values


def objects_in(text: str) -> list[tuple[int, int, JsonObject]]:
    """(begin, end, object) of the JSON objects of a text, in order, line feeds in their strings allowed; those inside
    others are left to them."""
    found: list[tuple[int, int, JsonObject]] = []
    at = failures = read = 0
    for opening in _OBJECT.finditer(text):
        if opening.start() < at:
            continue
        try:
            value, at = _lenient.raw_decode(text, opening.start())
            found.append((opening.start(), at, value))
        except (ValueError, RecursionError) as error:
            failures += 1
            read += getattr(error, "pos", opening.start()) - opening.start()
            if failures > _ATTEMPTS or read > _MOST_READ:
                break
    return found


def at_path(value: Any, path: str) -> Any:
    """Return what a dotted path leads to (`a.b`, `items.0.name`, `items[0].name`; a literal key
    with dots comes first); KeyError if there is nothing."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for step in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif (
            isinstance(value, list)
            and step.lstrip("-").isdigit()
            and -len(value) <= int(step) < len(value)
        ):
            value = value[int(step)]
        else:
            raise KeyError(path)
    return value
