"""One folder, one writer: the second process is refused and told who holds it."""

from pathlib import Path

import pytest

from assay.server import Options, running
from tests.cli.shell import Shell, ended
from tests.support import wait_for

pytestmark = pytest.mark.slow


def test_the_second_process_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    with running(Options(latency_ms=8000)) as url:
        shell = Shell(tmp_path, url)
        first = shell.start("run", "CONFIG")
        wait_for((shell.out / "status.json").exists)
        second = shell.run()
        assert second.code == 1
        assert f"process {first.pid} " in second.err
        assert f"run {shell.folder / 'config.yaml'}" in second.err
        assert f"kill {first.pid}" in second.err
        looked = shell.call("plan", "CONFIG")
        assert (looked.code, "to run" in looked.out) == (0, True)
        assert ended(first).code == 0
    assert len(shell.keys()) == len(shell.lines()) == 4


def test_a_killed_holder_holds_nothing(shell: Shell) -> None:
    child = shell.start("run", "CONFIG")
    wait_for((shell.out / ".lock").exists)
    child.kill()
    child.communicate()
    assert shell.run().code == 0
    assert len(shell.keys()) == 4
