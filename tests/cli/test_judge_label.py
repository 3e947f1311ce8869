"""`assay judge label`: a CSV file of chosen answers; once filled in it counts as the review does."""

import csv
import shutil
from pathlib import Path

import pytest

import assay
from tests.analysis.judged_lab import judged
from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def filled_in(file: Path) -> list[dict[str, str]]:
    """A person passes every third answer: in a pair the second player's."""
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    for number, row in enumerate(rows):
        row["label"] = "01"[number % 3 == 0]
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    return rows


@pytest.mark.parametrize("scorer", ["graded", "better"])
def test_a_file_counts_as_the_labels_of_the_review(shell: Shell, scorer: str) -> None:
    out, file = shell.folder / "out", shell.folder / "answers.csv"
    judged(shell.folder, scorer)
    words = ("--annotator", "ann", "--count", "20", "-o", "answers.csv")
    ended = shell.call("judge", "label", "out", *words)
    assert (ended.code, ended.out) == (0, "written to answers.csv\n")
    assert "calculator" not in file.read_text()
    rows = filled_in(file)
    theirs = assay.label(out, annotator="ann", count=20)
    assert [row["item"] for row in rows] == [one.unit.address.item for one in theirs.waiting]
    for row, one in zip(rows, theirs.waiting, strict=True):
        theirs.save(one, int(row["label"]))
        view = theirs.views[one.unit.address]
        answers = view.answers[::-1] if view.swapped else view.answers
        assert [row["answer"], row["second_answer"]][: len(answers)] == answers
    mine = assay.calibrate(out, file, label=scorer, keep=False).calibrations
    stored = assay.calibrate(out, label=scorer, keep=False).calibrations
    assert len({row["probability"] for row in rows}) == 2
    assert [one.counted for one in mine] == [one.counted for one in stored]
    assert [one.corrected for one in mine] == [one.corrected for one in stored]


def test_what_is_filled_in_is_not_replaced(shell: Shell) -> None:
    judged(shell.folder, items=8)
    words = ("judge", "label", "out", "-o", "answers.csv")
    assert shell.call(*words).code == 0
    filled_in(shell.folder / "answers.csv")
    before = (shell.folder / "answers.csv").read_bytes()
    ended = shell.call(*words)
    assert (ended.code, (shell.folder / "answers.csv").read_bytes()) == (2, before)
    assert "Assay did not write what it holds" in ended.err


def test_rows_of_0_1_count(shell: Shell) -> None:
    """A labels.jsonl of a session in the terminal, with an undo and a note."""
    judged(shell.folder, "graded", items=24)
    row = '{"item":"q%d","model":"calculator-7b","scorer":"graded","label":%s,"annotator":"ann",'
    row += '"probability":0.5,"chosen":"random","stratum":"other","stratum_size":18,"note":"n"}\n'
    lines = [row % (n, "1" if n % 2 else "0") for n in range(12)]
    file = shell.folder / "out" / "labels.jsonl"
    file.write_text("".join([row % (0, "1"), row % (0, "null"), *lines]))
    (found,) = assay.calibrate(file.parent, label="graded", keep=False).calibrations
    assert found.labels == 12
    shutil.copy(file, shell.folder / "other.jsonl")
    ended = shell.call("judge", "calibrate", "out", "--labels", "other.jsonl", "--label", "graded")
    assert "12 labelled answers of 12 items by ann" in ended.words


@pytest.mark.parametrize("words", [(), ("-o", "labels.jsonl"), ("--count", "3")])
def test_a_session_in_the_terminal_is_refused(shell: Shell, words: tuple[str, ...]) -> None:
    ended = shell.call("judge", "label", "out", *words)
    assert ended.code == 2
    assert "in the browser, or in a CSV file" in ended.words
    assert "assay view out" in ended.words
    assert "--labels" in ended.words


def test_mistakes_are_told(shell: Shell) -> None:
    judged(shell.folder, items=4)
    words = ("judge", "label", "out", "-o", "answers.csv")
    assert "'nope'" in shell.call(*words, "--label", "nope").err
    (shell.folder / "out" / "labels.jsonl").write_text("garbage\n")
    assert "labels.jsonl, line 1" in shell.call(*words).words
    assert not (shell.folder / "answers.csv").exists()
