import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from assay.records import Response
from assay.store.log import FileLog
from assay.store.memory_log import MemoryLog
from assay.store.table.decode import open_rows, row_decoder

from .conftest import unhurried

decode = row_decoder(Response)
ROWS = [
    b'{"item_id":"a","response":"one"}',
    b'{"item_id": "b",   "response":"two","unknown":{"x":[1]}}',
    b'{"item_id":"c","response":"caf\xc3\xa9","inference_time":NaN}',
]


def file_with(folder: Path, content: bytes) -> tuple[FileLog, FileLog]:
    path = folder / "responses.jsonl"
    path.write_bytes(content)
    return FileLog(path), FileLog(folder / "rejected" / "responses.jsonl")


@pytest.mark.parametrize(
    "garbage",
    [
        b"garbage",
        b'{"item_id":"z","resp',
        b"[1,2]",
        b"17",
        b'"text"',
        b"null",
        b'{"response":"no item"}',
        b'{"item_id":5}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"item_id":"a"}{"item_id":"b"}',
    ],
)
@pytest.mark.parametrize("at", [0, 1, 3])
def test_garbage_is_set_aside_and_the_rest_keeps_its_bytes(
    tmp_path: Path, garbage: bytes, at: int
) -> None:
    lines = [*ROWS[:at], garbage, *ROWS[at:]]
    log, rejected = file_with(tmp_path, b"".join(line + b"\n" for line in lines))
    notices: list[str] = []
    assert [line for line, _ in open_rows(log, rejected, decode, notice=notices.append)] == ROWS
    assert log.path.read_bytes() == b"".join(line + b"\n" for line in ROWS)
    (entry,) = [json.loads(line) for _, line in rejected.scan()]
    assert (entry["file"], entry["line"]) == ("responses.jsonl", at + 1)
    assert entry["text"] == garbage.decode("utf-8", "backslashreplace")
    assert entry["reason"]
    (notice,) = notices
    assert f"line {at + 1}" in notice


def test_nothing_wrong_means_nothing_written(tmp_path: Path) -> None:
    log, rejected = file_with(tmp_path, b"\n".join([*ROWS, b"", b"  ", b""]))
    before = log.segments()
    assert [row.item_id for _, row in open_rows(log, rejected, decode)] == ["a", "b", "c"]
    assert log.segments() == before
    assert rejected.segments() == []


def test_a_reader_without_the_lock_skips_and_changes_nothing(tmp_path: Path) -> None:
    log, _ = file_with(tmp_path, b"garbage\n" + ROWS[0] + b"\n")
    before = log.path.read_bytes()
    assert [row.item_id for _, row in open_rows(log, None, decode)] == ["a"]
    assert log.path.read_bytes() == before


def test_memory_logs_are_repaired_too() -> None:
    log, rejected = MemoryLog("responses.jsonl"), MemoryLog()
    log.append(ROWS[0] + b"\n{\n" + ROWS[1] + b"\n")
    assert len(list(open_rows(log, rejected, decode))) == 2
    assert [line for _, line in log.scan()] == ROWS[:2]
    assert len(list(rejected.scan())) == 1


def test_the_decoder_is_strict_about_rows_and_tolerant_about_numbers() -> None:
    assert decode(b'{"item_id":"a","inference_time":Infinity}').inference_time == float("inf")
    assert decode(b'{"item_id":"a","response":"x\\ud800y","inference_time":NaN}').response == "x?y"
    assert (
        decode(b'{"item_id":"a","response":"\\ud83d\\ude00","inference_time":NaN}').response
        == "\U0001f600"
    )
    with pytest.raises(msgspec.ValidationError, match="item_id"):
        decode(b"{}")


rows = st.lists(
    st.builds(
        lambda item_id, text: msgspec.json.encode({"item_id": item_id, "response": text}),
        st.text(max_size=5),
        st.text(max_size=20),
    ),
    min_size=1,
    max_size=6,
)


@settings(unhurried, max_examples=200)
@given(rows=rows, noise=st.binary(max_size=30), data=st.data())
def test_damage_anywhere_costs_only_the_lines_it_hits(
    tmp_path_factory: pytest.TempPathFactory, rows: list[bytes], noise: bytes, data: st.DataObject
) -> None:
    """Cut bytes out at any place and put noise there: every line outside the damage survives, byte for byte."""
    content = b"".join(row + b"\n" for row in rows)
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, len(content)))
    log, rejected = file_with(
        tmp_path_factory.mktemp("log"), content[:start] + noise + content[end:]
    )

    whole_before = content[:start].split(b"\n")[:-1]
    rest = content[end:]
    # A line that begins exactly where the damage ends is whole if what stands before it ends with a line feed.
    clean_edge = (content[:start] + noise)[-1:] in (b"\n", b"")
    whole_after = rest.split(b"\n")[0 if clean_edge else 1 : -1]

    expected = [*whole_before, *(line for line in whole_after if _is_row(line))]
    kept = [line for line, _ in open_rows(log, rejected, decode)]
    assert _is_subsequence(expected, kept)
    log.append(b'{"item_id":"next"}\n')
    after = [line for _, line in log.scan() if line.strip()]
    assert after == [*kept, b'{"item_id":"next"}']
    assert all(_is_row(line) for line in after)


def _is_row(line: bytes) -> bool:
    try:
        decode(line)
    except (ValueError, RecursionError):
        return False
    return True


def _is_subsequence(some: list[bytes], every: list[bytes]) -> bool:
    remaining = iter(every)
    return all(line in remaining for line in some)
