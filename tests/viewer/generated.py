"""Experiments with random rows, and their samples as plain Python has them: the oracle of pages."""

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]
WORDS = (
    "alpha",
    "Beta",
    "gamma ray",
    'say "yes"',
    "back\\slash",
    "Straße",
    "ÉCOLE",
    "日本語",
    "tab\there",
    "x" * 300,
    "🙂",
)
TASKS = (("small", "short"), ("small", "long"), ("large", "short"))
_RESPONSE = {"ok": None, "refused": None, "errored": "it broke", "skipped": "left out"}


def write(path: Path, rows: Iterable[Mapping[str, Any]], *, escaped: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=escaped) + "\n" for row in rows), encoding="utf-8"
    )


def responses(seed: int, items: int = 12, samples: int = 2, *, keys: bool = True) -> list[Row]:
    chance = random.Random(seed)
    rows: list[Row] = []
    for item in range(items):
        for model, prompt in TASKS if keys else (("small", ""), ("large", "")):
            for sample in range(samples):
                outcome = chance.choices(list(_RESPONSE), (9, 1, 1, 1))[0]
                row: Row = {"item_id": f"q{item:03}", "sample_index": sample, "model_name": model}
                row |= {
                    "prompt": f"Question {item}: {chance.choice(WORDS)}",
                    "response": chance.choice(WORDS),
                }
                row |= {
                    "inference_time": chance.choice([0.1, 0.5, 2.0]),
                    "total_tokens": chance.choice([None, 7]),
                }
                row |= {
                    "metadata": {"model_id": model, "prompt_template": prompt, "nested": {"a": 1}}
                }
                row |= {
                    "outcome": outcome,
                    "error": _RESPONSE[outcome],
                    "cost": chance.choice([None, 0.5]),
                }
                if chance.random() < 0.3:
                    row["metadata"]["extra"] = chance.choice([True, 1, 1.5, "1", None])
                if keys:
                    row |= {"key": f"{chance.getrandbits(128):032x}", "task": f"{model}/{prompt}"}
                rows.append(row)
    chance.shuffle(rows)
    return rows


def evaluations(
    rows: list[Row], seed: int, labels: tuple[str, ...] = ("match", "grade")
) -> list[Row]:
    chance = random.Random(seed)
    made: list[Row] = []
    for row in rows:
        for label in labels:
            if chance.random() < 0.1:
                continue
            outcome = chance.choices(["scored", "unparsed", "errored"], (8, 1, 1))[0]
            score = (
                chance.choice([0.0, 0.25, 1.0])
                if label == "grade"
                else float(chance.random() < 0.5)
            )
            entry: Row = {
                "item_id": row["item_id"],
                "sample_index": row["sample_index"],
                "label": label,
            }
            entry |= {"scorer": label, "model_name": row["model_name"], "outcome": outcome}
            passed = None if label == "grade" else score > 0
            scored = outcome == "scored"
            entry |= {
                "passed": passed if scored else None,
                "score": score if scored else None,
                "metadata": {},
            }
            if row.get("key"):
                entry["responses"] = [row["key"]]
            made.append(entry)
    chance.shuffle(made)
    return made


def items(count: int = 12) -> list[Row]:
    return [
        {
            "id": f"q{item:03}",
            "data": {"question": f"What is {item}?"},
            "metadata": {"kind": f"k{item % 3}"},
        }
        for item in range(count)
    ]


def experiment(
    folder: Path, seed: int, *, keys: bool = True, escaped: bool = False, of: int = 12
) -> Path:
    """A folder of rows without a manifest."""
    rows = responses(seed, of, keys=keys)
    write(folder / "items.jsonl", items(of))
    write(folder / "responses.jsonl", rows, escaped=escaped)
    write(folder / "evaluation_results.jsonl", evaluations(rows, seed + 1), escaped=escaped)
    (folder / "manifest.json").write_text("{}")
    return folder


def read(path: Path) -> list[Row]:
    rows: list[Row] = []
    for line in (
        path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else ()
    ):
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def samples(folder: Path, label: str, name: str = "") -> list[Row]:
    """Every response with its verdict under a label, in order."""
    judged = [row for row in read(folder / "evaluation_results.jsonl") if row["label"] == label]
    kinds = {row["id"]: row["metadata"]["kind"] for row in read(folder / "items.jsonl")}
    found: list[Row] = []
    for row in read(folder / "responses.jsonl"):
        verdict = next((entry for entry in judged if _judges(entry, row)), None)
        scored = verdict is not None and verdict["outcome"] == "scored"
        score = verdict["score"] if scored else None
        passed = verdict["passed"] if scored else None
        facets = {**{name: value for name, value in row["metadata"].items() if name != "nested"}}
        facets |= {"kind": kinds[row["item_id"]], "model_name": row["model_name"]}
        facets["task"] = row.get("task") or row["model_name"]
        found.append(
            {
                "experiment": name,
                "item": row["item_id"],
                "task": facets["task"],
                "model": row["model_name"],
                "sample": row["sample_index"],
                "outcome": row["outcome"],
                "verdict": verdict["outcome"] if verdict else "",
                "passed": passed,
                "score": score,
                "latency": row["inference_time"],
                "length": len(row["response"]),
                "facets": {
                    name: _text(value) for name, value in facets.items() if value is not None
                },
                "texts": [
                    row["item_id"],
                    row["prompt"],
                    row["response"],
                    f"What is {int(row['item_id'][1:])}?",
                ],
            }
        )
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _judges(entry: Row, row: Row) -> bool:
    if entry.get("responses") and row.get("key"):
        return row["key"] in entry["responses"]
    return all(entry[name] == row[name] for name in ("item_id", "sample_index", "model_name"))
