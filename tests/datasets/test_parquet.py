"""Parquet: nested values become JSON values, and a file that is none is named."""

import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assay.errors import UserError
from assay.registry import dataset


def parquet(path: Path, query: str) -> Path:
    duckdb.sql(query).write_parquet(str(path))
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [row for _, row in dataset.get("parquet")(path)]


def test_nested_types_become_json_values(tmp_path: Path) -> None:
    query = """SELECT 'q1' AS id, {'text': ['a', 'b'], 'start': [{'at': 3}]} AS answers, [[1], NULL] AS lists,
               MAP {'k': 1.5} AS pairs, TIMESTAMP '2024-05-06 07:08:09' AS time, NULL AS nothing, 3::HUGEINT AS t"""
    assert rows(parquet(tmp_path / "a[1].parquet", query)) == [
        {
            "id": "q1",
            "answers": {"text": ["a", "b"], "start": [{"at": 3}]},
            "lists": [[1], None],
            "pairs": {"k": 1.5},
            "time": "2024-05-06 07:08:09",
            "nothing": None,
            "t": 3,
        }
    ]


def test_rows_are_in_order_and_have_a_place(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", "SELECT range AS n FROM range(5000)")
    found = list(dataset.get("parquet")(path))
    assert [row["n"] for _, row in found] == list(range(5000))
    assert found[4999][0] == f"{path} row 5000"


@pytest.mark.parametrize("content", [b"", b"not parquet", b"PAR1" * 100])
def test_a_file_that_is_no_parquet(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(UserError, match="a dataset row cannot be read") as caught:
        rows(path)
    assert caught.value.where == str(path)


def test_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UserError) as caught:
        rows(tmp_path / "a.parquet")
    assert caught.value.fix == "pip install 'assay-eval[parquet]'"
