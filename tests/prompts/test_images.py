"""Images in messages: sent as bytes, kept as a digest, found missing before any call."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import TransientError, UserError
from assay.interfaces import Completion, Request
from assay.prompts.jinja import JinjaPrompt, jinja
from assay.records import Item
from assay.text.media import loaded, restored
from tests.support import Lab

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    images = tmp_path / "images"
    images.mkdir()
    (images / "cat.png").write_bytes(PNG)
    (images / "dog.jpg").write_bytes(b"\xff\xd8\xff" + bytes(10))
    (images / "text.png").write_text("no image")
    (tmp_path / "secret.png").write_bytes(PNG)
    return tmp_path


def prompt(**part: Any) -> JinjaPrompt:
    return jinja(
        [
            {
                "role": "user",
                "content": [{"type": "text", "text": "{{question}}"}, {"type": "image", **part}],
            }
        ],
        name="p",
    )


def as_sent(made: JinjaPrompt, messages: list[Any]) -> list[Any]:
    return restored(messages, loaded(messages, made.files))


def item(file: str = "cat.png") -> Item:
    return Item(id="1", data={"question": "What is it?", "file": file})


def test_a_file_is_a_data_url_for_the_server_and_short_in_the_row(folder: Path) -> None:
    made = prompt(path=f"{folder}/images/{{{{file}}}}", detail="low")
    (message,) = made.render(item())
    text, image = message["content"]
    assert text == {"type": "text", "text": "What is it?"}
    assert image.keys() == {"type", "name", "media_type", "digest", "detail"}
    assert len(json.dumps(message)) < 300
    ((sent),) = as_sent(made, [message])
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert sent["content"] == [
        text,
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
    ]
    assert made.render(item("dog.jpg"))[0]["content"][1]["media_type"] == "image/jpeg"


def test_an_address_is_sent_as_it_is() -> None:
    made = prompt(url="https://example.org/{{file}}")
    assert made.render(item())[0]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "https://example.org/cat.png"},
    }
    assert made.files == {}


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "data:image/png;base64,AAAA", "ftp://example.org"]
)
def test_other_addresses_are_refused(url: str) -> None:
    assert "the image's url is" in str(prompt(url=url).check(item()))


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("cow.png", "there is no image"),
        ("../secret.png", "is outside"),
        ("/etc/passwd", "is outside"),
        ("text.png", "is not an image"),
        ("\0", "there is no image"),
    ],
)
def test_what_an_item_may_not_name(folder: Path, file: str, problem: str) -> None:
    root = f"{folder}/images/"
    made = prompt(path="{{file}}" if file.startswith("/") else root + "{{file}}")
    assert problem in str(made.check(item(file)))


def test_a_constant_file_is_checked_at_once_and_its_bytes_are_in_the_text(folder: Path) -> None:
    cat = folder / "images/cat.png"
    before = prompt(path=str(cat)).text
    assert prompt(path=str(cat)).text == before
    cat.write_bytes(PNG + b"x")
    assert prompt(path=str(cat)).text != before
    with pytest.raises(UserError, match="there is no image"):
        prompt(path=str(folder / "cow.png"))


def test_a_file_that_changes_meanwhile_is_not_sent(folder: Path) -> None:
    made = prompt(path=str(folder / "images/cat.png"))
    messages = made.render(item())
    (folder / "images/cat.png").write_bytes(PNG + b"x")
    with pytest.raises(TransientError, match="changed during the run"):
        as_sent(made, messages)


@pytest.mark.parametrize("path", ["images/{{picture}}", "images/cat.png"])
def test_an_edited_image_runs_again(
    lab: Lab, folder: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(folder)
    for row, name in zip(lab.rows, ["cat.png", "cat.png", "dog.jpg", "dog.jpg"], strict=True):
        row["data"]["picture"] = name
    parts = [{"type": "text", "text": "What is {{question}}?"}, {"type": "image", "path": path}]
    lab.config["prompt_templates"] = {"seen": [{"role": "user", "content": parts}]}
    assert lab.run().ran == 8
    assert "base64" not in (lab.folder / "out/responses.jsonl").read_text()
    assert lab.run().paid == 0
    (folder / "images/cat.png").write_bytes(PNG + b"x")
    assert lab.run().ran == (4 if "{{" in path else 8)
    (folder / "images/cat.png").unlink()
    with pytest.raises(UserError, match="there is no image"):
        lab.run()


class Eye:
    """A model that keeps what it was sent."""

    name = "eye"
    identity: Mapping[str, Any] = {"type": "eye"}

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def complete(self, request: Request) -> Completion:
        self.seen.append(request.messages)
        return Completion(text="a cat")

    async def close(self) -> None: ...


def test_the_model_gets_the_bytes_and_the_row_does_not(folder: Path) -> None:
    store, eye = assay.MemoryStore(), Eye()
    dataset = assay.DatasetRepository(store).create([{"question": "What is it?"}], name="d")
    run = assay.Runner(store).run(
        dataset.id, [assay.prompt_task(prompt(path=f"{folder}/images/cat.png"), eye)]
    )
    ((message,),) = eye.seen
    assert message["content"][1]["image_url"]["url"].endswith(base64.b64encode(PNG).decode())
    (row,) = assay.RunRepository(store).responses(run.id)
    assert row.messages is not None
    assert row.messages[0]["content"][1]["name"] == "cat.png"
    assert row.prompt == "What is it?"
