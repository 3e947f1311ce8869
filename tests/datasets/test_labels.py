"""People's labels: what can be read, what is refused and how, and one verdict from several people."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.datasets._labels import Label, majority, read_labels, verdict
from assay.errors import UserError


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", 1.0),
        ("0", 0.0),
        ("TRUE", True),
        ("false", False),
        (" Yes ", True),
        ("no", False),
        ("pass", True),
        ("Fail", False),
        ("4.5", 4.5),
        ("first", True),
        ("second", False),
        ("tie", 0.5),
    ],
)
def test_words_and_numbers(tmp_path: Path, written: str, value: Any) -> None:
    (found,) = read_labels(write(tmp_path / "l.csv", f"item,label\nq,{written}\n")).rows
    assert (found.value, type(found.value)) == (value, type(value))


def test_files_and_names(tmp_path: Path) -> None:
    expected = Label(
        item="7", sample=2, value=True, annotator="ann", model="m", scorer="right", response="ab"
    )
    row = {
        "item": 7,
        "sample": 2,
        "label": True,
        "annotator": "ann",
        "model": "m",
        "scorer": "right",
        "response": "ab",
    }
    other = {"item_id": "7", "sample_index": "2", "model_name": "m"} | {
        key: row[key] for key in ("label", "annotator", "scorer", "response")
    }
    sources: list[Any] = [
        write(tmp_path / "a.jsonl", "\ufeff" + json.dumps(row) + "\n\n"),
        write(tmp_path / "b.json", json.dumps([other])),
        write(
            tmp_path / "c.tsv",
            "item\tsample\tlabel\tannotator\tmodel\tscorer\tresponse\n7\t2\tyes\tann\tm\tright\tab",
        ),
        [row],
    ]
    for source in sources:
        (found,) = read_labels(source).rows
        for name in ("item", "sample", "value", "annotator", "model", "scorer", "response"):
            assert getattr(found, name) == getattr(expected, name)


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("item,label\na,1\nb,maybe\n", "the label 'maybe' is not a verdict", ":3"),
        ("item,label\na,nan\n", "the label 'nan' is not a verdict", ":2"),
        ("item,label\n,1\n", "it has no `item`", ":2"),
        ("item,lable\na,1\n", "it has no `label`", ":2"),
        ("item,label,sample\na,1,x\n", "the sample 'x' is not a whole number", ":2"),
        ("item,label,sample\na,1,-1\n", "the sample '-1' is not a whole number", ":2"),
        (
            "item,label,probability\na,1,1.5\n",
            "probability '1.5' is not a number above 0 up to 1",
            ":2",
        ),
        ("item,label\na,1,2\n", "1 more fields than the header has", ":2"),
        ("item,label\na,skip\n", "there is no label in it", ""),
        ("", "there is no label in it", ""),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, what: str, place: str) -> None:
    file = write(tmp_path / "l.csv", text)
    with pytest.raises(UserError) as error:
        read_labels(file)
    assert what in error.value.what
    assert error.value.where == f"{file}{place}"


def test_other_mistakes(tmp_path: Path) -> None:
    write(tmp_path / "labels.csv", "item,label\na,1\n")
    with pytest.raises(UserError, match="there is no file of labels") as error:
        read_labels(tmp_path / "lables.csv")
    assert "labels.csv" in error.value.fix
    with pytest.raises(UserError, match=r"labels are csv or jsonl, not '\.xlsx'"):
        read_labels(write(tmp_path / "l.xlsx", "x"))
    for line, what in (("[1]", "expected an object, found list"), ("{", "not JSON")):
        with pytest.raises(UserError, match=what):
            read_labels(write(tmp_path / "l.jsonl", line + "\n{}\n"))


def test_a_torn_last_line_is_not_a_label(tmp_path: Path) -> None:
    """A session that a power cut ended leaves half a line."""
    file = write(tmp_path / "l.jsonl", '{"item": "a", "label": 1}\n{"item": "b", "la')
    assert [label.item for label in read_labels(file).rows] == ["a"]


def test_the_last_word_counts_and_can_be_taken_back() -> None:
    rows: list[dict[str, Any]] = [
        {"item": "a", "label": 1, "annotator": "x"},
        {"item": "a", "label": 0, "annotator": "y"},
        {"item": "b", "label": 1, "annotator": "x"},
        {"item": "a", "label": 0, "annotator": "x"},
        {"item": "b", "label": None, "annotator": "x"},
        {"item": "b", "label": 1, "annotator": "x", "sample": 1},
    ]
    found = read_labels(rows)
    assert [(row.item, row.sample, row.annotator, row.value) for row in found.rows] == [
        ("a", 0, "y", 0),
        ("a", 0, "x", 0),
        ("b", 1, "x", 1),
    ]
    assert found.notes == [
        "2 labels given again: the last one counts (first: 'a' by 'x')",
        "1 row without a label",
    ]


def test_only_these_people() -> None:
    found = read_labels([{"item": "a", "label": 1, "annotator": name} for name in ("ann", "bob")])
    assert [row.annotator for row in found.only(["bob"]).rows] == ["bob"]
    assert len(found.only([]).rows) == 2
    with pytest.raises(UserError, match="no label is by 'bbo'") as error:
        found.only(["bbo"])
    assert "did you mean 'bob'" in error.value.fix


def test_probabilities_follow_from_the_strata_as_they_are_now() -> None:
    """Two sessions: the first knew only of its own two labels."""
    rows = [
        {
            "item": f"q{number}",
            "label": 1,
            "stratum": stratum,
            "stratum_size": size,
            "probability": 0.9,
        }
        for number, (stratum, size) in enumerate(
            [("telling", 4), ("other", 10), ("other", 10), ("telling", 4)]
        )
    ]
    found = read_labels([*rows, {"item": "z", "label": 0, "probability": 0.25}]).only([])
    assert [row.probability for row in found.rows] == [0.5, 0.2, 0.2, 0.5, 0.25]


@pytest.mark.parametrize(
    ("value", "threshold", "match", "expected"),
    [
        (True, None, False, 1.0),
        (1.0, None, False, 1.0),
        (0.0, None, False, 0.0),
        (4.0, 4.0, False, 1.0),
        (3.9, 4.0, False, 0.0),
        (True, 4.0, False, 1.0),
        (1.0, 4.0, False, 0.0),
        (0.5, None, True, 0.5),
        (0.7, None, True, 1.0),
        (False, None, True, 0.0),
    ],
)
def test_verdicts(value: Any, threshold: float | None, match: bool, expected: float) -> None:
    assert verdict(Label(item="a", value=value), threshold, match=match) == expected


def test_a_number_needs_a_threshold() -> None:
    with pytest.raises(UserError, match="the label 4 is neither 0 nor 1") as error:
        verdict(Label(item="a", value=4.0, place="l.csv:9"), None, match=False)
    assert (error.value.where, "--threshold" in error.value.fix) == ("l.csv:9", True)
    with pytest.raises(UserError, match="not from 0 to 1"):
        verdict(Label(item="a", value=4.0), None, match=True)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1))
def test_the_majority_is_the_only_most_frequent_one(verdicts: list[float]) -> None:
    counts = sorted((verdicts.count(kind), kind) for kind in set(verdicts))
    tied = len(counts) > 1 and counts[-1][0] == counts[-2][0]
    assert majority(verdicts) == (None if tied else counts[-1][1])
