"""A few entries of both kinds with a repeat, and response files to them in the original's layout."""

import json
from pathlib import Path
from typing import Any

from assay.formats.mixeval.evaluation_prompts import (
    construct_prompt_freeform,
    construct_prompt_multichoice,
)
from tests.formats.mixeval.folder import VERSION, free_form, multiple_choice, write_data

FREE = [
    free_form("What is the capital of Norway?", "Oslo"),
    free_form("What is the capital of Norway?", "Oslo"),
    free_form("How many boats?", "8", context="8 boats, 5 carts.", benchmark_name="DROP"),
]
CHOICE = [
    multiple_choice("9 + 16?", 1, options=["15", "25"]),
    multiple_choice(
        "Which?", 0, options=["wet it", "dry it"], context="bag", benchmark_name="PIQA"
    ),
    multiple_choice("x + 4 = 11?", 2, options=["5", "6", "7"], benchmark_name="AGIEval"),
]
PROMPTS = {"free-form": construct_prompt_freeform, "multiple-choice": construct_prompt_multichoice}
SPLITS = {"free-form": "freeform", "multiple-choice": "multichoice"}


def write_both(folder: Path) -> Path:
    """`data` with all entries in mixeval and the first of each kind in mixeval-hard."""
    data = folder / "data"
    write_data(data, FREE, CHOICE)
    write_data(data, FREE[:1], CHOICE[:1], benchmark="mixeval_hard")
    return data


def rows(kind: str, responses: list[Any]) -> list[dict[str, Any]]:
    """The rows of a response file, in the order of the data."""
    entries = FREE if kind == "free-form" else CHOICE
    return [
        {**entry, "formated_input": PROMPTS[kind](entry), "id": str(number), "response": response}
        for number, (entry, response) in enumerate(zip(entries, responses, strict=True))
    ]


def write_model(
    folder: Path,
    model: str,
    free: list[Any],
    choice: list[Any],
    *,
    array: bool = False,
    order: list[int] | None = None,
) -> Path:
    """A model's folder in the original's layout; `order` is that of the rows in both files."""
    place = folder / "responses" / model / "mixeval" / VERSION
    place.mkdir(parents=True, exist_ok=True)
    for kind, answers in (("free-form", free), ("multiple-choice", choice)):
        made = rows(kind, answers)
        made = [made[number] for number in order] if order else made
        text = json.dumps(made) if array else "".join(json.dumps(row) + "\n" for row in made)
        (place / f"{model}_close_{SPLITS[kind]}.jsonl").write_text(text)
    return folder / "responses" / model
