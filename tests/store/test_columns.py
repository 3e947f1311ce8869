"""Reading rows as columns: whichever layout a block is decoded with, each row keeps its own values."""

import json
import math
import random
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from assay.errors import UserError
from assay.store.keys import id_hash
from assay.store.memory_log import MemoryLog
from assay.store.table.facets import find_in_row
from assay.store.table.labels import Reader

Row = dict[str, Any]
FACETS = ["metadata.model_id", "prompt_template"]


def row(number: int, **more: Any) -> Row:
    return {
        "item_id": f"i{number // 5}",
        "sample_index": number % 5,
        "label": "match",
        "passed": number % 3 == 0,
        "score": float(number % 3 == 0),
        "metadata": {"model_id": f"m{number % 2}", "prompt_template": "p"},
        "scorer": "exact",
        "outcome": "scored",
        **more,
    }


def changing(kind: str) -> list[Row]:
    """1,300 rows (six blocks) that begin alike and then do not."""
    rows = [row(number) for number in range(1300)]
    for number in range(300, 1300):
        one = rows[number]
        if kind == "labels":
            one["label"] = f"l{number // 60}"
        elif kind == "outcomes" and number % 50 == 0:
            one.update(outcome="errored", passed=None, score=None)
        elif kind == "scores":
            one["score"] = number / 7
        elif kind == "facets":
            one["metadata"] = random.Random(number).choice(
                [
                    {},
                    {"model_id": None},
                    {"model_id": 3},
                    {"model_id": f"m{number}"},
                    {"prompt_template": "q"},
                ]
            )
        elif kind == "literal keys" and number % 90 == 0:
            one.update({"metadata.model_id": "literal", "prompt_template": "top"})
        elif kind == "missing fields" and number % 70 == 0:
            del one["label"], one["scorer"]
        elif kind == "foreign" and number % 400 == 0:
            one["score"] = math.nan
    return rows


def expected(one: Row, facets: list[str]) -> tuple[Any, ...]:
    score, outcome = one["score"], one["outcome"]
    if score is not None and math.isnan(score):
        return (*expected({**one, "score": None, "passed": None, "outcome": "errored"}, facets),)
    values = [find_in_row(one, facet) for facet in facets]
    shown = [value if value is UNSET else json.dumps(value) for value in values]
    plain = (
        one.get("label", ""),
        one.get("scorer", ""),
        outcome,
        one["passed"],
        one["sample_index"],
    )
    return (*plain, "none" if score is None else score, id_hash(one["item_id"]), *shown)


def read(lines: list[bytes], facets: list[str], positions: bool) -> list[tuple[Any, ...]]:
    log = MemoryLog()
    log.append(b"".join(line + b"\n" for line in lines))
    reader = Reader(facets, positions=positions)
    reader.read(log, "log")
    columns = reader.columns()
    found: list[tuple[Any, ...]] = []
    for at, code in enumerate(columns.combination.tolist()):
        one, score = columns.combinations[code], float(columns.score[at])
        shown = [value if value is UNSET else json.dumps(value) for value in one.values]
        plain = (one.label, one.scorer, one.outcome, one.passed, int(columns.sample[at]))
        found.append(
            (
                *plain,
                "none" if math.isnan(score) else score,
                int(columns.ids[columns.item[at]]),
                *shown,
            )
        )
    if positions:
        assert columns.positions.tolist() == [at for at, line in enumerate(lines) if line]
    return found


KINDS = [
    "alike",
    "labels",
    "outcomes",
    "scores",
    "facets",
    "literal keys",
    "missing fields",
    "foreign",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positions", [False, True])
def test_every_row_keeps_its_own_values(kind: str, positions: bool) -> None:
    rows = changing(kind)
    lines = [json.dumps(one).encode() for one in rows]
    for facets in (FACETS, [], ["metadata", "metadata.model_id"]):
        assert read(lines, facets, positions) == [expected(one, facets) for one in rows]


def test_blank_lines_are_no_rows() -> None:
    rows = [row(number) for number in range(4)]
    lines = [msgspec.json.encode(rows[0]), b"", *map(msgspec.json.encode, rows[1:])]
    for positions in (False, True):
        assert len(read(lines, FACETS, positions)) == 4


def test_more_than_two_thousand_different_scores() -> None:
    rows = [row(number, score=number / 3) for number in range(3000)]
    assert read([msgspec.json.encode(one) for one in rows], FACETS, False) == [
        expected(one, FACETS) for one in rows
    ]


def test_an_error_names_the_line_of_the_file() -> None:
    lines = [msgspec.json.encode(row(number)) for number in range(700)]
    lines[650] = b'{"item_id": '
    for positions in (False, True):
        with pytest.raises(UserError) as error:
            read(lines, FACETS, positions)
        assert error.value.where == "log, line 651"
