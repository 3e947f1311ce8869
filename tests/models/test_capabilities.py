"""What each type of model can do: declared with the type, and used by judges, prices, limits and trust."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay import registry
from assay.models import gguf, local
from assay.models._local_server import LocalServer
from assay.models.anthropic import AnthropicModel
from assay.models.openai import OpenAIModel
from tests.models.fake_providers import Fake, faked
from tests.models.gguf_files import gguf_file
from tests.support import Lab

CAPABILITIES = {"free": bool, "local": bool, "parallel": bool, "reach": str}
TYPES: dict[str, dict[str, Any]] = {  # what is not here is not declared: false, or "calls"
    "anthropic": {},
    "azure": {},
    "bedrock": {},
    "demo": {"free": True, "reach": ""},
    "gemini": {},
    "gguf": {"free": True, "local": True, "parallel": True, "reach": "runs"},
    "llama.cpp": {"local": True, "reach": "runs"},
    "local": {"free": True, "local": True, "parallel": True},
    "openai": {},
    "python": {"reach": "runs"},
    "record": {"reach": "runs"},
    "replay": {"free": True, "reach": "runs"},
    "transformers": {"free": True, "local": True},
    "vertex": {},
    "vllm": {"local": True, "reach": "runs"},
}
VERDICT = '{"reason": "fine", "verdict": "yes"}'
ANSWERS = {
    "/chat/completions": {"choices": [{"message": {"content": VERDICT}}]},
    "/responses": {
        "output": [{"type": "message", "content": [{"type": "output_text", "text": VERDICT}]}],
        "status": "completed",
    },
    "/completions": {"choices": [{"text": VERDICT}]},
    "/messages": {"content": [{"type": "text", "text": VERDICT}]},
    ":generateContent": {
        "candidates": [{"content": {"parts": [{"text": VERDICT}]}, "finishReason": "STOP"}]
    },
    "/converse": {"output": {"message": {"content": [{"text": VERDICT}]}}},
}
CHAT = ("response_format", "json_schema", "schema")
GEMINI = ("generationConfig", "responseJsonSchema")
KEY = {"api_key": "${JUDGE_KEY}"}
JUDGES: dict[str, tuple[dict[str, Any], tuple[str, ...] | None]] = {  # and where a schema is sent
    "openai": ({"type": "openai"}, CHAT),
    "responses": ({"type": "openai", "api": "responses"}, ("text", "format", "schema")),
    "completions": ({"type": "openai", "api": "completions"}, None),
    "azure": ({"type": "azure", **KEY}, CHAT),
    "azure, dated": ({"type": "azure", "api_version": "2025-01-01", **KEY}, CHAT),
    "azure, completions": ({"type": "azure", "api": "completions", **KEY}, None),
    "vllm": ({"type": "vllm"}, CHAT),
    "llama.cpp": ({"type": "llama.cpp"}, CHAT),
    "gguf": ({"type": "gguf", "path": "m.gguf"}, CHAT),
    "gguf, completions": ({"type": "gguf", "path": "m.gguf", "api": "completions"}, None),
    "local": ({"type": "local"}, CHAT),
    "anthropic": ({"type": "anthropic", **KEY}, ("output_config", "format", "schema")),
    "gemini": ({"type": "gemini", **KEY}, GEMINI),
    "vertex": ({"type": "vertex", "project": "p", **KEY}, GEMINI),
    "bedrock": ({"type": "bedrock", "region": "eu-west-1", **KEY}, None),
    "record": ({"type": "record", "of": {"type": "azure", **KEY}, "path": "kept.jsonl"}, CHAT),
}


class Court(Lab):
    """A lab with one item and a judge whose server is a fake; `asked` are the bodies of its requests."""

    def __init__(self, folder: Path, fake: Fake, url: str, judge: dict[str, Any]) -> None:
        super().__init__(folder, items=1)
        self.fake = fake
        judge = dict(judge)
        if "of" in judge:
            judge["of"] = {**judge["of"], "endpoint": url}
        elif judge["type"] not in ("gguf", "local"):
            judge["endpoint"] = url
        if "path" in judge:
            judge["path"] = str(folder / judge["path"])
        (folder / "m.gguf").write_bytes(gguf_file())
        self.config |= {"sample_params": {"num_samples": 1}, "metrics": ["mean"]}
        self.config["models"] += [{"name": "judge", "helper": True, **judge}]
        self.judged_by()

    def judged_by(self, **params: Any) -> None:
        params = {"model": "judge", **params}
        self.config["evaluation_methods"] = [{"name": "j", "type": "judge", "params": params}]

    def asked(self) -> list[dict[str, Any]]:
        found = [asked.json for asked in self.fake.asked]
        self.fake.asked.clear()
        return found


MakeCourt = Callable[[str], Court]


@pytest.fixture
def court(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeCourt]:
    fake = Fake(ANSWERS)
    with faked(fake) as url:

        async def start(self: LocalServer, headers: Any) -> str:
            return url

        monkeypatch.setattr(LocalServer, "start", start)
        monkeypatch.setattr(gguf, "is_installed", lambda: True)
        monkeypatch.setattr(local, "_state", lambda: "here")
        monkeypatch.setenv("JUDGE_KEY", "key-0123456789")
        yield lambda name: Court(tmp_path, fake, url, JUDGES[name][0])


def test_every_built_in_type_declares_each_capability_once() -> None:
    assert {
        name: {
            mark: value
            for mark, value in registry.model.marks(name).items()
            if mark not in ("kind", "name", "params")
        }
        for name in registry.model.names()
        if registry.model.get(name).__module__.startswith("assay.models.")
    } == TYPES
    for declared in TYPES.values():
        assert all(isinstance(value, CAPABILITIES[mark]) for mark, value in declared.items())


def test_what_a_type_declares_is_known_without_running_a_users_code(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit\n")
    for name in (f"{tmp_path}/mine.py:model", "no.such.module", "inline:12.f", "unknown", ""):
        assert registry.model.marks(name) == {}


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_sends_its_schema_where_its_model_takes_one(court: MakeCourt, name: str) -> None:
    lab, place = court(name), JUDGES[name][1]
    lab.run()
    (row,) = lab.read("evaluation_results.jsonl")
    assert (row["score"], row["outcome"]) == (1.0, "scored"), row["error"]
    (body,) = lab.asked()
    if place is None:
        assert "schema" not in str(body)
        return
    for key in place:
        body = body[key]
    assert body["properties"]["verdict"] == {"type": "string", "enum": ["yes", "no"]}


@pytest.mark.parametrize("name", ["azure", "gguf", "anthropic"])
def test_what_was_judged_without_a_schema_is_not_asked_again(
    court: MakeCourt, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = court(name)
    with monkeypatch.context() as patch:  # as Assay 0.1 asked these models
        never = property(lambda self: False, lambda self, value: None)
        for kind in (OpenAIModel, AnthropicModel):
            patch.setattr(kind, "schemas", never, raising=False)
        lab.run()
    (before,) = lab.read("evaluation_results.jsonl")
    assert [("schema" in str(body)) for body in lab.asked()] == [False]
    lab.run()
    assert lab.read("evaluation_results.jsonl") == [before]
    lab.judged_by(threshold=0.4)  # other labels, from the same calls
    lab.run()
    (after,) = lab.read("evaluation_results.jsonl")
    assert after["key"] != before["key"]
    assert after["detailed_results"]["judge"] == before["detailed_results"]["judge"]
    assert lab.asked() == []
    lab.rows.append({"id": "new", "data": {"question": "7 + 1"}, "ground_truth": {"answer": "8"}})
    lab.run()
    assert [("schema" in str(body)) for body in lab.asked()] == [True]


def test_calls_with_a_schema_are_found_without_the_key(
    court: MakeCourt, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = court("azure")
    lab.run()
    assert len(lab.asked()) == 1
    monkeypatch.delenv("JUDGE_KEY")
    lab.judged_by(threshold=0.4)
    out = lab.config.pop("output_dir")
    assay.evaluate(out, lab.config)
    (row,) = lab.read("evaluation_results.jsonl")
    assert row["outcome"] == "scored"
    assert assay.verify(out, lab.config)[0].ok
    assert lab.asked() == []
