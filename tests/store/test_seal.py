"""Checksums: they do not depend on how the bytes came, and find every byte that changes."""

from base64 import b64decode
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from xxhash import xxh3_64_digest

from assay.records import Manifest
from assay.store.log import FileLog
from assay.store.seal import BLOCK, Checksums, is_damaged, is_unchanged, seal

from .conftest import unhurried

sizes = st.lists(st.integers(0, 3 * BLOCK), max_size=5)


@unhurried
@given(sizes=sizes)
def test_they_are_those_of_the_blocks_however_the_bytes_come(sizes: list[int]) -> None:
    checksums, content = Checksums(), b""
    for number, size in enumerate(sizes):
        part = bytes([number + 1]) * size
        checksums.update(part)
        content += part
    blocks = [content[at : at + BLOCK] for at in range(0, len(content), BLOCK)]
    whole = Checksums()
    list(whole.of(blocks))
    assert checksums.size == len(content)
    checksums.lines = whole.lines = 0
    assert checksums.text(Path()) == whole.text(Path())
    wanted = b"".join(map(xxh3_64_digest, blocks))
    assert b64decode(checksums.text(Path()).partition(" ")[0]) == wanted


def sealed(folder: Path, lines: list[bytes]) -> tuple[FileLog, Manifest]:
    log, manifest = FileLog(folder / "rows.jsonl"), Manifest(kind="run", id="r")
    for line in lines:
        log.append(line)
    seal(manifest, log)
    log.close()
    return FileLog(log.path), manifest


LINES = [b'{"n": %d, "text": "%s"}\n' % (n, b"x" * (n * 37 % 900)) for n in range(600)]


@unhurried
@given(data=st.data())
def test_a_byte_that_changes_is_in_a_damaged_block(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    log, manifest = sealed(tmp_path_factory.mktemp("seal"), LINES)
    assert is_unchanged(manifest, log)
    content = bytearray(log.path.read_bytes())
    places = data.draw(st.sets(st.integers(0, len(content) - 1), min_size=1, max_size=4))
    for at in places:
        content[at] ^= data.draw(st.integers(1, 255))
    log.path.write_bytes(content)
    damage = FileLog(log.path).damage(manifest)
    assert not is_unchanged(manifest, FileLog(log.path))
    assert {at // BLOCK for at in places} == {each.start // BLOCK for each in damage}
    assert all(is_damaged(at, 1, damage) for at in places)


@unhurried
@given(grown=st.integers(0, 700), changed=st.integers(0, len(b"".join(LINES)) - 2))
def test_a_file_that_grew_is_checked_up_to_its_seal(
    tmp_path_factory: pytest.TempPathFactory, grown: int, changed: int
) -> None:
    log, manifest = sealed(tmp_path_factory.mktemp("seal"), LINES)
    # after a copy of all, either could be the old one
    log.append(b"".join(LINES[:grown]).replace(b"x", b"y"))
    assert FileLog(log.path).damage(manifest) == []
    content = bytearray(log.path.read_bytes())
    content[changed] ^= 1
    log.path.write_bytes(content)
    assert [each.start for each in FileLog(log.path).damage(manifest)] == [changed // BLOCK * BLOCK]


@unhurried
@given(first=st.integers(0, 599), count=st.integers(1, 600))
def test_lines_that_a_person_removes_or_repeats_are_not_damage(
    tmp_path_factory: pytest.TempPathFactory, first: int, count: int
) -> None:
    """All that follows has moved; to distrust it would cost rows that are good."""
    log, manifest = sealed(tmp_path_factory.mktemp("seal"), LINES)
    for edited in (
        LINES[:first] + LINES[first + count :],
        LINES[:first] + LINES[first : first + count] + LINES[first:],
    ):
        log.path.write_bytes(b"".join(edited))
        assert FileLog(log.path).damage(manifest) == []
        assert not is_unchanged(manifest, FileLog(log.path))


def test_rows_in_another_order_are_not_damage(tmp_path: Path) -> None:
    log, manifest = sealed(tmp_path, LINES)
    log.path.write_bytes(b"".join(sorted(LINES, reverse=True)))
    assert is_unchanged(manifest, FileLog(log.path))


@pytest.mark.parametrize("first", [0, 1, 300, 600])
def test_the_sum_of_lines_does_not_depend_on_who_made_it(tmp_path: Path, first: int) -> None:
    """Some lines by an earlier process, some by this one; or all together, by another."""
    log, manifest = sealed(tmp_path, LINES[:first])
    log.append(b"".join(LINES[first:]) or b"\n")
    seal(manifest, log)
    assert FileLog(log.path).checksums() == manifest.checksums


def test_a_copy_with_other_times_is_unchanged(tmp_path: Path) -> None:
    log, manifest = sealed(tmp_path, LINES)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "rows.jsonl").write_bytes(log.path.read_bytes())
    assert is_unchanged(manifest, FileLog(tmp_path / "copy" / "rows.jsonl"))
