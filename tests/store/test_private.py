"""New files and folders that may hold prompts and answers are their owner's alone, unless the user says otherwise; what
dead processes left behind is swept, and nothing else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.store.files import sweep, temporary_of, write_file
from assay.store.lock import FolderLock
from fuzz import _cli_lab
from fuzz.cli import _run as run  # pyright: ignore[reportPrivateUsage]

PUBLIC = {"report.xml", "schema.json"}  # numbers and names alone
THEIRS = {
    "own.py",
    "prompt.txt",
    "people.csv",
    "items.jsonl",
    "items.json",
    "items.csv",
    "rows.jsonl",
    "data",
    "tasks",
}
THEIRS |= {"config.yaml", "config.json", "metrics.yaml", "camp"}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: None) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(folder: Path) -> list[Path]:
    """What the commands made, as far as it may be private."""
    _cli_lab.build(folder, run)
    words = [
        "gate out --min 0.1 --label exact_match --junit report.xml",
        "schema -o schema.json",
        "export out -o r.csv",
    ]
    words += [
        "judge label out --label right --annotator a --count 2 -o answers.csv",
        "export out -f ragicamp -o camp2",
    ]
    words += [
        "sygra --task tasks.qa --output_dir sy --no-progress",
        "export out -o rows.parquet",
        "export out -o r.md",
    ]
    for line in words:
        assert run(line.split())[0] in (0, 1, 4), line
    found = [
        path
        for path in folder.rglob("*")
        if path.relative_to(folder).parts[0] not in THEIRS | PUBLIC
    ]
    return [path for path in found if path.name != "__pycache__" and path.suffix != ".pyc"]


def test_whatever_commands_make_is_private(world: Path) -> None:
    paths = made(world)
    assert {path.name for path in paths} > {
        "responses.jsonl",
        "log.txt",
        "r.csv",
        "rows.parquet",
        ".lock",
    }
    assert not [path for path in paths if mode(path) & 0o077]
    assert [mode(world / name) for name in sorted(PUBLIC)] == [0o644, 0o644]


def test_the_umask_decides_if_the_user_says_so(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_PRIVATE", "0")
    os.umask(0o002)
    assert {mode(path) for path in made(world)} <= {0o664, 0o775}


def test_modes_of_what_exists_stay(world: Path) -> None:
    folder, file = world / "shared", world / "shared" / "x.json"
    folder.mkdir()
    file.write_text("1")
    folder.chmod(0o770)
    file.chmod(0o640)
    write_file(file, b"2")
    assert (file.read_text(), mode(file), mode(folder)) == ("2", 0o640, 0o770)


def test_a_link_in_place_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    temporary_of(tmp_path / "x").symlink_to(victim)
    write_file(tmp_path / "x", b"ours")
    assert (victim.read_text(), (tmp_path / "x").read_text()) == ("theirs", "ours")


def test_what_dead_processes_left_is_swept_by_the_next_run(tmp_path: Path) -> None:
    code = f"import os; from assay.store.files import *; temporary_of(Path({str(tmp_path)!r}) / 'x.jsonl').touch(); "
    code += f"os.mkdir({str(tmp_path)!r} + '/.d' + temporary_suffix()); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    dead = list(tmp_path.iterdir())
    assert len(dead) == 2
    name = dead[0].name.rsplit(".", 3)
    # another host's
    kept = [temporary_of(tmp_path / "mine.jsonl"), tmp_path / f"{name[0]}.deadbeef.{name[2]}.tmp"]
    kept += [
        tmp_path / f".x.{name[2]}.tmp",
        tmp_path / f"x.{name[1]}.{name[2]}.tmp",
        tmp_path / "x.tmp",
    ]
    kept += [
        tmp_path / f".x.{name[1]}.{name[2]}.tmp.jsonl",
        tmp_path / f".x.{name[1]}.{10**30}.tmp",
    ]
    for path in kept:
        path.touch()
    with FolderLock(tmp_path):
        assert {path.name for path in tmp_path.iterdir()} == {
            ".lock",
            *(path.name for path in kept),
        }
    sweep(tmp_path)
    assert all(path.exists() for path in kept)
