"""Several files, patterns and packed files: read like one, and named when they cannot be read."""

import gzip
import sys
from pathlib import Path

import pytest
import zstandard

from assay.datasets._files import files, open_file
from assay.errors import UserError
from assay.registry import dataset

LINES = b"".join(b'{"n": %d, "text": "some words"}\n' % n for n in range(50_000))


def read(path: Path) -> bytes:
    with open_file(path) as file:
        return file.read()


def problem(path: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        list(dataset.get("jsonl")(path))
    assert caught.value.where.startswith(str(path))
    return caught.value


def test_patterns_are_sorted_and_no_file_is_read_twice(tmp_path: Path) -> None:
    for name in ("c.jsonl", "a.jsonl", "deep/b.jsonl", "x.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = files([str(tmp_path / "c.jsonl"), str(tmp_path / "**/*.jsonl")])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == [
        "c.jsonl",
        "a.jsonl",
        "deep/b.jsonl",
    ]


def test_a_file_may_be_called_like_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a[1].jsonl").touch()
    assert files(str(tmp_path / "a[1].jsonl")) == [tmp_path / "a[1].jsonl"]


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no file matches .*\*\.jsonl"):
        files(str(tmp_path / "*.jsonl"))


def test_gz_and_zst_are_read_as_what_is_inside(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(LINES) + gzip.compress(b"more"))
    frames = zstandard.compress(LINES) + zstandard.compress(b"") + zstandard.compress(b"more")
    (tmp_path / "a.zst").write_bytes(frames)
    assert read(tmp_path / "a.gz") == read(tmp_path / "a.zst") == LINES + b"more"


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_packed_tables_and_lists(tmp_path: Path, suffix: str) -> None:
    pack = gzip.compress if suffix == "gz" else zstandard.compress
    for name, content in (("csv", b"a\n1\n"), ("tsv", b"a\tb\n1\t2\n"), ("json", b'[{"a": "1"}]')):
        path = tmp_path / f"a.{name}.{suffix}"
        path.write_bytes(pack(content))
        ((_, row),) = dataset.get(name)(path)
        assert row["a"] == "1"


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_packed_files_that_are_cut_off_or_something_else(tmp_path: Path, suffix: str) -> None:
    pack = gzip.compress if suffix == "gz" else zstandard.compress
    path = tmp_path / f"a.jsonl.{suffix}"
    whole = pack(LINES)
    for content in (whole[: len(whole) // 2], whole[:-1], b"no such thing", whole + b"garbage"):
        path.write_bytes(content)
        assert "corrupt" in problem(path).what, content[-10:]


def test_packed_files_are_streamed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    whole = zstandard.compress(LINES)
    path.write_bytes(whole[:-10])
    assert next(iter(dataset.get("jsonl")(path)))[1]["n"] == 0


def test_zst_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl.zst").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert problem(tmp_path / "a.jsonl.zst").fix == "pip install 'assay-eval[zstd]'"


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    assert problem(tmp_path).what == "the dataset cannot be read: Is a directory"
