"""Budgets, prices and limits per minute: nothing is sent that does not fit, and nothing paid is lost."""

import asyncio
from datetime import date
from typing import Any

import pytest

from assay.config import load
from assay.config.providers import providers, table
from assay.engine.calls.budget import Budget, Spending, spent_before
from assay.engine.calls.lanes import Lane, cost_of
from assay.engine.calls.progress import LaneProgress
from assay.engine.experiment.models import price_of
from assay.engine.experiment.plan import plan
from assay.errors import BudgetError, ConfigError
from assay.interfaces import Completion, Limits, Price, Request
from tests.support import Lab, VirtualClock, in_virtual_time

ASK = Request([{"role": "user", "content": "x" * 40}], {"max_tokens": 10})  # 11 + 10 tokens


def counted(tokens: int = 15) -> Completion:
    return Completion(text="ok", prompt_tokens=tokens - 5, completion_tokens=5, total_tokens=tokens)


def test_a_call_that_does_not_fit_waits_for_others_to_settle() -> None:
    async def scenario() -> list[str]:
        budget, said = Budget(tokens=40), list[str]()

        async def call(name: str) -> None:
            reserved = await budget.reserve(ASK, None)
            said.append(f"{name} begins")
            await asyncio.sleep(0)
            budget.settle(reserved, None, counted(15))
            said.append(f"{name} ends")

        await asyncio.gather(call("a"), call("b"))
        with pytest.raises(BudgetError, match="30 of 40 tokens"):
            await budget.reserve(ASK, None)
        return said

    assert asyncio.run(scenario()) == ["a begins", "a ends", "b begins", "b ends"]


def test_prompts_that_were_underestimated_are_estimated_higher() -> None:
    async def scenario() -> None:
        budget = Budget(tokens=1000)
        first = await budget.reserve(ASK, None)
        assert first.tokens == 21
        budget.settle(
            first, None, Completion(prompt_tokens=33, completion_tokens=1, total_tokens=34)
        )
        assert (await budget.reserve(ASK, None)).tokens == 33 + 10

    asyncio.run(scenario())


def test_what_earlier_runs_paid_counts() -> None:
    async def scenario() -> None:
        budget = Budget(usd=0.01, spent=Spending(usd=0.0099))
        with pytest.raises(BudgetError) as caught:
            await budget.reserve(ASK, Price(1000.0, 1000.0))
        assert caught.value.exit_code == 5
        assert caught.value.where == "budget.usd"

    asyncio.run(scenario())


def test_zero_lets_nothing_through(lab: Lab) -> None:
    lab.config["budget"] = {"tokens": 0}
    with pytest.raises(BudgetError):
        lab.run()
    assert lab.calls() == 0
    assert lab.read("responses.jsonl") == []


def with_tokens(lab: Lab) -> None:
    lab.write(
        "model.py",
        f"""
        def calculator(prompt):
            with open({str(lab.paid)!r}, "a") as file:
                file.write("x\\n")
            answer = str(eval(prompt.split("What is")[-1].split("?")[0]))
            return {{"text": answer, "prompt_tokens": 6, "completion_tokens": 4, "total_tokens": 10}}
        """,
    )
    lab.config["models"] = [lab.model("calculator", max_concurrency=1)]


def test_a_run_stops_at_its_budget_and_goes_on_when_it_is_raised(lab: Lab) -> None:
    with_tokens(lab)
    lab.config["budget"] = {"tokens": 55}
    lab.config["sample_params"]["max_tokens"] = 4
    with pytest.raises(BudgetError, match="the budget is used up"):
        lab.run()
    kept = {row["key"] for row in lab.read("responses.jsonl")}
    assert 4 <= len(kept) <= 5
    assert sum(row["total_tokens"] for row in lab.read("responses.jsonl")) <= 55
    with pytest.raises(BudgetError):
        lab.run()
    lab.config["budget"] = {"tokens": 1000}
    assert lab.run().ran == 8 - len(kept)
    assert lab.calls() == 8
    assert {row["key"] for row in lab.read("responses.jsonl")} > kept


def test_dollars_need_prices_before_the_first_call(lab: Lab) -> None:
    with_tokens(lab)
    lab.config["budget"] = {"usd": 5}
    with pytest.raises(ConfigError, match="the price of 'calculator' is unknown"):
        lab.run()
    assert lab.calls() == 0
    lab.config["prices"] = {"calculator": {"input": 1.0, "output": 2.0}}
    done = lab.run()
    assert done.result.run is not None
    usage = done.result.run.metadata["usage"]["calculator"]
    assert usage["total_tokens"] == 80
    assert usage["cost"] == pytest.approx(8 * (6 * 1.0 + 4 * 2.0) / 1e6)
    assert usage["unpriced"] == 0
    assert [row["cost"] for row in lab.read("responses.jsonl")] == [pytest.approx(14e-6)] * 8


def test_an_unknown_price_is_never_zero(lab: Lab) -> None:
    with_tokens(lab)
    done = lab.run()
    assert done.result.run is not None
    assert done.result.run.metadata["usage"]["calculator"]["unpriced"] == 8
    assert {row["cost"] for row in lab.read("responses.jsonl")} == {None}


def test_spending_includes_calls_and_rows_set_aside(lab: Lab) -> None:
    import assay

    with_tokens(lab)
    lab.run()
    lab.config["prompt_templates"] = {"plain": "Now, What is {{question}}?"}
    lab.run()
    experiment = assay.experiment(lab.config)
    assert spent_before(experiment.store, experiment.id).tokens == 160


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"name": "a", "type": "demo"}, Price(0, 0)),
        ({"name": "gpt-4o-mini", "endpoint": "https://api.openai.com/v1"}, Price(0.15, 0.6)),
        (
            {
                "name": "x",
                "model_name": "gpt-4o-2024-08-06",
                "endpoint": "https://api.openai.com/v1",
            },
            Price(2.5, 10.0),
        ),
        ({"name": "gpt-4o-mini", "endpoint": "http://127.0.0.1:1/v1"}, None),
        ("openai:gpt-4o-mini", Price(0.15, 0.6)),
        ("anthropic:claude-sonnet-4-5-20250929", Price(3.0, 15.0)),
        ("google:gemini-2.5-flash", Price(0.3, 2.5)),
        ("groq:openai/gpt-oss-20b", Price(0.075, 0.3)),
        ("deepseek:deepseek-chat", Price(0.28, 0.42)),
        (
            {
                "name": "c",
                "type": "cohere",
                "model_name": "command-r-08-2024",
                "endpoint": "http://127.0.0.1:1",
            },
            None,
        ),
        ("hf:openai/gpt-oss-20b", None),
        (
            {
                "name": "gpt-4o-mini",
                "endpoint": "http://127.0.0.1:1/v1",
                "price": {"input": 7, "output": 8},
            },
            Price(7, 8),
        ),
        ({"name": "listed", "endpoint": "http://127.0.0.1:1/v1"}, Price(1, 2)),
    ],
)
def test_where_a_price_comes_from(lab: Lab, model: Any, expected: Price | None) -> None:
    lab.write("items.jsonl", '{"question": "1"}\n')
    lab.config |= {"models": [model], "prices": {"listed": {"input": 1, "output": 2}}}
    config = load(lab.config)
    assert price_of(config, config.models[0]) == expected


def test_the_list_has_a_date_and_sane_prices() -> None:
    assert date.fromisoformat(table().as_of) > date(2026, 1, 1)
    listed = [model for provider in providers().values() for model in provider.models.values()]
    assert len(listed) > 50
    assert all(0 < model.input <= model.output for model in listed)
    assert all(model.context is None or 4096 <= model.context < 1e7 for model in listed)


def test_what_the_server_says_of_the_cost_wins() -> None:
    assert cost_of(Price(1, 1), Completion(cost=3.0, prompt_tokens=1, completion_tokens=1)) == 3.0
    assert cost_of(Price(1, 1), Completion()) is None


class Quick:
    name = "m"
    identity: dict[str, Any] = {}

    async def complete(self, request: Request) -> Completion:
        return counted(30)

    async def close(self) -> None: ...


def paced(limits: Limits, calls: int) -> float:
    """Virtual seconds that so many calls at once take."""

    async def scenario(clock: VirtualClock) -> float:
        lane = Lane("m", limits, LaneProgress("m"))
        await asyncio.gather(*(lane.send(Quick(), ASK) for _ in range(calls)))
        return clock.now - 1000.0

    return in_virtual_time(scenario)


def test_requests_per_minute() -> None:
    assert paced(Limits(requests_per_minute=600), 101) == pytest.approx(9.1, abs=0.2)
    assert paced(Limits(requests_per_minute=6), 4) == pytest.approx(30, abs=0.5)


def test_tokens_per_minute_settle_with_what_was_used() -> None:
    assert paced(Limits(tokens_per_minute=21 * 60), 11) >= 9.0


def test_a_plan_says_what_it_may_cost_and_how_long(lab: Lab) -> None:
    import assay

    with_tokens(lab)
    lab.config["models"][0] |= {"price": {"input": 1000, "output": 1000}, "requests_per_minute": 60}
    lab.write("items.jsonl", '{"question": "1 + 1", "answer": "2"}\n')
    lab.config["sample_params"] = {"num_samples": 2, "max_tokens": 50}
    found = plan(assay.experiment(lab.config))
    assert (found.missing, found.answer_tokens) == (2, 100)
    assert found.usd == pytest.approx((found.prompt_tokens + 100) / 1000)
    assert found.seconds == pytest.approx(2.0)
    del lab.config["models"][0]["price"]
    assert plan(assay.experiment(lab.config)).usd is None
