"""Reasoning before an answer is left out by every scorer that has the parameter, and the row says so."""

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.registry import parameters, scorer

ROWS = [
    {"id": "a", "question": "6 * 7", "answer": "42"},
    {"id": "b", "question": "1 + 1", "answer": "2"},
]
STRIPPING = [name for name in scorer.names() if "strip_reasoning" in parameters(scorer.get(name))]


def answer(prompt: str) -> str:
    return "<think>7 * 6 is 43, no, 7 * 6 = 42</think>\n42" if "6" in prompt else "2"


def evaluations(tmp_path: Path, **scoring: Any) -> dict[str, dict[str, Any]]:
    config = {
        "dataset": ROWS,
        "models": [answer],
        "prompts": "{{question}}",
        "output_dir": str(tmp_path / "out"),
    }
    assay.run(**config, **scoring, metrics=["mean"])
    lines = (tmp_path / "out" / "evaluation_results.jsonl").read_text().splitlines()
    return {row["item_id"]: row for row in map(json.loads, lines)}


@pytest.mark.parametrize(
    "name", ["exact_match", "f1", "contains", "rouge", "edit_similarity", "bleu", "chrf"]
)
def test_scorers_see_the_answer_alone(tmp_path: Path, name: str) -> None:
    rows = evaluations(tmp_path, scorers=[name])
    assert rows["a"]["score"] == rows["b"]["score"]
    assert rows["a"]["metadata"]["evaluation"]["reasoning_stripped"] is True
    assert "reasoning_stripped" not in rows["b"]["metadata"].get("evaluation", {})


def test_it_can_be_kept(tmp_path: Path) -> None:
    kept = {"name": "exact_match", "params": {"strip_reasoning": False}}
    rows = evaluations(tmp_path, scorers=[kept])
    assert (rows["a"]["passed"], rows["b"]["passed"]) == (False, True)
    assert rows["a"]["metadata"]["evaluation"] == {"params": {"strip_reasoning": False}}


@pytest.mark.parametrize("name", STRIPPING)
def test_every_scorer_with_the_parameter_strips_by_default(name: str) -> None:
    assert parameters(scorer.get(name))["strip_reasoning"].default is True
