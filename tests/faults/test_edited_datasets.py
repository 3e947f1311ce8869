"""A dataset that was edited is read again, however little its file shows of the edit."""

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from assay.engine.experiment import dataset
from assay.engine.experiment.dataset import file_stamp
from tests.support import Lab


def edit(path: Path, text: str, times: os.stat_result, how: str) -> None:
    """Write other bytes of the same number, and restore what can be restored."""
    if how == "in place":
        with path.open("r+") as file:
            file.write(text)
    elif how == "renamed":
        other = path.with_suffix(".new")
        other.write_text(text)
        os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
        other.replace(path)
    else:
        path.unlink()
        path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("rested", [0, 2_000_000_000])
@pytest.mark.parametrize("how", ["in place", "renamed", "written anew"])
def test_every_edit_is_noticed(
    tmp_path: Path, how: str, rested: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of edits within a second, of the same size and with the same time: no two stamps in a row are equal.
    With `rested` 0 times and inode alone must tell, so that each edit waits for the clock of the file system."""
    monkeypatch.setattr(dataset, "RESTED_NS", rested)
    path = tmp_path / "items.jsonl"
    path.write_text("0000")
    times = path.stat()
    stamps = [file_stamp(path)]
    for number in range(1, 300):
        before = path.stat().st_ctime_ns
        edit(path, f"{number:04}", times, how)
        while not rested and path.stat().st_ctime_ns == before:
            edit(path, f"{number:04}", times, how)
        stamps.append(file_stamp(path))
    assert all(first != second for first, second in pairwise(stamps))


def test_a_file_that_rests_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text("0000")
    assert "content" in file_stamp(path)
    monkeypatch.setattr(dataset, "RESTED_NS", -1_000_000_000_000)
    monkeypatch.setattr(Path, "open", None)
    assert file_stamp(path) == file_stamp(path)


def test_the_edited_item_runs(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.run()
    path = tmp_path / "items.jsonl"
    times = path.stat()
    lab.rows[1]["data"]["question"] = "7 + 1"
    text = "".join(json.dumps(row) + "\n" for row in lab.rows)
    assert len(text) == times.st_size
    edit(path, text, times, "in place")
    done = lab.run()
    assert done.ran == 2
    assert {row["response"] for row in lab.read("responses.jsonl") if row["item_id"] == "q1"} == {
        "8"
    }
