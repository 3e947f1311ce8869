"""What is wrong with a task or its data is said with its place; one document's failure costs only that document."""

from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.lm_eval.asking.documents import documents, plain
from tests.formats.lm_eval.requests.small import hook, rows, task

FUNCTIONS = str(Path(__file__).with_name("functions.py"))


def test_a_function_that_raises_for_one_document_costs_only_that(tmp_path: Path) -> None:
    made = list(documents(task(tmp_path, rows(3), doc_to_text=hook("fails_for_q1"))))
    assert [bool(document.error) for document in made] == [False, True, False]
    assert "document 1 of small cannot be asked: ValueError: cannot be read" in made[1].error
    assert f"{FUNCTIONS}:" in made[1].error
    assert (made[1].doc["q"], made[1].requests) == ("q1", [])
    assert plain(made[2].requests[0].messages) == "q2"


def test_a_template_that_fails_for_one_document_costs_only_that(tmp_path: Path) -> None:
    made = list(
        documents(
            task(tmp_path, [*rows(1), {**rows(1)[0], "q": None}], doc_to_text="{{q.upper()}}")
        )
    )
    assert [document.error[:27] for document in made] == ["", "document 1 of small cannot "]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "function for the first": (
        {"doc_to_text": hook("fails_for_q1"), "test": rows(2)[1:]},
        "cannot be read",
    ),
    "process_docs": (
        {"process_docs": hook("fails")},
        "process_docs of small fails for the split test: KeyError",
    ),
    "process_docs gives nothing": (
        {"process_docs": hook("nothing")},
        "'NoneType' object is not iterable",
    ),
    "custom_dataset": (
        {"custom_dataset": hook("fails_always")},
        "custom_dataset of small fails: .*no disk",
    ),
    "samples function": (
        {"num_fewshot": 1, "shots": {"samples": hook("fails_always")}},
        "examples of small .*no disk",
    ),
    "sampler function": (
        {"num_fewshot": 1, "shots": {"sampler": hook("FailingSampler")}},
        "sampler of small fails",
    ),
    "undefined": ({"doc_to_text": "{{nothing}}"}, "'nothing' is undefined"),
    "syntax": ({"doc_to_text": "{{q"}, "unexpected end of template"),
    "no text": ({"doc_to_text": None}, "doc_to_text is not set"),
    "text is a number": ({"doc_to_text": "label"}, "which is not a text"),
    "choices": ({"output_type": "multiple_choice", "doc_to_choice": "{{q}}"}, "malformed node"),
    "no documents": ({"test": []}, "cannot be loaded|no documents"),
    "split": ({"test_split": "tets"}, "asks for the split 'tets'"),
    "fewshot split": ({"fewshot_split": "dev", "num_fewshot": 1}, "asks for the split 'dev'"),
    "no split": ({"test_split": None}, "neither test_split nor validation_split"),
    "shots": (
        {"num_fewshot": 9, "fewshot_split": "test"},
        r"draws 10 \(one more than is shown.*but 3 of the 3",
    ),
    "shots first": (
        {"num_fewshot": 4, "shots": {"sampler": "first_n", "split": "test"}},
        "draws 4, but 2 of the 3",
    ),
    "sampler": (
        {"num_fewshot": 1, "shots": {"sampler": "last_n"}},
        "sampler 'last_n', which does not exist",
    ),
    "samples": ({"num_fewshot": 1, "shots": {"samples": 5}}, "neither a list nor a function"),
    "answer": (
        {"num_fewshot": 1, "doc_to_target": "label"},
        "doc_to_target of a few-shot example gives",
    ),
    "prompt": ({"use_prompt": "promptsource:x"}, "not a prompt that Assay has"),
    "images": ({"doc_to_image": "q"}, "asks about images"),
    "rolling number": (
        {"output_type": "loglikelihood_rolling", "doc_to_target": "label"},
        "a text is needed",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_of_a_task(name: str, tmp_path: Path) -> None:
    keys, what = WRONG[name]
    keys: dict[str, Any] = {"test": rows(3), **keys}
    with pytest.raises(UserError, match=what) as error:
        list(documents(task(tmp_path, **keys)))
    assert error.value.where


def test_samples_beyond_the_documents(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has 3 documents, there is none at 3"):
        list(documents(task(tmp_path, rows(3)), samples=[0, 3]))


def test_ids_are_positions_in_the_data(tmp_path: Path) -> None:
    assert [(d.id, d.doc["q"]) for d in documents(task(tmp_path, rows(4)), samples=[3, 1])] == [
        (1, "q1"),
        (3, "q3"),
    ]
