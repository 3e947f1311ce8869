"""Several sources: every join against pandas, which the original joins with; random joins by their properties."""

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.sygra.data_support import bare, disk, problem, read, step, write_lines

KEYS = st.one_of(st.none(), st.integers(0, 3))
TABLE = st.lists(st.fixed_dictionaries({"k": KEYS, "v": st.integers(0, 9)}), min_size=1, max_size=5)


def part(
    path: str, alias: str | None, join_type: str | None, *transformations: Any, **more: Any
) -> dict[str, Any]:
    return disk(path, *transformations, alias=alias, join_type=join_type, **more)


def tables(base: Path, **rows: list[dict[str, Any]]) -> Path:
    for name, content in rows.items():
        write_lines(base / f"{name}.jsonl", content)
    return base


def frame(rows: list[dict[str, Any]], alias: str) -> pd.DataFrame:
    return pd.DataFrame(rows, dtype=object).rename(columns=lambda name: f"{alias}->{name}")


def records(joined: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in joined.to_dict("records")
    ]


@settings(max_examples=60, deadline=None)
@given(TABLE, TABLE)
def test_column_and_cross_joins(
    tmp_path_factory: pytest.TempPathFactory,
    left: list[dict[str, Any]],
    right: list[dict[str, Any]],
) -> None:
    base = tables(tmp_path_factory.mktemp("join"), a=left, b=right)
    a, b = frame(left, "a"), frame(right, "b")
    primary = part("a.jsonl", "a", "primary")
    found = read(base, [primary, part("b.jsonl", "b", "column", primary_key="k", join_key="k")])
    assert bare(found) == records(a.merge(b, left_on="a->k", right_on="b->k", how="left"))
    assert bare(read(base, [part("b.jsonl", "b", "cross"), primary])) == records(
        a.merge(b, how="cross")
    )


def test_sequential_joins_go_round(tmp_path: Path) -> None:
    tables(
        tmp_path,
        a=[{"n": n} for n in range(5)],
        b=[{"x": "p"}, {"x": "q"}],
        c=[{"y": y} for y in "abcdefg"],
    )
    found = read(
        tmp_path,
        [
            part("a.jsonl", "a", "primary"),
            part("b.jsonl", "b", "sequential"),
            part("c.jsonl", "c", "sequential"),
        ],
    )
    assert [(row["a->n"], row["b->x"], row["c->y"]) for row in found] == [
        (0, "p", "a"),
        (1, "q", "b"),
        (2, "p", "c"),
        (3, "q", "d"),
        (4, "p", "e"),
    ]


def at_random(base: Path, seed: int, alias: str = "b") -> list[int]:
    return [
        row[f"{alias}->x"]
        for row in read(
            base, [part("a.jsonl", "a", "primary"), part("b.jsonl", alias, "random")], seed=seed
        )
    ]


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_random_joins(
    tmp_path_factory: pytest.TempPathFactory, left: int, right: int, seed: int
) -> None:
    base = tables(
        tmp_path_factory.mktemp("random"),
        a=[{"n": n} for n in range(left)],
        b=[{"x": x} for x in range(right)],
    )
    drawn = at_random(base, seed)
    assert drawn == at_random(base, seed), "the seed decides"
    assert len(drawn) == left
    assert set(drawn) <= set(range(right))
    assert len(set(drawn[:right])) == min(left, right), "each is used before any is used twice"


def test_random_joins_are_random(tmp_path: Path) -> None:
    tables(tmp_path, a=[{"n": n} for n in range(40)], b=[{"x": x} for x in range(20)])
    first, second = at_random(tmp_path, 1), at_random(tmp_path, 2)
    assert first != second
    assert first[:20] != sorted(first[:20])
    assert at_random(tmp_path, 1, "other") != first
    again = Counter(draw for seed in range(30) for draw in at_random(tmp_path, seed)[20:])
    assert len(again) == 20, "what is drawn again may be any"


def test_vstack_keeps_the_columns_that_all_have(tmp_path: Path) -> None:
    one = [{"id": 1, "q": "a", "x": 0}, {"id": 2, "q": "b"}]
    two = [{"id": 1, "q": "c", "y": 1}, {"q": "d", "id": 3, "extra": 5}]
    tables(tmp_path, a=one, b=two)
    found = read(tmp_path, [part("a.jsonl", "a", "vstack"), part("b.jsonl", "b", "vstack")])
    wanted = pd.concat([pd.DataFrame(one), pd.DataFrame(two)], axis=0, join="inner").to_dict(
        "records"
    )
    assert found == wanted
    assert [row["id"] for row in found] == [1, 2, 1, 3], "given ids may repeat"


def test_records_with_different_fields_get_all_columns(tmp_path: Path) -> None:
    tables(tmp_path, a=[{"k": 1}, {"k": 2, "late": "x"}], b=[{"j": 2, "w": 1}, {"j": 2, "z": [1]}])
    sources = [
        part("a.jsonl", "a", "primary"),
        part("b.jsonl", "b", "column", primary_key="k", join_key="j"),
    ]
    assert bare(read(tmp_path, sources)) == [
        {"a->k": 1, "a->late": None, "b->j": None, "b->w": None, "b->z": None},
        {"a->k": 2, "a->late": "x", "b->j": 2, "b->w": 1, "b->z": None},
        {"a->k": 2, "a->late": "x", "b->j": 2, "b->w": None, "b->z": [1]},
    ]


def test_transformations_come_before_the_join_and_names_may_be_there_already(
    tmp_path: Path,
) -> None:
    tables(tmp_path, a=[{"old": 1}], b=[{"b->x": 2, "y": 3}])
    rename = step("RenameFieldsTransform", mapping={"old": "new"})
    found = read(
        tmp_path,
        [
            part("a.jsonl", "a", "primary", rename),
            part("b.jsonl", "b", "cross", fields=["b->x", "y"]),
        ],
    )
    assert bare(found) == [{"a->new": 1, "b->x": 2, "y": 3}]
    assert len(found[0]["id"]) == 64


def test_numbers_match_however_they_are_written(tmp_path: Path) -> None:
    tables(tmp_path, a=[{"k": 1}, {"k": 2.0}], b=[{"k": 1.0, "v": "x"}, {"k": 2, "v": "y"}])
    sources = [
        part("a.jsonl", "a", "primary"),
        part("b.jsonl", "b", "column", primary_key="k", join_key="k"),
    ]
    assert [row["b->v"] for row in read(tmp_path, sources)] == ["x", "y"]


@pytest.mark.parametrize(
    ("sources", "what", "fix"),
    [
        ([part("a.jsonl", None, "primary")], "'alias'", "alias"),
        ([part("a.jsonl", "a", None)], "'join_type'", "join_type"),
        ([part("a.jsonl", "a", "prmary")], "unknown join_type 'prmary'", "'primary'"),
        ([part("a.jsonl", "a", "cross")], "none of the sources are primary", "exactly one"),
        (
            [part("a.jsonl", "a", "primary"), part("a.jsonl", "b", "primary")],
            "2 of the sources",
            "exactly one",
        ),
        ([part("a.jsonl", "a", "primary"), part("a.jsonl", "a", "cross")], "alias 'a'", "rename"),
        ([part("a.jsonl", "a", "vstack"), part("a.jsonl", "b", "cross")], "vstack", "all"),
        (
            [part("a.jsonl", "a", "primary"), part("a.jsonl", "b", "column", join_key="k")],
            "'primary_key'",
            "primary_key",
        ),
        (
            [
                part("a.jsonl", "a", "primary"),
                part("a.jsonl", "b", "column", primary_key="key", join_key="k"),
            ],
            "'a' has no column 'key'",
            "k",
        ),
        (
            [
                part("a.jsonl", "a", "primary"),
                part("a.jsonl", "b", "column", primary_key="k", join_key="key"),
            ],
            "'b' has no column 'key'",
            "k",
        ),
        (
            [
                part("a.jsonl", "a", "primary"),
                part("t.jsonl", "b", "column", primary_key="k", join_key="k"),
            ],
            "one is text",
            "alike",
        ),
        (
            [part("a.jsonl", "a", "primary"), part("e.jsonl", "b", "sequential")],
            "'b' is empty",
            "file",
        ),
        ([part("e.jsonl", "a", "vstack"), part("a.jsonl", "b", "vstack")], "'a' is empty", "file"),
    ],
)
def test_what_cannot_be_joined(tmp_path: Path, sources: Any, what: str, fix: str) -> None:
    tables(tmp_path, a=[{"k": 1}], t=[{"k": "1"}], e=[])
    found = problem(tmp_path, sources)
    assert what in found.what
    assert fix in found.fix
    assert found.where.startswith("data_config.source")
