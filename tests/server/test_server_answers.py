import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.server import MockServer, Options, running
from assay.server.answers import load

CANNED = Path(__file__).parent / "canned.py"


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def test_the_solver_answers_chat_and_completions(send: Callable[..., Any]) -> None:
    with running(Options(skill=1.0)) as url:
        status, headers, answer = send(url, "/v1/chat/completions", chat("What is 2+2?"))
        assert (status, headers["content-type"]) == (200, "application/json")
        assert answer["choices"][0]["message"] == {"role": "assistant", "content": "4"}
        assert answer["choices"][0]["finish_reason"] == "stop"
        assert answer["model"] == "m"
        usage = answer["usage"]
        assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"] > 1
        _, _, answer = send(url, "/v1/completions", {"prompt": "What is 2+2?"})
        assert (answer["object"], answer["choices"][0]["text"]) == ("text_completion", "4")
        wanted = {"type": "json_object"}
        _, _, answer = send(
            url, "/v1/chat/completions", chat("What is 2+2?", response_format=wanted)
        )
        assert json.loads(answer["choices"][0]["message"]["content"]) == {"answer": 4}
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        _, _, answer = send(url, "/v1/chat/completions", chat("What is 2+2?", tools=tools))
        assert answer["choices"][0]["finish_reason"] == "tool_calls"
        assert answer["choices"][0]["message"]["tool_calls"][0]["function"] == {
            "name": "f",
            "arguments": "{}",
        }


def test_equal_requests_get_equal_answers_and_seeds_differ(
    server: str, send: Callable[..., Any]
) -> None:
    def text(seed: int) -> str:
        _, _, answer = send(server, "/v1/chat/completions", chat("What is 812 * 77?", seed=seed))
        answer.pop("created")
        return json.dumps(answer["choices"])

    answers = [text(seed) for seed in range(12)]
    assert answers == [text(seed) for seed in range(12)]
    assert len(set(answers)) > 1


def test_models_and_health(server: str, send: Callable[..., Any]) -> None:
    assert send(server, "/v1/models")[2]["data"][0]["id"] == "assay-demo"
    assert send(server, "/health")[2] == {"status": "ok"}


def test_answers_from_a_function(send: Callable[..., Any]) -> None:
    with running(Options(answers=f"{CANNED}:answer", skill=1.0)) as url:
        content = send(url, "/v1/chat/completions", chat("hello"))[2]["choices"][0]["message"][
            "content"
        ]
        assert content == "said hello"
        assert send(url, "/v1/chat/completions", chat("raw"))[2] == b"<html>"
        status, headers, body = send(url, "/v1/chat/completions", chat("http"))
        assert (status, headers["x-tea"], headers["content-type"]) == (418, "green", "text/plain")
        assert body == b"short and stout"
        assert send(url, "/v1/chat/completions", chat("dict"))[2] == {"choices": []}
        status, _, answer = send(url, "/v1/chat/completions", chat("boom"))
        assert (status, "boom" in answer["error"]["message"]) == (500, True)
        content = send(url, "/v1/chat/completions", chat("What is 2+2?"))[2]["choices"][0][
            "message"
        ]["content"]
        assert content == "4"


def test_answers_from_a_file(tmp_path: Path) -> None:
    rows = [
        {"match": "^hello", "response": "pattern"},
        {"prompt": "hello you", "response": "exact"},
        {"messages": [{"role": "user", "content": "m"}], "response": {"choices": []}},
    ]
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    hook = load(str(file))
    assert hook(chat("hello you")) == "exact"
    assert hook({"prompt": "hello them"}) == "pattern"
    assert hook(chat("m")) == {"choices": []}
    assert hook(chat("else")) is None


@pytest.mark.parametrize(
    "line", ["[]", "{", '{"prompt":"x"}', '{"response":"x"}', '{"match":"(","response":""}']
)
def test_a_bad_answers_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text('{"prompt":"a","response":"b"}\n' + line)
    with pytest.raises(UserError, match=r"answers\.jsonl:2") as caught:
        MockServer(Options(answers=str(file)))
    assert caught.value.fix
