import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import LaneError, UserError
from assay.interfaces import Completion, Request
from assay.models.demo import demo
from assay.models.openai import openai
from assay.models.record import record
from assay.models.replay import replay

Ask = Callable[..., Completion]


def test_what_is_recorded_can_be_replayed(strange: str, ask: Ask, tmp_path: Path) -> None:
    path = str(tmp_path / "kept/answers.jsonl")
    of = {"type": "openai", "endpoint": strange}
    texts = ["reasoning", "tools", "refusal", "logprobs", "id-number", "parts"]
    said = {text: ask(record("m", of=of, path=path), text) for text in texts}
    for text in texts:
        assert ask(replay("again", path=path), text) == said[text]
    assert said["refusal"].refused
    assert said["logprobs"].logprobs


def test_samples_and_errors(strange: str, ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    model = record("m", of={"type": "openai", "endpoint": strange}, path=str(path))
    with pytest.raises(LaneError):
        ask(model, "404")
    for index in (0, 2):
        ask(model, "echo", sample_index=index, params={"seed": 5, "temperature": 1.0})
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["sample_index"] for row in rows] == [0, 2]
    assert rows[0]["metadata"]["sampling"] == {"seed": 5, "temperature": 1.0}
    assert (
        json.loads(ask(replay("again", path=str(path)), "echo", sample_index=2).text)["seed"] == 7
    )


def test_its_identity_is_the_wrapped_models(tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    assert (
        record("d", of={"type": "demo", "skill": 0.5}, path=path).identity
        == demo("d", skill=0.5).identity
    )
    assert record("r", of={"name": "m"}, path=path).identity == openai("m").identity


def test_answers_are_added_after_a_torn_line(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"item_id": "", "respon')
    ask(record("d", of={"type": "demo", "skill": 1.0}, path=str(path)), "What is 2+2?")
    assert len(path.read_text().splitlines()) == 2
    assert ask(replay("again", path=str(path)), "What is 2+2?").text == "4"


@pytest.mark.parametrize(
    ("of", "part"),
    [
        ({"type": "dmeo"}, "did you mean 'demo'?"),
        ({"type": "demo", "skil": 1}, "did you mean 'skill'?"),
        ({"type": "record"}, "a model that answers"),
    ],
)
def test_a_wrong_description_is_refused(of: dict[str, Any], part: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        record("m", of=of, path=str(tmp_path / "x"))
    assert part in str(caught.value)


def test_a_file_that_cannot_be_written_stops_the_lane(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LaneError, match="cannot be kept"):
        ask(record("d", of={"type": "demo"}, path=str(tmp_path / "file/answers.jsonl")), "x")
    with pytest.raises(LaneError, match="No space left"):
        ask(record("d", of={"type": "demo"}, path="/dev/full"), "x")


def test_a_wrapped_server_is_started_too(tmp_path: Path) -> None:
    async def go() -> str:
        command = [sys.executable, "-m", "assay.server", "--skill", "1.0", "--port", "{port}"]
        of = {"type": "vllm", "command": command, "log": str(tmp_path / "log")}
        model: Any = record("m", of=of, path=str(tmp_path / "answers"))
        assert model.exclusive
        await model.open()
        try:
            return (
                await model.complete(Request([{"role": "user", "content": "What is 2+2?"}]))
            ).text
        finally:
            await model.close()

    assert asyncio.run(go()) == "4"
