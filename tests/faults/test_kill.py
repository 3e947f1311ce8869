"""`kill -9` at random moments: nothing is lost, nothing is doubled, and hardly anything is paid twice."""

import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.server import Options, running, stats
from tests.cli.shell import Shell

pytestmark = pytest.mark.slow

KILLS = 25  # in each of the two steps
ITEMS, SAMPLES, CONCURRENCY = 100, 3, 4
CELLS = ITEMS * SAMPLES
FILES = ("responses.jsonl", "evaluation_results.jsonl")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path, items=ITEMS)
    scorer = shell.write(
        "judge.py",
        """
        async def judge(item, response, *, context):
            question = {"role": "user", "content": f"Is {response.response} right for {item.id}?"}
            verdict = await context.complete([question], model="mock")
            return {"passed": True, "said": verdict.text}
        """,
    )
    shell.config |= {
        "evaluation_methods": [f"{scorer}:judge"],
        "sample_params": {"num_samples": SAMPLES},
        "max_concurrency": CONCURRENCY,
    }
    return shell


def test_fifty_kills_cost_only_the_calls_in_flight(shell: Shell) -> None:
    with running(Options(latency_ms=40)) as url:
        shell.config["models"] = [{"name": "mock", "endpoint": url}]
        shell.config["output_dir"] = str(shell.folder / "undisturbed")
        assert shell.run("--no-progress").code == 0
        undisturbed = {name: shell.keys(name) for name in FILES}
        assert stats(url)["requests"] == 2 * CELLS

        shell.config["output_dir"] = str(shell.folder / "out")
        moments = random.Random(20240607)
        kills = kill_often(shell, "inference", moments)
        assert 0 < len(shell.lines()) < CELLS
        assert shell.run("--mode", "inference", "--no-progress").code == 0
        kills += kill_often(shell, "full", moments)
        assert 0 < len(shell.lines("evaluation_results.jsonl")) < CELLS
        assert shell.run("--no-progress").code == 0

        assert kills == 2 * KILLS
        assert {name: shell.keys(name) for name in FILES} == undisturbed
        assert all(
            set(keys.values()) == {1} and len(keys) == CELLS for keys in undisturbed.values()
        )
        assert stats(url)["requests"] - 2 * CELLS <= 2 * CELLS + kills * CONCURRENCY


def kill_often(shell: Shell, mode: str, moments: random.Random) -> int:
    """Start the run again and again; returns how often it was killed before it had ended by itself."""
    kills = 0
    for _ in range(KILLS):
        child = shell.start(
            "run", "CONFIG", "--mode", mode, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if moments.random() < 0.2:
            until(child, time.monotonic() + moments.uniform(0.1, 0.6), lambda: False)
        else:
            before = size(shell)
            until(child, time.monotonic() + 30, lambda before=before: size(shell) > before)
            until(child, time.monotonic() + moments.uniform(0, 0.06), lambda: False)
        child.kill()
        kills += child.wait() == -9
    return kills


def until(child: subprocess.Popen[str], end: float, condition: Callable[[], bool]) -> None:
    """Wait until the moment, the condition, or the end of the process."""
    while time.monotonic() < end and child.poll() is None and not condition():
        time.sleep(0.001)


def size(shell: Shell) -> int:
    paths = [shell.out / name for name in FILES]
    return sum(path.stat().st_size for path in paths if path.exists())
