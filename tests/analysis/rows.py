"""Evaluation rows for tests of comparisons: an experiment folder from verdicts by item."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Verdict = bool | float | str
"""Passed or not, a score, or an outcome without a verdict."""


def evaluation(item: str, verdict: Verdict, sample: int = 0, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "item_id": item,
        "sample_index": sample,
        "label": "match",
        "scorer": "match",
    }
    row |= {"model_name": "m", "outcome": "scored", "passed": None, "score": None, "metadata": {}}
    if isinstance(verdict, str):
        row |= {"outcome": verdict, "error": "it failed"}
    else:
        row |= {"passed": verdict > 0.5, "score": float(verdict)}
    return row | more


def rows_of(
    verdicts: Mapping[str, Verdict | Sequence[Verdict]], **more: Any
) -> list[dict[str, Any]]:
    """Rows of items by id; several samples where a sequence is given."""
    found: list[dict[str, Any]] = []
    for item, given in verdicts.items():
        samples = given if isinstance(given, (list, tuple)) else [given]
        found += [
            evaluation(item, verdict, number, **more) for number, verdict in enumerate(samples)
        ]
    return found


def counted(passes: int, n: int, **more: Any) -> list[dict[str, Any]]:
    """n items of one sample, the first `passes` of them passed."""
    return rows_of({f"q{number:05}": number < passes for number in range(n)}, **more)


def save(folder: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "evaluation_results.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    return folder
