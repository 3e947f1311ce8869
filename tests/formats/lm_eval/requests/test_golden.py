"""Requests equal those of lm-evaluation-harness to the byte."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.formats.lm_eval.asking.documents import chat, documents, plain
from assay.formats.lm_eval.tasks.definition import Definition, FewShotKeys, Hook, TaskDocument
from tests.formats.lm_eval.requests.cases import CASES, CHAT, SPLITS, Case

HERE = Path(__file__).parent
GOLDEN: dict[str, Any] = json.loads((HERE / "golden.json").read_text())


def resolved(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: resolved(entry) for key, entry in value.items()}
    if isinstance(value, str) and value.startswith("!function "):
        return Hook(value.removeprefix("!function "), str(HERE))
    return value


def definition(name: str, case: Case, folder: Path) -> Definition:
    files: dict[str, str] = {}
    for split, docs in case.get("rows", SPLITS).items():
        files[split] = str(folder / f"{split}.jsonl")
        Path(files[split]).write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    config: dict[str, Any] = resolved(
        {"task": name, "file": str(HERE / "case.yaml"), **case["config"]}
    )
    if files:
        config |= {"dataset_path": "json", "dataset_kwargs": {"data_files": files}}
    shown = config.get("fewshot_config", {})
    names = ("process_docs", "gen_prefix", "doc_to_text", "doc_to_target", "doc_to_choice")
    own = {
        "split": config.get("fewshot_split"),
        "fewshot_delimiter": "\n\n",
        "target_delimiter": " ",
    }
    own |= {
        name: config[name]
        for name in (*names, "fewshot_delimiter", "target_delimiter")
        if name in config
    }
    config["fewshot_config"] = FewShotKeys(**own | shown)
    return Definition(**config)


def asked(name: str, folder: Path, **options: Any) -> list[TaskDocument]:
    case = CASES[name]
    named = {
        key: case[key] for key in ("limit", "samples", "seed", "system_instruction") if key in case
    }
    return list(documents(definition(name, case, folder), **named, **options))


def arguments(document: TaskDocument, text: Any) -> list[Any]:
    assert not document.error
    rows: list[Any] = []
    for request in document.requests:
        if request.rolling:
            rows.append([request.continuation])
        elif request.continuation is not None:
            rows.append([text(request.messages) if request.messages else "", request.continuation])
        else:
            rows.append([text(request.messages), request.params])
    return rows


@pytest.mark.parametrize("name", CASES)
def test_plain_text(name: str, tmp_path: Path) -> None:
    assert [arguments(document, plain) for document in asked(name, tmp_path)] == GOLDEN[name][
        "plain"
    ]


@pytest.mark.parametrize("way", ["multiturn", "single"])
@pytest.mark.parametrize("name", CHAT)
def test_chat(name: str, way: str, tmp_path: Path) -> None:
    def text(messages: list[dict[str, str]]) -> str:
        return json.dumps(chat(messages, way == "multiturn"), ensure_ascii=False)

    assert [arguments(document, text) for document in asked(name, tmp_path, chat=True)] == GOLDEN[
        name
    ][way]
