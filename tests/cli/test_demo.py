"""`assay demo`: what `make demo` shows, in an empty folder; it resumes, and leaves the files of others alone."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_it_is_the_demo_of_a_clone(shell: Shell) -> None:
    shown = shell.call("demo", "--no-progress")
    assert shown.code == 0, shown.said
    assert shown.out.endswith("now: assay view output/demo\n")
    config = str(ROOT / "examples/demo/config.yaml")
    cloned = shell.call("run", config, "-o", "clone", "--no-progress")
    table = cloned.out.partition("files:")[0]
    assert "demo-large" in table
    assert shown.out.startswith(table)
    rows = [
        {line.partition(b'"key":')[2][:30] for line in file.read_bytes().splitlines()}
        for file in shell.folder.glob("*/**/responses.jsonl")
    ]
    assert len(rows[0]) == 736
    assert rows[0] == rows[1]


def test_it_resumes_and_says_so(shell: Shell) -> None:
    config = str(ROOT / "examples/demo/config.yaml")
    assert shell.call("run", config, "--limit", "5", "--no-progress").code == 0
    shown = shell.call("demo", "--no-progress")
    assert (shown.code, shown.err) == (
        0,
        "note: the demo resumes: 80 of 736 answers are there\n",
    )
    rows = (shell.folder / "output/demo/responses.jsonl").read_bytes()
    assert shell.call("demo", "--json", "--no-progress").result["run"]["counts"] == {"ok": 736}
    assert (shell.folder / "output/demo/responses.jsonl").read_bytes() == rows


def test_it_leaves_the_files_of_others_alone(shell: Shell) -> None:
    shell.config["models"] = ["demo:large"]
    assert shell.run("-o", "output/demo", "--no-progress").code == 0
    assert shell.call("evaluate", "output/demo", "-o", "labels", "--no-progress").code == 0
    (shell.folder / "words").mkdir()
    (shell.folder / "words/notes.txt").write_text("mine")
    before = shell.files()
    other = "this folder holds something else than the demo"
    for words, said in (
        ([], other),
        (["labels"], other),
        (["words"], other),
        (["."], "not Assay's"),
    ):
        refused = shell.call("demo", *words)
        assert refused.code == 2
        assert said in refused.err
    assert shell.files() == before
