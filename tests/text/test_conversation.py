"""Conversations in the forms in which datasets have them become messages of the chat API, and nothing is lost."""

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from assay.errors import UserError
from assay.interfaces import Request
from assay.models.anthropic import AnthropicModel, anthropic
from assay.text.conversation import conversation_in, open_turns, tools_in

Message = dict[str, Any]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="<"), min_size=1, max_size=20)
NAMES = st.sampled_from(["find", "add"])
ARGUMENTS = st.dictionaries(st.sampled_from("abc"), st.integers() | TEXT, max_size=2)
DATA = "data:image/png;base64,iVBORw0KGgo="
IMAGE = {"type": "image_url", "image_url": {"url": DATA}}
PDF = {
    "type": "file",
    "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQ="},
}


@st.composite
def parts(draw: st.DrawFn) -> list[Message]:
    texts = [
        {"type": "text", "text": text} for text in draw(st.lists(TEXT, min_size=1, max_size=2))
    ]
    return draw(
        st.permutations([*texts, *draw(st.lists(st.sampled_from([IMAGE, PDF]), max_size=2))])
    )


@st.composite
def exchanges(draw: st.DrawFn, rich: bool) -> list[Message]:
    """A user's turn, and what follows it: an answer, or calls of tools with their results and an answer."""
    messages: list[Message] = [{"role": "user", "content": draw(TEXT | parts() if rich else TEXT)}]
    if rich and draw(st.booleans()):
        number = draw(st.integers(0, 10**6))
        calls = [
            {
                "id": f"c{number}_{n}",
                "type": "function",
                "function": {
                    "name": draw(NAMES),
                    "arguments": msgspec.json.encode(draw(ARGUMENTS)).decode(),
                },
            }
            for n in range(draw(st.integers(1, 2)))
        ]
        messages.append(
            {"role": "assistant", "content": draw(TEXT | st.none()), "tool_calls": calls}
        )
        messages += [
            {"role": "tool", "content": draw(TEXT), "tool_call_id": call["id"]} for call in calls
        ]
    return [*messages, {"role": "assistant", "content": draw(TEXT)}]


@st.composite
def conversations(draw: st.DrawFn, rich: bool = True) -> list[Message]:
    system = [{"role": "system", "content": draw(TEXT)}] if draw(st.booleans()) else []
    middle = [message for turn in draw(st.lists(exchanges(rich), max_size=3)) for message in turn]
    return [*system, *middle, {"role": "user", "content": draw(TEXT | parts() if rich else TEXT)}]


def read(**fields: Any) -> list[Message]:
    found = conversation_in(fields)
    assert found is not None
    return found[1]


@settings(max_examples=150, deadline=None)
@given(conversations())
def test_openais_messages_stay_as_they_are(messages: list[Message]) -> None:
    assert json.dumps(read(messages=messages)) == json.dumps(messages), (
        "to the order of keys: row keys hold it"
    )
    assert read(messages=json.dumps(messages)) == messages, "a cell of a table"


@settings(max_examples=150, deadline=None)
@given(conversations(rich=False))
def test_what_share_gpt_calls_a_conversation(messages: list[Message]) -> None:
    names = {"system": "system", "user": "human", "assistant": "gpt"}
    shared = [{"from": names[message["role"]], "value": message["content"]} for message in messages]
    assert read(conversations=shared) == messages


@settings(max_examples=150, deadline=None)
@given(conversations())
def test_anthropics_blocks_are_the_inverse_of_what_its_api_is_sent(messages: list[Message]) -> None:
    model = anthropic("claude")
    assert isinstance(model, AnthropicModel)
    sent = json.loads(model.body(Request(messages, {})))
    told = [{"role": "system", "content": sent["system"]}] if "system" in sent else []
    assert [*told, *read(messages=sent["messages"])] == messages


@settings(max_examples=200, deadline=None)
@given(st.recursive(st.none() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["role", "from", "content", "value", "type", "text", "image", "source", "tool_calls"]), inner,
    max_size=3), max_leaves=12))  # fmt: skip
def test_what_is_no_conversation_is_refused_or_left_alone(value: Any) -> None:
    with suppress(UserError):
        conversation_in({"messages": value})


@settings(max_examples=100, deadline=None)
@given(conversations())
def test_pieces_are_the_messages_and_end_where_an_answer_is_due(messages: list[Message]) -> None:
    bare = [message for message in messages if message["role"] not in ("assistant", "tool")]
    for asked in (messages, bare):
        pieces = open_turns(asked)
        assert [message for piece in pieces for message in piece] == asked
        assert all(piece[-1]["role"] == "user" for piece in pieces)
    assert len(open_turns(messages)) == 1
    assert len(open_turns(bare)) == sum(message["role"] == "user" for message in bare)


def test_calls_of_tools_in_share_gpt() -> None:
    call = json.dumps({"name": "find", "arguments": {"q": "x"}})
    turns = [
        ("human", "Find x"),
        ("function_call", call),
        ("observation", "found"),
        ("human", "And?"),
    ]
    made = read(conversations=[{"from": role, "value": text} for role, text in turns])
    (asked,) = made[1]["tool_calls"]
    assert asked["function"] == {"name": "find", "arguments": '{"q":"x"}'}
    assert made[2] == {"role": "tool", "content": "found", "tool_call_id": asked["id"]}


def test_files_beside_the_conversation_take_their_places() -> None:
    asked = {"from": "human", "value": "<image>\nWhat is it, and <image> that?"}
    (message,) = read(conversations=[asked], images=["a.png", "https://x.example/b.png"])
    assert message["content"] == [
        {"type": "image", "path": "a.png"},
        {"type": "text", "text": "What is it, and"},
        {"type": "image_url", "image_url": {"url": "https://x.example/b.png"}},
        {"type": "text", "text": "that?"},
    ]
    with pytest.raises(UserError, match="more than the row's 1 images"):
        read(conversations=[asked], images=["a.png"])
    (plain,) = read(conversations=[asked])
    assert plain["content"] == asked["value"], "a row without images means the text"
    (bare,) = read(messages=[{"role": "user", "content": [{"type": "audio"}]}], audio="a.wav")
    assert bare["content"] == [{"type": "audio", "path": "a.wav"}]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "path": "a.png"},
        {"type": "image", "image": "a.png"},
        {"type": "image_url", "image_url": {"url": "a.png"}},
        {"type": "image_url", "image_url": "a.png"},
        {"type": "image", "url": "a.png"},
    ],
)
def test_ways_to_name_a_file(part: Message) -> None:
    (message,) = read(messages=[{"role": "user", "content": [part]}])
    assert message["content"] == [{"type": "image", "path": "a.png"}]


@pytest.mark.parametrize(
    ("turns", "problem"),
    [
        ([{"role": "user", "content": "x"}, "y"], "message 2 of `messages` is not an object"),
        ([{"role": "wizard", "content": "x"}], "message 1 of `messages` has the role 'wizard'"),
        ([{"role": "user"}], "message 1 of `messages` has no content"),
        ([{"role": "user", "content": [{"text": "x"}]}], "a part without a type"),
        (
            [{"role": "user", "content": [{"type": "image", "path": "ftp://x/a.png"}]}],
            "the image's url is",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "image", "source": {"type": "base64", "data": "*"}}],
                }
            ],
            "not base64",
        ),
        (
            [{"role": "user", "content": [{"type": "image"}]}],
            "a place for more than the row's 0 images",
        ),
        ([{"from": "function_call", "value": "{"}], "the tool call in message 1 is not JSON"),
    ],
)
def test_what_is_wrong_is_said(turns: list[Any], problem: str) -> None:
    with pytest.raises(UserError) as raised:
        read(messages=turns)
    assert problem in raised.value.what


def test_a_message_may_not_carry_the_answer() -> None:
    messages = [{"role": "user", "content": "2 + 3?", "expected_answer": "5", "name": "eve"}]
    assert read(messages=messages) == [{"role": "user", "content": "2 + 3?", "name": "eve"}]


def test_tools_of_every_form() -> None:
    schema = {"type": "object"}
    whole = {"type": "function", "function": {"name": "f", "parameters": schema}}
    assert (
        tools_in(
            [whole, {"name": "f", "parameters": schema}, {"name": "f", "input_schema": schema}]
        )
        == [whole] * 3
    )
    assert tools_in(json.dumps([whole])) == [whole]
    for wrong in ("f", [3], [{"description": "x"}]):
        with pytest.raises(UserError, match="tool"):
            tools_in(wrong)
