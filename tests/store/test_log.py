import os
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assay.errors import StoreError
from assay.interfaces import Log
from assay.store.lines import cut
from assay.store.log import FileLog
from assay.store.memory_log import MemoryLog

from .conftest import unhurried

line_texts = st.binary(max_size=40).map(lambda line: line.replace(b"\n", b""))


@pytest.fixture(params=["file", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    return FileLog(tmp_path / "sub" / "rows.jsonl") if request.param == "file" else MemoryLog()


def lines_of(log: Log) -> list[bytes]:
    """By `scan`; `blocks` must have the same."""
    lines = [line for _, line in log.scan()]
    blocks = list(log.blocks())
    assert b"".join(blocks) == b"".join(line + b"\n" for line in lines)
    assert all(block[-1:] == b"\n" for block in blocks)
    return lines


def test_a_log_that_does_not_exist_is_empty(log: Log, tmp_path: Path) -> None:
    assert lines_of(log) == []
    assert log.segments() == []
    log.sync()
    log.append(b"")
    assert list(tmp_path.iterdir()) == []  # reading never creates


@unhurried
@given(batches=st.lists(st.lists(line_texts, min_size=1, max_size=4), max_size=8))
def test_what_is_appended_is_scanned_and_read(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[bytes]]
) -> None:
    for log in (FileLog(tmp_path_factory.mktemp("log") / "rows.jsonl"), MemoryLog()):
        for batch in batches:
            log.append(b"".join(line + b"\n" for line in batch))
        expected = [line for batch in batches for line in batch]
        assert lines_of(log) == expected
        assert [log.read(position) for position, _ in log.scan()] == expected
        log.close()


def test_half_a_line_is_refused(log: Log) -> None:
    with pytest.raises(ValueError, match="line feed"):
        log.append(b"one\ntwo")
    assert lines_of(log) == []


def test_replace_may_read_what_it_replaces(log: Log) -> None:
    log.append(b"1\n2\n3\n")
    before = log.segments()
    log.replace(line + b"\n" for _, line in log.scan() if line != b"2")
    assert lines_of(log) == [b"1", b"3"]
    assert log.segments() != before
    log.append(b"4\n")
    assert lines_of(log) == [b"1", b"3", b"4"]


def test_equal_segments_mean_equal_lines(log: Log) -> None:
    log.append(b"1\n")
    before = log.segments()
    assert log.segments() == before
    log.append(b"2\n")
    assert log.segments() != before


def test_a_position_that_nobody_gave_is_an_error(log: Log) -> None:
    log.append(b"1\n")
    with pytest.raises(StoreError, match="no line"):
        log.read(99)


def test_a_failing_replacement_changes_nothing(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "rows.jsonl")
    log.append(b"1\n")

    def broken():
        yield b"2\n"
        raise KeyError("source failed")

    with pytest.raises(KeyError):
        log.replace(broken())
    assert lines_of(log) == [b"1"]
    assert os.listdir(tmp_path) == ["rows.jsonl"]


@pytest.mark.parametrize("size", [4095, 4096, 4097, 16384, 20480, 5_000_000])
def test_long_lines_are_read_whole(tmp_path: Path, size: int) -> None:
    log = FileLog(tmp_path / "rows.jsonl")
    long = os.urandom(size).replace(b"\n", b" ")
    log.append(b"short\n" + long + b"\nend\n")
    found = dict(log.scan())
    assert list(found.values()) == [b"short", long, b"end"]
    assert [log.read(position) for position in found] == [b"short", long, b"end"]


def test_scanning_holds_a_block_not_the_file(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "rows.jsonl")
    log.append((b"x" * 399 + b"\n") * 50_000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in log.scan()) == 50_000
        assert sum(block.count(b"\n") for block in log.blocks()) == 50_000
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_further_segments_follow_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "rows.d"
    folder.mkdir()
    (folder / "b.jsonl").write_bytes(b"4\n5\n")
    log = FileLog(tmp_path / "rows.jsonl")
    log.append(b"1\n2\n")
    before = dict(log.scan())
    (folder / "a.jsonl").write_bytes(b"3")  # whole, without its line feed
    (folder / "note.txt").write_bytes(b"not ours\n")
    assert lines_of(log) == [b"1", b"2", b"3", b"4", b"5"]
    assert [log.read(position) for position, _ in log.scan()] == lines_of(log)
    assert {position: log.read(position) for position in before} == before
    assert [segment.name for segment in log.segments()] == [
        "rows.jsonl",
        "rows.d/a.jsonl",
        "rows.d/b.jsonl",
    ]
    log.replace([b"6\n"])
    assert lines_of(log) == [b"6"]
    assert os.listdir(folder) == ["note.txt"]


@pytest.mark.parametrize(
    ("tail", "kept"),
    [
        (b'{"a": 1', []),
        (b'{"a": "\xc3', []),
        (b"\0" * 70_000, []),
        (b"[" * 100_000, []),
        (b'{"a": 1}', [b'{"a": 1}']),
        (b'{"a": NaN}', [b'{"a": NaN}']),
        (b'"' + b"x" * 200_000 + b'"', [b'"' + b"x" * 200_000 + b'"']),
    ],
    ids=["cut", "cut in a character", "zeros", "deep", "whole", "whole with NaN", "whole and long"],
)
@pytest.mark.parametrize("before", [[], [b"1", b"2"]])
def test_a_torn_end_is_never_seen_and_then_cut(
    tmp_path: Path, before: list[bytes], tail: bytes, kept: list[bytes]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in before) + tail)
    log = FileLog(path)
    assert lines_of(log) == before + kept
    assert path.read_bytes().endswith(tail)  # reading repairs nothing
    log.append(b"3\n")
    assert path.read_bytes() == b"".join(line + b"\n" for line in [*before, *kept, b"3"])


def test_threads_may_append_together(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "rows.jsonl")
    batches = [b"".join(b"%d-%d\n" % (worker, n) for n in range(200)) for worker in range(8)]

    def work(batch: bytes) -> None:
        for line in batch.splitlines(keepends=True):
            log.append(line)

    threads = [threading.Thread(target=work, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lines_of(log)) == sorted(b"".join(batches).splitlines())


def test_a_closed_log_opens_again_and_keeps_no_descriptor(tmp_path: Path) -> None:
    open_before = len(os.listdir("/proc/self/fd"))
    log = FileLog(tmp_path / "rows.jsonl")
    for n in range(3):
        log.append(b"%d\n" % n)
        log.read(0)
        log.close()
    assert lines_of(log) == [b"0", b"1", b"2"]
    log.append(b"3\n")
    log.read(0)
    del log
    assert len(os.listdir("/proc/self/fd")) == open_before


# ---- segments and parts


def write_at(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_nested_segments_of_the_last_generation_follow_the_flat_ones(tmp_path: Path) -> None:
    names = [
        "rows.d/b.jsonl",
        "rows.d/9/0/0.jsonl",
        "rows.d/10/2/0.jsonl",
        "rows.d/10/00001/10.jsonl",
    ]
    names += [
        "rows.d/10/00001/9.jsonl",
        "rows.d/10/00001/note.txt",
        "rows.d/latest/0/0.jsonl",
        "rows.d/a.jsonl",
    ]
    for name in (*names, "rows.jsonl"):
        write_at(tmp_path, name, f'"{name}"\n')
    write_at(tmp_path, "rows.d/10/00003/0.jsonl", "")
    log = FileLog(tmp_path / "rows.jsonl")
    expected = ["rows.jsonl", "rows.d/a.jsonl", "rows.d/b.jsonl", "rows.d/10/2/0.jsonl"]
    expected += ["rows.d/10/00001/9.jsonl", "rows.d/10/00001/10.jsonl"]
    assert [line.decode().strip('"') for line in lines_of(log)] == expected
    assert [segment.name for segment in log.segments()] == [*expected, "rows.d/10/00003/0.jsonl"]
    assert [log.read(position).decode().strip('"') for position, _ in log.scan()] == expected


def test_replacing_leaves_the_segments_of_generations(tmp_path: Path) -> None:
    for name in ("rows.jsonl", "rows.d/a.jsonl", "rows.d/1/0/0.jsonl"):
        write_at(tmp_path, name, f'"{name}"\n')
    log = FileLog(tmp_path / "rows.jsonl")
    log.replace([b'"new"\n'])
    assert lines_of(log) == [b'"new"', b'"rows.d/1/0/0.jsonl"']


def test_very_many_segments(tmp_path: Path) -> None:
    """Looking a number up in a list would take minutes, and a position must fit into 64 bits."""
    folder = tmp_path / "rows.d/1/00000"
    folder.mkdir(parents=True)
    for number in range(40_000):
        os.close(os.open(f"{folder}/{number:08}.jsonl", os.O_CREAT | os.O_WRONLY))
    write_at(folder, "00040000.jsonl", '"last"\n')
    log = FileLog(tmp_path / "rows.jsonl")
    began = time.process_time()
    ((position, line),) = log.scan()
    assert time.process_time() - began < 10
    assert line == log.read(int(np.int64(position))) == b'"last"'


@unhurried
@given(
    files=st.lists(st.lists(line_texts, max_size=12), min_size=1, max_size=4),
    count=st.integers(1, 9),
    block=st.sampled_from([1, 2, 16, 64]),
    torn=st.sampled_from([b"", b"{", b"7"]),
)
def test_parts_together_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[bytes]],
    count: int,
    block: int,
    torn: bytes,
) -> None:
    folder = tmp_path_factory.mktemp("log")
    write_at(folder, "rows.d/0.jsonl", "")
    for number, texts in enumerate(files):
        (folder / f"rows.d/{number}.jsonl").write_bytes(
            b"".join(text + b"\n" for text in texts) + torn
        )
    log = FileLog(folder / "rows.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assay.store.lines.BLOCK", block)
        lines, blocks, parts = list(log.scan()), list(log.blocks()), log.parts()
        sizes = [part.path.stat().st_size if part.path.exists() else 0 for part in parts]
        read: list[tuple[int, bytes]] = []
        pieces: list[bytes] = []
        shares = cut(sizes, count)
        for share in shares:
            log.limit([parts[file]._replace(start=start, stop=stop) for file, start, stop in share])
            read += log.scan()
            pieces += log.blocks()
    assert len(shares) == count
    assert read == lines
    assert pieces == blocks


@pytest.mark.parametrize("step", [1, 7, 50, -3])
def test_many_lines_are_read_as_one_by_one(tmp_path: Path, step: int) -> None:
    """Near and far ones, longer than what is read ahead, in two files, in any order."""
    sizes = [10, 3000, 5, 70_000, 1, 8191, 8192, 65_535, 65_536, 40] * 20
    log = FileLog(tmp_path / "rows.jsonl")
    log.append(b"".join(b"%d" % size + b"x" * size + b"\n" for size in sizes))
    write_at(tmp_path / "rows.d", "more.jsonl", "".join(f"{number}\n" for number in range(900)))
    positions = [position for position, _ in log.scan()][::step]
    assert list(log.read_many(positions)) == [log.read(position) for position in positions]
    assert len(positions) == -(-1100 // abs(step))
