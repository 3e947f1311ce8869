"""Files in messages: typed and sized by their bytes, references in rows, parts of the chat API for servers."""

import base64
import json
import wave
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import assay
from assay.errors import PermanentError, UserError
from assay.interfaces import Completion, Request
from assay.models.anthropic import anthropic
from assay.models.openai import openai
from assay.prompts.jinja import jinja
from assay.records import Item
from assay.text.media import described, loaded, media_type, part_of, restored, separated


def png() -> bytes:
    """A picture of one dot, written by hand."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")
        )

    head = (1).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    picture = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(4))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + picture


PDF = b"%PDF-1.4\n%%EOF\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    root.mkdir()
    (root / "dot.png").write_bytes(png())
    (root / "wrong.jpg").write_bytes(png())
    (root / "paper.pdf").write_bytes(PDF)
    (root / "text.png").write_text("no image")
    with wave.open(str(root / "tone.wav"), "wb") as file:
        file.setparams((1, 2, 8000, 8, "NONE", ""))
        file.writeframes(bytes(16))
    (tmp_path / "secret.png").write_bytes(png())
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    return root


def test_types_come_from_the_bytes(folder: Path) -> None:
    found = {
        name: media_type((folder / name).read_bytes())
        for name in ("dot.png", "wrong.jpg", "paper.pdf", "tone.wav")
    }
    assert found == {
        "dot.png": "image/png",
        "wrong.jpg": "image/png",
        "paper.pdf": "application/pdf",
        "tone.wav": "audio/wav",
    }
    assert media_type(b"\xff\xfb\x90\x00") == media_type(b"ID3\x04") == "audio/mpeg"
    assert media_type(b"\xff\xfe<\x00h\x00") == "", "text in UTF-16"
    assert media_type(b"RIFF\x00\x00\x00\x00WEBPVP8 ") == "image/webp"
    assert media_type(b"") == ""


def messages(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, *parts]}]


def asked(folder: Path, *parts: Any) -> tuple[list[Any], list[Any]]:
    """The content of a row's message, and of what a server gets."""
    prompt = jinja("", media_folder=str(folder))
    item = Item(id="i", data={"messages": messages(*parts)})
    assert prompt.check(item) is None
    shown, data = separated(prompt.render(item))
    sent = restored(shown, data | loaded(shown, prompt.files))
    return shown[0]["content"][1:], sent[0]["content"][1:]


def test_files_are_references_in_rows_and_parts_of_the_api_for_a_server(folder: Path) -> None:
    image, audio, paper = ({"type": kind, "path": name} for kind, name in [
        ("image", "dot.png"), ("audio", "tone.wav"), ("file", "paper.pdf"),
    ])  # fmt: skip
    shown, sent = asked(folder, {**image, "detail": "low"}, audio, paper)
    assert [part["name"] for part in shown] == ["dot.png", "tone.wav", "paper.pdf"]
    assert [part["media_type"] for part in shown] == ["image/png", "audio/wav", "application/pdf"]
    text = {
        name: base64.b64encode((folder / name).read_bytes()).decode()
        for name in ("dot.png", "tone.wav", "paper.pdf")
    }
    assert sent == [
        {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{text['dot.png']}", "detail": "low"},
        },
        {"type": "input_audio", "input_audio": {"data": text["tone.wav"], "format": "wav"}},
        {
            "type": "file",
            "file": {
                "filename": "paper.pdf",
                "file_data": f"data:application/pdf;base64,{text['paper.pdf']}",
            },
        },
    ]


@given(st.binary(max_size=200), st.sampled_from(["image", "audio", "file"]))
def test_data_are_taken_out_of_messages_and_put_back(content: bytes, kind: str) -> None:
    text = base64.b64encode(content).decode()
    part = part_of(
        kind,
        {
            "data": text,
            "media_type": {"image": "image/png", "audio": "wav", "file": "application/pdf"}[kind],
        },
    )
    shown, data = separated(messages(part))
    assert text not in json.dumps(shown) or len(text) < 12
    assert restored(shown, data) == messages(part)
    assert separated(shown) == (shown, {})


def test_addresses_are_sent_as_they_are(folder: Path) -> None:
    parts = [
        {"type": kind, "url": f"https://x.example/{kind}"} for kind in ("image", "audio", "file")
    ]
    shown, sent = asked(folder, *parts)
    assert shown == sent
    assert sent == [
        {"type": "image_url", "image_url": {"url": "https://x.example/image"}},
        {"type": "audio_url", "audio_url": {"url": "https://x.example/audio"}},
        {"type": "file", "file": {"filename": "file", "file_data": "https://x.example/file"}},
    ]


def test_the_declared_type_of_data_gives_way_to_their_bytes(folder: Path) -> None:
    url = f"data:image/jpeg;base64,{base64.b64encode(png()).decode()}"
    (shown,), (sent,) = asked(folder, {"type": "image_url", "image_url": {"url": url}})
    assert shown["media_type"] == "image/png"
    assert sent["image_url"]["url"].startswith("data:image/png;")


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ({"type": "image", "path": "cow.png"}, "there is no image 'cow.png'"),
        ({"type": "image", "path": "../secret.png"}, "is outside"),
        ({"type": "image", "path": "/etc/passwd"}, "is outside"),
        ({"type": "image", "path": "link.png"}, "is outside"),
        ({"type": "image", "path": "text.png"}, "'text.png' is not an image"),
        (
            {"type": "image", "path": "paper.pdf"},
            "'paper.pdf' is not an image: it is application/pdf",
        ),
        ({"type": "audio", "path": "dot.png"}, "'dot.png' is not an audio file: it is image/png"),
        ({"type": "file", "path": "nothing.pdf"}, "there is no file 'nothing.pdf'"),
        ({"type": "image", "path": "a\0b"}, "there is no image"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,*"}}, "are not base64"),
    ],
)
def test_what_cannot_be_sent_is_found_before_any_call(
    folder: Path, part: Any, problem: str
) -> None:
    item = Item(id="i", data={"messages": messages(part)})
    assert problem in str(jinja("", media_folder=str(folder)).check(item))


def test_what_is_too_large_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_MEDIA_MB", "0.00001")
    data = {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{base64.b64encode(png()).decode()}"},
    }
    for part in ({"type": "image", "path": "dot.png"}, data):
        item = Item(id="i", data={"messages": messages(part)})
        assert "is too large: 0.0 MB" in str(jinja("", media_folder=str(folder)).check(item))
    monkeypatch.setenv("ASSAY_MEDIA_MB", "much")
    with pytest.raises(UserError, match="ASSAY_MEDIA_MB is not a number"):
        described("dot.png", folder, folder)


def test_a_template_shows_what_a_field_names(folder: Path) -> None:
    parts = [
        {"type": "text", "text": "{{q}}"},
        {"type": "image", "field": "pictures", "detail": "low"},
    ]
    prompt = jinja([{"role": "user", "content": parts}], name="p", media_folder=str(folder))
    for value, count in (
        (["dot.png", "https://x.example/a.png"], 2),
        ("dot.png", 1),
        (None, 0),
        ("", 0),
    ):
        (message,) = prompt.render(Item(id="i", data={"q": "?", "pictures": value}))
        assert len(message["content"]) == 1 + count
        assert (
            json.dumps(message["content"][2:]).count(
                '{"url": "https://x.example/a.png", "detail": "low"}'
            )
            == count // 2
        )
    assert "the template uses 'pictures'" in str(prompt.check(Item(id="i", data={"q": "?"})))


def test_a_tables_picture_is_sent(folder: Path) -> None:
    """As Hugging Face writes them: a struct of bytes and path."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    row = {"id": "i", "question": "What is it?", "image": {"bytes": png(), "path": "gone.png"}}
    parquet.write_table(pyarrow.Table.from_pylist([row]), folder / "d.parquet")
    content = [{"type": "text", "text": "{{question}}"}, {"type": "image", "field": "image"}]
    eye = Eye()
    assay.run(
        {"name": "c", "dataset": str(folder / "d.parquet"), "output_dir": str(folder / "out")},
        models=[eye],
        prompts={"p": [{"role": "user", "content": content}]},
    )
    url = eye.seen[0].messages[0]["content"][1]["image_url"]["url"]
    assert base64.b64decode(url.partition(",")[2]) == png()


class Eye:
    name = "eye"
    identity: Mapping[str, Any] = {"type": "eye"}

    def __init__(self) -> None:
        self.seen: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.seen.append(request)
        return Completion(text="a dot")

    async def close(self) -> None: ...


def test_rows_and_logs_hold_no_bytes_and_an_edited_file_is_asked_again(folder: Path) -> None:
    url = f"data:image/png;base64,{base64.b64encode(png() + bytes(9000)).decode()}"
    first = {
        "role": "user",
        "content": [{"type": "image", "path": "dot.png"}, {"type": "image", "image": url}],
    }
    rows = [
        {"id": "m", "messages": [first, {"role": "user", "content": "And now?"}]},
        {"id": "n", "question": "2 + 2"},
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {
        "name": "c",
        "dataset": str(folder / "d.jsonl"),
        "output_dir": str(folder / "out"),
        "prompts": {"turns": "each"},
    }

    def run() -> list[Request]:
        eye = Eye()
        assay.run(config, models=[eye])
        return eye.seen

    seen = run()
    assert [
        len(request.messages) for request in seen if len(request.messages[0]["content"]) == 2
    ] == [1, 3]
    pictures = [part["image_url"]["url"] for part in seen[0].messages[0]["content"]]
    assert pictures == [f"data:image/png;base64,{base64.b64encode(png()).decode()}", url]
    for name in ("responses.jsonl", "calls.jsonl"):
        text = (folder / "out" / name).read_text()
        assert "base64" not in text
        assert '"name":"dot.png"' in text
    assert run() == []
    (folder / "dot.png").write_bytes(png() + b"x")
    assert len(run()) == 2, "only the item that shows it"
    (folder / "dot.png").unlink()
    with pytest.raises(UserError, match=r"there is no image 'dot\.png'"):
        run()


def test_recorded_answers_are_found_again(folder: Path) -> None:
    rows = [
        {"id": name, "messages": messages({"type": "image", "path": name})}
        for name in ("dot.png", "wrong.jpg")
    ]
    (folder / "wrong.jpg").write_bytes(png() + b"x")
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"name": "c", "dataset": str(folder / "d.jsonl")}
    (folder / "eye.py").write_text(
        "def see(messages):\n    return str(len(messages[0]['content'][1]['image_url']['url']))\n"
    )
    seen = {"type": "python", "path": str(folder / "eye.py"), "function_name": "see"}
    taken = [{"name": "r", "type": "record", "of": seen, "path": str(folder / "answers.jsonl")}]
    assay.run({**config, "models": taken, "output_dir": str(folder / "first")})
    assert "base64" not in (folder / "answers.jsonl").read_text()
    for path in ("answers.jsonl", "first"):
        again = [{"name": "r", "type": "replay", "path": str(folder / path)}]
        assay.run({**config, "models": again, "output_dir": str(folder / f"again-{path}")})
        assert texts(folder / f"again-{path}") == texts(folder / "first")
    assert len(set(texts(folder / "first").values())) == 2


def texts(output: Path) -> dict[str, str]:
    rows = map(json.loads, (output / "responses.jsonl").read_text().splitlines())
    return {row["item_id"]: row["response"] for row in rows}


def test_workers_find_the_files(folder: Path) -> None:
    row = {"id": "i", "messages": messages({"type": "image", "path": "dot.png"})}
    (folder / "d.jsonl").write_text(json.dumps(row) + "\n")
    config = {
        "name": "c",
        "dataset": str(folder / "d.jsonl"),
        "models": ["demo:m"],
        "output_dir": str(folder / "out"),
    }
    done = assay.run(config, workers=1)
    assert done.run is not None
    assert done.run.counts["ok"] == 1


def test_rows_of_several_folders_want_to_know_where_their_files_are(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        row = {"id": name, "messages": messages({"type": "image", "path": "dot.png"})}
        (folder / name / "d.jsonl").write_text(json.dumps(row) + "\n")
    dataset: dict[str, Any] = {"path": [str(folder / "a/d.jsonl"), str(folder / "b/d.jsonl")]}
    config = {"name": "c", "dataset": dataset, "output_dir": str(folder / "out")}
    with pytest.raises(UserError, match=r"which folder 'dot\.png' is in"):
        assay.run(config, models=[Eye()])
    dataset["media"] = str(folder)
    eye = Eye()
    assay.run(config, models=[eye])
    assert len(eye.seen) == 2


def test_anthropic_has_blocks_for_them(folder: Path) -> None:
    _, sent = asked(
        folder,
        {"type": "file", "path": "paper.pdf"},
        {"type": "file", "url": "https://x.example/a.pdf"},
    )
    model: Any = anthropic("m", api_key="k")
    body = json.loads(model.body(Request(messages(*sent))))
    paper, remote = body["messages"][0]["content"][1:]
    data = base64.b64encode(PDF).decode()
    assert paper == {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": data},
    }
    assert remote == {
        "type": "document",
        "source": {"type": "url", "url": "https://x.example/a.pdf"},
    }
    _, (audio,) = asked(folder, {"type": "audio", "path": "tone.wav"})
    with pytest.raises(PermanentError, match="takes no audio"):
        model.body(Request(messages(audio)))


def test_the_completions_api_takes_text_only() -> None:
    model: Any = openai("m", endpoint="http://localhost:1", api="completions")
    assert b"What is it?" in model.body(Request(messages()))
    with pytest.raises(PermanentError, match="takes text only"):
        model.body(
            Request(
                messages({"type": "image_url", "image_url": {"url": "https://x.example/a.png"}})
            )
        )
