"""The protocol's fixed prompts, under the names that MixEval's guideline tells people to use.

The five examples that base models are shown belong to the original: `FIVE_SHOT_PREFIX_FREEFORM` and
`FIVE_SHOT_PREFIX_MULTIPLECHOICE` are read from the file that MIXEVAL_FIVE_SHOT names (the original's
`evaluation_prompts.py`, or JSON with these two keys), or from an installed `mix_eval`, and checked by their hashes.
"""

import ast
import json
import os
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assay.errors import UserError

FREE_FORM, MULTIPLE_CHOICE = "free-form", "multiple-choice"
PREFIXES = {FREE_FORM: "FIVE_SHOT_PREFIX_FREEFORM", MULTIPLE_CHOICE: "FIVE_SHOT_PREFIX_MULTIPLECHOICE"}
HASHES = {
    "FIVE_SHOT_PREFIX_FREEFORM": "19b0b95363b1430047d3b468f38370ce31b94606ca0d270fec88fb3a18d7aca3",
    "FIVE_SHOT_PREFIX_MULTIPLECHOICE": "5bea09299e5e8f70e60a243bbc06d1501a2aa212354c2030f9557058033006e1",
}
_STEP_BY_STEP = {"BBH", "GSM8k", "MATH"}
_PACKAGE = "mix_eval.prompts.evaluation_prompts"


def construct_prompt_freeform(entry: Mapping[str, Any]) -> str:
    """The prompt of a free-form entry."""
    name = entry.get("benchmark_name")
    if name == "QuAc":
        raise NotImplementedError("MixEval has no prompt for QuAc")
    how = (
        "Answer the question. \nLet's think step by step." if name in _STEP_BY_STEP else "Answer the question shortly."
    )
    return f"Question: {_context(entry)}{entry['prompt']}\n{how}"


def construct_prompt_multichoice(entry: Mapping[str, Any]) -> str:
    """The prompt of a multiple-choice entry."""
    how = "Answer with the option letter from the given choices directly."
    return f"{_context(entry)}{entry['prompt']}\n{options_block(entry['options'])}\n{how}"


def options_block(options: list[Any]) -> str:
    """The options, one a line, each behind its letter."""
    return "\n".join(f"{chr(ord('A') + number)}. {option}" for number, option in enumerate(options))


def _context(entry: Mapping[str, Any]) -> str:
    context = str(entry.get("context"))
    present = "context" in entry and context.lower() not in ("none", "null") and context.replace(" ", "")
    return f"{context}\n" if present else ""


# ---- the original's examples


def five_shot_prefixes(file: str | Path | None = None) -> dict[str, str]:
    """The two prefixes by name, from a file or from where the environment says they are."""
    found = file or os.environ.get("MIXEVAL_FIVE_SHOT") or _installed()
    if not found:
        raise UserError(
            "the five examples for base models are not part of Assay",
            fix="name the original's evaluation_prompts.py with --five-shot FILE or in MIXEVAL_FIVE_SHOT",
        )
    path = Path(found)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the five examples cannot be read: {error}", where=str(path)) from None
    texts = _of_json(text) if path.suffix == ".json" else literals(text, path)
    for name, expected in HASHES.items():
        if name not in texts:
            raise UserError(f"the file has no {name}", where=str(path), fix="use the original's evaluation_prompts.py")
        hashed = sha256(texts[name].encode()).hexdigest()
        if hashed != expected:
            raise UserError(
                f"{name} is not the protocol's: its sha256 begins with {hashed[:12]}, expected {expected[:12]}",
                where=str(path),
                fix="copy the original file again, byte for byte",
            )
    return {name: texts[name] for name in HASHES}


def _installed() -> str | None:
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
    return {name: value for name, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}


def literals(source: str, path: Path) -> dict[str, str]:
    """The texts that a Python file assigns to names. It is read, never run."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"the file is not Python: {error}", where=str(path)) from None
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found |= {target.id: node.value.value for target in node.targets if isinstance(target, ast.Name)}
    return found


def __getattr__(name: str) -> str:
    if name not in HASHES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return five_shot_prefixes()[name]
