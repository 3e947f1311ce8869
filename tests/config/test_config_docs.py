"""The reference page: its examples load, and it names every key and variable."""

import re
from pathlib import Path
from typing import Any

import pytest

from assay.config import Config, load
from assay.config.environment import _EVAL_KEYS
from assay.config.normalise import LIFTED, WITHOUT_EFFECT
from assay.config.source import scalar
from assay.config.types import (
    DatasetConfig,
    FewShotConfig,
    LabelFilter,
    LoggingConfig,
    MethodConfig,
    MetricConfig,
    ModelConfig,
    PolicyConfig,
    PromptConfig,
    TaskConfig,
)

PAGE = (Path(__file__).parents[2] / "docs/config.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
REST: dict[str, Any] = {"models": ["demo:small"], "dataset": "items.jsonl"}


@pytest.mark.parametrize("block", BLOCKS)
def test_examples_load(folder: Path, block: str) -> None:
    for name in ("items.jsonl", "items.csv", "code.py"):
        (folder / name).touch()
    (folder / "strict.txt").write_text("{{question}}")
    (folder / "c.yaml").write_text(block)
    assert load(
        {**REST, **scalar(block)} if block.startswith("# fragment") else "c.yaml", environ={}
    ).models


@pytest.mark.parametrize(
    "struct",
    [
        Config,
        DatasetConfig,
        FewShotConfig,
        LabelFilter,
        LoggingConfig,
        MethodConfig,
        MetricConfig,
        ModelConfig,
        PolicyConfig,
        PromptConfig,
        TaskConfig,
    ],
)
def test_every_key_is_named(struct: Any) -> None:
    names = set(struct.__struct_fields__) - {"source", "base", "objects"}
    assert {name for name in names if not re.search(rf"\b{name}\b", PAGE)} == set()


def test_every_other_form_and_variable_is_named() -> None:
    names = [
        *_EVAL_KEYS,
        *(key[-1] for key in [*LIFTED, *WITHOUT_EFFECT]),
        "inference_engine",
        "api_key_env",
        "config",
    ]
    assert [name for name in names if not re.search(rf"\b{name}\b", PAGE)] == []
