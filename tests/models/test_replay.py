import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assay.errors import LaneError, PermanentError, UserError
from assay.interfaces import Completion, Request
from assay.models.replay import replay
from assay.records import Response

Ask = Callable[..., Completion]


def write(path: Path, *rows: dict[str, Any]) -> Path:
    lines = [
        msgspec.json.encode(Response(item_id="i", **{"model_name": "m", **row})) for row in rows
    ]
    path.write_bytes(b"\n".join(lines))
    return path


def test_the_same_prompt_and_sample_get_the_same_answer(tmp_path: Path, ask: Ask) -> None:
    long = "x" * 200_000
    file = write(
        tmp_path / "responses.jsonl",
        {
            "prompt": "a",
            "response": "first",
            "prompt_tokens": 3,
            "metadata": {"finish_reason": "stop"},
        },
        {"prompt": "a", "response": long, "sample_index": 1},
        {"prompt": "b", "response": "no", "outcome": "refused"},
    )
    for path in (file, tmp_path):
        model = replay("r", path=str(path))
        answer = ask(model, "a")
        assert (answer.text, answer.prompt_tokens, answer.finish_reason) == ("first", 3, "stop")
        assert ask(model, "a", sample_index=1).text == long
        assert ask(model, "b").refused


def test_messages_are_matched_whole(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    file = write(
        tmp_path / "responses.jsonl",
        {"prompt": "system: s\n\nuser: u", "messages": messages, "response": "chat"},
        {"prompt": "s\n\nv", "response": "foreign"},
    )

    async def texts() -> list[str]:
        model = replay("r", path=str(file))
        asked = [
            [dict(reversed(m.items())) for m in messages],
            [messages[0], {"role": "user", "content": "v"}],
        ]
        answers = [await model.complete(Request(question)) for question in asked]
        with pytest.raises(PermanentError):
            await model.complete(Request([messages[0]]))
        await model.close()
        return [answer.text for answer in answers]

    assert asyncio.run(texts()) == ["chat", "foreign"]


def test_a_missing_answer_says_so(tmp_path: Path, ask: Ask) -> None:
    file = write(
        tmp_path / "responses.jsonl",
        {"prompt": "a", "response": "x"},
        {"prompt": "broken", "error": "HTTP 500", "outcome": "errored"},
    )
    for text, index in (("other", 0), ("a", 1), ("broken", 0)):
        with pytest.raises(PermanentError, match="no recorded answer") as caught:
            ask(replay("r", path=str(file)), text, sample_index=index)
        assert str(file) in str(caught.value)


def test_the_last_answer_counts_and_bad_lines_do_not(tmp_path: Path, ask: Ask) -> None:
    file = write(
        tmp_path / "responses.jsonl",
        {"prompt": "a", "response": "old"},
        {"prompt": "a", "response": "new"},
    )
    file.write_bytes(b"garbage\n\n" + file.read_bytes() + b'\n{"prompt": "a", "resp')
    assert ask(replay("r", path=str(file)), "a").text == "new"


def test_one_model_of_several_must_be_named(tmp_path: Path, ask: Ask) -> None:
    file = write(
        tmp_path / "responses.jsonl",
        {"prompt": "a", "response": "1", "model_name": "one"},
        {"prompt": "a", "response": "2", "model_name": "two"},
    )
    assert ask(replay("r", path=str(file), model="one"), "a").text == "1"
    assert ask(replay("r", path=str(file), model="two"), "a").text == "2"
    with pytest.raises(LaneError, match="one, two"):
        ask(replay("r", path=str(file)), "a")
    with pytest.raises(LaneError, match="did you mean 'two'"):
        ask(replay("r", path=str(file), model="twoo"), "a")


def test_no_file_and_an_empty_file(tmp_path: Path, ask: Ask) -> None:
    with pytest.raises(UserError, match="no responses"):
        replay("r", path=str(tmp_path))
    (tmp_path / "responses.jsonl").touch()
    with pytest.raises(PermanentError):
        ask(replay("r", path=str(tmp_path)), "a")


def test_identity_is_the_content(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", {"prompt": "a", "response": "1"})
    same = write(tmp_path / "b.jsonl", {"prompt": "a", "response": "1"})
    other = write(tmp_path / "c.jsonl", {"prompt": "a", "response": "2"})
    identity = [replay("r", path=str(file)).identity for file in (first, same, other)]
    assert identity[0] == identity[1] != identity[2]


def test_many_answers_take_16_bytes_each(tmp_path: Path, ask: Ask) -> None:
    file = write(
        tmp_path / "responses.jsonl",
        *({"prompt": str(n), "response": f"r{n}"} for n in range(5000)),
    )
    model = replay("r", path=str(file))
    assert ask(model, "4321").text == "r4321"
    kept: Any = model
    assert kept._answers.sorted.nbytes + kept._answers.order.nbytes == 16 * 5000
