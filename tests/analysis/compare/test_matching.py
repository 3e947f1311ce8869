"""Experiments of different tools compare item by item: by the questions' text, and by labels that the caller pairs."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import assay
from assay.errors import UserError
from assay.foreign import ForeignCase, Headline, key_of
from assay.records import Evaluation, Response
from assay.registry import reader


class Tool:
    """What a tool of this test left: right or wrong answers to questions, by ids of its own."""

    planned = None
    rejected = 0

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, Any] = json.loads(path.read_text())
        self.dataset = path.stem

    @property
    def source(self) -> dict[str, Any]:
        return {"format": "tool", "rows": self.rows}

    @property
    def facts(self) -> dict[str, Any]:
        return {}

    def cases(self) -> Any:
        for id, (question, right) in self.rows["answers"].items():
            row = Response(
                item_id=id, sample_id=f"{id}_sample_0", model_name="m", key=key_of("tool", id)
            )
            label = self.rows["label"]
            fields = {
                "item_id": id,
                "model_name": "m",
                "label": label,
                "scorer": label,
                "responses": [row.key],
            }
            evaluation = Evaluation(
                **fields, score=float(right), passed=right, key=key_of("tool", id, label)
            )
            yield ForeignCase(
                {"id": id, "data": {self.rows.get("field", "question"): question}},
                row,
                [evaluation],
            )

    def notes(self) -> list[str]:
        return []

    def headlines(self) -> list[Headline]:
        return []


@pytest.fixture(autouse=True)
def tool() -> None:
    """Its reader, for one test."""

    @reader(name="tool_of_test_matching")
    def read(path: Path) -> list[Tool]:
        return [Tool(path)]


def folder(tmp_path: Path, name: str, **rows: Any) -> str:
    source = tmp_path / f"{name}.json"
    source.write_text(json.dumps(rows))
    (imported,) = assay.import_(source, tmp_path / name, format_name="tool_of_test_matching")
    return imported.folder


SUMS = {f"q{n}": (f"What is {n} + {n}?", n % 3 > 0) for n in range(12)}
OTHER = {str(n): (f"What  is {n} +\n{n}?", n % 2 > 0) for n in reversed(range(12))}


def test_items_are_paired_by_their_question(tmp_path: Path) -> None:
    first = folder(tmp_path, "first", label="match", answers=SUMS)
    second = folder(tmp_path, "second", label="match", field="input", answers=OTHER)
    found = assay.compare([first, second])
    (pair,) = found.pairs
    assert (pair.items, pair.only_candidate, pair.only_baseline) == (12, 0, 0)
    assert pair.lost - pair.gained == 2
    assert pair.difference == pytest.approx((6 - 8) / 12)
    assert pair.lost == sum(n % 3 > 0 and n % 2 == 0 for n in range(12))
    assert any("ask the same" in note for note in found.notes)


def test_ids_that_mean_other_questions_are_not_trusted(tmp_path: Path) -> None:
    moved = {str(n): OTHER[str(11 - n)] for n in range(12)}
    first = folder(tmp_path, "first", label="match", answers=OTHER)
    second = folder(tmp_path, "second", label="match", answers=moved)
    (pair,) = assay.compare([first, second]).pairs
    assert (pair.items, pair.gained, pair.lost) == (12, 0, 0)


def test_ids_that_mean_the_same_are_taken(tmp_path: Path) -> None:
    first = folder(tmp_path, "first", label="match", answers=SUMS)
    second = folder(
        tmp_path, "second", label="match", answers={**SUMS, "q0": ("What is 0 plus 0?", True)}
    )
    found = assay.compare([first, second])
    assert (found.pairs[0].items, found.pairs[0].gained) == (12, 1)
    assert not any("ask the same" in note for note in found.notes)


def test_a_question_that_comes_twice_is_not_guessed(tmp_path: Path) -> None:
    twice = {**OTHER, "again": ("What is 3 + 3?", False)}
    first = folder(tmp_path, "first", label="match", answers=SUMS)
    second = folder(tmp_path, "second", label="match", answers=twice)
    (pair,) = assay.compare([first, second]).pairs
    assert (pair.items, pair.only_candidate, pair.only_baseline) == (11, 2, 1)


def test_labels_of_different_names(tmp_path: Path) -> None:
    first = folder(tmp_path, "first", label="match", answers=SUMS)
    second = folder(tmp_path, "second", label="exact_match,strict", answers=OTHER)
    with pytest.raises(UserError, match="no label is common") as error:
        assay.compare([first, second])
    assert "--label match=exact_match,strict" in str(error.value)
    found = assay.compare([first, second], label="match=exact_match,strict")
    assert found.label == "match=exact_match,strict"
    assert found.pairs[0].items == 12
    assert any("the labels differ" in note for note in found.notes)
    with pytest.raises(UserError, match="has no label 'exact'"):
        assay.compare([first, second], label="match=exact")
    with pytest.raises(UserError, match="pairs 3 labels"):
        assay.compare([first, second], label="match=a=b")


def test_questions_that_are_chats(tmp_path: Path) -> None:
    chats = {
        id: ([{"role": "system", "content": "x"}, {"role": "user", "content": q}], r)
        for id, (q, r) in OTHER.items()
    }
    first = folder(tmp_path, "first", label="match", answers=SUMS)
    second = folder(tmp_path, "second", label="match", field="input", answers=chats)
    assert assay.compare([first, second]).pairs[0].items == 12


@given(st.permutations(range(8)), st.lists(st.booleans(), min_size=8, max_size=8))
def test_the_order_and_ids_of_a_tool_do_not_matter(order: list[int], right: list[bool]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as place:
        same = {f"q{n}": (f"What is {n} + {n}?", right[n]) for n in range(8)}
        other = {str(at): (f"What is {n} + {n}?", right[n]) for at, n in enumerate(order)}
        first = folder(Path(place), "first", label="match", answers=same)
        second = folder(Path(place), "second", label="match", answers=other)
        (pair,) = assay.compare([first, second]).pairs
        assert (pair.items, pair.gained, pair.lost) == (8, 0, 0)
