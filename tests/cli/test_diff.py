"""`assay diff` from the command line: what it prints, writes and returns."""

import json
import shutil

import pytest

from tests.analysis.rows import counted, save
from tests.cli.shell import Shell


@pytest.fixture
def two(shell: Shell) -> Shell:
    save(shell.folder / "old", counted(60, 100))
    save(shell.folder / "new", counted(80, 100))
    return shell


def test_the_verdict_and_the_exit_codes(two: Shell) -> None:
    ended = two.call("diff", "old", "new")
    assert ended.code == 0
    assert "better" in ended.out
    assert "match: 20 better in B, 0 worse; the largest 5 changes" in ended.out
    assert two.call("diff", "old", "new", "--exit-code").code == 1
    shutil.copytree(two.folder / "old", two.folder / "copy")
    same = two.call("diff", "old", "copy", "--exit-code")
    assert same.code == 0
    assert same.out.endswith(
        "no difference\nnote: old and copy have no items to compare\nnote: there are no responses to compare\n"
    )


def test_json_and_files(two: Shell) -> None:
    found = json.loads(two.call("diff", "old", "new", "--json", "--limit", "1").out)
    assert found["same"] is False
    assert found["labels"][0]["pair"]["verdict"] == "better"
    assert len(found["labels"][0]["flips"]) == 1
    for suffix, part in (
        ("md", "| match | 0.600 | 0.800 |"),
        ("html", "<td"),
        ("tex", "tabular"),
        ("csv", "match,0.6,0.8"),
    ):
        ended = two.call("diff", "old", "new", "-o", f"diff.{suffix}")
        assert ended.out == f"written to diff.{suffix}\n"
        assert part in (two.folder / f"diff.{suffix}").read_text()
    assert (two.folder / "diff.html").read_text().startswith("<!doctype html>\n<meta charset")
    both = two.call("diff", "old", "new", "--json", "-o", "diff.json", "--exit-code")
    assert both.code == 1
    assert json.loads(both.out)["same"] is False
    assert json.loads((two.folder / "diff.json").read_text()) == json.loads(both.out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("old", "Missing argument 'B'"),
        ("old none", "there is no file or folder 'none'"),
        ("old new --label nothing", "not both have the label 'nothing'"),
        ("old new -o diff.txt", "cannot be written as 'diff.txt'"),
        ("old new --where model_name=x", "no row has model_name = 'x'"),
        ("old new --metric median", "is not a mean over items"),
    ],
)
def test_mistakes(two: Shell, words: str, said: str) -> None:
    ended = two.call("diff", *words.split())
    if "median" in words:  # one label cannot be compared, and the rest is shown
        assert said in ended.out
        return
    assert ended.code == 2
    assert said in ended.err
