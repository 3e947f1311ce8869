"""Data transforms: the results of the original, in a stream and as lists; user classes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.formats.sygra.data import transforms
from assay.formats.sygra.data.transforms import Streamed
from tests.formats.sygra.data_support import bare, disk, problem, read, step, write_lines

HERE = f"{__name__}."
PNG = b"\x89PNG\r\n\x1a\n" + b"rest"


def made(name: str) -> transforms.DataTransform:
    return getattr(transforms, name)()


def rows(count: int) -> list[dict[str, Any]]:
    return [{"t": f"t{number}"} for number in range(count)]


def test_rename_as_the_original_does() -> None:
    rename = made("RenameFieldsTransform").transform
    assert rename([{"a": 1, "b": 2}], {"mapping": {"a": "b"}}) == [{"a": 1, "b": 2}], "both stay"
    assert rename([{"a": 1, "b": 2}], {"mapping": {"a": "b"}, "overwrite": True}) == [{"b": 1}]
    assert rename([{"a": 1}, {"c": 3}], {"mapping": {"a": "b", "b": "c"}}) == [{"c": 1}, {"c": 3}]
    source = {"a": 1}
    rename([source], {"mapping": {"a": "b"}})
    assert source == {"a": 1}, "the record of the caller is left alone"


def test_constants_and_retry_fields() -> None:
    add = made("AddNewFieldTransform").transform
    assert add([{"a": 1}], {"mapping": {"a": 2, "b": [3]}}) == [{"a": 2, "b": [3]}]
    retry = made("AddRetryFieldsTransform").transform
    assert retry([{}], {}) == [
        {"max_retries": 3, "curr_retries": 0, "original_current_user_text": ""}
    ]
    given_ones = {"max_retries": 5, "initial_retry_count": 1, "original_current_user_text": "x"}
    assert retry([{}], given_ones) == [
        {"max_retries": 5, "curr_retries": 1, "original_current_user_text": "x"}
    ]


def test_skip_as_the_original_does() -> None:
    skip = made("SkipRecords").transform
    assert [row["t"] for row in skip(rows(6), {"range": "[:2],[-1:]"})] == ["t2", "t3", "t4"]
    count = {"skip_type": "count", "count": {"from_start": 1, "from_end": 2}}
    assert [row["t"] for row in skip(rows(6), count)] == ["t1", "t2", "t3"]
    assert skip(rows(6), {"skip_type": "count", "count": {"from_begin": 2}}) == rows(6)[2:]
    assert skip(rows(3), {}) == rows(3)


BOUND = st.one_of(st.none(), st.integers(-9, 9))


@given(st.integers(0, 8), st.lists(st.tuples(BOUND, BOUND), max_size=3))
def test_ranges_are_slices(size: int, ranges: list[tuple[int | None, int | None]]) -> None:
    text = ",".join(f"[{'' if a is None else a}:{'' if b is None else b}]" for a, b in ranges)
    numbers = list(range(size))
    gone = {number for a, b in ranges for number in numbers[a:b]}
    kept = made("SkipRecords").transform([{"n": n} for n in numbers], {"range": text})
    assert [row["n"] for row in kept] == [number for number in numbers if number not in gone]


@given(
    st.integers(0, 9), st.integers(2, 4), st.integers(1, 3), st.integers(0, 3), st.integers(0, 3)
)
def test_combined_windows(size: int, combine: int, shift: int, start: int, end: int) -> None:
    params = {
        "combine": combine,
        "shift": shift,
        "skip": {"from_beginning": start, "from_end": end},
    }
    params["join_column"] = {"t": "-".join(f"${number}" for number in range(1, combine + 1))}
    inner = [row["t"] for row in rows(size)[start : max(start, size - end)]]
    windows = [inner[at : at + combine] for at in range(0, len(inner) - combine + 1, shift)]
    found = made("CombineRecords").transform(rows(size), params)
    assert [row["t"] for row in found] == ["-".join(window) for window in windows]


def test_combine_reaches_the_last_record_and_keeps_dollar_signs() -> None:
    combine = made("CombineRecords").transform
    found = combine(rows(6), {"combine": 2, "join_column": {"t": "$1-$2"}})
    assert [row["t"] for row in found] == ["t0-t1", "t1-t2", "t2-t3", "t3-t4", "t4-t5"]
    money = [{"p": "$2"}, {"p": "five"}]
    assert combine(money, {"combine": 2, "join_column": {"p": "$1|$2|$3|$12|$"}}) == [
        {"p": "$2|five|$3|$22|$"}
    ]
    twelve = [{"p": str(n)} for n in range(1, 13)]
    assert combine(twelve, {"combine": 12, "join_column": {"p": "$12.$1"}}) == [{"p": "12.1"}]
    assert combine(rows(2), {"combine": 1, "skip": {"from_beginning": 1}}) == rows(2), (
        "nothing to combine"
    )


@pytest.mark.parametrize(
    ("name", "params", "what"),
    [
        ("SkipRecords", {"range": "[3]"}, "'[3]' is not a range"),
        ("SkipRecords", {"skip_type": "rnage"}, "unknown skip_type"),
        ("SkipRecords", {"skip_type": "count", "count": {"from_end": -1}}, "from_end"),
        ("SkipRecords", {"skip_type": "count", "count": 3}, "count must be a mapping"),
        ("CombineRecords", {"combine": 2, "shift": 0, "join_column": {"t": "$1"}}, "shift"),
        ("CombineRecords", {"combine": "two"}, "combine"),
        ("CombineRecords", {"combine": 2, "join_column": {"text": "$1"}}, "no field 'text'"),
        ("RenameFieldsTransform", {"mapping": ["a"]}, "mapping must be a mapping"),
    ],
)
def test_wrong_parameters_are_named_with_their_place(
    tmp_path: Path, name: str, params: Any, what: str
) -> None:
    write_lines(tmp_path / "rows.jsonl", rows(3))
    found = problem(
        tmp_path, disk("rows.jsonl", step("AddNewFieldTransform"), step(name, **params))
    )
    assert what in found.what
    assert found.where == "data_config.source.transformations[1]"


@pytest.mark.parametrize(
    "name",
    [
        "RenameFieldsTransform",
        "AddNewFieldTransform",
        "AddRetryFieldsTransform",
        "SkipRecords",
        "CombineRecords",
    ],
)
def test_params_may_be_null_or_absent(tmp_path: Path, name: str) -> None:
    write_lines(tmp_path / "rows.jsonl", rows(2))
    for entry in ({"transform": step(name)["transform"]}, step(name)):
        assert [row["t"] for row in read(tmp_path, disk("rows.jsonl", entry))] == ["t0", "t1"]


def test_shipped_transforms_do_not_wait_for_the_end() -> None:
    """Each gives its first record before it has taken many."""
    cases = {
        "RenameFieldsTransform": {"mapping": {"t": "u"}},
        "AddNewFieldTransform": {"mapping": {"x": 1}},
        "AddRetryFieldsTransform": {},
        "SkipRecords": {"range": "[:2],[-3:]"},
        "CombineRecords": {"combine": 2, "join_column": {"t": "$1$2"}, "skip": {"from_end": 2}},
    }
    for name, params in cases.items():
        taken: list[int] = []

        def counted(taken: list[int] = taken) -> Iterator[dict[str, Any]]:
            for number, row in enumerate(rows(1000)):
                taken.append(number)
                yield row

        transform = made(name)
        assert isinstance(transform, Streamed)
        next(transform.stream(counted(), params))
        assert len(taken) <= 6, name


# ---- user classes


class Reversed(transforms.DataTransform):
    @property
    def name(self) -> str:
        return "reversed"

    def transform(self, data: list[dict[str, Any]], params: dict[str, Any]) -> list[dict[str, Any]]:
        assert isinstance(data, list)
        return [{**row, "of": len(data), "params": params} for row in data[::-1]]


class Own(transforms.RenameFieldsTransform):
    def transform(self, data: list[dict[str, Any]], params: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"all": len(super().transform(data, params)), "x": np.float64("nan")}]


class Duck:
    def transform(self, data: Any, params: Any) -> Any:
        return params["give"]


class Broken(Duck):
    def transform(self, data: Any, params: Any) -> Any:
        return data[0]["gone"]


class Lacking(transforms.DataTransform):
    pass


def test_user_classes_get_lists(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", rows(3))
    found = bare(read(tmp_path, disk("rows.jsonl", step(HERE + "Reversed"))))
    assert found == [{"t": f"t{number}", "of": 3, "params": {}} for number in (2, 1, 0)]
    assert bare(read(tmp_path, disk("rows.jsonl", step(HERE + "Own")))) == [{"all": 3, "x": None}]
    assert bare(read(tmp_path, disk("rows.jsonl", step(HERE + "Duck", give=[{"y": 1}])))) == [
        {"y": 1}
    ]


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        (step(HERE + "Duck", give=None), "returned NoneType"),
        (step(HERE + "Duck", give={"a": 1}), "returned dict"),
        (step(HERE + "Duck", give=[1]), "a list with int"),
        (step(HERE + "Duck", give=[]), "the dataset is empty"),
        (step(HERE + "Broken"), "KeyError: 'gone'"),
        (step(HERE + "Gone"), "cannot be imported"),
        (step(HERE + "Lacking"), "cannot be made"),
        (step(HERE + "PNG"), "is not a transform"),
        ({"params": {}}, "names no class"),
        ("text", "names no class"),
        ({"transform": HERE + "Duck", "params": [1]}, "params must be a mapping"),
    ],
)
def test_user_classes_that_fail(tmp_path: Path, entry: Any, what: str) -> None:
    write_lines(tmp_path / "rows.jsonl", rows(2))
    found = problem(tmp_path, disk("rows.jsonl", entry))
    assert what in found.what
    assert found.where.startswith("data_config.source")


def test_transformations_must_be_a_list(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", rows(2))
    with pytest.raises(UserError, match="must be a list"):
        read(tmp_path, {**disk("rows.jsonl"), "transformations": {"transform": "x"}})
