"""The `rule` reader against answers labelled by hand, shape by shape (`labelled.txt`)."""

from collections import defaultdict
from pathlib import Path

import pytest

from assay.formats.mixeval.freeform.answers import holds_answer

Row = tuple[str, list[str], str, bool]


def _rows() -> dict[str, list[Row]]:
    shapes: dict[str, list[Row]] = defaultdict(list)
    shape = ""
    for line in Path(__file__).with_name("labelled.txt").read_text().splitlines()[1:]:
        if line.startswith("= "):
            shape = line[2:]
            continue
        question, accepted, answer, label = line.split(" | ")
        answer = answer.replace("\\n", "\n").replace("\\\\", "\\")
        shapes[shape].append(
            (question, accepted.replace("\\\\", "\\").split("; "), answer, label == "+")
        )
    return shapes


ROWS = _rows()


@pytest.mark.parametrize("shape", ROWS)
def test_precision_and_recall_of_every_shape(shape: str) -> None:
    read = [
        (holds_answer(answer, accepted, question) is True, right)
        for question, accepted, answer, right in ROWS[shape]
    ]
    missed = [row for row, (said, right) in zip(ROWS[shape], read, strict=True) if said != right]
    hits = sum(said and right for said, right in read)
    precision = hits / max(1, sum(said for said, _ in read))
    recall = hits / sum(right for _, right in read)
    assert min(precision, recall) >= 0.95, missed
