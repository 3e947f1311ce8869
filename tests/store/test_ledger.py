"""What tells Assay's files from those of others: lines of a ledger, begun before a file is put in its place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from assay.errors import StoreError, UserError
from assay.store import files
from assay.store.ledger import (
    LEDGER,
    OwnFile,
    adopt,
    check_replaceable,
    claim,
    digest_of,
    replace_file,
    was_written,
    write_named,
    written_names,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


def lines(file: Path) -> list[str]:
    return (file.parent / LEDGER).read_text().splitlines()


def test_a_file_is_begun_and_then_recorded(file: Path) -> None:
    write_named(file, b"one")
    digest = digest_of(file)
    assert lines(file) == [f"~{digest}  rows.csv", f"{digest}  rows.csv"]
    assert was_written(file)
    write_named(file, b"two")
    assert file.read_bytes() == b"two"
    file.write_bytes(b"one")
    assert not was_written(file), "Assay wrote it, but not last"


def stop(*_: object) -> None:
    raise KeyboardInterrupt


WRITERS: dict[str, Callable[[Path], None]] = {
    "whole": lambda file: write_named(file, b"new"),
    "in parts": lambda file: write_named(file, iter([b"n", b"ew"])),
    "empty": lambda file: write_named(file, b""),
    "moved": lambda file: replace_file(file.with_name("temporary"), file),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("at", ["replace", "sync_folder"])
def test_what_was_begun_is_known_before_and_after_it_has_its_name(
    file: Path, name: str, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (name, at) == ("moved", "sync_folder"):
        pytest.skip("a temporary file is only given its name")
    write_named(file, b"old")
    file.with_name("temporary").write_bytes(b"new")
    with monkeypatch.context() as patch:
        patch.setattr("os.replace" if at == "replace" else files.__name__ + "." + at, stop)
        with pytest.raises(KeyboardInterrupt):
            WRITERS[name](file)
    assert (file.read_bytes() == b"old") == (at == "replace")
    assert was_written(file) or not file.read_bytes()
    WRITERS[name](file)
    file.write_bytes(b"theirs")
    with pytest.raises(UserError, match="did not write"):
        WRITERS["whole"](file)


def test_what_was_forced_and_did_not_happen_is_still_theirs(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(b"theirs")
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", stop)
        with pytest.raises(KeyboardInterrupt):
            write_named(file, b"ours", force=True)
    with pytest.raises(UserError, match="did not write"):
        check_replaceable(file)
    assert file.read_bytes() == b"theirs"


def test_a_ledger_of_an_earlier_version_is_understood(file: Path) -> None:
    file.write_bytes(b"old")
    (file.parent / LEDGER).write_text(f"{digest_of(file)}  rows.csv\n")
    assert was_written(file)
    write_named(file, b"new")
    file.write_bytes(b"old")
    with pytest.raises(UserError, match="did not write"):
        write_named(file, b"newer")


def test_a_torn_line_takes_no_other_with_it(file: Path) -> None:
    write_named(file, b"one")
    with (file.parent / LEDGER).open("ab") as ledger:
        ledger.write(b"~0123")
    write_named(file, b"two")
    assert was_written(file)
    assert written_names(file.parent) == ["rows.csv"]


def test_two_processes_that_write_one_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have begun, and the one that ends first finds the other's content."""
    first = OwnFile(file)
    monkeypatch.setattr(files, "temporary_suffix", lambda: ".other.tmp")
    second = OwnFile(file)
    sync = files.sync_folder

    def then_second(folder: Path) -> None:
        monkeypatch.setattr(files, "sync_folder", sync)
        sync(folder)
        second.commit()

    with first, second:
        first.write(b"first")
        second.write(b"second")
        monkeypatch.setattr(files, "sync_folder", then_second)
        first.commit()
    assert file.read_bytes() == b"second"
    assert was_written(file)


def test_an_older_list_is_taken_over_once(file: Path) -> None:
    file.write_bytes(b"listed")
    adopt(file.parent, {"rows.csv": digest_of(file), "gone.csv": "0" * 32})
    assert was_written(file)
    write_named(file, b"ours")
    adopt(file.parent, {"rows.csv": "0" * 32})
    assert was_written(file)


def test_only_the_same_content_is_claimed(file: Path) -> None:
    file.write_bytes(b"rows")
    claim(file, [b"ro", b"w"])
    assert not was_written(file)
    claim(file, [b"ro", b"ws"])
    assert was_written(file)


def test_a_ledger_that_is_a_link_is_not_written_through(file: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    (file.parent / LEDGER).symlink_to(tmp_path / "other")
    with pytest.raises(StoreError, match="link"):
        write_named(file, b"x")
    assert (tmp_path / "other").read_bytes() == b""
