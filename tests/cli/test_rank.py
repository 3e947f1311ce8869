"""`assay rank` as a process: its table, its files, its messages."""

import csv
import json
from pathlib import Path

import pytest

from tests.analysis.match_lab import match, won
from tests.analysis.rows import save
from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    save(
        tmp_path / "arena",
        won("a", "b", 30, 10, 2) + won("b", "c", 25, 15) + match("x", ("a", "b"), 1.0, 0.0),
    )
    return Shell(tmp_path)


def test_a_table_that_fits(shell: Shell) -> None:
    shell.environ["COLUMNS"] = "80"
    ended = shell.call("rank", "arena")
    assert ended.code == 0, ended.said
    assert (
        "label better; bradley-terry over 83 matches of 43 items; 1 tie because the seats disagree"
        in ended.words
    )
    assert "30/3/10" in ended.out
    assert "wins of the row against the column (and ties)" in ended.words
    assert "a – 30 (3) 0" in ended.words
    assert "…" not in ended.out
    assert max(len(line) for line in ended.out.splitlines()) <= 80


def test_a_narrow_terminal_gets_every_number(shell: Shell) -> None:
    shell.environ["COLUMNS"] = "20"
    words = shell.call("rank", "arena", "--method", "win-rate").words
    assert "rank 1 player a win rate 0.733 95% interval 0." in words
    assert "matches 43 won/tied/lost 30/3/10 failed 0" in words
    assert "wins of the row" not in words


def test_files_by_their_names(shell: Shell) -> None:
    names = ["ranking.json", "ranking.csv", "ranking.md", "ranking.tex"]
    ended = shell.call(
        "rank",
        "arena",
        "--json",
        "--rounds",
        "200",
        *(word for name in names for word in ("-o", name)),
    )
    found = json.loads(ended.out)
    assert json.loads((shell.folder / "ranking.json").read_text()) == found
    assert [one["player"] for one in found["standings"]] == ["a", "b", "c"]
    rows = list(csv.DictReader((shell.folder / "ranking.csv").read_text().splitlines()))
    assert (rows[0]["player"], rows[0]["wins"], rows[0]["rank_low"]) == ("a", "30", "1")
    assert "| a | – | 30 (3) | 0 |" in (shell.folder / "ranking.md").read_text()
    assert (shell.folder / "ranking.tex").read_text().count(r"\begin{tabular}") == 2


def test_equal_commands_print_equal_bytes(shell: Shell) -> None:
    first, second = (shell.call("rank", "arena", "--json", "--seed", "3") for _ in range(2))
    assert first.out == second.out
    assert shell.call("rank", "arena", "--json", "--seed", "4").out != first.out


def test_mistakes_are_messages(shell: Shell) -> None:
    save(shell.folder / "apart", won("a", "b", 2, 2) + won("c", "d", 2, 2))
    for words, said in {
        ("arean",): "did you mean 'arena'",
        ("apart",): "the players fall into 2 groups that never met: a, b | c, d",
        ("arena", "-o", "ranking.xlsx"): "cannot be written as 'ranking.xlsx'",
        ("arena", "--label", "betr"): "did you mean 'better'",
        ("arena", "arena"): "is given twice",
        ("arena", "--by", "model_name"): "need the responses",
    }.items():
        ended = shell.call("rank", *words)
        assert ended.code == 2, ended.said
        assert said in ended.words, ended.said


def test_names_cannot_command_the_terminal(shell: Shell) -> None:
    save(shell.folder / "evil", won("a|b", "\x1b[2J[red]c", 5, 3))
    ended = shell.call("rank", "evil", "-o", "evil.md", "-o", "evil.csv")
    assert ended.code == 0, ended.said
    assert "\x1b" not in ended.out
    assert "\\x1b[2J[red]c" in ended.out
    assert r"a\|b" in (shell.folder / "evil.md").read_text()
