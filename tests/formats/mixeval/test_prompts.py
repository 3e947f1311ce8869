"""The protocol's prompts, byte for byte."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.mixeval import evaluation_prompts
from assay.formats.mixeval.evaluation_prompts import (
    construct_prompt_freeform,
    construct_prompt_multichoice,
    five_shot_prefixes,
)
from tests.formats.mixeval.folder import free_form, items, multiple_choice, write_data

SHORTLY = "Answer the question shortly."
STEPS = "Answer the question. \nLet's think step by step."
LETTER = "Answer with the option letter from the given choices directly."
FREE, MULTIPLE = "FIVE_SHOT_PREFIX_FREEFORM", "FIVE_SHOT_PREFIX_MULTIPLECHOICE"


def test_the_guideline_s_free_form_example() -> None:
    entry = {
        "id": "0",
        "problem_type": "free-form",
        "context": None,
        "prompt": "What does a manometer measure?",
        "target": ["Manometric unit", "Absolute Pressure"],
        "benchmark_name": "TriviaQA",
    }
    expected = "Question: What does a manometer measure?\nAnswer the question shortly."
    assert construct_prompt_freeform(entry) == expected


def test_the_guideline_s_multiple_choice_example() -> None:
    entry = {
        "problem_type": "single-choice",
        "context": "magazine",
        "prompt": "Which solution is correct?",
        "options": [
            "can be ruined if they get wet by a mop ",
            "can be ruined if they get wet by a jar ",
        ],
        "target": [0],
        "benchmark_name": "PIQA",
    }
    expected = (
        "magazine\nWhich solution is correct?\nA. can be ruined if they get wet by a mop \nB. can be ruined if they "
        "get wet by a jar \nAnswer with the option letter from the given choices directly."
    )
    assert construct_prompt_multichoice(entry) == expected


@pytest.mark.parametrize("context", ["A text.", "\n", "\t", " \n", "nonesuch", 0, False])
def test_context_that_is_there(context: Any) -> None:
    assert (
        construct_prompt_freeform(free_form("Why?", context=context))
        == f"Question: {context}\nWhy?\n{SHORTLY}"
    )
    made = construct_prompt_multichoice(multiple_choice("Which?", context=context))
    assert made == f"{context}\nWhich?\nA. apple\nB. hammer\n{LETTER}"


@pytest.mark.parametrize(
    "context", [None, "", " ", "    ", "None", "none", "NONE", "null", "NULL", "Null"]
)
def test_context_that_is_not(context: Any) -> None:
    assert (
        construct_prompt_freeform(free_form("Why?", context=context))
        == f"Question: Why?\n{SHORTLY}"
    )
    made = construct_prompt_multichoice(multiple_choice("Which?", context=context))
    assert made == f"Which?\nA. apple\nB. hammer\n{LETTER}"


def test_a_missing_context_is_none() -> None:
    entry = free_form("Why?")
    del entry["context"]
    assert construct_prompt_freeform(entry) == f"Question: Why?\n{SHORTLY}"


@pytest.mark.parametrize("name", ["BBH", "GSM8k", "MATH"])
def test_step_by_step_with_the_space_before_the_line_feed(name: str) -> None:
    assert (
        construct_prompt_freeform(free_form("Why?", benchmark_name=name))
        == f"Question: Why?\n{STEPS}"
    )


@pytest.mark.parametrize(
    "name", ["TriviaQA", "DROP", "AGIEval", "GSM8K", "bbh", "Math", "quac", "QuAC", ""]
)
def test_shortly_for_every_other_name(name: str) -> None:
    assert (
        construct_prompt_freeform(free_form("Why?", benchmark_name=name))
        == f"Question: Why?\n{SHORTLY}"
    )


def test_quac_has_no_prompt() -> None:
    with pytest.raises(NotImplementedError):
        construct_prompt_freeform(free_form(benchmark_name="QuAc"))


def test_ten_options_and_none() -> None:
    made = construct_prompt_multichoice(
        multiple_choice("Which?", options=[str(n) for n in range(10)])
    )
    assert made.splitlines()[1:11] == [f"{'ABCDEFGHIJ'[n]}. {n}" for n in range(10)]
    assert (
        construct_prompt_multichoice(multiple_choice("Which?", options=[])) == f"Which?\n\n{LETTER}"
    )


def test_problem_type_does_not_matter() -> None:
    entry = multiple_choice("Which?")
    assert construct_prompt_multichoice(
        {**entry, "problem_type": "single-choice"}
    ) == construct_prompt_multichoice(entry)


# ---- five examples

TEXTS = {FREE: "Question: 1\nA\n\n\n", MULTIPLE: "Which?\nA. \x0crac\nB\n\n"}


def write_examples(path: Path, texts: dict[str, str]) -> Path:
    as_json = json.dumps(texts)
    as_python = "".join(f"{name} = {text!r}\n" for name, text in texts.items())
    path.write_text(
        as_json if path.suffix == ".json" else f"import torch\n{as_python}raise SystemExit\n"
    )
    return path


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hashes of our own texts instead of the original's, which are not ours to have."""
    hashes = {name: sha256(text.encode()).hexdigest() for name, text in TEXTS.items()}
    monkeypatch.setattr(evaluation_prompts, "HASHES", hashes)
    monkeypatch.delenv("MIXEVAL_FIVE_SHOT", raising=False)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("name", ["evaluation_prompts.py", "examples.json"])
def test_examples_are_read_and_never_run(tmp_path: Path, name: str) -> None:
    assert five_shot_prefixes(write_examples(tmp_path / name, TEXTS)) == TEXTS


@pytest.mark.usefixtures("known")
def test_names_of_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIXEVAL_FIVE_SHOT", str(write_examples(tmp_path / "prompts.py", TEXTS)))
    assert TEXTS[FREE] == evaluation_prompts.FIVE_SHOT_PREFIX_FREEFORM
    assert TEXTS[MULTIPLE] == evaluation_prompts.FIVE_SHOT_PREFIX_MULTIPLECHOICE
    with pytest.raises(AttributeError):
        _ = evaluation_prompts.FIVE_SHOT_PREFIX_OTHER


@pytest.mark.usefixtures("known")
def test_prefixed_prompts_end_with_a_line_feed(tmp_path: Path) -> None:
    examples = write_examples(tmp_path / "prompts.py", TEXTS)
    write_data(tmp_path / "data", [free_form(benchmark_name="BBH")], [multiple_choice()])
    free, multiple = items(tmp_path / "data", base=True, five_shot=str(examples))
    assert free.data["formated_input"] == f"{TEXTS[FREE]}Question: What is 2 + 3?\n{STEPS}\n"
    assert (
        multiple.data["formated_input"]
        == f"{TEXTS[MULTIPLE]}Which is a fruit?\nA. apple\nB. hammer\n{LETTER}\n"
    )


def test_examples_of_somebody_else(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        five_shot_prefixes(write_examples(tmp_path / "prompts.py", TEXTS))
    found = sha256(TEXTS[FREE].encode()).hexdigest()
    assert found[:12] in str(error.value)
    assert "19b0b95363b1" in str(error.value)
    assert FREE in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("prompts.py", "X = 1\n", "has no FIVE_SHOT_PREFIX_FREEFORM"),
        ("prompts.py", "X = (\n", "is not Python"),
        ("prompts.json", "[1]", "has no FIVE_SHOT_PREFIX_FREEFORM"),
        ("prompts.json", "{", "has no FIVE_SHOT_PREFIX_FREEFORM"),
        ("prompts.py", None, "cannot be read"),
    ],
)
def test_files_without_examples(tmp_path: Path, name: str, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=said):
        five_shot_prefixes(tmp_path / name)


def test_without_a_file_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIXEVAL_FIVE_SHOT", raising=False)
    with pytest.raises(UserError, match="not part of Assay") as error:
        five_shot_prefixes()
    assert "--five-shot" in error.value.fix
