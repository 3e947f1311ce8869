"""Datasets: one contract for every place that keeps them, and what each place does by itself."""

import json
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from assay.errors import UserError
from assay.formats.intelligence_layer.core import Input
from assay.formats.intelligence_layer.evaluation import (
    Dataset,
    DatasetRepository,
    Example,
    FileDatasetRepository,
    InMemoryDatasetRepository,
)
from assay.store.repositories import DatasetRepository as Datasets
from assay.store.stores import FolderStore
from tests.formats.intelligence_layer.labs import ODD_IDS, Question, QuestionData, QuestionStruct

PLACES = ["memory", "files"]


@pytest.fixture(params=PLACES)
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> DatasetRepository:
    if request.param == "memory":
        return InMemoryDatasetRepository()
    return FileDatasetRepository(tmp_path / "root")


def questions(*ids: str) -> list[Example[Question, str]]:
    return [
        Example(input=Question(text=f"question {id}"), expected_output=f"answer {id}", id=id)
        for id in ids
    ]


def read(repository: DatasetRepository, id: str) -> list[Example[Question, str]]:
    return list(repository.examples(id, Question, str))


# ---- what is true of every place


def test_examples_come_back_sorted_by_id_as_text(repository: DatasetRepository) -> None:
    examples = questions("9", "10", "1", "2")
    examples[0].metadata = {"level": 3, "tags": ["x", None]}
    dataset = repository.create_dataset(examples, "sums")
    assert [example.id for example in read(repository, dataset.id)] == ["1", "10", "2", "9"]
    assert read(repository, dataset.id) == sorted(examples, key=lambda example: example.id)
    assert read(repository, dataset.id) == read(repository, dataset.id)


def test_a_dataset_has_name_labels_and_metadata(repository: DatasetRepository) -> None:
    created = repository.create_dataset(
        questions("a"), "sums", "own id", {"maths", "easy"}, {"version": 2}
    )
    assert created == Dataset(
        id="own id", name="sums", labels={"maths", "easy"}, metadata={"version": 2}
    )
    assert repository.dataset("own id") == created
    plain = repository.create_dataset(questions("a"), "other")
    assert (plain.labels, plain.metadata) == (set(), {})
    assert len(plain.id) == 36
    assert list(repository.dataset_ids()) == sorted([created.id, plain.id])
    assert list(repository.datasets()) == sorted([created, plain], key=lambda dataset: dataset.id)


def test_an_id_that_exists_is_refused_and_nothing_changes(repository: DatasetRepository) -> None:
    repository.create_dataset(questions("a"), "first", id="taken")
    with pytest.raises(ValueError, match="taken"):
        repository.create_dataset(questions("b"), "second", id="taken")
    assert [example.id for example in read(repository, "taken")] == ["a"]


def test_examples_with_one_id_are_refused(repository: DatasetRepository) -> None:
    with pytest.raises(ValueError, match="two examples have the id 'b'"):
        repository.create_dataset(questions("b", "a", "b"), "twins", id="twins")
    assert repository.dataset("twins") is None
    assert list(repository.dataset_ids()) == []


def test_unknown_datasets_and_examples(repository: DatasetRepository) -> None:
    dataset = repository.create_dataset(questions("a"), "sums")
    assert repository.dataset("unknown") is None
    for example_id in ("a", "unknown"):
        with pytest.raises(ValueError, match="unknown"):
            repository.example("unknown", example_id, Question, str)
    with pytest.raises(ValueError, match="unknown"):
        repository.examples("unknown", Question, str)
    assert repository.example(dataset.id, "unknown", Question, str) is None
    assert repository.example(dataset.id, "a", Question, str) == questions("a")[0]


def test_a_deleted_dataset_is_gone_and_may_be_deleted_again(repository: DatasetRepository) -> None:
    kept, gone = (
        repository.create_dataset(questions("a"), "kept"),
        repository.create_dataset(questions("b"), "gone"),
    )
    read(repository, gone.id)
    for _ in range(2):
        repository.delete_dataset(gone.id)
    assert repository.dataset(gone.id) is None
    with pytest.raises(ValueError, match=gone.id):
        repository.examples(gone.id, Question, str)
    assert list(repository.dataset_ids()) == [kept.id]
    again = repository.create_dataset(questions("c"), "again", id=gone.id)
    assert [example.id for example in read(repository, again.id)] == ["c"]


def test_examples_can_be_skipped(repository: DatasetRepository) -> None:
    dataset = repository.create_dataset(questions("a", "b", "c"), "sums")
    found = repository.examples(
        dataset.id, Question, str, examples_to_skip=frozenset({"a", "c", "z"})
    )
    assert [example.id for example in found] == ["b"]


@pytest.mark.parametrize("value", [1, "text", None, True, [1, {"a": None}]])
def test_plain_types_are_inputs(repository: DatasetRepository, value: Any) -> None:
    dataset = repository.create_dataset(
        [Example(input=value, expected_output=value, id="a")], "plain"
    )
    (example,) = repository.examples(dataset.id, type(value), type(value))
    assert example == Example(input=value, expected_output=value, id="a")
    assert example.input.__class__ is value.__class__


@pytest.mark.parametrize("kind", [Question, QuestionData, QuestionStruct])
def test_the_type_of_reading_counts_not_that_of_writing(
    repository: DatasetRepository, kind: Any
) -> None:
    examples = [Example(input={"text": "q"}, expected_output=QuestionData("a"), id="a")]
    dataset = repository.create_dataset(examples, "dicts")
    (example,) = repository.examples(dataset.id, kind, kind)
    assert (example.input, example.expected_output) == (kind(text="q"), kind(text="a"))


def test_a_wrong_type_is_a_validation_error(repository: DatasetRepository) -> None:
    dataset = repository.create_dataset(questions("a"), "sums")
    with pytest.raises(pydantic.ValidationError):
        list(repository.examples(dataset.id, str, str))
    with pytest.raises(pydantic.ValidationError):
        repository.example(dataset.id, "a", Question, Question)


def test_ids_are_any_text(repository: DatasetRepository, tmp_path: Path) -> None:
    examples = questions(*ODD_IDS)
    for id in ODD_IDS:
        repository.create_dataset(examples, "odd", id=id)
    assert list(repository.dataset_ids()) == sorted(ODD_IDS)
    for id in ODD_IDS:
        assert [example.id for example in read(repository, id)] == sorted(ODD_IDS)
        assert repository.example(id, id, Question, str) == next(
            each for each in examples if each.id == id
        )
    assert not (tmp_path / "up").exists()


def test_an_empty_dataset_and_an_iterator(repository: DatasetRepository) -> None:
    assert read(repository, repository.create_dataset([], "empty").id) == []
    assert (
        len(read(repository, repository.create_dataset(iter(questions("a", "b")), "iterator").id))
        == 2
    )


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None
)
@given(
    rows=st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1),
        st.tuples(json_values, json_values),
        max_size=5,
    )
)
@pytest.mark.parametrize("place", ["memory", "files"])
def test_whatever_json_holds_comes_back(place: str, rows: dict[str, Any], tmp_path: Path) -> None:
    repository = (
        InMemoryDatasetRepository()
        if place == "memory"
        else FileDatasetRepository(tmp_path / "root")
    )
    examples = [
        Example(input=given, expected_output=wanted, id=id) for id, (given, wanted) in rows.items()
    ]
    dataset = repository.create_dataset(examples, "any")
    found = list(repository.examples(dataset.id, Any, Any))
    assert found == sorted(examples, key=lambda example: example.id)
    assert [repository.example(dataset.id, example.id, Any, Any) for example in found] == found


# ---- examples and datasets themselves


def test_examples_and_datasets_have_ids_and_share_no_defaults() -> None:
    one, two = Example(input=None, expected_output=None), Example(input=None, expected_output=None)
    assert one.id != two.id
    assert one.metadata is None
    first, second = Dataset(name="a"), Dataset(name="b")
    first.labels.add("x")
    first.metadata["k"] = 1
    assert (second.labels, second.metadata) == (set(), {})
    with pytest.raises(TypeError):
        Example(input="q")  # type: ignore[call-arg]


def test_examples_and_datasets_print_as_lines() -> None:
    example = Example(input="q", expected_output="a", id="e1", metadata={"k": 1})
    assert str(example) == repr(example)
    assert str(example).splitlines() == [
        "Example ID = e1",
        "Input = q",
        "Expected output = a",
        "Metadata = {'k': 1}",
    ]
    shown = str(Dataset(id="d", name="n", labels={"l"}))
    assert shown.splitlines() == ["Dataset ID = d", "Name = n", "Labels = {'l'}", "Metadata = {}"]


def test_an_empty_id_is_refused() -> None:
    with pytest.raises(ValueError, match="id"):
        InMemoryDatasetRepository().create_dataset(
            [Example(input=1, expected_output=1, id="")], "no id"
        )


# ---- files


def test_files_are_ours_and_the_commands_read_them(tmp_path: Path) -> None:
    dataset = FileDatasetRepository(tmp_path).create_dataset(questions("b", "a"), "sums", id="d")
    assert {path.name for path in (tmp_path / "datasets" / "d").iterdir()} == {
        "items.jsonl",
        "manifest.json",
        ".lock",
    }
    items = list(Datasets(FolderStore(tmp_path)).items(dataset.id))
    assert [(item.id, item.data, item.ground_truth) for item in items] == [
        ("a", {"text": "question a"}, "answer a"),
        ("b", {"text": "question b"}, "answer b"),
    ]
    assert FileDatasetRepository(tmp_path).dataset("d") == dataset


def test_rows_that_others_stored_are_sorted_when_read(tmp_path: Path) -> None:
    rows = [
        {"id": "b", "data": {"text": "q"}, "ground_truth": "x"},
        {"id": "a", "data": {"text": "p"}},
    ]
    Datasets(FolderStore(tmp_path)).create(rows, name="core", id="d")
    found = FileDatasetRepository(tmp_path).examples("d", Question, Any)  # type: ignore[arg-type]
    assert [(example.id, example.expected_output) for example in found] == [
        ("a", {"text": "p"}),
        ("b", "x"),
    ]


def test_the_folders_of_the_original_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "datasets" / "their dataset"
    folder.mkdir(parents=True)
    about = {"id": "their dataset", "name": "theirs", "labels": ["l"], "metadata": {"k": 1}}
    (folder / "their dataset.json").write_text(json.dumps(about))
    lines = [
        {"input": {"text": "two"}, "expected_output": "2", "id": "2", "metadata": None},
        {
            "input": {"text": "one"},
            "expected_output": "1",
            "id": "1",
            "metadata": {"n": float("nan")},
        },
    ]
    (folder / "their dataset.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    repository = FileDatasetRepository(tmp_path)
    ours = repository.create_dataset(questions("a"), "ours", id="ours")
    theirs = Dataset(id="their dataset", name="theirs", labels={"l"}, metadata={"k": 1})
    assert list(repository.datasets()) == [ours, theirs]
    assert [(example.id, example.input.text) for example in read(repository, "their dataset")] == [
        ("1", "one"),
        ("2", "two"),
    ]
    assert repository.example("their dataset", "2", Question, str) is not None
    assert repository.example("their dataset", "3", Question, str) is None
    with pytest.raises(ValueError, match="already"):
        repository.create_dataset([], "again", id="their dataset")
    repository.delete_dataset("their dataset")
    assert list(repository.dataset_ids()) == ["ours"]


def test_reading_makes_no_folders(tmp_path: Path) -> None:
    repository = FileDatasetRepository(tmp_path / "new" / "root")
    assert (tmp_path / "new" / "root").is_dir()
    assert list(repository.dataset_ids()) == []
    assert repository.dataset("d") is None
    with pytest.raises(ValueError, match="'d'"):
        repository.examples("d", str, str)
    repository.delete_dataset("d")
    assert list((tmp_path / "new" / "root").iterdir()) == []


def test_a_dataset_whose_bytes_have_changed_is_refused(tmp_path: Path) -> None:
    FileDatasetRepository(tmp_path).create_dataset(questions("a"), "sums", id="d")
    file = tmp_path / "datasets" / "d" / "items.jsonl"
    file.write_text(file.read_text().replace("answer a", "answer b"))
    with pytest.raises(UserError, match="has changed"):
        list(FileDatasetRepository(tmp_path).examples("d", Question, str))


def test_a_large_dataset_in_another_order_is_streamed_from_disk(tmp_path: Path) -> None:
    repository = FileDatasetRepository(tmp_path)
    dataset = repository.create_dataset(
        (Example(input=n, expected_output=n, id=str(n)) for n in range(3000)), "many"
    )
    numbers = [example.input for example in repository.examples(dataset.id, int, int)]
    assert numbers == sorted(range(3000), key=str)


def test_type_variables_are_there_for_annotations() -> None:
    assert Example[Question, str](input=Question(text="q"), expected_output="a").input.text == "q"
    assert Input.__name__ == "Input"
