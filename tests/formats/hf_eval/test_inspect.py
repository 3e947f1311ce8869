"""Scorers and solvers against Inspect itself: `inspect.json` holds its verdicts and messages for texts of ours."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assay.formats.hf_eval.dataset import item_of
from assay.formats.hf_eval.definition import EvalTask, FieldSpec, Step
from assay.records import Item, Response
from assay.registry import scorer

CASES: dict[str, Any] = json.loads((Path(__file__).parent / "inspect.json").read_text())


@pytest.mark.parametrize(
    "grid", CASES["scored"], ids=lambda grid: f"{grid['scorer']}-{grid['params']}"
)
def test_every_verdict_is_inspects(grid: dict[str, Any]) -> None:
    score = scorer.get(f"hf_eval.{grid['scorer']}")
    differing: list[Any] = []
    for answer, expected in zip(grid["answers"], grid["scores"], strict=True):
        for targets, value in zip(grid["targets"], expected, strict=True):
            item = Item(id="1", data={"choices": grid.get("choices")}, ground_truth=targets)
            found = score(item, Response(item_id="1", response=answer), **grid["params"])
            if (found.score or 0) != value:
                differing.append((answer, targets, value, found))
    assert not differing


def test_there_are_cases_of_both_kinds_for_every_scorer() -> None:
    scores: dict[str, set[float]] = {}
    for grid in CASES["scored"]:
        scores.setdefault(grid["scorer"], set()).update(
            value for row in grid["scores"] for value in row
        )
    assert set(scores) == {"match", "includes", "pattern", "answer", "exact", "f1", "choice"}
    assert all({0, 1} <= values for values in scores.values())


@pytest.mark.parametrize("case", CASES["solved"])
def test_every_message_is_inspects(case: dict[str, Any]) -> None:
    task = EvalTask(
        field_spec=msgspec.convert(case["field_spec"], FieldSpec),
        solvers=msgspec.convert(case["solvers"], list[Step]),
        scorers=[],
    )
    item = item_of(task, case["record"], 0, "row 1")
    assert item["data"]["messages"] == case["messages"]
    assert (item["ground_truth"], item["data"].get("choices")) == (case["target"], case["choices"])
