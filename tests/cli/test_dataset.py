"""`assay dataset` as a user types it."""

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell

ROWS = [
    "What is 7 + 2?",
    "What is 7 + 2?",
    "The quick brown fox jumps",
    "the QUICK brown fox jumps!",
    "Something else",
]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.rows = [{"qid": f"q{number}", "question": text} for number, text in enumerate(ROWS)]
    return shell


def test_a_dataset_from_its_file_to_a_run(shell: Shell) -> None:
    add = (
        "dataset",
        "add",
        "items.jsonl",
        "--name",
        "mine",
        "--set",
        "fields.id=qid",
        "--label",
        "small",
    )
    added = shell.call(*add)
    assert (added.code, added.err) == (0, "")
    first, report, *groups = added.out.splitlines()
    assert first.startswith("stored mine: 5 items, hash ")
    digest = first.split()[-1]
    assert report.startswith("duplicates: 1 exact, 1 near ")
    assert groups == ["  exactly: q0, q1", "  nearly:  q2, q3"]

    assert shell.call(*add).out == f"mine is there already with the same 5 items, hash {digest}\n"
    assert shell.call("dataset", "ls").out.split() == ["mine", "5", "items", digest, "small"]
    (listed,) = json.loads(shell.call("dataset", "ls", "--json").out)
    assert (listed["name"], listed["items"], listed["hash"], listed["labels"]) == (
        "mine",
        5,
        digest,
        ["small"],
    )
    assert (
        shell.call("dataset", "verify", "mine").out == f"ok: mine has its 5 items, hash {digest}\n"
    )
    shown = json.loads(shell.call("dataset", "show", "mine", "--head", "2", "--json").out)
    assert [item["id"] for item in shown["head"]] == ["q0", "q1"]
    assert (shown["duplicates"]["exact"], shown["duplicates"]["near"]) == (1, 1)
    assert shown["origin"]["fields"] == {"id": "qid"}

    shell.config |= {
        "dataset": "stored:mine",
        "models": ["demo:small"],
        "prompt_template": "{{question}}",
    }
    ran = shell.run("--no-progress", "--mode", "inference")
    assert ran.code == 0
    assert ran.out.startswith("responses: 5 ok\n")


def test_other_content_under_a_name_is_refused(shell: Shell) -> None:
    add = ("dataset", "add", "items.jsonl", "--name", "mine", "--repository", "here")
    assert shell.call(*add).code == 0
    shell.rows.pop()
    refused = shell.call(*add)
    assert refused.code == 2
    assert "stored already with other content: its hash is" in refused.err
    shell.rows.append({"qid": "x"})
    assert shell.call("dataset", "verify", "mine", "--repository", "here").code == 0


def test_changed_bytes_are_found(shell: Shell) -> None:
    shell.call("dataset", "add", "items.jsonl", "--name", "mine")
    stored = shell.folder / "assay-data/datasets/mine/items.jsonl"
    stored.write_bytes(stored.read_bytes() + b'{"id": "x", "data": {}}\n')
    for verb in ("verify", "show"):
        told = shell.call("dataset", verb, "mine")
        assert told.code == 2
        assert "has changed since it was stored" in told.err


def test_text_from_data_does_not_reach_the_terminal_raw(shell: Shell) -> None:
    shell.rows = [
        {"id": "\x1b[31mred", "question": "\x1b]0;x\x07"},
        {"id": "b", "question": "\x1b]0;x\x07"},
    ]
    added = shell.call("dataset", "add", "items.jsonl", "--name", "\x1b[2Jn")
    shown = shell.call("dataset", "show", "\x1b[2Jn")
    listed = shell.call("dataset", "ls")
    assert (added.code, shown.code, listed.code) == (0, 0, 0)
    assert "\x1b" not in added.said + shown.said + listed.said
    assert "\\x1b[31mred" in added.out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["add", "gone.jsonl", "--name", "n"], "there is no file 'gone.jsonl'"),
        (["add", "*.nope.jsonl", "--name", "n"], "no file matches '*.nope.jsonl'"),
        (
            ["add", "items.jsonl", "--name", "n", "--set", "fields.id=nope"],
            "a dataset row has no field 'nope'",
        ),
        (["add", "items.jsonl", "--name", " "], "a dataset needs a name"),
        (["add", "items.jsonl"], "Missing option '--name'"),
        (["show", "nope"], "there is no stored dataset 'nope'"),
        (["verify", "nope"], "there is no stored dataset 'nope'"),
    ],
)
def test_mistakes(shell: Shell, words: list[str], what: str) -> None:
    told = shell.call("dataset", *words)
    assert told.code == 2
    assert what in told.err
    assert not (shell.folder / "assay-data/datasets/n/manifest.json").exists()


def test_an_empty_repository(shell: Shell) -> None:
    assert shell.call("dataset", "ls").out.startswith("no datasets: ")
    assert not (shell.folder / "assay-data").exists()
