"""Garbage in the files of rows: the next run sets it aside, makes good what was lost, and loses nothing else."""

import json
import random
import shutil
from pathlib import Path

import pytest

from tests.cli.shell import Shell

pytestmark = pytest.mark.slow
FILES = ("responses.jsonl", "evaluation_results.jsonl")
GARBAGE = {
    "random bytes": random.Random(1).randbytes(300).replace(b"\n", b"").replace(b"\r", b""),
    "half JSON": b'{"item_id": "q1", "key": "00',
    "a list": b'["item_id", "key"]',
    "a number": b"17",
    "null": b"null",
    "no item": b'{"key": "d1335bb1d3ef7a74f11292930ec07389"}',
    "wrong types": b'{"item_id": 5, "key": ["x"]}',
    "not UTF-8": b'{"item_id": "\xff\xfe"}',
    "zeros": bytes(4096),
    "deep": b"[" * 100_000,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, url: str) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("finished"), url, items=8)
    assert shell.run().code == 0
    return shell


@pytest.fixture
def shell(finished: Shell, tmp_path: Path) -> Shell:
    """A copy of a finished experiment."""
    shell = Shell(tmp_path, finished.url, items=8)
    shutil.copytree(finished.out, shell.out)
    return shell


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_anywhere_is_set_aside(shell: Shell, finished: Shell, kind: str) -> None:
    garbage = GARBAGE[kind]
    for name in FILES:
        rows = shell.lines(name)
        rows[3] = garbage  # a row is lost
        (shell.out / name).write_bytes(
            b"\n".join([garbage, *rows[:5], garbage, *rows[5:], garbage, b""])
        )
    with shell.counted() as calls:
        result = shell.run()
    assert result.code == 0
    assert calls["requests"] == 1
    for name in FILES:
        assert f"4 unreadable lines of {name}" in result.err
        assert shell.keys(name) == finished.keys(name)
        kept = finished.lines(name)
        del kept[3]
        assert shell.lines(name)[: len(kept)] == kept
        rejected = [row for row in shell.read(f"rejected/{name}") if row["file"] == name]
        assert [row["line"] for row in rejected] == [1, 5, 7, 11]
        assert all(row["text"] == garbage.decode("utf-8", "backslashreplace") for row in rejected)


@pytest.mark.parametrize("left", [0.0, 0.3, 0.99])
def test_a_torn_last_line_is_cut_and_its_cell_runs_again(
    shell: Shell, finished: Shell, left: float
) -> None:
    for name in FILES:
        *rows, last = shell.lines(name)
        (shell.out / name).write_bytes(b"\n".join([*rows, last[: int(left * len(last))]]))
    with shell.counted() as calls:
        assert shell.run().code == 0
    assert calls["requests"] == 1
    for name in FILES:
        assert shell.keys(name) == finished.keys(name)
        assert shell.lines(name)[:-1] == finished.lines(name)[:-1]


def test_a_last_line_that_only_lacks_its_line_feed_is_a_row(shell: Shell, finished: Shell) -> None:
    for name in FILES:
        path = shell.out / name
        path.write_bytes(path.read_bytes()[:-1])
    with shell.counted() as calls:
        assert shell.run().code == 0
    assert calls["requests"] == 0
    assert all(shell.lines(name) == finished.lines(name) for name in FILES)


def test_empty_lines_are_nothing(shell: Shell, finished: Shell) -> None:
    for name in FILES:
        (shell.out / name).write_bytes(b"\n\n" + b"\n  \n\n".join(shell.lines(name)) + b"\n\n\n")
    with shell.counted() as calls:
        assert shell.run().code == 0
    assert calls["requests"] == 0
    for name in FILES:
        assert [line for line in shell.lines(name) if line.strip()] == finished.lines(name)


def test_a_row_that_is_there_twice_is_kept_once(shell: Shell, finished: Shell) -> None:
    for name in FILES:
        rows = shell.lines(name)
        (shell.out / name).write_bytes(b"\n".join([*rows, rows[2], rows[5], b""]))
    with shell.counted() as calls:
        assert shell.run().code == 0
    assert calls["requests"] == 0
    assert all(shell.keys(name) == finished.keys(name) for name in FILES)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\x00[]", b"[]"])
def test_other_files_of_the_folder_are_written_anew(
    shell: Shell, finished: Shell, content: bytes
) -> None:
    for name in ("status.json", "metrics.json", "metrics.jsonl", "items.jsonl", ".lock"):
        (shell.out / name).write_bytes(content)
    with shell.counted() as calls:
        assert shell.run().code == 0
    assert calls["requests"] == 0
    assert json.loads((shell.out / "status.json").read_bytes())["state"] == "complete"
    for name in (*FILES, "items.jsonl", "metrics.jsonl", "metrics.json"):
        assert shell.lines(name) == finished.lines(name)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"run": []}'])
def test_a_manifest_that_cannot_be_read_is_not_guessed_at(
    shell: Shell, finished: Shell, content: bytes
) -> None:
    manifest = shell.out / "manifest.json"
    manifest.write_bytes(content)
    refused = shell.run()
    assert refused.code == 1
    assert str(manifest) in refused.err
    assert "move it away" in refused.err
    manifest.unlink()
    with shell.counted() as calls:
        assert shell.run().code == 0
    assert calls["requests"] == 0
    assert all(shell.lines(name) == finished.lines(name) for name in FILES)


def test_garbage_among_responses_does_not_stop_scoring_alone(shell: Shell, finished: Shell) -> None:
    (shell.out / "evaluation_results.jsonl").unlink()
    rows = shell.lines()
    (shell.out / "responses.jsonl").write_bytes(b"\n".join([b"{half", *rows, b"", b"[1]", b""]))
    assert shell.run("--mode", "evaluation").code == 0
    assert shell.keys("evaluation_results.jsonl") == finished.keys("evaluation_results.jsonl")
