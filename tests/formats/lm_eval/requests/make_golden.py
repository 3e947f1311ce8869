"""Writes golden.json: `python make_golden.py` with an interpreter that has lm-eval 0.4.13."""

import copy
import importlib
import json
import math
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from cases import CASES, CHAT, SPLITS  # noqa: E402


def resolved(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: resolved(entry) for key, entry in value.items()}
    if isinstance(value, str) and value.startswith("!function "):
        module, name = value.removeprefix("!function ").rsplit(".", 1)
        return getattr(importlib.import_module(module), name)
    return value


def template(messages: Any, add_generation_prompt: bool = True) -> str:
    return json.dumps(messages, ensure_ascii=False)


def asked(name: str, case: Any, **options: Any) -> list[Any]:
    from lm_eval.api.task import ConfigurableTask  # pyright: ignore[reportMissingImports]

    importlib.reload(importlib.import_module("functions"))
    random.seed(0)
    np.random.seed(1234)
    config = resolved(copy.deepcopy({"task": name.replace(" ", "_"), **case["config"]}))
    with tempfile.TemporaryDirectory() as folder:
        files: dict[str, str] = {}
        for split, docs in case.get("rows", SPLITS).items():
            files[split] = str(Path(folder, f"{split}.jsonl"))
            Path(files[split]).write_text("".join(json.dumps(doc) + "\n" for doc in docs))
        if files:
            config |= {"dataset_path": "json", "dataset_kwargs": {"data_files": files}}
        task = ConfigurableTask(config=config)
        task.set_fewshot_seed(case.get("seed", 1234))
        limit = case.get("limit")
        if limit is not None:
            limit = math.ceil(len(task.eval_docs) * limit) if limit < 1 else int(limit)
        system = case.get("system_instruction")
        task.build_all_requests(
            limit=limit, samples=case.get("samples"), system_instruction=system, **options
        )
    documents: dict[int, list[Any]] = {}
    for instance in task.instances:
        documents.setdefault(instance.doc_id, []).append(list(instance.arguments))
    return list(documents.values())


def main() -> None:
    golden: dict[str, Any] = {}
    for name, case in CASES.items():
        try:
            golden[name] = {"plain": asked(name, case)}
        except Exception as error:
            golden[name] = {"error": f"{type(error).__name__}: {error}"}
            print(name, golden[name]["error"])
        if name in CHAT:
            for way, multiturn in (("multiturn", True), ("single", False)):
                options = {
                    "apply_chat_template": True,
                    "chat_template": template,
                    "fewshot_as_multiturn": multiturn,
                }
                golden[name][way] = asked(name, case, **options)
    (HERE / "golden.json").write_text(json.dumps(golden, ensure_ascii=False, indent=0) + "\n")


if __name__ == "__main__":
    main()
