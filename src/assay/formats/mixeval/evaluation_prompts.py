"""The protocol's fixed prompts, under the names that MixEval's guideline tells people to use.

The five examples that base models are shown belong to the original: `FIVE_SHOT_PREFIX_FREEFORM` and
`FIVE_SHOT_PREFIX_MULTIPLECHOICE` are read from the file that MIXEVAL_FIVE_SHOT names (the original's
`evaluation_prompts.py`, or JSON with these two keys), or from an installed `mix_eval`, and checked by their hashes. So
are the original's two judge prompts; without them the judges use prompts of our own (`judges/mixeval_*.txt`).
Files of others are parsed, never run.
"""

import ast
import json
import os
import re
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from assay import reading
from assay.sdk import JsonMapping, Message, UserError

FREE_FORM, MULTIPLE_CHOICE = "free-form", "multiple-choice"
PREFIXES = {
    FREE_FORM: "FIVE_SHOT_PREFIX_FREEFORM",
    MULTIPLE_CHOICE: "FIVE_SHOT_PREFIX_MULTIPLECHOICE",
}
HASHES = {
    "FIVE_SHOT_PREFIX_FREEFORM": "19b0b95363b1430047d3b468f38370ce31b94606ca0d270fec88fb3a18d7aca3",
    "FIVE_SHOT_PREFIX_MULTIPLECHOICE": "5bea09299e5e8f70e60a243bbc06d1501a2aa212354c2030f9557058033006e1",
}
_STEP_BY_STEP = {"BBH", "GSM8k", "MATH"}
_PACKAGE = "mix_eval.prompts.evaluation_prompts"


def construct_prompt_freeform(entry: JsonMapping) -> str:
    """The prompt of a free-form entry."""
    name = entry.get("benchmark_name")
    if name == "QuAc":
        raise NotImplementedError("MixEval has no prompt for QuAc")
    how = (
        "Answer the question. \nLet's think step by step."
        if name in _STEP_BY_STEP
        else "Answer the question shortly."
    )
    return f"Question: {_context(entry)}{entry['prompt']}\n{how}"


def construct_prompt_multichoice(entry: JsonMapping) -> str:
    """The prompt of a multiple-choice entry."""
    how = "Answer with the option letter from the given choices directly."
    return f"{_context(entry)}{entry['prompt']}\n{options_block(entry['options'])}\n{how}"


def options_block(options: list[Any]) -> str:
    """The options, one a line, each behind its letter."""
    return "\n".join(f"{chr(ord('A') + number)}. {option}" for number, option in enumerate(options))


def _context(entry: JsonMapping) -> str:
    context = str(entry.get("context"))
    present = (
        "context" in entry and context.lower() not in ("none", "null") and context.replace(" ", "")
    )
    return f"{context}\n" if present else ""


# ---- the original's examples


def five_shot_prefixes(file: str | Path | None = None) -> dict[str, str]:
    """The two prefixes by name, from a file or from where the environment says they are."""
    found = file or os.environ.get("MIXEVAL_FIVE_SHOT") or _installed_file()
    if not found:
        raise UserError(
            "the five examples for base models are not part of Assay",
            fix="name the original's evaluation_prompts.py with --five-shot FILE or in MIXEVAL_FIVE_SHOT",
        )
    path = Path(found)
    source = _text_of(path, "five examples")
    texts = (
        _of_json(source)
        if path.suffix == ".json"
        else _literals(_syntax_tree(source, path, "file is"))
    )
    for name, expected in HASHES.items():
        if name not in texts:
            raise UserError(
                f"the file has no {name}",
                where=str(path),
                fix="use the original's evaluation_prompts.py",
            )
        hashed = sha256(texts[name].encode()).hexdigest()
        if hashed != expected:
            raise UserError(
                f"{name} is not the protocol's: its sha256 begins with {hashed[:12]}, expected {expected[:12]}",
                where=str(path),
                fix="copy the original file again, byte for byte",
            )
    return {name: texts[name] for name in HASHES}


def _installed_file() -> str | None:
    try:
        spec = find_spec(_PACKAGE)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec else None


def _of_json(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return (
        {name: value for name, value in found.items() if isinstance(value, str)}
        if isinstance(found, dict)
        else {}
    )


def _literals(tree: ast.Module) -> dict[str, str]:
    """The texts that a Python file assigns to names."""
    found: dict[str, str] = {}
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            found |= {
                target.id: node.value.value
                for target in node.targets
                if isinstance(target, ast.Name)
            }
    return found


def _text_of(path: Path, what: str) -> str:
    try:
        return reading.text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the {what} cannot be read: {error}", where=str(path)) from None


def _syntax_tree(source: str, path: Path, what: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(f"the {what} not Python: {error}", where=str(path)) from None


def __getattr__(name: str) -> str:
    if name not in HASHES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return five_shot_prefixes()[name]


# ---- the original's judges


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
    texts = list(
        (_in_json if path.suffix == ".json" else _in_python)(_text_of(path, "judge prompts"), path)
    )
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
    return [
        {"role": "system", "content": ORIGINALS[kind].system},
        {"role": "user", "content": filled},
    ]


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
    for node in ast.walk(_syntax_tree(source, path, "judge prompts are")):
        if isinstance(node, ast.JoinedStr):
            yield "".join(_part(part) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    name = part.value if isinstance(part, ast.FormattedValue) else part
    return f"{{{ast.unparse(name)}}}"
