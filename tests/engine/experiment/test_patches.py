"""Rows are completed without touching what they share with other rows."""

from typing import Any

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
from assay.records import Evaluation


def line_for(kind: RowKind, read: Any, true: Any) -> RowLine:
    adds, fixes = SHAPES[kind].difference(read, true)
    assert not adds
    return RowLine(kind, address(read), digest_of_value(read), fixes=fixes)


def test_rows_that_share_their_parts_are_completed_one_by_one() -> None:
    shared: dict[str, Any] = {"model_id": "m", "source": {"by": "tool", "odd": 1}}
    read = [Evaluation(item_id="a", label=label, metadata=shared) for label in ("x", "y")]
    digests = [digest_of_value(row) for row in read]
    true = [
        Evaluation(item_id="a", label="x", metadata={"model_id": "m", "source": {"by": "x"}, "grader": "x"}),
        Evaluation(item_id="a", label="y", metadata={"model_id": "m", "source": {"by": "tool", "odd": 2}}),
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
    assert completed_row(read, line, line.was) == {"id": "a", "metadata": {"topic": "Sums", "level": 1}}
    assert inner == {"topic": "sums"}


@pytest.mark.parametrize("path", [["metadata", "gone", "x"], ["metadata", "text", "x"]])
def test_a_fix_whose_place_is_gone_changes_nothing(path: list[str]) -> None:
    row = Evaluation(item_id="a", metadata={"text": "t"})
    line = RowLine("evaluation", address(row), "another", fixes=[Fix(path, "", 1)])
    assert completed_row(row, line, digest_of_value(row)) == Evaluation(item_id="a", metadata={"text": "t"})
