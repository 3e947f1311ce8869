"""Tasks over a few rows of a local file."""

import json
from pathlib import Path
from typing import Any

from assay.formats.lm_eval.tasks.definition import Definition, FewShotKeys, Hook

HERE = Path(__file__).parent


def hook(name: str) -> Hook:
    return Hook(f"functions.{name}", str(HERE))


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {"q": f"q{number}", "a": f"a{number}", "options": ["x", " y"], "label": number % 2}
        for number in range(count)
    ]


def task(
    folder: Path, test: list[Any], shots: dict[str, Any] | None = None, **keys: Any
) -> Definition:
    file = folder / "test.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in test))
    own: dict[str, Any] = {
        "test_split": "test",
        "doc_to_text": "{{q}}",
        "doc_to_target": "{{a}}",
        **keys,
    }
    given: dict[str, Any] = {
        "split": own.get("fewshot_split"),
        "fewshot_delimiter": "\n\n",
        "target_delimiter": " ",
        **(shots or {}),
    }
    if "doc_to_choice" in own:
        given["doc_to_choice"] = own["doc_to_choice"]
    return Definition(
        task="small",
        file=str(HERE / "small.yaml"),
        dataset_path="json",
        dataset_kwargs=None if "custom_dataset" in own else {"data_files": {"test": str(file)}},
        fewshot_config=FewShotKeys(**given),
        **own,
    )
