import threading
from pathlib import Path

import pytest

from assay.errors import StoreError
from assay.store.log import FileLog
from assay.store.memory_log import MemoryLog
from assay.store.sync import GroupSync


class Watched(MemoryLog):
    """Counts syncs; they wait while the gate is closed, and fail when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.synced_lines = 0
        self.fail = False

    def sync(self) -> None:
        lines = len(list(self.scan()))
        self.entered.set()
        assert self.gate.wait(10)
        if self.fail:
            raise StoreError("the disk is gone")
        self.synced_lines = lines


def test_appends_are_synced_in_the_background() -> None:
    log = Watched()
    with GroupSync(interval=0.01) as group:
        group.append(log, b"1\n")
        assert log.entered.wait(10)


def test_much_data_is_synced_before_the_interval() -> None:
    log = Watched()
    with GroupSync(interval=1000, limit=10) as group:
        group.append(log, b"123456789\n")
        assert log.entered.wait(10)


def test_a_slow_disk_does_not_stop_the_appender() -> None:
    log = Watched()
    log.gate.clear()
    with GroupSync(interval=0) as group:
        group.append(log, b"1\n")
        assert log.entered.wait(10)
        for _ in range(100):  # would never end if an append waited for the sync
            group.append(log, b"2\n")
        log.gate.set()
        group.flush()
        assert log.synced_lines == 101


def test_a_flush_waits_for_the_sync_under_way() -> None:
    log = Watched()
    log.gate.clear()
    with GroupSync(interval=0) as group:
        group.append(log, b"1\n")
        assert log.entered.wait(10)
        flusher = threading.Thread(target=group.flush)
        flusher.start()
        flusher.join(0.05)
        assert flusher.is_alive()  # the line is not on the disk yet
        log.gate.set()
        flusher.join(10)
        assert log.synced_lines == 1


def test_close_syncs_everything_and_ends_the_thread() -> None:
    log = Watched()
    group = GroupSync(interval=1000)
    group.append(log, b"1\n")
    group.close()
    assert log.synced_lines == 1
    assert not any(thread.name == "assay-sync" for thread in threading.enumerate())


def test_an_error_of_the_thread_reaches_the_appender() -> None:
    log = Watched()
    log.fail = True
    group = GroupSync(interval=0)
    group.append(log, b"1\n")
    with pytest.raises(StoreError, match="gone"):
        group.close()
    with pytest.raises(StoreError, match="gone"):
        group.append(log, b"2\n")


def test_real_files(tmp_path: Path) -> None:
    first, second = FileLog(tmp_path / "a" / "rows.jsonl"), FileLog(tmp_path / "rows.jsonl")
    with GroupSync(interval=0.001) as group:
        for n in range(500):
            group.append(first if n % 2 else second, b"%d\n" % n)
    assert sum(1 for log in (first, second) for _ in log.scan()) == 500
