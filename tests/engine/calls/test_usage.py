"""The calls of judges and of tasks that ask by themselves are in the plan, the manifest, the status and the report."""

import asyncio
import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import assay
from assay.engine.calls.budget import Budget, Spending
from assay.errors import BudgetError
from assay.interfaces import Price, Request
from assay.reports.sheet import cost_text

CODE = """
    async def agent(item, *, context):
        first = await context.complete([{"role": "user", "content": item.data["question"]}], model="asked", step="a")
        again = await context.complete([{"role": "user", "content": "sure?"}], model="asked", step="b")
        return first.text
"""


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "code.py").write_text(dedent(CODE))
    return {
        "name": "x",
        "dataset": {"path": str(tmp_path / "items.jsonl")},
        "models": [
            {"name": "asked", "type": "demo", "helper": True, "price": {"input": 1, "output": 2}},
            {"name": "judging", "type": "demo", "helper": True, "price": {"input": 3, "output": 4}},
        ],
        "tasks": [{"name": "agent", "function": str(tmp_path / "code.py:agent")}],
        "evaluation_methods": [
            {"name": "good", "type": "judge_correctness", "params": {"model": "judging"}}
        ],
        "metrics": ["pass_rate"],
        "output_dir": str(tmp_path / "out"),
    }


@pytest.fixture
def items(tmp_path: Path) -> int:
    rows = [
        {"id": f"q{n}", "data": {"question": f"{n} + 1"}, "ground_truth": str(n + 1)}
        for n in range(3)
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return len(rows)


def test_calls_of_judges_and_agents(config: dict[str, Any], items: int) -> None:
    planned = assay.plan(config)
    by_owner = {call.owner: call for call in planned.calls}
    assert by_owner["agent"].calls is None, "nobody knows before the first run"
    assert (by_owner["good"].model, by_owner["good"].calls) == ("judging", items)
    assert planned.usd is None
    result = assay.run(config)
    assert result.run is not None
    assert result.evaluation is not None
    agent, judge = (
        result.run.metadata["calls"]["agent"]["asked"],
        result.evaluation.metadata["calls"]["good"]["judging"],
    )
    assert (agent["responses"], judge["responses"]) == (2 * items, items)
    for used, price in ((agent, Price(1, 2)), (judge, Price(3, 4))):
        assert used["total_tokens"] == used["prompt_tokens"] + used["completion_tokens"] > 0
        assert used["cost"] == pytest.approx(
            price.cost(used["prompt_tokens"], used["completion_tokens"])
        )
    status = json.loads((Path(result.folder) / "status.json").read_text())
    assert status["calls"]["asked"]["calls"] == 2 * items
    assert status["calls"]["asked"]["tokens"] == agent["total_tokens"]
    assert status["calls"]["calls to judging"]["cost"] == pytest.approx(judge["cost"])
    shown = assay.sheet(result).form(width=100)
    assert "asked for agent" in shown
    assert "judging for good" in shown
    config["num_samples"] = 2
    again = {call.owner: call for call in assay.plan(config).calls}
    assert (again["agent"].calls, again["good"].calls) == (2 * items, items), (
        "for the new samples, as before"
    )
    assert again["agent"].prompt_tokens == agent["prompt_tokens"]


@pytest.mark.parametrize(
    ("cost", "text"),
    [(0.0000123, "$1.23e-05"), (0.00456, "$0.00456"), (0.5, "$0.5000"), (12.3, "$12.30")],
)
def test_small_amounts_keep_their_digits(cost: float, text: str) -> None:
    assert cost_text(cost, 0) == text


def test_a_small_budget_is_told_with_enough_digits() -> None:
    budget = Budget(usd=0.00002, spent=Spending(usd=0.0000151))
    with pytest.raises(BudgetError, match=r"0\.00001510 of 2e-05 US dollars"):
        asyncio.run(budget.reserve(Request([{"role": "user", "content": "x" * 400}]), Price(1, 1)))
