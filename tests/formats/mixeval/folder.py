"""A small MixEval of our own making, in the shape of the real one, and what tests do with it."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from assay.formats.mixeval.dataset import mixeval
from assay.records import Item

VERSION = "2024-08-11"
FOLDERS = {"mixeval": "mixeval", "mixeval_hard": "mixeval-hard"}


def free_form(prompt: str = "What is 2 + 3?", *targets: str, **more: Any) -> dict[str, Any]:
    entry = {
        "problem_type": "free-form",
        "context": None,
        "prompt": prompt,
        "target": list(targets or ("5",)),
    }
    return {**entry, "benchmark_name": "TriviaQA", **more}


def multiple_choice(
    prompt: str = "Which is a fruit?", target: Any = 0, **more: Any
) -> dict[str, Any]:
    entry = {
        "problem_type": "multiple-choice",
        "context": None,
        "prompt": prompt,
        "options": ["apple", "hammer"],
    }
    return {
        **entry,
        "target": [target] if isinstance(target, int) else target,
        "benchmark_name": "MMLU",
        **more,
    }


def numbered(entries: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {str(number): entry for number, entry in enumerate(entries)}


def write_data(
    folder: Path, free: Any, multiple: Any, *, benchmark: str = "mixeval", version: str = VERSION
) -> dict[str, Path]:
    """The two files below a `data` folder; lists become objects with the ids "0", "1" …, text is written as it is."""
    place = folder / f"mixeval-{version}" / FOLDERS[benchmark]
    place.mkdir(parents=True, exist_ok=True)
    paths = {
        "free-form": place / "free-form.json",
        "multiple-choice": place / "multiple-choice.json",
    }
    for path, content in zip(paths.values(), (free, multiple), strict=True):
        path.write_text(content if isinstance(content, str) else json.dumps(numbered(content)))
    return paths


def items(data: Path | str, **params: Any) -> list[Item]:
    rows = mixeval(str(data), **{"version": VERSION, **params})
    return [Item(**row) for _, row in rows]
