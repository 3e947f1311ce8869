"""Which files belong to which model, however they are named and wherever they lie."""

from pathlib import Path

import pytest

from assay.errors import UserError
from assay.formats.mixeval.finding import file_name, find_responses
from tests.formats.mixeval.folder import VERSION
from tests.formats.mixeval.folders import write_model

ANSWERS = ["a", "b", "c"]


def test_the_original_names() -> None:
    assert file_name("m", "free-form", "mixeval") == "m_close_freeform.jsonl"
    assert file_name("m", "multiple-choice", "mixeval-hard") == "m_close_multichoice_hard.jsonl"


def test_a_model_a_folder_of_models_and_files_mean_the_same(tmp_path: Path) -> None:
    for model in ("second", "first"):
        write_model(tmp_path, model, ANSWERS, ANSWERS)
    root = tmp_path / "responses"
    place = root / "first/mixeval" / VERSION
    (one,) = find_responses([root / "first"], "mixeval", VERSION)
    assert [found.model for found in find_responses([root], "mixeval", VERSION)] == [
        "first",
        "second",
    ]
    assert find_responses([*place.iterdir()], "mixeval", VERSION) == [one]
    assert find_responses([place], "mixeval", VERSION) == [one]
    assert one.model == "first"
    assert list(one.files) == ["free-form", "multiple-choice"]


def test_files_of_two_models_are_two_models(tmp_path: Path) -> None:
    files = [
        path
        for model in "ab"
        for path in write_model(tmp_path, model, ANSWERS, ANSWERS).rglob("*.jsonl")
    ]
    found = find_responses(files, "mixeval", VERSION)
    assert {one.model: len(one.files) for one in found} == {"a": 2, "b": 2}


def test_a_file_without_a_telling_name_is_known_by_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text('[{"id": "0", "options": ["a", "b"], "response": "A"}]')
    (found,) = find_responses([path], "mixeval", VERSION)
    assert list(found.files) == ["multiple-choice"]


def test_hard_files_are_those_of_the_hard_benchmark_alone(tmp_path: Path) -> None:
    for name in ("m_close_freeform.jsonl", "m_close_freeform_hard.jsonl"):
        (tmp_path / name).write_text("{}\n")
    (plain,) = find_responses([tmp_path], "mixeval", VERSION)
    (hard,) = find_responses([tmp_path], "mixeval_hard", VERSION)
    assert plain.files["free-form"].name == "m_close_freeform.jsonl"
    assert hard.files["free-form"].name == "m_close_freeform_hard.jsonl"


def test_judge_files_are_no_response_files(tmp_path: Path) -> None:
    for name in (
        "judge_results_ff_model_judge_x.jsonl",
        "m_close_freeform.jsonl",
        "status_close_freeform.json",
    ):
        (tmp_path / name).write_text("{}\n")
    (plain,) = find_responses([tmp_path], "mixeval", VERSION)
    (judged,) = find_responses([tmp_path], "mixeval", VERSION, judged=True)
    assert [path.name for path in plain.files.values()] == ["m_close_freeform.jsonl"]
    assert [path.name for path in judged.files.values()] == ["judge_results_ff_model_judge_x.jsonl"]


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file or folder"):
        find_responses([tmp_path / "gone"], "mixeval", VERSION)
    with pytest.raises(UserError, match="there are no mixeval responses") as caught:
        find_responses([tmp_path], "mixeval", VERSION)
    assert f"mixeval/{VERSION}/" in caught.value.fix
    for name in ("m_close_freeform.jsonl", "m_free-form.json"):
        (tmp_path / name).write_text("{}\n")
    with pytest.raises(UserError, match="two files hold free-form responses"):
        find_responses([tmp_path], "mixeval", VERSION)
    folder = write_model(tmp_path / "deep", "m", ANSWERS, ANSWERS)
    with pytest.raises(UserError, match="is given twice"):
        find_responses([folder, folder], "mixeval", VERSION)
