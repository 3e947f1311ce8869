"""A disk that is full or read-only: a clear error, whole rows, and the run goes on when there is room again."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell, question

pytestmark = pytest.mark.slow


class Disk:
    """A file system of its own, in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mount(self, options: str) -> None:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "assay-test", self.folder],
            check=True,
            capture_output=True,
        )

    def used(self) -> int:
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "disk")
    disk.folder.mkdir()
    try:
        disk.mount("size=128k")
    except (subprocess.CalledProcessError, OSError):
        pytest.skip("this machine does not let us mount a small file system")
    yield disk
    subprocess.run(["umount", disk.folder], check=True)


@pytest.fixture
def on_disk(shell: Shell, disk: Disk) -> Shell:
    shell.rows = [question(number) for number in range(300)]
    shell.config["output_dir"] = str(disk.folder / "out")
    return shell


def test_a_full_disk_stops_the_run_and_room_lets_it_go_on(on_disk: Shell, disk: Disk) -> None:
    with on_disk.counted() as calls:
        stopped = on_disk.run("-j", "8")
        assert stopped.code == 1
        assert "the disk is full" in stopped.err
        assert str(disk.folder) in stopped.err
        assert "every finished row is kept" in stopped.err
    kept = on_disk.lines()
    assert len(kept) == len(on_disk.keys())
    assert 0 < len(kept) < 300
    assert calls["requests"] - len(kept) <= 8

    assert on_disk.run("-j", "8").code == 1, "a disk that is still full is still an error"
    assert on_disk.lines()[: len(kept)] == kept

    disk.mount("remount,size=4m")
    assert on_disk.run("--mode", "inference").code == 0
    assert on_disk.lines()[: len(kept)] == kept
    assert len(on_disk.keys()) == len(on_disk.lines()) == 300


def test_a_full_disk_while_scoring_keeps_the_labels(on_disk: Shell, disk: Disk) -> None:
    disk.mount("remount,size=4m")
    assert on_disk.run("--mode", "inference").code == 0
    filler = disk.folder / "filler"
    filler.write_bytes(b"x" * (4 * 2**20 - disk.used() - 200_000))
    stopped = on_disk.run()
    assert stopped.code == 1
    assert "the disk is full" in stopped.err
    kept = on_disk.lines("evaluation_results.jsonl")
    assert len(kept) == len(on_disk.keys("evaluation_results.jsonl")) < 300
    filler.unlink()
    with on_disk.counted() as calls:
        assert on_disk.run().code == 0
    assert calls["requests"] == 0
    assert on_disk.lines("evaluation_results.jsonl")[: len(kept)] == kept
    assert (
        len(on_disk.keys("evaluation_results.jsonl"))
        == len(on_disk.lines("evaluation_results.jsonl"))
        == 300
    )


@pytest.mark.parametrize("has_rows", [False, True])
def test_a_folder_that_cannot_be_written_is_a_clear_error(
    on_disk: Shell, disk: Disk, has_rows: bool
) -> None:
    disk.mount("remount,size=4m")
    if has_rows:
        assert on_disk.run("--limit", "5").code == 0
    disk.mount("remount,ro")
    with on_disk.counted() as calls:
        refused = on_disk.run()
    assert refused.code == 1
    assert "cannot be written" in refused.err
    assert str(disk.folder) in refused.err
    assert calls["requests"] == 0
    assert len(on_disk.lines()) == (5 if has_rows else 0)
    assert on_disk.call("plan", "CONFIG").code == 0, "looking needs no writing"


def test_a_full_disk_stops_an_import_and_room_lets_it_begin_again(shell: Shell, disk: Disk) -> None:
    log = str(Path(__file__).parents[1] / "formats/inspect_ai/logs/large.eval")
    disk.mount("remount,size=60k")
    out = str(disk.folder / "out")
    for words in (
        ("import", log, "-o", out),
        ("convert", log, f"{out}.csv"),
        ("convert", log, f"{out}_hf", "--to", "hf"),
    ):
        stopped = shell.call(*words)
        assert stopped.code == 1, stopped.said
        assert "the disk is full" in stopped.err
        assert "bug" not in stopped.err
    assert not (disk.folder / "out.csv").exists()
    disk.mount("remount,size=10m")
    again = shell.call("import", log, "-o", out, "--json")
    assert again.code == 0, again.said
    assert '"items":12' in again.out
