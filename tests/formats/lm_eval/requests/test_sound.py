"""`sound` does right what the harness does wrong in its requests."""

from pathlib import Path
from typing import Any

import pytest

from assay.formats.lm_eval.asking.documents import documents, plain
from assay.formats.lm_eval.tasks.definition import Definition
from tests.formats.lm_eval.requests.small import rows, task


def prompts(definition: Definition, sound: bool) -> list[list[str]]:
    return [
        plain(made.requests[0].messages).split("\n\n")
        for made in documents(definition, sound=sound)
    ]


@pytest.mark.parametrize("sampler", ["default", "first_n"])
def test_a_document_is_never_its_own_example(sampler: str, tmp_path: Path) -> None:
    docs = [*rows(4), *rows(2)]
    keys: dict[str, Any] = {
        "test_split": None,
        "validation_split": "test",
        "fewshot_split": "test",
        "num_fewshot": 4,
    }
    definition = task(tmp_path, docs, {"sampler": sampler}, **keys)
    leaks = [
        any(part.startswith(f"{parts[-1]} ") for part in parts[:-1])
        for parts in prompts(definition, False)
    ]
    assert any(leaks)
    for parts in prompts(definition, True):
        assert len(parts) == 5
        assert not any(part.startswith(f"{parts[-1]} ") for part in parts[:-1])


def test_a_pool_of_just_enough_examples(tmp_path: Path) -> None:
    definition = task(
        tmp_path,
        rows(2),
        {"samples": [{"q": "s", "a": "t"}], "split": None},
        num_fewshot=1,
        test_split="test",
    )
    assert prompts(definition, True) == [["s t", "q0"], ["s t", "q1"]]


def test_the_description_does_not_run_into_the_text(tmp_path: Path) -> None:
    definition = task(tmp_path, rows(1), description="Answer.")
    assert prompts(definition, False) == [["Answer.q0"]]
    assert prompts(definition, True) == [["Answer.", "q0"]]
    assert prompts(task(tmp_path, rows(1), description="Answer.\n"), True) == [["Answer.\nq0"]]


def test_no_second_space(tmp_path: Path) -> None:
    definition = task(
        tmp_path,
        rows(1),
        output_type="multiple_choice",
        doc_to_choice="options",
        doc_to_target="label",
    )
    [harness], [sound] = list(documents(definition)), list(documents(definition, sound=True))
    assert [request.continuation for request in harness.requests] == [" x", "  y"]
    assert [request.continuation for request in sound.requests] == [" x", " y"]
