"""`assay compare` as a process: its formats, its messages."""

import csv
import json
from pathlib import Path

import pytest

from tests.analysis.rows import counted, rows_of, save
from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    save(tmp_path / "old", counted(60, 100))
    save(tmp_path / "new", counted(80, 100))
    return Shell(tmp_path)


def test_a_table_that_fits(shell: Shell) -> None:
    shell.environ["COLUMNS"] = "80"
    ended = shell.call("compare", "old", "new")
    assert ended.code == 0, ended.said
    assert "1 new 0.800" in ended.words
    assert "new − old +0.200" in ended.words
    assert "better" in ended.out
    assert "new gained 20 items and lost 0 against old:" in ended.out
    assert "q00060: 0 → 1: (no response stored) → (no response stored)" in ended.out
    assert max(len(line) for line in ended.out.splitlines()) <= 80


def test_a_narrow_terminal_gets_every_number(shell: Shell) -> None:
    shell.environ["COLUMNS"] = "40"
    words = shell.call("compare", "old", "new").words
    for part in ("1 new 0.800", "difference +0.200", "could show", "items 100 verdict better"):
        assert part in words


def test_one_json_object(shell: Shell) -> None:
    found = json.loads(
        shell.call("compare", "old", "new", "--json", "--margin", "0.3", "--flips", "1").out
    )
    assert found["pairs"][0]["verdict"] == "equivalent"
    assert len(found["pairs"][0]["flips"]) == 1
    assert found["margin"] == 0.3


def test_markdown_and_latex_show_names_as_they_are(shell: Shell) -> None:
    rows = counted(6, 10, metadata={"m": "a|b_*"}) + counted(7, 10, metadata={"m": "c&d\x1b[31m"})
    save(shell.folder / "one", rows)
    markdown = shell.call("compare", "one", "--facet", "m", "--format", "markdown").out
    assert r"| 1–2 | c\&d\\x1b\[31m | 0.700 |" in markdown
    assert r"a\|b\_\*" in markdown
    latex = shell.call("compare", "one", "--facet", "m", "--format", "latex").out
    assert r"a|b\_* & 0.600" in latex
    assert r"c\&d\textbackslash{}x1b[31m" in latex
    assert latex.count(r"\begin{tabular}") == 2


def test_facet_values_follow_the_path(shell: Shell) -> None:
    rows = [row for model in "abc" for row in counted(5, 9, model_name=model)]
    save(shell.folder / "one", rows)
    ended = shell.call(
        "compare", "one", "--facet", "model_name", "a", "c", "--where", "label=match"
    )
    assert "c − a +0.000" in ended.words
    assert "inconclusive, no difference seen" in ended.words


def test_mistakes_are_messages(shell: Shell) -> None:
    for words, said in {
        ("old", "nwe"): "did you mean 'new'",
        ("old", "new", "--where", "model_name"): "--where takes FACET=VALUE",
        ("old", "new", "--facet", "model_name"): "no row has model_name = 'new'",
    }.items():
        ended = shell.call("compare", *words)
        assert ended.code == 2, ended.said
        assert said in ended.words, ended.said


def test_text_from_data_cannot_command_the_terminal(shell: Shell) -> None:
    save(shell.folder / "evil", rows_of({"\x1b[2Jq00060": True, "q00061": False}))
    save(shell.folder / "good", rows_of({"\x1b[2Jq00060": False, "q00061": False}))
    ended = shell.call("compare", "good", "evil")
    assert ended.code == 0
    assert "\x1b[2J" not in ended.out
    assert "\\x1b[2Jq00060: 0 → 1" in ended.out


def test_one_table_of_all_labels_in_every_format(shell: Shell) -> None:
    for name, passes in (("a_1", 90), ("=b", 60)):
        rows = [
            row
            for label in ("f1", "ter")
            for row in counted(passes, 100, label=label, scorer=label)
        ]
        save(shell.folder / name, rows)
    call = ("compare", "a_1", "=b", "--all-labels", "--lower", "ter")
    words = shell.call(*call).words
    assert "* differs from every other side, p corrected for 2 pairs (Holm) below 0.05" in words
    assert "side f1 ter (less) items failed" in words
    assert "a_1 0.900* 0.900 100 0" in words
    assert "=b 0.600 0.600* 100 0" in words
    assert r"| a\_1 | 0.900\* | 0.900 | 100 | 0 |" in shell.call(*call, "--format", "markdown").out
    assert r"a\_1 & 0.900* & 0.900 & 100 & 0 \\" in shell.call(*call, "--format", "latex").out
    lines = shell.call(*call, "--format", "csv").out.splitlines()
    assert lines[0] == "side,label,value,ci_low,ci_high,items,failed,best,partial"
    assert lines[1].startswith("a_1,f1,0.9,")
    assert lines[4].startswith("'=b,ter,0.6,")
    assert lines[4].endswith(",100,0,true,")
    only = json.loads(
        shell.call("compare", "a_1", "=b", "--all-labels", "--label", "f1", "--json").out
    )
    assert only["labels"] == ["f1"]
    assert only["sides"]["a_1"]["f1"]["best"] is True


def test_many_labels_are_one_table_that_fits(shell: Shell) -> None:
    names = ("meta-llama/Meta-Llama-3.1-70B", "Qwen/Qwen2.5-72B")
    rows = [
        row
        for at, model in enumerate(names)
        for number in range(67)
        for row in counted(5 + 4 * at, 10, label=f"quality_{number}", model_name=model)
    ]
    save(shell.folder / "one", rows)
    shell.environ["COLUMNS"] = "80"
    lines = shell.call("compare", "one", "--facet", "model_name", "--all-labels").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.count("95% interval") for line in lines) == 1
    assert len(lines) < 2 * 67 * 2
    assert all(any(f"quality_{number} " in line for line in lines) for number in range(67))


def test_csv_has_the_pairs_unrounded(shell: Shell) -> None:
    found = json.loads(shell.call("compare", "old", "new", "--json").out)["pairs"][0]
    (row,) = csv.DictReader(shell.call("compare", "old", "new", "--format", "csv").out.splitlines())
    assert (row["candidate"], row["baseline"], row["verdict"]) == ("new", "old", "better")
    assert float(row["ci_low"]) == found["ci_low"]


def test_lower_turns_the_verdict(shell: Shell) -> None:
    ended = shell.call("compare", "old", "new", "--lower", "match")
    assert ended.code == 0
    assert "(lower is better)" in ended.out


def test_html_shows_names_as_they_are(shell: Shell) -> None:
    rows = counted(6, 10, metadata={"m": "<script>"}) + counted(7, 10, metadata={"m": "b&\x1b"})
    save(shell.folder / "one", rows)
    page = shell.call("compare", "one", "--facet", "m", "--format", "html").out
    assert "&lt;script&gt;" in page
    assert "b&amp;\\x1b" in page
    assert "<script>" not in page
    assert page.count("<table>") == 2
