"""Fields, filter, split, sample, shuffle: what each does, and that they compose in one order."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from assay.config import DatasetConfig, SplitConfig
from assay.datasets._shape import shape_rows
from assay.errors import UserError

Row = dict[str, Any]


def placed(rows: list[Row]) -> Iterator[tuple[str, Row]]:
    yield from ((f"f:{number}", row) for number, row in enumerate(rows, 1))


def shape(rows: list[Row], **keys: Any) -> list[Row]:
    found = list(shape_rows(placed(rows), DatasetConfig(**keys)))
    numbered = dict(placed(rows))
    assert "fields" in keys or all(numbered[place] == row for place, row in found), (
        "a row lost its place"
    )
    return [row for _, row in found]


def problem(rows: list[Row], **keys: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        shape(rows, **keys)
    return caught.value


def numbers(count: int) -> list[Row]:
    return [{"id": f"q{n}", "n": n} for n in range(count)]


def test_fields_are_renamed_and_found_in_depth() -> None:
    row = {"qid": 7, "answers": {"text": ["a", "b"]}, "data.x": 1, "note": "kept"}
    fields = {"id": "qid", "ground_truth": "answers.text", "first": "answers.text.0", "x": "data.x"}
    (found,) = shape([row], fields=fields)
    assert found == {
        "id": 7,
        "ground_truth": ["a", "b"],
        "first": "a",
        "x": 1,
        "answers": {"text": ["a", "b"]},
        "note": "kept",
    }


@pytest.mark.parametrize(
    "source", ["anwsers", "answers.txt", "answers.text.5", "answers.text.0.deep"]
)
def test_a_field_that_is_not_there(source: str) -> None:
    rows = [{"answers": {"text": ["a"]}}]
    found = problem(rows, fields={"ground_truth": source})
    assert (found.what, found.where) == (f"a dataset row has no field {source!r}", "f:1")
    assert ("did you mean 'answers'" in found.fix) == (source == "anwsers")


def test_the_filter_sees_what_templates_see_and_the_ground_truth() -> None:
    flat = {"id": "a", "level": "hard", "n": 5, "ground_truth": "x"}
    long = {
        "id": "b",
        "data": {"level": "hard", "n": 2},
        "metadata": {"topic": "t"},
        "source": "book",
    }
    rows = [flat, long]
    assert shape(rows, filter='level == "hard" and n > 3') == [flat]
    assert shape(rows, filter='metadata.topic is defined and source == "book"') == [long]
    assert shape(rows, filter='ground_truth == "x"') == [flat]
    assert shape(rows, filter='id in ["b"]') == [long]
    assert shape(rows, filter="false") == []


@pytest.mark.parametrize(
    ("expression", "row", "what", "fix"),
    [
        (
            "nn > 3",
            {"n": 4},
            "'nn' is undefined",
            "fields of this row: data, ground_truth, id, metadata, n",
        ),
        ("nn", {"n": 4}, "'nn' is undefined", "is defined"),
        ("n > 3", {"n": "4"}, "not supported", "n | int > 3"),
        ("n.__class__.__mro__", {"n": 4}, "unsafe", "correct `filter`"),
        ("1 // n", {"n": 0}, "by zero", "correct `filter`"),
    ],
)
def test_a_filter_that_fails_names_the_row(expression: str, row: Row, what: str, fix: str) -> None:
    found = problem([row], filter=expression)
    assert what in found.what
    assert found.where == "f:1"
    assert fix in found.fix


@pytest.mark.parametrize("expression", ["n >", "n == 1 %}", "{{ n }}", "n = 1"])
def test_a_filter_that_is_no_expression(expression: str) -> None:
    assert problem([{"n": 1}], filter=expression).where == "dataset.filter"


def test_a_split_divides_the_items_by_their_ids() -> None:
    rows = numbers(2000)
    ratio = {"train": 0.7, "dev": 0.1, "test": 0.2}
    parts = {name: shape(rows, split=SplitConfig(name=name, ratio=ratio)) for name in ratio}
    assert sorted(row["n"] for part in parts.values() for row in part) == list(range(2000))
    assert {name: len(part) / 2000 for name, part in parts.items()} == pytest.approx(
        ratio, abs=0.03
    )
    assert parts["dev"] == shape(rows[::-1], split=SplitConfig(name="dev", ratio=ratio))[::-1]
    assert parts["dev"] != shape(rows, split=SplitConfig(name="dev", ratio=ratio, seed=1))


def test_equal_rows_without_ids_stay_in_one_part() -> None:
    rows = [{"n": n % 50} for n in range(200)]
    count = Counter(
        row["n"] for row in shape(rows, split=SplitConfig(name="a", ratio={"a": 0.5, "b": 0.5}))
    )
    assert set(count.values()) == {4}
    assert 0 < len(count) < 50


def test_a_sample_keeps_the_order_and_contains_the_smaller_one() -> None:
    rows = numbers(500)
    small, large = shape(rows, sample=20), shape(rows, sample=100)
    assert (len(small), len(large)) == (20, 100)
    assert large == sorted(large, key=lambda row: row["n"])
    assert all(row in large for row in small)
    assert shape(rows, sample=20) == small != shape(rows, sample=20, seed=1)
    assert shape(rows, sample=1000) == rows
    assert shape([], sample=3, shuffle=True) == []


def test_every_item_is_as_likely_to_be_sampled() -> None:
    rows = numbers(20)
    drawn = Counter(row["n"] for seed in range(400) for row in shape(rows, sample=5, seed=seed))
    # 100 times each on average, with a standard deviation of 8.7
    assert set(drawn) == set(range(20))
    assert all(60 < count < 140 for count in drawn.values())


def test_shuffling_is_a_permutation_that_its_seed_decides() -> None:
    rows = numbers(300)
    shuffled = shape(rows, shuffle=True)
    assert sorted(row["n"] for row in shuffled) == list(range(300))
    assert shuffled != rows
    assert shuffled == shape(rows, shuffle=True) == shape(rows, shuffle=0)
    assert shuffled != shape(rows, shuffle=1)
    assert shape(rows, shuffle=True, seed=1) == shape(rows, shuffle=1)
    assert shape(rows, shuffle=False) == rows


def test_shuffled_rows_are_the_same_in_every_process_and_version() -> None:
    assert [row["n"] for row in shape(numbers(8), shuffle=True)] == [4, 3, 5, 2, 1, 7, 6, 0]


def test_all_together_in_their_order() -> None:
    rows = [{"key": f"q{n}", "n": n} for n in range(400)]
    keys: dict[str, Any] = {
        "fields": {"id": "key"},
        "filter": "n % 2 == 0",
        "split": SplitConfig(name="train", ratio={"train": 0.5, "test": 0.5}),
    }
    kept = shape(rows, **keys)
    assert 60 < len(kept) < 140
    assert all(row["n"] % 2 == 0 and "key" not in row for row in kept)
    sample = shape(rows, **keys, sample=30)
    assert len(sample) == 30
    assert all(row in kept for row in sample)
    assert sorted(shape(rows, **keys, sample=30, shuffle=5), key=lambda row: row["n"]) == sample


def test_rows_that_no_file_can_hold() -> None:
    found = problem([{"id": "a", "thing": object()}], shuffle=True)
    assert "cannot be written as JSON" in found.what
    assert found.where == "f:1"
