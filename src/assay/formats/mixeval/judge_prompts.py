"""The original's two judge prompts, read from the user's copy: the file is parsed, never run, and checked by hashes.

Its texts are not ours to ship; without them the judges use prompts of our own (`data/judges/mixeval_*.txt`).
"""

import ast
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from assay.errors import UserError
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.interfaces import Message


class Original(NamedTuple):
    """The first message, the names of the places of the second in their order, and its hash with these names."""

    system: str
    places: str
    hash: str


ORIGINALS = {
    FREE_FORM: Original(
        "In this task, I want you to act as a judge.",
        "PGR",
        "64bc0973729b664e9bdf8461b87ef77ac52b225d9edbdee6046ae195f55a8d8a",
    ),
    MULTIPLE_CHOICE: Original(
        "In this task, I want you to act as an option extractor.",
        "POR",
        "c869b3fb429fcc3ec908e914552f2e7f9a6d702ab254bcf3fa17a70d4930d83d",
    ),
}
_FIELD = re.compile(r"\{(\w+)\}")


def original_prompts(file: str | Path) -> dict[str, str]:
    """The user's copy of both texts, by kind, with their places as `{P}`, `{G}`, `{O}` and `{R}`."""
    path = Path(file).expanduser()
    try:
        source = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the judge prompts cannot be read: {error}", where=str(path)) from None
    texts = list(_in_json(source, path) if path.suffix == ".json" else _in_python(source, path))
    found: dict[str, str] = {}
    for kind, original in ORIGINALS.items():
        for text in texts:
            named = _with_places(text, original.places)
            if is_original(named, kind):
                found[kind] = named
    missing = [kind for kind in ORIGINALS if kind not in found]
    if missing:
        raise UserError(
            f"the file has no {missing[0]} prompt with the protocol's hash",
            where=str(path),
            fix="name the original's judge_prompts.py, copied byte for byte, or JSON that holds both texts",
        )
    return found


def is_original(text: str, kind: str) -> bool:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == ORIGINALS[kind].hash


def original_messages(text: str, kind: str, **values: str) -> list[Message]:
    """The two messages of the protocol, with `P`, `G` or `O`, and `R` in their places."""
    filled = _FIELD.sub(lambda place: values.get(place[1], place[0]), text)
    return [{"role": "system", "content": ORIGINALS[kind].system}, {"role": "user", "content": filled}]


def _with_places(text: str, places: str) -> str:
    """The text with its fields named in the order in which they first appear."""
    names = list(dict.fromkeys(_FIELD.findall(text)))
    if len(names) != len(places):
        return text
    return _FIELD.sub(lambda field: f"{{{places[names.index(field[1])]}}}", text)


def _in_json(source: str, path: Path) -> Iterator[str]:
    try:
        waiting: list[Any] = [json.loads(source)]
    except (ValueError, RecursionError) as error:
        raise UserError(f"the judge prompts are not JSON: {error}", where=str(path)) from None
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, dict)):
            waiting += value if isinstance(value, list) else value.values()


def _in_python(source: str, path: Path) -> Iterator[str]:
    """Every text of a Python file; the values of an f-string become fields."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(f"the judge prompts are not Python: {error}", where=str(path)) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(_part(part) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    name = part.value if isinstance(part, ast.FormattedValue) else part
    return f"{{{ast.unparse(name)}}}"
