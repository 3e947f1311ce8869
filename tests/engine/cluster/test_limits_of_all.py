"""Three worker processes and one server: together they keep to the limits and the budget that the config states."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from assay.engine.cluster.shares.ledger import WHOLE, State
from assay.errors import BudgetError
from assay.server import Options, running, stats
from tests.engine.cluster.test_worker import rows

LEASE = 1.5
PER_SECOND = 20


def write_config(folder: Path, url: str, items: int, **more: Any) -> Path:
    questions = [
        {"id": f"q{n}", "question": f"What is {n} plus 1?", "answer": str(n + 1)}
        for n in range(items)
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    model = {
        "name": "m",
        "type": "openai",
        "endpoint": url,
        "max_concurrency": 6,
        **more.pop("model", {}),
    }
    config = {"dataset": "items.jsonl", "models": [model], "output_dir": "out", **more}
    (folder / "config.yaml").write_text(json.dumps(config))
    return folder / "config.yaml"


@contextmanager
def workers(config: Path, count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    environ = {**os.environ, "ASSAY_LEASE": str(LEASE)}
    command = [sys.executable, "-m", "assay", "run", str(config), "--no-progress", "--shard"]
    shards = [f"{number}/{count}" for number in range(1, count + 1)]
    started = [
        subprocess.Popen(
            [*command, shard], env=environ, cwd=config.parent, stdout=subprocess.DEVNULL
        )
        for shard in shards
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def states(folder: Path) -> list[State]:
    files = sorted((folder / "shares").rglob("*.json"))
    return [msgspec.json.decode(file.read_bytes(), type=State) for file in files]


def is_settled(state: State) -> bool:
    """Whether three workers have their shares."""
    return [member.rate == member.held > 0 for member in state.members.values()] == [True] * 3


def test_the_server_sees_one_limit_also_while_a_worker_is_killed(tmp_path: Path) -> None:
    with running(Options(latency_ms=100)) as url:
        config = write_config(tmp_path, url, 260, model={"requests_per_minute": 60 * PER_SECOND})
        seen: list[tuple[float, int]] = []
        with workers(config, 3) as processes:
            killed = 0.0
            while any(process.poll() is None for process in processes):
                counted = stats(url)
                seen.append((time.monotonic(), counted["requests"]))
                if (
                    not killed
                    and counted["requests"] > 60
                    and is_settled(states(tmp_path / "out")[-1])
                ):
                    processes[1].send_signal(signal.SIGKILL)
                    killed = time.monotonic()
                time.sleep(0.05)
        assert killed
        assert [process.returncode for process in processes] == [0, -signal.SIGKILL, 0]
        assert stats(url)["max_in_flight"] <= 6
        # a second's worth of all shares together, and one request of each worker
        burst = PER_SECOND + 3
        for start, before in seen:
            for end, after in seen:
                if end > start:
                    assert after - before <= PER_SECOND * (end - start) + burst
    made = rows(tmp_path / "out", "responses")
    assert len(made) == len({row["key"] for row in made}) == 260
    ledger = states(tmp_path / "out")
    assert all(sum(member.held for member in state.members.values()) <= WHOLE for state in ledger)
    dead = next(name for name in ledger[-1].gone if sum(name in state.gone for state in ledger) > 1)
    after = next(state for state in ledger if dead in state.gone)
    assert sum(member.rate for member in after.members.values()) > 0.99 * WHOLE, (
        "the dead worker's share came back"
    )
    assert not ledger[-1].members


def test_the_budget_is_kept_in_sum_and_used_up(tmp_path: Path) -> None:
    with running(Options(latency_ms=20)) as url:
        params = {"sample_params": {"max_tokens": 8}}
        config = write_config(tmp_path, url, 120, budget={"tokens": 400}, **params)
        with workers(config, 3) as processes:
            codes = [process.wait() for process in processes]
        assert set(codes) == {BudgetError.exit_code}
        used = [row["total_tokens"] for row in rows(tmp_path / "out", "responses")]
        assert 400 - 2 * max(used) <= sum(used) <= 400
        assert states(tmp_path / "out")[-1].spent()[0] == sum(used)
        config.write_text(config.read_text().replace('"tokens": 400', '"tokens": 100000'))
        with workers(config, 2) as processes:
            assert [process.wait() for process in processes] == [0, 0]
        assert stats(url)["requests"] == len(rows(tmp_path / "out", "responses")) == 120
