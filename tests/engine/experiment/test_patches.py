"""Rows are completed without touching what they share with other rows."""

from typing import Any

import msgspec
import pytest

from assay.engine.experiment.imports.patches import (
    SHAPES,
    Fix,
    RowKind,
    RowLine,
    address,
    completed_row,
    digest_of_value,
)
from assay.records import Evaluation, Response


def line_for(kind: RowKind, read: Any, true: Any) -> RowLine:
    (line,) = SHAPES[kind].lines([read], [true])
    assert not line.adds
    assert (line.at, line.was) == (address(read), digest_of_value(read))
    return RowLine(kind, line.at, line.was, fixes=line.fixes)


def test_rows_that_share_their_parts_are_completed_one_by_one() -> None:
    shared: dict[str, Any] = {"model_id": "m", "source": {"by": "tool", "odd": 1}}
    read = [Evaluation(item_id="a", label=label, metadata=shared) for label in ("x", "y")]
    digests = [digest_of_value(row) for row in read]
    true = [
        Evaluation(
            item_id="a", label="x", metadata={"model_id": "m", "source": {"by": "x"}, "grader": "x"}
        ),
        Evaluation(
            item_id="a", label="y", metadata={"model_id": "m", "source": {"by": "tool", "odd": 2}}
        ),
    ]
    lines = [line_for("evaluation", *pair) for pair in zip(read, true, strict=True)]
    for row, line, digest, wanted in zip(read, lines, digests, true, strict=True):
        assert digest_of_value(row) == digest  # the row before has not changed it
        assert completed_row(row, line, digest) == wanted
    assert shared == {"model_id": "m", "source": {"by": "tool", "odd": 1}}


def test_an_item_is_completed_beside_what_it_shares() -> None:
    inner = {"topic": "sums"}
    read = {"id": "a", "metadata": inner}
    line = line_for("item", read, {"id": "a", "metadata": {"topic": "Sums", "level": 1}})
    assert completed_row(read, line, line.was) == {
        "id": "a",
        "metadata": {"topic": "Sums", "level": 1},
    }
    assert inner == {"topic": "sums"}


@pytest.mark.parametrize("path", [["metadata", "gone", "x"], ["metadata", "text", "x"]])
def test_a_fix_whose_place_is_gone_changes_nothing(path: list[str]) -> None:
    row = Evaluation(item_id="a", metadata={"text": "t"})
    line = RowLine("evaluation", address(row), "another", fixes=[Fix(path, "", 1)])
    assert completed_row(row, line, digest_of_value(row)) == Evaluation(
        item_id="a", metadata={"text": "t"}
    )


def test_values_that_are_equal_but_not_the_same_are_put_back() -> None:
    for old, new in (
        (1, 1.0),
        (1, True),
        (0, False),
        ([1], [True]),
        ({"a": 1}, {"a": 1.0}),
        ("1", 1),
    ):
        read, true = Response(item_id="a", output=old), Response(item_id="a", output=new)
        line = line_for("response", read, true)
        assert repr(completed_row(read, line, line.was)) == repr(true)


def test_many_rows_give_the_lines_of_each_alone() -> None:
    read = [
        Response(item_id=f"{number}", metadata={"model_id": f"m{number % 3}"})
        for number in range(40)
    ]
    true = [
        Response(
            item_id=row.item_id,
            prompt="p" * (number % 2),
            metadata={"model_id": "m1", "n": number % 2},
        )
        for number, row in enumerate(read)
    ]
    lines = SHAPES["response"].lines(read, true)
    assert [line.adds for line in lines] == [
        {"prompt": "p"} if number % 2 else {} for number in range(40)
    ]
    alone = [SHAPES["response"].lines([old], [new]) for old, new in zip(read, true, strict=True)]
    assert msgspec.json.encode([[line] for line in lines]) == msgspec.json.encode(alone)
    for row, line, wanted in zip(read, lines, true, strict=True):
        written = msgspec.json.decode(msgspec.json.encode(line), type=RowLine)
        assert completed_row(row, written, written.was) == wanted
