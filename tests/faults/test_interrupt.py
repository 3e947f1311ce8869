"""Ctrl-C: the calls in flight may finish, every paid row is kept, and the same command goes on."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from assay.server import Options, running, stats
from tests.cli.shell import Shell, ended
from tests.support import wait_for

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_calls_in_flight_are_kept_and_the_same_command_goes_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    with running(Options(latency_ms=300)) as url:
        shell = Shell(tmp_path, url, items=16)
        child = shell.start("run", "CONFIG", "-j", "4")
        wait_for(lambda: len(shell.lines()) >= 4 and stats(url)["in_flight"] == 4)
        child.send_signal(number)
        stopped = ended(child, 10)
        assert stopped.code == 130
        assert "the same command resumes" in stopped.err
        paid = stats(url)["requests"]
        assert 8 <= paid < 16
        assert len(shell.keys()) == len(shell.lines()) == paid
        assert shell.run().code == 0
        assert stats(url)["requests"] == len(shell.keys()) == 16


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with running(Options(latency_ms=60_000)) as url:
        shell = Shell(tmp_path, url)
        child = shell.start("run", "CONFIG")
        wait_for(lambda: stats(url)["in_flight"] == 4)
        child.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):  # the calls in flight still have their time
            child.wait(0.5)
        child.send_signal(signal.SIGINT)
        assert ended(child, 5).code == 130
        assert shell.lines() == []


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        (Options(rate_429=1.0, retry_after=0.2), {}),
        (Options(rate_429=0.5, retry_after=30.0), {}),
        (Options(), {"requests_per_minute": 60}),
        (Options(capacity=1, latency_ms=200), {}),
    ],
)
def test_no_call_or_try_begins_after_a_signal(
    tmp_path: Path, options: Options, limits: dict[str, Any]
) -> None:
    with running(options) as url:
        shell = Shell(tmp_path, url, items=200)
        shell.config["models"] = [shell.model("mock", **limits)]
        with shell.start("run", "CONFIG") as child:
            wait_for(lambda: stats(url)["requests"] >= 2)
            child.send_signal(signal.SIGINT)
            heard = child.stderr.readline() if child.stderr else ""
            before = stats(url)["requests"]
            assert ended(child, 5).code == 130
        assert heard.startswith("stopping: ")
        assert stats(url)["requests"] - before <= 1, "one may have been on its way"


SLOW_SCORER = """
    import asyncio, pathlib

    async def slow(item, response):
        pathlib.Path(__file__).with_name(f"asked-{item.id}").touch()
        await asyncio.sleep(0.1 if pathlib.Path(__file__).with_name("quick").exists() else 3600)
        return True
"""


def test_scoring_that_was_cut_off_is_not_taken_for_finished(shell: Shell) -> None:
    shell.write("slow.py", SLOW_SCORER)
    shell.config["evaluation_methods"] = ["exact_match", "slow.py:slow"]
    child = shell.start("run", "CONFIG")
    wait_for(lambda: len(list(shell.folder.glob("asked-*"))) == 4)
    for number in (signal.SIGINT, signal.SIGTERM):  # two of the same kind could arrive as one
        child.send_signal(number)
    assert ended(child, 5).code == 130
    assert len(shell.keys("evaluation_results.jsonl")) == 4
    shell.write("quick", "")
    assert shell.run().code == 0
    assert (
        sorted(row["label"] for row in shell.read("evaluation_results.jsonl"))
        == ["exact_match"] * 4 + ["slow"] * 4
    )
