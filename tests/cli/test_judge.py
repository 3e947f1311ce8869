"""`assay judge calibrate` as a process: its tables, its JSON, its mistakes."""

import json

import pytest

from tests.analysis.judges import label, match, response, save, verdict
from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("judge"))
    shell.environ["COLUMNS"] = "100"
    rows = [verdict(f"q{n:02}", n < 30 or n % 7 == 0, model="evil\x1b[31m") for n in range(60)]
    rows += [
        match(f"q{n:02}", float(n < 9), seat, label="pair") for n in range(20) for seat in (0, 1)
    ]
    answers = [response(f"q{n:02}", "x" * (n + 1), model="evil\x1b[31m") for n in range(60)]
    save(shell.folder / "out", rows, answers)
    labels = "".join(f"q{n:02},{'yes' if n % 30 < 25 and n < 30 else 'no'}\n" for n in range(50))
    shell.write("labels.csv", "item,label\n" + labels)
    return shell


def test_the_tables(shell: Shell) -> None:
    ended = shell.call("judge", "calibrate", "out", "--labels", "labels.csv")
    assert ended.code == 0, ended.said
    assert max(map(len, ended.out.splitlines())) <= 100
    words = ended.words
    for said in (
        "right: judge 0123456789abcdef by j",
        "50 labelled answers of 50 items",
        "people say pass 0.500 0.366 … 0.634 50",
        "with one label for all 0.500",
        "sensitivity 1.000",
        "people: fail 8 17",
        "evil\\x1b[31m 60",
        "position bias: only a judge of pairs has seats",
        "self-preference: the judge gave none of the answers itself",
        "note: no label is about 'pair'",
        "stored in out/manifest.json",
    ):
        assert said in words, ended.out
    assert "\x1b" not in ended.out


def test_a_narrow_terminal_loses_nothing(shell: Shell) -> None:
    shell.environ["COLUMNS"] = "30"
    ended = shell.call("judge", "calibrate", "out", "--labels", "labels.csv")
    assert "sensitivity value 1.000 95% interval 0.867 … 1.000 answers 25" in ended.words
    assert "…," not in ended.out
    assert max(map(len, ended.out.splitlines())) <= 30


def test_json(shell: Shell) -> None:
    words = ("--labels", "labels.csv", "--level", "0.8", "--label", "right", "--json")
    ended = shell.call("judge", "calibrate", "out", *words)
    (found,) = json.loads(ended.out)["calibrations"]
    assert (found["level"], found["counted"]) == (0.8, {"tp": 25, "fp": 8, "fn": 0, "tn": 17})
    assert set(found["corrected"]) == {"evil\x1b[31m"}


def test_the_sessions_file_annotators_and_thresholds(shell: Shell) -> None:
    rows = [label(f"q{n:02}", n % 5, annotator=name) for n in range(40) for name in ("ann", "bob")]
    (shell.folder / "out" / "labels.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    ended = shell.call(
        "judge", "calibrate", "out", "--threshold", "3", "--annotator", "bob", "--label", "right"
    )
    assert "40 labelled answers of 40 items by bob" in ended.words, ended.said
    assert "people say pass 0.400" in ended.words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("out",), "there are no people's labels to compare with"),
        (("out", "--labels", "label.csv"), "labels.csv"),
        (("nowhere", "--labels", "labels.csv"), "there is no file or folder 'nowhere'"),
        (("out", "--labels", "labels.csv", "--label", "rihgt"), "did you mean 'right'"),
        (("out", "--labels", "labels.csv", "--annotator", "ann"), "no label is by 'ann'"),
        (("out", "--labels", "labels.csv", "--level", "1"), "0<x<1"),
    ],
)
def test_mistakes_are_messages(shell: Shell, words: tuple[str, ...], said: str) -> None:
    before = (shell.folder / "out" / "manifest.json").read_bytes()
    ended = shell.call("judge", "calibrate", *words)
    assert ended.code == 2, ended.said
    assert said in ended.words
    assert (shell.folder / "out" / "manifest.json").read_bytes() == before


def test_help_lists_both_commands(shell: Shell) -> None:
    ended = shell.call("judge", "--help")
    assert "calibrate" in ended.out
    assert "label " in ended.out
