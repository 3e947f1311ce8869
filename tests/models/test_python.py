import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import PermanentError, TransientError, UserError
from assay.interfaces import Completion, Message, Request
from assay.models.python import python

Ask = Callable[..., Completion]


def shout(prompt: str, *, mark: str = "!") -> str:
    return prompt.upper() + mark


async def shout_later(prompt: str) -> str:
    return prompt.upper()


def count(messages: list[Message]) -> dict[str, Any]:
    return {"text": str(len(messages)), "prompt_tokens": 3}


async def whole(request: Request) -> Completion:
    return Completion(text=f"{request.sample_index} {request.params}")


class Caller:
    async def __call__(self, prompt: str) -> str:
        return prompt * 2


def test_every_form_of_function(ask: Ask) -> None:
    assert ask(python("p", function=shout), "a").text == "A!"
    assert ask(python("p", function=shout, params={"mark": "?"}), "a").text == "A?"
    assert ask(python("p", function=shout_later), "a").text == "A"
    assert ask(python("p", function=lambda text: f"<{text}>"), "a").text == "<a>"
    assert ask(python("p", function=Caller()), "a").text == "aa"
    answer = ask(python("p", function=count), "a")
    assert (answer.text, answer.prompt_tokens) == ("1", 3)
    assert (
        ask(python("p", function=whole), "a", sample_index=4, params={"k": 1}).text == "4 {'k': 1}"
    )


def test_a_sync_function_may_block(ask: Ask) -> None:
    """Two calls that wait for each other can only end if neither holds up the event loop."""
    meeting = threading.Barrier(2, timeout=5)

    def meet(prompt: str) -> str:
        meeting.wait()
        return prompt

    async def go() -> list[Completion]:
        model = python("p", function=meet)
        request = Request([{"role": "user", "content": "hi"}])
        return await asyncio.gather(model.complete(request), model.complete(request))

    assert [answer.text for answer in asyncio.run(go())] == ["hi", "hi"]


def test_a_function_in_a_file(tmp_path: Path, ask: Ask) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def f(prompt):\n    return prompt[::-1]\n")
    model = python("p", path=str(file), function_name="f")
    assert ask(model, "abc").text == "cba"
    with pytest.raises(UserError, match="no function 'g'"):
        python("p", path=str(file), function_name="g")


def test_identity_follows_the_file(tmp_path: Path) -> None:
    identities: list[Any] = []
    for number, body in enumerate(("return prompt", "return prompt", "return prompt * 2")):
        file = tmp_path / str(number) / "mine.py"
        file.parent.mkdir()
        file.write_text(f"def f(prompt):\n    {body}\n")
        identities.append(python("p", path=str(file), function_name="f").identity)
    assert identities[0]["code"] == identities[1]["code"] != identities[2]["code"]
    assert (
        python("p", function=shout).identity
        != python("p", function=shout, params={"mark": "?"}).identity
    )


@pytest.mark.parametrize("result", [None, 7, {"txt": "a"}, {"text": 5}, ["a"]])
def test_a_result_that_is_no_answer_is_permanent(ask: Ask, result: Any) -> None:
    with pytest.raises(PermanentError, match="returned") as caught:
        ask(python("p", function=lambda prompt: result), "a")
    if result == {"txt": "a"}:
        assert "did you mean 'text'?" in caught.value.fix


def test_a_function_that_hangs_times_out(ask: Ask) -> None:
    async def hang(prompt: str) -> str:
        await asyncio.Event().wait()
        return prompt

    with pytest.raises(TransientError, match=r"within 0\.05 s") as caught:
        ask(python("p", function=hang), "a", timeout=0.05)
    assert caught.value.overload


def test_its_own_exceptions_pass_through(ask: Ask) -> None:
    def broken(prompt: str) -> str:
        raise KeyError(prompt)

    with pytest.raises(KeyError):
        ask(python("p", function=broken), "a")


def test_what_cannot_be_called_is_refused_at_once() -> None:
    with pytest.raises(UserError, match="needs a function"):
        python("p")
    with pytest.raises(UserError, match="cannot be called"):
        python("p", function=shout, params={"wrong": 1})
    with pytest.raises(UserError, match="cannot be called"):
        python("p", function=lambda: "x")


HANGING = """
import asyncio, threading
from assay.errors import TransientError
from assay.interfaces import Request
from assay.models.python import python

async def main():
    model = python("p", function=lambda prompt: threading.Event().wait())
    try:
        await model.complete(Request([{"role": "user", "content": "x"}], timeout=0.05))
    except TransientError as error:
        assert error.timed_out
        print("timed out")
    await model.close()

asyncio.run(main())
"""


def test_a_function_that_hangs_does_not_keep_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout == "timed out\n"


def test_many_sync_calls_are_made_at_once() -> None:
    meeting = threading.Barrier(40, timeout=10)

    def meet(prompt: str) -> str:
        meeting.wait()
        return prompt

    async def go() -> list[Completion]:
        model = python("p", function=meet)
        request = Request([{"role": "user", "content": "hi"}])
        answers = await asyncio.gather(*(model.complete(request) for _ in range(40)))
        await model.close()
        return answers

    assert {answer.text for answer in asyncio.run(go())} == {"hi"}
