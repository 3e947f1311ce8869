"""Prompts in a config: their short forms, their files, and what is refused before anything runs."""

import re
from pathlib import Path
from typing import Any

import pytest

from assay.config import Config, load, resolved
from assay.errors import ConfigError, UserError

REST: dict[str, Any] = {"models": ["demo:m"], "dataset": "items.jsonl"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("items.jsonl", "shots.jsonl"):
        (tmp_path / name).write_text('{"question": "1"}\n')
    return tmp_path


def config_of(prompt: Any, **more: Any) -> Config:
    return load({**REST, **more, "prompts": {"p": prompt}}, environ={})


CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{question}}"}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "chat.yaml",
            "- {role: system, content: Be brief.}\n- {role: user, content: '{{question}}'}\n",
        ),
        (
            "chat.yml",
            "messages:\n- {role: system, content: Be brief.}\n- {role: user, content: '{{question}}'}\n",
        ),
        (
            "chat.json",
            '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{question}}"}]',
        ),
    ],
)
def test_a_chat_in_a_file(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    for form in (name, {"path": name}):
        (prompt,) = config_of(form).prompts
        assert (prompt.messages, prompt.text, prompt.path) == (CHAT, "", str(folder / name))


@pytest.mark.parametrize(
    ("given", "n"),
    [
        ("shots.jsonl", 5),
        ({"path": "shots.jsonl", "n": 2}, 2),
        ({"dataset": "shots.jsonl", "n": 2}, 2),
        ({"dataset": {"path": "shots.jsonl"}}, 5),
    ],
)
def test_where_the_examples_are(folder: Path, given: Any, n: int) -> None:
    config = config_of({"text": "{{question}}", "few_shot": given})
    few_shot = config.prompts[0].few_shot
    assert few_shot is not None
    assert few_shot.dataset is not None
    assert (few_shot.dataset.path, few_shot.dataset.type, few_shot.n) == (
        str(folder / "shots.jsonl"),
        "jsonl",
        n,
    )
    assert load(resolved(config), environ={}).prompts == config.prompts


def test_another_split_of_the_same_dataset(folder: Path) -> None:
    few_shot = config_of({"few_shot": {"filter": "question == 'x'", "n": 1}}).prompts[0].few_shot
    assert few_shot is not None
    assert few_shot.dataset is not None
    assert (few_shot.dataset.path, few_shot.dataset.type) == (str(folder / "items.jsonl"), "jsonl")
    assert few_shot.dataset.filter == "question == 'x'"
    assert config_of({"few_shot": {"n": 1}}).prompts[0].few_shot.dataset is None  # type: ignore[union-attr]


def test_image_paths_count_from_the_config() -> None:
    parts = [{"type": "image", "path": "a.png"}, {"type": "image", "path": "i/{{x}}.png"}]
    messages = config_of([{"role": "user", "content": parts}]).prompts[0].messages
    assert messages is not None
    assert [part["path"] for part in messages[0]["content"]] == [
        f"{Path.cwd()}/a.png",
        f"{Path.cwd()}/i/{{{{x}}}}.png",
    ]


def turn(content: Any, role: Any = "user") -> list[dict[str, Any]]:
    return [{"role": role, "content": content}]


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        (turn("x", "usr"), "did you mean 'user'?"),
        (turn(3), "a message needs a role and a content"),
        (turn([]), "a message needs a role and a content"),
        ({"messages": []}, "there are no messages"),
        (turn(["x"]), "a text, an image, an audio or a file"),
        (turn([{"type": "sound", "path": "x"}]), "a text, an image, an audio or a file"),
        (turn([{"type": "image"}]), "needs field or path or url"),
        (
            turn([{"type": "image", "path": "a.png", "url": "https://x"}]),
            "needs field or path or url",
        ),
        (turn([{"type": "text", "text": 3}]), "needs text"),
        (turn([{"type": "image", "pth": "x", "url": "https://x"}]), "did you mean 'path'?"),
        ({"few_shot": {"path": "shot.jsonl"}}, "did you mean 'shots.jsonl'"),
        ({"few_shot": {"n": -1}}, "n must be a whole number of at least 0"),
        ({"few_shot": {"nn": 1}}, "unknown key 'nn'"),
        ({"few_shot": {"pick": "last"}}, "'last' is not possible"),
        (
            {"few_shot": {"text": "x", "messages": turn("x")}},
            "few_shot has text or messages, not both",
        ),
        ({"few_shot": {"messages": turn("x", "bot")}}, "unknown role 'bot'"),
        ({"few_shot": 3}, "few_shot must be a mapping"),
        ({"path": "broken.yaml"}, "broken.yaml:2: this is not YAML"),
        ({"path": "mapping.json"}, "is not a list of messages"),
    ],
)
def test_what_is_refused(folder: Path, prompt: Any, problem: str) -> None:
    (folder / "broken.yaml").write_text("{")
    (folder / "mapping.json").write_text('{"role": "user"}')
    with pytest.raises(ConfigError, match=re.escape(problem)):
        config_of(prompt)


def test_a_missing_image_is_found_by_validate() -> None:
    import assay

    parts = [{"type": "text", "text": "{{question}}"}, {"type": "image", "path": "cat.png"}]
    with pytest.raises(UserError, match=r"there is no image .*cat\.png"):
        assay.validate({**REST, "prompts": {"p": turn(parts)}})
