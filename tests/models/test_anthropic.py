import json
from collections.abc import Callable
from typing import Any

import pytest

from assay.errors import CallError, LaneError, PermanentError, TransientError, UserError
from assay.interfaces import Completion, Request
from assay.models.anthropic import AnthropicModel, anthropic, read_answer

KEY = "sk-ant-secret-0123456789"
Ask = Callable[..., Completion]
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Finds.",
        "parameters": {"type": "object", "required": ["q"]},
    },
}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "search", "arguments": '{"q":"x"}'},
}


def made(**options: Any) -> AnthropicModel:
    model = anthropic("m", **options)
    assert isinstance(model, AnthropicModel)
    return model


def body(
    messages: list[dict[str, Any]], params: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    return json.loads(made(**options).body(Request(messages, params or {}, sample_index=2)))


def answer(*content: dict[str, Any], **more: Any) -> Completion:
    return read_answer(json.dumps({"content": content, **more}).encode())


def test_the_mock_server_answers(honest: str, ask: Ask) -> None:
    got = ask(made(endpoint=honest), "What is 17 * 23?")
    assert (got.text, got.finish_reason, got.served_model, got.total_tokens) == (
        "391",
        "stop",
        "m",
        5,
    )
    assert got.response_id
    called = ask(
        made(endpoint=honest), "What is 2+2?", params={"tools": [SEARCH], "tool_choice": "required"}
    )
    assert called.tool_calls is not None
    assert called.tool_calls[0]["function"]["name"] == "search"
    assert called.finish_reason == "tool_calls"


def test_the_system_prompt_is_apart_and_max_tokens_always_there() -> None:
    asked = {"role": "user", "content": "Hi"}
    system = {"role": "system", "content": "Be brief."}
    assert body([system, asked]) == {
        "model": "m",
        "max_tokens": 1024,
        "system": "Be brief.",
        "messages": [asked],
    }
    assert body([asked], {"max_tokens": 7})["max_tokens"] == 7
    assert body([asked], {"max_tokens": 0})["max_tokens"] == 1024


def test_parameters_of_the_chat_api_get_their_names() -> None:
    params = {
        "stop": "\n",
        "seed": 4,
        "num_samples": 3,
        "think": True,
        "temperature": 0.5,
        "top_p": None,
    }
    sent = body(
        [{"role": "user", "content": "Hi"}], params, model_name="claude", extra_body={"top_k": 5}
    )
    del sent["messages"], sent["max_tokens"]
    assert sent == {"model": "claude", "stop_sequences": ["\n"], "temperature": 0.5, "top_k": 5}


def test_tools_have_one_shape_outside() -> None:
    messages = [
        {"role": "user", "content": "Find x"},
        {"role": "assistant", "content": "Well", "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "found"},
        {"role": "tool", "tool_call_id": "call_2", "content": "too"},
    ]
    choice = {"type": "function", "function": {"name": "search"}}
    sent = body(messages, {"tools": [SEARCH], "tool_choice": choice})
    assert sent["tools"] == [
        {
            "name": "search",
            "description": "Finds.",
            "input_schema": {"type": "object", "required": ["q"]},
        }
    ]
    assert sent["tool_choice"] == {"type": "tool", "name": "search"}
    used = {"type": "tool_use", "id": "call_1", "name": "search", "input": {"q": "x"}}
    assert sent["messages"][1]["content"] == [
        {"type": "text", "text": "Well"},
        used,
        {**used, "id": "call_2"},
    ]
    results = sent["messages"][2]
    assert [part["tool_use_id"] for part in results["content"]] == ["call_1", "call_2"]
    assert len(sent["messages"]) == 3
    got = answer(used, stop_reason="tool_use")
    assert got.tool_calls == [CALL]
    assert got.finish_reason == "tool_calls"


def test_images_are_sent_as_this_api_wants_them() -> None:
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
    ]
    sent = body([{"role": "user", "content": parts}])["messages"][0]["content"]
    assert sent[0] == parts[0]
    assert sent[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert sent[2]["source"] == {"type": "url", "url": "https://x.example/a.png"}


def test_the_form_of_the_answer_and_the_effort_have_one_place() -> None:
    asked = [{"role": "user", "content": "Hi"}]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    sent = body(asked, {"response_format": form, "reasoning_effort": "high"})
    assert sent["output_config"] == {
        "format": {"type": "json_schema", "schema": schema},
        "effort": "high",
    }
    assert not {"response_format", "reasoning_effort"} & sent.keys()
    assert body(asked, {"reasoning_effort": "minimal"})["output_config"] == {"effort": "low"}
    assert "output_config" not in body(
        asked, {"reasoning_effort": "none", "response_format": {"type": "text"}}
    )
    with pytest.raises(PermanentError, match="by its schema only"):
        body(asked, {"response_format": {"type": "json_object"}})


def test_thinking_is_kept_apart_and_cached_tokens_count() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 2}
    got = answer({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "4"}, usage=usage)
    assert (got.text, got.reasoning, got.prompt_tokens, got.total_tokens) == ("4", "hm", 13, 15)


@pytest.mark.parametrize(
    ("reason", "finish", "refused"),
    [
        ("end_turn", "stop", False),
        ("stop_sequence", "stop", False),
        ("max_tokens", "length", False),
        ("refusal", "content_filter", True),
        ("pause_turn", "pause_turn", False),
    ],
)
def test_stop_reasons(reason: str, finish: str, refused: bool) -> None:
    got = answer({"type": "text", "text": "x"}, stop_reason=reason)
    assert (got.finish_reason, got.refused) == (finish, refused)


@pytest.mark.parametrize(
    ("name", "kind", "part"),
    [
        ("529", TransientError, "overloaded"),
        ("401", LaneError, "ANTHROPIC_API_KEY"),
        ("400-credit", LaneError, "no credit"),
        ("400-long", PermanentError, "too long for the model"),
        ("404", LaneError, "valid: assay-demo"),
        ("html", TransientError, "not JSON"),
        ("no-choices", TransientError, "not a message"),
    ],
)
def test_failures(strange: str, ask: Ask, name: str, kind: type[CallError], part: str) -> None:
    with pytest.raises(CallError) as caught:
        ask(made(endpoint=strange, api_key=KEY), name)
    assert type(caught.value) is kind
    assert part in str(caught.value)
    assert KEY not in str(caught.value)


def test_the_key_goes_only_to_its_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    headers = made()._transport._headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "x-api-key" not in made(endpoint="https://x.example")._transport._headers
    assert made(endpoint="https://x.example", api_key=KEY)._transport._headers["x-api-key"] == KEY
    assert KEY not in json.dumps(dict(made().identity))


def test_extra_body_cannot_replace_the_system_prompt() -> None:
    with pytest.raises(UserError, match="extra_body"):
        anthropic("m", extra_body={"system": "x"})
