import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# the machine may be busy
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Mount:
    """A small file system of its own, for faults that permissions cannot cause: root ignores those."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make_read_only(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.path)], check=True)


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[[str], Mount]]:
    mounted: list[Path] = []

    def make(size: str) -> Mount:
        path = tmp_path / f"mount{len(mounted)}"
        path.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no mount command")
        if done.returncode:
            pytest.skip(f"mount is refused: {done.stderr.strip()}")
        mounted.append(path)
        return Mount(path)

    yield make
    for path in mounted:
        subprocess.run(["umount", str(path)], check=True)
