"""Real faults: a full disk, a read-only folder, a killed writer, two processes in one folder."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.errors import LockedError, StoreError
from assay.records import Manifest
from assay.store.files import write_file
from assay.store.lock import FolderLock
from assay.store.log import FileLog
from assay.store.stores import FlatStore

from .conftest import Mount


def start(code: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("size", [100, 3000, 5000])
def test_a_full_disk_loses_no_line(mount: Callable[[str], Mount], size: int) -> None:
    folder = mount("256k").path
    log = FileLog(folder / "rows.jsonl")
    written: list[bytes] = []

    def fill() -> None:
        for n in range(10_000):
            line = json.dumps({"n": n, "text": "x" * size}).encode()
            log.append(line + b"\n")
            written.append(line)

    with pytest.raises(StoreError, match="disk is full") as caught:
        fill()
    assert written
    assert "free some space" in caught.value.fix
    assert (folder / "rows.jsonl").read_bytes() == b"".join(line + b"\n" for line in written)
    with pytest.raises(StoreError, match="disk is full"):
        log.append(b'"' + b"y" * 300_000 + b'"\n')
    assert [line for _, line in log.scan()] == written


def test_after_space_was_freed_the_same_log_goes_on(mount: Callable[[str], Mount]) -> None:
    folder = mount("256k").path
    (folder / "ballast").write_bytes(b"x" * 200_000)
    log = FileLog(folder / "rows.jsonl")
    log.append(b"1\n")
    with pytest.raises(StoreError, match="disk is full"):
        log.append(b'"' + b"y" * 100_000 + b'"\n')
    (folder / "ballast").unlink()
    log.append(b"2\n")
    assert (folder / "rows.jsonl").read_bytes() == b"1\n2\n"


def test_a_full_disk_keeps_the_old_file(mount: Callable[[str], Mount]) -> None:
    folder = mount("256k").path
    path = folder / "manifest.json"
    write_file(path, b"old")
    with pytest.raises(StoreError, match="disk is full"):
        write_file(path, (b"x" * 1000 for _ in range(1000)))
    assert path.read_bytes() == b"old"
    assert os.listdir(folder) == ["manifest.json"]


def test_a_read_only_folder_can_be_read_and_says_why_not_more(
    mount: Callable[[str], Mount],
) -> None:
    place = mount("256k")
    store = FlatStore(place.path / "exp")
    store.put_manifest(Manifest(kind="run", id="exp"))
    store.log("run", "exp").append(b"1\n")
    store.log("run", "exp").close()
    place.make_read_only()
    assert store.ids("run") == ["exp"]
    assert [line for _, line in store.log("run", "exp").scan()] == [b"1"]
    for write in (
        lambda: store.log("run", "exp").append(b"2\n"),
        lambda: store.log("run", "exp").replace([]),
        lambda: store.put_manifest(Manifest(kind="run", id="exp", name="new")),
        lambda: store.delete("run", "exp"),
        lambda: store.lock("run", "exp").__enter__(),
    ):
        with pytest.raises(StoreError, match="cannot be written") as caught:
            write()
        assert str(place.path) in caught.value.where
        assert "another folder" in caught.value.fix


APPENDER = """
import sys
from pathlib import Path
from assay.store.log import FileLog
log = FileLog(Path(sys.argv[1]))
for n in range(10**9):
    log.append(b'{"n": %d, "text": "%s"}\\n' % (n, b"x" * (n * 7919 % 5000)))
    sys.stdout.write(f"{n}\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("moment", range(5))
def test_a_killed_writer_loses_no_committed_line(tmp_path: Path, moment: int) -> None:
    path = tmp_path / "rows.jsonl"
    with start(APPENDER, str(path)) as child:
        assert child.stdout is not None
        acknowledged = [int(child.stdout.readline()) for _ in range(1 + 200 * moment)]
        child.send_signal(signal.SIGKILL)
        acknowledged += [
            int(line)
            for line in child.stdout.read().splitlines(keepends=True)
            if line.endswith("\n")
        ]
    log = FileLog(path)
    rows = [json.loads(line)["n"] for _, line in log.scan()]
    assert rows == list(range(len(rows)))
    assert len(acknowledged) <= len(rows) <= len(acknowledged) + 1
    log.append(b'{"n": -1}\n')
    assert [json.loads(line)["n"] for _, line in log.scan()] == [*rows, -1]


HOLDER = """
import sys
from pathlib import Path
from assay.store.lock import FolderLock
sys.argv[0:1] = ["/usr/bin/assay", "run"]
with FolderLock(Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_processes_in_one_folder(tmp_path: Path) -> None:
    before = time.time()
    with start(HOLDER, str(tmp_path), "--set", "api_key=SECRET") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(LockedError) as caught:
            FolderLock(tmp_path).__enter__()
        message = str(caught.value)
        assert f"process {child.pid} on " in message
        assert f"`assay run {tmp_path}`" in message
        assert time.strftime("since %Y-%m-%d", time.localtime(before)) in message
        assert f"kill {child.pid}" in message
        assert "SECRET" not in (tmp_path / ".lock").read_text()
        child.send_signal(signal.SIGKILL)
    with FolderLock(tmp_path):  # released by the death of its holder
        assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()


def test_two_stores_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    first, second = FlatStore(tmp_path), FlatStore(tmp_path)
    with first.lock("run", "e"):
        with first.lock("evaluation", "e"):
            pass
        with pytest.raises(LockedError), second.lock("run", "e"):
            pass
    with second.lock("run", "e"):
        pass


def test_a_lock_file_without_a_name_still_refuses(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        (tmp_path / ".lock").write_bytes(b"")
        with pytest.raises(LockedError, match="another process"):
            FolderLock(tmp_path).__enter__()


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "exp").write_text("a file")
    with pytest.raises(StoreError) as caught:
        FlatStore(tmp_path / "exp").log("run", "exp").append(b"1\n")
    assert str(tmp_path / "exp") in caught.value.where
