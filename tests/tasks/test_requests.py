"""Items that bring their requests: what is sent as a chat, what as one text, and what of it the row keeps."""

import asyncio
from typing import Any

import pytest

from assay.errors import UserError
from assay.interfaces import Answer, Completion, Likelihood, Likelihoods, LogProbability, Request
from assay.records import Item
from assay.tasks.requests import RequestsTask

SHOTS = [
    {"role": "system", "content": "Add.", "delimiter": ""},
    {"role": "user", "content": "1+1=", "delimiter": " "},
    {"role": "assistant", "content": "2", "delimiter": "\n\n"},
    {"role": "user", "content": "2+2=", "delimiter": ""},
]


class Model:
    name = "fake"

    def __init__(self, api: str = "chat") -> None:
        self.identity = {"type": "fake", "api": api}

    async def complete(self, request: Request) -> Completion:
        raise NotImplementedError

    async def close(self) -> None: ...


class Context:
    """Answers each request, and keeps what it was."""

    sample_index, seed, item_id = 0, 7, "i"

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.logged: list[Any] = []

    async def send(self, model: Model, request: Request) -> Completion:
        self.sent.append(request)
        if isinstance(request, Likelihood):
            values = [LogProbability([-float(len(text))], True) for text in request.continuations]
            return Likelihoods(values=values, way="echo", prompt_tokens=3)
        return Completion(text="4")

    async def complete(self, messages: Any, *, model: Model, **params: Any) -> Completion:
        self.logged.append((messages, params))
        return Completion(text=str(len(self.logged)))


def run(requests: Any, api: str = "chat", **params: Any) -> tuple[Answer, Context]:
    task = RequestsTask("requests", Model(api), params, 10.0, "")
    context = Context()
    work = task.prepare(Item(id="i", data={"requests": requests}))
    return asyncio.run(task.run(work, context)), context  # type: ignore[arg-type]


def test_a_chat_has_the_contents_and_a_text_the_delimiters_too() -> None:
    asked = {"messages": SHOTS, "params": {"stop": list("abcde"), "temperature": 0}}
    answer, context = run([asked], temperature=1, top_p=0.5)
    (request,) = context.sent
    assert [message["content"] for message in request.messages] == ["Add.", "1+1=", "2", "2+2="]
    assert request.params == {"stop": list("abcd"), "temperature": 0, "top_p": 0.5}
    assert (answer.text, answer.output) == ("4", None)
    _, context = run([asked], "completions")
    assert context.sent[0].messages == [{"role": "user", "content": "Add.1+1= 2\n\n2+2="}]
    assert context.sent[0].params["stop"] == list("abcde")


def test_examples_in_a_single_turn_before_the_beginning_of_an_answer() -> None:
    prefix = {"role": "assistant", "content": "It is", "delimiter": ""}
    _, context = run([{"messages": [*SHOTS, prefix], "multiturn": False}])
    assert [(message["role"], message["content"]) for message in context.sent[0].messages] == [
        ("system", "Add."),
        ("user", "1+1= 2\n\n2+2="),
        ("assistant", "It is"),
    ]


def test_repeats_are_logged_calls() -> None:
    answer, context = run([{"messages": SHOTS, "params": {"temperature": 1}, "repeats": 3}])
    assert len(context.logged) == 3
    assert answer.output == {"answers": ["1", "2", "3"]}
    assert answer.text == "1"


def test_likelihoods_of_several_contexts_are_one_row() -> None:
    one = {"messages": SHOTS[-1:], "continuations": [" 4", " five"]}
    other = {"messages": [{"role": "user", "content": ""}], "continuations": [" 4"]}
    answer, context = run([one, other])
    assert [request.continuations for request in context.sent] == [[" 4", " five"], [" 4"]]
    assert [choice["logprob"] for choice in answer.output["choices"]] == [-2.0, -5.0, -2.0]
    assert answer.text == " 4"
    assert answer.completion is not None
    assert answer.completion.prompt_tokens == 6


def test_whole_texts_are_not_repeated_in_the_row() -> None:
    answer, context = run([{"messages": [], "continuations": ["A long text."], "rolling": True}])
    assert context.sent[0].rolling
    assert answer.output["choices"][0]["text"] == ""


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ({}, "has no requests"),
        ({"requests": []}, "has no requests"),
        ({"error": "hooks.py:3: no"}, "hooks.py:3: no"),
    ],
)
def test_an_item_without_requests_is_an_error_of_its_row(data: Any, what: str) -> None:
    with pytest.raises(UserError, match=what):
        RequestsTask("requests", Model(), {}, 10.0, "").prepare(Item(id="i", data=data))


def test_the_fingerprint_is_that_of_what_is_sent() -> None:
    task = RequestsTask("requests", Model(), {}, 10.0, "")

    def of(**more: Any) -> bytes:
        return task.prepare(
            Item(id="i", data={"requests": [{"messages": SHOTS, **more}], "doc": more})
        ).fingerprint

    assert of() == of()
    assert (
        len(
            {
                of(),
                of(repeats=2),
                of(params={"seed": 1}),
                of(continuations=["x"]),
                of(multiturn=False),
            }
        )
        == 5
    )
