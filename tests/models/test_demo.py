import asyncio
from collections.abc import Callable

import pytest

from assay.errors import UserError
from assay.interfaces import Completion, Request
from assay.models.demo import demo

Ask = Callable[..., Completion]


def test_it_answers_and_counts(ask: Ask) -> None:
    answer = ask(demo("d", skill=1.0), "What is 17 * 23?")
    assert (answer.text, answer.finish_reason, answer.served_model) == ("391", "stop", "assay-demo")
    assert (answer.prompt_tokens, answer.completion_tokens, answer.total_tokens) == (4, 1, 5)


def test_seeds_are_samples(ask: Ask) -> None:
    model = demo("d", skill=0.5)
    answers = [ask(model, "What is 17 * 23?", seed=seed).text for seed in range(20)]
    assert answers == [ask(model, "What is 17 * 23?", seed=seed).text for seed in range(20)]
    assert 1 < answers.count("391") < 20


def test_json_and_tools(ask: Ask) -> None:
    model = demo("d", skill=1.0)
    assert (
        ask(model, "What is 2+2?", params={"response_format": {"type": "json_object"}}).text
        == '{"answer":4}'
    )
    tools = [{"type": "function", "function": {"name": "f"}}]
    answer = ask(model, "What is 2+2?", params={"tools": tools})
    assert (answer.text, answer.finish_reason) == ("", "tool_calls")
    assert answer.tool_calls is not None
    assert answer.tool_calls[0]["function"]["name"] == "f"


def test_latency_overlaps_and_is_not_identity() -> None:
    async def go() -> float:
        model = demo("d", latency_ms=100)
        loop = asyncio.get_running_loop()
        started = loop.time()
        request = Request([{"role": "user", "content": "What is 2+2?"}])
        await asyncio.gather(*(model.complete(request) for _ in range(50)))
        return loop.time() - started

    assert 0.09 < asyncio.run(go()) < 2
    assert demo("d", latency_ms=100).identity == demo("d").identity
    assert demo("d", skill=0.7).identity != demo("d").identity


def test_skill_is_a_share() -> None:
    with pytest.raises(UserError, match="skill"):
        demo("d", skill=7)
