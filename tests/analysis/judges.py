"""A judged experiment in a folder, written as rows: judges with known errors and biases, and people's labels."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assay.records import Manifest
from assay.store.stores import FlatStore

JUDGE = "0123456789abcdef"


def verdict(
    item: str, passed: bool | str, sample: int = 0, model: str = "m", **more: Any
) -> dict[str, Any]:
    """A judge's row: passed or not, or an outcome without a verdict."""
    row: dict[str, Any] = {
        "item_id": item,
        "sample_index": sample,
        "label": "right",
        "scorer": "right",
    }
    row |= {"model_name": model, "outcome": "scored", "metadata": {"model_id": model}}
    row |= {"responses": [key_of(item, sample, model)], "players": None, "seat": None}
    row["detailed_results"] = {
        "judge": {"model": "j", "id": JUDGE, "prompt": "p"},
        "verdict": passed,
    }
    scored = isinstance(passed, bool | np.bool_)
    row |= (
        {"passed": bool(passed), "score": float(passed)}
        if scored
        else {"outcome": passed, "error": "it failed"}
    )
    return row | more


def match(
    item: str, payoff: float, seat: int, players: tuple[str, str] = ("a", "b"), **more: Any
) -> dict[str, Any]:
    """A judge's row about a pair: `payoff` is that of the first player."""
    keys = [key_of(item, 0, player) for player in players]
    shown: dict[str, Any] = {
        "players": list(players),
        "seat": seat,
        "responses": keys[::-1] if seat else keys,
    }
    row = verdict(item, payoff > 0.5, model=" vs ".join(players), **shown)
    return row | {"score": payoff} | more


def key_of(item: str, sample: int, model: str) -> str:
    import hashlib

    return hashlib.md5(f"{item} {sample} {model}".encode()).hexdigest()


def response(item: str, text: str, sample: int = 0, model: str = "m") -> dict[str, Any]:
    return {
        "item_id": item,
        "sample_index": sample,
        "model_name": model,
        "response": text,
        "key": key_of(item, sample, model),
        "metadata": {"model_id": model},
    }


def save(
    folder: Path,
    rows: Iterable[Mapping[str, Any]],
    responses: Iterable[Mapping[str, Any]] = (),
    items: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Path:
    """An experiment's folder with the manifest of its evaluation."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "evaluation_results.jsonl", rows)
    for name, given in (
        ("responses.jsonl", responses),
        ("items.jsonl", ({"id": item} for item in items)),
    ):
        written = list(given)
        if written:
            _write(folder / name, written)
    store = FlatStore(folder)
    store.put_manifest(
        Manifest(kind="evaluation", id=store.id, complete=True, metadata=dict(metadata or {}))
    )
    return folder


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def label(item: str, value: Any, sample: int = 0, **more: Any) -> dict[str, Any]:
    return {"item": item, "sample": sample, "label": value, **more}
