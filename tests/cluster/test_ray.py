"""A real Ray cluster on loopback: workers, nodes and drivers are killed, and every row is there once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from assay.server import Options, running
from assay.server.process import stats

pytestmark = [pytest.mark.cluster, pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")]

CONCURRENCY = 4
LATENCY = 0.2
WORKERS = 3
# A worker that dies takes its calls in flight and what it has not committed: at most a second's rows and those of the
# commit under way. A busy machine makes fewer, so this is what can be paid again for each death.
AGAIN = CONCURRENCY + 3 * CONCURRENCY / LATENCY


class RayCluster:
    """A head without processors, and nodes that can be killed."""

    def __init__(self) -> None:
        # The second makes Ray stay on loopback; it has no other name on Linux.
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        from ray.cluster_utils import Cluster

        quick = {
            "health_check_period_ms": 500,
            "health_check_timeout_ms": 2000,
            "health_check_failure_threshold": 3,
        }
        shared: dict[str, Any] = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 << 20}
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "include_dashboard": False,
                "_system_config": quick,
                **shared,
            },
        )
        self.shared = shared
        self.nodes = [self.add() for _ in range(2)]

    def add(self, **resources: Any) -> Any:
        return self.cluster.add_node(**{"num_cpus": 2, **resources}, **self.shared)

    @property
    def address(self) -> str:
        return str(self.cluster.address)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    made = RayCluster()
    yield made
    made.cluster.shutdown()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(Options(skill=0.7, latency_ms=LATENCY * 1000)) as address:
        yield address


class Plan:
    """A config in a folder, and drivers of it as processes."""

    def __init__(
        self, folder: Path, url: str, address: str, items: int = 400, **engine: Any
    ) -> None:
        self.folder, self.url, self.address = folder, url, address
        self.engine = {"address": address, "workers": WORKERS, **engine}
        rows = (
            {"id": f"q{n}", "question": f"What is {n} + {n + 1}?", "answer": str(2 * n + 1)}
            for n in range(items)
        )
        (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "scorers.py").write_text(
            "def short(item, response):\n    return len(response.response) < 4\n"
        )
        self.config: dict[str, Any] = {
            "name": "spread",
            "models": [{"name": "mock", "endpoint": url}],
            "dataset": "items.jsonl",
            "max_concurrency": CONCURRENCY,
            "evaluation_methods": ["exact_match", "scorers.py:short"],
            "metrics": [{"name": "pass_rate", "facets": ["model_name"]}],
        }

    def drive(self, *flags: str, root: str = "root", code: str = "") -> subprocess.Popen[str]:
        """A driver; `code` runs in it first."""
        (self.folder / "config.json").write_text(
            json.dumps({**self.config, "on": {"ray": self.engine}})
        )
        words = ["run", "config.json", "-o", root, "--no-progress", *flags]
        program = f"import sys; {code or 'pass'}\nfrom assay.cli import main\nmain(sys.argv[1:])"
        command = [sys.executable, "-c", program, *words]
        return subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def alone(self) -> Path:
        """The same by one process."""
        (self.folder / "alone.json").write_text(json.dumps({**self.config, "max_concurrency": 64}))
        words = ["run", "alone.json", "-o", "alone", "--no-progress"]
        subprocess.run(
            [sys.executable, "-m", "assay", *words],
            cwd=self.folder,
            check=True,
            capture_output=True,
        )
        return self.folder / "alone"

    def workers(self) -> list[dict[str, Any]]:
        """What the workers of the root said last, of those that live."""
        files = sorted((self.folder / "root").glob("workers/*/*.json"))
        beats = [json.loads(file.read_bytes()) for file in files]
        return [
            beat for beat in beats if not beat["ended"] and Path(f"/proc/{beat['pid']}").exists()
        ]

    def committed(self) -> int:
        files = (self.folder / "root").glob("responses.d/*/*/*.jsonl")
        return sum(file.read_bytes().count(b"\n") for file in files)

    def paid(self) -> int:
        return stats(self.url)["requests"]

    def check(self, alone: Path) -> None:
        """Every row once, and the numbers of one process."""
        root = self.folder / "root"
        for stem, count in (("responses", 1), ("evaluation_results", 2)):
            files = [root / f"{stem}.jsonl", *root.glob(f"{stem}.d/*/*/*.jsonl")]
            rows = [
                json.loads(line)
                for file in files
                if file.exists()
                for line in file.read_text().splitlines()
            ]
            expected = [
                json.loads(line) for line in (alone / f"{stem}.jsonl").read_text().splitlines()
            ]
            assert Counter(row["key"] for row in rows) == Counter(row["key"] for row in expected)
            assert len(rows) == count * len((self.folder / "items.jsonl").read_text().splitlines())
        assert (root / "metrics.jsonl").read_bytes() == (alone / "metrics.jsonl").read_bytes()


def until(
    condition: Callable[[], bool], driver: subprocess.Popen[str], seconds: float = 90
) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        assert driver.poll() is None, driver.communicate()
        time.sleep(0.1)


def ended(driver: subprocess.Popen[str], seconds: float = 100) -> tuple[int, str, str]:
    try:
        out, err = driver.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        driver.kill()
        out, err = driver.communicate()
        raise AssertionError(f"the driver did not end:\n{out}\n{err}") from None
    return driver.returncode, out, err


def test_workers_nodes_and_drivers_are_killed(
    cluster: RayCluster, url: str, tmp_path: Path
) -> None:
    plan = Plan(tmp_path, url, cluster.address)
    alone = plan.alone()
    before = plan.paid()
    driver = plan.drive()
    until(lambda: plan.committed() > 40, driver)
    os.kill(plan.workers()[0]["pid"], signal.SIGKILL)
    until(lambda: plan.committed() > 120, driver)
    driver.kill()
    driver.communicate()
    drivers = [plan.drive(), plan.drive()]
    until(lambda: plan.committed() > 200, drivers[0])
    cluster.cluster.remove_node(cluster.nodes.pop(), allow_graceful=False)
    for driver in drivers:
        code, out, err = ended(driver)
        assert code == 0, out + err
    cluster.nodes.append(cluster.add())
    plan.check(alone)
    deaths = 1 + WORKERS + WORKERS  # a worker, all of a driver, and those of a node
    assert plan.paid() - before <= 400 + deaths * AGAIN


def test_a_driver_that_is_asked_to_stop_drains_its_workers(
    cluster: RayCluster, url: str, tmp_path: Path
) -> None:
    plan = Plan(tmp_path, url, cluster.address, items=150)
    alone = plan.alone()
    before = plan.paid()
    driver = plan.drive()
    until(lambda: plan.committed() > 20, driver)
    driver.send_signal(signal.SIGINT)
    code, _, err = ended(driver)
    assert code == 130, err
    assert not plan.workers()
    code, out, err = ended(plan.drive())
    assert code == 0, out + err
    plan.check(alone)
    assert plan.paid() - before == 150  # what was in flight was waited for


def test_every_worker_starts_its_server_once(cluster: RayCluster, url: str, tmp_path: Path) -> None:
    """As many workers as there are GPUs, and more shards than workers: a model is loaded by each worker at most."""
    gpus = cluster.add(num_gpus=2)
    plan = Plan(tmp_path, url, cluster.address, items=60, workers=None, gpus=1)
    log = tmp_path / "server.log"
    command = f"{sys.executable} -m assay.server --skill 0.7 --port {{port}}"
    plan.config["models"] = [{"name": "own", "type": "vllm", "command": command, "log": str(log)}]
    code, out, err = ended(plan.drive())
    assert code == 0, out + err
    assert len(list((tmp_path / "root" / "shards" / "0").iterdir())) > 2
    started = log.read_text().count('{"url"')
    alone = plan.alone()
    plan.check(alone)
    assert 1 <= started <= 2
    cluster.cluster.remove_node(gpus)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "import assay.engine.cluster.engines.ray as ray; ray.VERSION = '0.0.7'",
            "and 0.0.7 here",
        ),
        ("import ray; ray.__version__ = '1.0.0'", "another version of Ray or of Python"),
    ],
)
def test_other_versions_are_named(
    cluster: RayCluster, url: str, tmp_path: Path, code: str, message: str
) -> None:
    plan = Plan(tmp_path, url, cluster.address, items=10)
    before = plan.paid()
    exit_code, out, err = ended(plan.drive(code=code))
    assert exit_code == 2, out + err
    assert message in err
    assert "Traceback" not in err
    assert plan.paid() == before


def test_a_cluster_that_does_not_answer_is_named(url: str, tmp_path: Path) -> None:
    plan = Plan(tmp_path, url, "127.0.0.1:1", items=10)
    code, _, err = ended(plan.drive())
    assert code == 2
    assert "there is no Ray cluster" in err
    assert "127.0.0.1:1" in err


def test_metrics_are_computed_on_a_node(cluster: RayCluster, url: str, tmp_path: Path) -> None:
    plan = Plan(tmp_path, url, cluster.address, items=20)
    alone = plan.alone()
    expected = (alone / "metrics.jsonl").read_bytes()
    (alone / "metrics.jsonl").unlink()
    setting = json.dumps({"ray": {"address": cluster.address}})
    words = [
        sys.executable,
        "-m",
        "assay",
        "aggregate",
        "alone",
        "--on",
        "ray",
        "--set",
        f"on={setting}",
    ]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "pass_rate" in done.stdout
    assert (alone / "metrics.jsonl").read_bytes() == expected


def test_the_example(cluster: RayCluster, tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "assay").write_text(f'#!/bin/sh\nexec {sys.executable} -m assay "$@"\n')
    (tmp_path / "bin" / "assay").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "RAY_ADDRESS": cluster.address}  # as a Ray job has it
    words = ["sh", str(examples / "cluster" / "ray.sh"), "root"]
    done = subprocess.run(
        words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    assert "pass@1" in done.stdout
    assert (tmp_path / "root" / "metrics.jsonl").exists()
