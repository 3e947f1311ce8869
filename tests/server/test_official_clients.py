"""The official clients of both APIs work against the mock server, and see its failures as their own errors."""

import anthropic
import openai
import pytest

from assay.server import Options, running

LONG = "What is 17 * 23? Think step by step."
TOOL = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}


@pytest.fixture(scope="module")
def url() -> str:  # type: ignore[misc]
    with running(Options(skill=1.0)) as address:
        yield address


def test_the_openai_client(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        assert [entry.id for entry in client.models.list()] == ["assay-demo"]
        answer = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "What is 17 * 23?"}]
        )
        assert answer.choices[0].message.content == "391"
        assert answer.usage is not None
        assert answer.usage.total_tokens == 5
        assert client.completions.create(model="m", prompt="What is 2+2?").choices[0].text == "4"
        called = client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "What is 2+2?"}],
            tools=[{"type": "function", "function": {"name": "reply", "parameters": TOOL}}],
        )
        assert called.choices[0].message.tool_calls is not None
        assert called.choices[0].message.tool_calls[0].function.arguments == '{"answer":4}'
        pieces = [
            chunk.choices[0].text
            for chunk in client.completions.create(model="m", prompt=LONG, stream=True)
        ]
        assert len(pieces) > 2
        assert "".join(pieces) == client.completions.create(model="m", prompt=LONG).choices[0].text
        asked = client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": LONG}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(asked)
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == sum(
            bool(c.choices and c.choices[0].delta.content) for c in chunks
        )


def test_the_anthropic_client(url: str) -> None:
    with anthropic.Anthropic(base_url=url, api_key="none") as client:
        asked: list[anthropic.types.MessageParam] = [{"role": "user", "content": LONG}]
        with client.messages.stream(model="m", max_tokens=64, messages=asked) as stream:
            streamed = stream.get_final_message()
        whole = client.messages.create(model="m", max_tokens=64, messages=asked)
        assert streamed.model_dump(exclude={"id"}) == whole.model_dump(exclude={"id"})
        answer = client.messages.create(
            model="m",
            max_tokens=64,
            system="Be brief.",
            messages=[{"role": "user", "content": "What is 17 * 23?"}],
        )
        assert [block.text for block in answer.content if block.type == "text"] == ["391"]
        assert (answer.stop_reason, answer.model, answer.usage.output_tokens) == (
            "end_turn",
            "m",
            1,
        )
        asked = {"role": "user", "content": "What is 2+2?"}
        tools = [{"name": "reply", "input_schema": TOOL}]
        called = client.messages.create(model="m", max_tokens=64, messages=[asked], tools=tools)
        (block,) = called.content
        assert block.type == "tool_use"
        assert (block.name, block.input, called.stop_reason) == ("reply", {"answer": 4}, "tool_use")
        result = {"type": "tool_result", "tool_use_id": block.id, "content": "done"}
        turns = [
            asked,
            {"role": "assistant", "content": [block]},
            {"role": "user", "content": [result]},
        ]
        last = client.messages.create(model="m", max_tokens=64, messages=turns, tools=tools)
        assert last.stop_reason == "end_turn"


def test_the_anthropic_client_sees_errors(url: str) -> None:
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        with pytest.raises(anthropic.BadRequestError, match="the system prompt is apart"):
            client.messages.create(
                model="m", max_tokens=1, messages=[{"role": "system", "content": "x"}]
            )
        with pytest.raises(anthropic.BadRequestError, match="missing or empty"):
            client.messages.create(model="m", max_tokens=1, messages=[])
    with (
        running(Options(rate_429=1.0)) as busy,
        anthropic.Anthropic(base_url=busy, api_key="none", max_retries=0) as client,
        pytest.raises(anthropic.RateLimitError, match="too many requests"),
    ):
        client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])
