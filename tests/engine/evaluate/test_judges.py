"""What is settled about a judge before it is asked: the text of its prompt, and whether it judges itself."""

from pathlib import Path
from typing import Any

import pytest

from assay.engine.evaluate.judges import PROMPTS, own_answers, prompt_text
from assay.errors import UserError
from assay.records import Manifest

LARGE = {"type": "openai", "name": "large", "model": "llama"}
SMALL = {"type": "openai", "name": "small", "model": "gemma"}


def run(*models: dict[str, Any] | None) -> Manifest:
    tasks = [
        {
            "name": "t",
            "identity": {"model": model},
            "facets": {"model_id": (model or {}).get("name")},
        }
        for model in models
    ]
    return Manifest(kind="run", id="r", plan={"tasks": tasks})


def test_a_prompt_is_shipped_a_file_or_the_text_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("Is it good?")
    (tmp_path / "correctness").write_text("never read: the shipped one has this name")

    def text(prompt: str) -> str:
        return prompt_text(prompt, base=tmp_path, where="here")

    assert text("correctness") == (PROMPTS / "correctness.txt").read_text("utf-8")
    assert text("mine.txt") == "Is it good?"
    assert text("Is {{answer}} good?") == "Is {{answer}} good?"
    assert text("Is it good?\nSay yes.") == "Is it good?\nSay yes."
    with pytest.raises(
        UserError, match="'corectness' is neither shipped nor a readable file"
    ) as caught:
        text("corectness")
    assert "did you mean 'correctness'?" in caught.value.fix
    assert caught.value.where == "here"


def test_a_model_that_judges_itself_is_found_by_what_it_is() -> None:
    """What it is called here and there does not matter."""
    judges = {
        "correct": {"judge": {**LARGE, "name": "judge"}},
        "style": {"other": {"type": "demo", "name": "other"}},
    }
    assert own_answers(judges, [run(SMALL, LARGE)]) == {"correct": ["large"]}
    assert own_answers(judges, [run(SMALL), None, run(LARGE)]) == {"correct": ["large"]}
    assert own_answers(judges, [run(SMALL, None)]) == {}
    assert own_answers(judges, [Manifest(kind="run", id="r"), None]) == {}
    panel = {"panel": {"one": SMALL, "other": LARGE}}
    assert own_answers(panel, [run(LARGE, SMALL)]) == {"panel": ["large", "small"]}
