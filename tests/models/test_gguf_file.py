"""A GGUF file is whole or refused before a server is started with it, and is hashed once."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.models._gguf_file import fingerprint, weights
from tests.models.gguf_files import ENTRIES, F32, STRING, entry, gguf_file, number, text, texts

WHOLE = gguf_file()


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gguf") / "file.gguf"


def refusal(path: Path, data: bytes) -> UserError:
    path.write_bytes(data)
    with pytest.raises(UserError) as caught:
        weights(path)
    assert caught.value.where == str(path)
    return caught.value


@pytest.mark.parametrize("version", [2, 3])
def test_a_whole_file(tmp_path: Path, version: int) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf_file(version=version))
    found = weights(file)
    assert (found.path, found.context) == (file, 2048)
    assert found.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_file_that_does_not_say_its_context(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf_file([number("general.alignment", 64)], alignment=64))
    assert weights(tmp_path / "m.gguf").context == 0


def test_every_beginning_of_a_file_is_refused(scratch: Path) -> None:
    for length in range(len(WHOLE)):
        what = refusal(scratch, WHOLE[:length]).what
        assert "truncated" in what or length < 4
    scratch.write_bytes(WHOLE)
    assert weights(scratch).context == 2048
    scratch.write_bytes(WHOLE + b"\0" * 100)  # padding
    assert weights(scratch).context == 2048


def test_a_truncated_file_says_how_much_is_missing(tmp_path: Path) -> None:
    error = refusal(tmp_path / "m.gguf", WHOLE[:-1])
    assert error.what.endswith(f"its tensors need {len(WHOLE):,} bytes, it has {len(WHOLE) - 1:,}")
    assert "again" in error.fix


@given(st.integers(0, len(gguf_file(data=False)) - 1), st.binary(min_size=1, max_size=12))
def test_a_damaged_header_is_refused_or_read_and_nothing_else(
    scratch: Path, at: int, wrong: bytes
) -> None:
    scratch.write_bytes(WHOLE[:at] + wrong + WHOLE[at + len(wrong) :])
    try:
        weights(scratch)
    except UserError:
        pass


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"GG", "this is not a GGUF file"),
        (b"PK\3\4 a zip", "this is not a GGUF file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "pointer of Git LFS"),
        (gguf_file(version=1), "version 1 of GGUF is not supported"),
        (gguf_file(version=3 << 24), "version 50331648 of GGUF"),  # the bytes of a big-endian one
        (gguf_file(tensors=[]), "has no tensors"),
        (gguf_file([*ENTRIES, number("split.count", 3)]), "one of several parts"),
        (gguf_file([texts("t", ["x"]).replace(b"\x08\0\0\0", b"\x09\0\0\0", 1)]), "damaged"),
        (gguf_file(tensors=[("t", [1] * 5, F32, 4)]), "is damaged"),
    ],
)
def test_what_is_not_a_model(tmp_path: Path, data: bytes, words: str) -> None:
    assert words in refusal(tmp_path / "m.gguf", data).what


def test_what_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path, tmp_path / "pipe.gguf", tmp_path / "missing.gguf"):
        with pytest.raises(UserError, match="cannot be read"):
            weights(path)


def test_the_hash_is_computed_once(tmp_path: Path, cache: Path) -> None:
    file, link = tmp_path / "m.gguf", tmp_path / "link.gguf"
    file.write_bytes(WHOLE)
    link.symlink_to(file)
    sha256 = fingerprint(file)
    (memory,) = (cache / "hashes").iterdir()
    memory.write_text(memory.read_text().replace(sha256, "remembered"))
    assert fingerprint(file) == fingerprint(link) == "remembered"
    os.utime(file, ns=(0, 1))
    assert fingerprint(file) == sha256
    for damaged in ("", "{", '{"stamp": []}'):
        memory.write_text(damaged)
        assert fingerprint(file) == sha256


def test_a_cache_that_cannot_be_written_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.gguf").write_bytes(WHOLE)
    (tmp_path / "taken").write_text("a file where the folder should be")
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "taken"))
    assert weights(tmp_path / "m.gguf").sha256 == hashlib.sha256(WHOLE).hexdigest()


def test_values_of_other_types_and_large_vocabularies_are_passed_by(tmp_path: Path) -> None:
    odd = [
        entry(key, STRING, text("x"))
        for key in ("split.count", "general.alignment", "llama.context_length")
    ]
    (tmp_path / "m.gguf").write_bytes(
        gguf_file([ENTRIES[0], *odd, texts("tokens", ["token"] * 100_000)])
    )
    assert weights(tmp_path / "m.gguf").context == 0
