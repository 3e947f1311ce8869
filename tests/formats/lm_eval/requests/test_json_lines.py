"""Rows that are read without `datasets` are those that it would give."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from assay.formats.lm_eval.asking.data import _load_splits, _options
from assay.formats.lm_eval.asking.json_lines import simple_lines
from assay.formats.lm_eval.asking.rows import rows
from assay.formats.lm_eval.tasks.definition import Definition

DATES = [
    "2020-01-02",
    "2020-01-02T03:04:05",
    "2020-01-02 03:04:05",
    "2020-01-02T03:04:05Z",
    "20200102",
    "12:30",
    "1",
    "",
]
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6) | st.sampled_from(DATES)
COLUMNS = [
    TEXTS,
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.lists(TEXTS, max_size=3),
    st.floats(0, 9),
    st.none(),
]
NAMES = ("a", "b", "ä")


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    kinds = {
        name: draw(st.sampled_from(COLUMNS))
        for name in draw(st.sets(st.sampled_from(NAMES), min_size=1))
    }
    return [
        {name: draw(kind) for name, kind in kinds.items()} for _ in range(draw(st.integers(1, 4)))
    ]


def task(path: Path) -> Definition:
    return Definition(
        task="t", dataset_path="json", dataset_kwargs={"data_files": {"test": str(path)}}
    )


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(table=tables())
def test_simple_rows_are_the_librarys(table: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / f"{abs(hash(json.dumps(table)))}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in table))
    definition = task(file)
    simple = simple_lines(definition)
    if simple is not None:
        read = _load_splits(definition, "json", _options(definition))
        assert simple["test"] == table == list(rows(read["test"]))


@pytest.mark.parametrize(
    "lines",
    [
        ['{"a": "2020-01-02"}'],
        ['{"a": 1}', '{"a": 1.5}'],
        ['{"a": "x"}', '{"b": "x"}'],
        ['{"a": null}'],
        ['{"a": [[1]]}'],
        ['{"a": {"b": 1}}'],
        ['{"a": []}'],
        ["[1]"],
        ["{"],
        [],
    ],
)
def test_whatever_a_rule_could_change_is_left_to_the_library(
    lines: list[str], tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    assert simple_lines(task(tmp_path / "rows.jsonl")) is None
