"""A real SLURM on loopback, and the array script as it is printed: killed and drained workers lose nothing."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.server import Options, running
from assay.server.process import stats

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
missing = [
    name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None
]
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        bool(missing) or os.geteuid() != 0, reason=f"needs root and {', '.join(missing) or 'SLURM'}"
    ),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
ITEMS = 300
CONCURRENCY, LATENCY = 4, 0.2
CONFIGURATION = """
ClusterName=assay
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
KillWait=5
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Slurm:
    """One controller and one node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("state", "spool", "bin"):
            (folder / name).mkdir()
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        host = socket.gethostname().partition(".")[0]
        values = {
            "host": host,
            "controller": port(),
            "daemon": port(),
            "folder": folder,
            "cpus": os.cpu_count(),
        }
        (folder / "slurm.conf").write_text(CONFIGURATION.format(**values))
        assay = folder / "bin" / "assay"
        assay.write_text(f'#!/bin/sh\nexec {sys.executable} -m assay "$@"\n')
        assay.chmod(0o755)
        self.environ = {
            **os.environ,
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}:/usr/sbin",
        }
        munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
        self.processes = [
            self._start(
                "munged", "--force", "--foreground", f"--socket={folder}/munge.socket", *munge
            ),
        ]
        self.until(lambda: (folder / "munge.socket").exists())
        self.processes.append(self._start("slurmctld", "-D", "-c"))
        self.processes.append(self._start("slurmd", "-D", "-N", host))
        self.until(lambda: "idle" in self.call("sinfo", "-h", "-o", "%t"))

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(words, env=self.environ, stdin=quiet, stdout=quiet, stderr=quiet)

    def call(self, *words: str, **options: Any) -> str:
        return subprocess.run(
            words, env=self.environ, capture_output=True, text=True, **options
        ).stdout

    def until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.logs()
            time.sleep(0.2)

    def logs(self) -> str:
        return "\n".join(
            path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log")
        )

    def end(self) -> None:
        self.call("scancel", "--full", "--user=root")
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(timeout=20)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    made = Slurm(tmp_path_factory.mktemp("slurm"))
    yield made
    made.end()


def rows(root: Path, stem: str) -> list[dict[str, Any]]:
    files = [root / f"{stem}.jsonl", *root.glob(f"{stem}.d/*/*/*.jsonl")]
    return [
        json.loads(line)
        for file in files
        if file.exists()
        for line in file.read_text().splitlines()
    ]


def living(root: Path) -> list[int]:
    """The processes of the workers that have begun and not ended."""
    beats = [json.loads(file.read_bytes()) for file in sorted(root.glob("workers/*/*.json"))]
    return [
        beat["pid"] for beat in beats if not beat["ended"] and Path(f"/proc/{beat['pid']}").exists()
    ]


def begun(slurm: Slurm, folder: Path, url: str) -> Path:
    """The root of a plan without workers, beside the rows of one process."""
    questions = (
        {"id": f"q{n}", "question": f"What is {n} + 5?", "answer": str(n + 5)} for n in range(ITEMS)
    )
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    config = {
        "models": [{"name": "mock", "endpoint": url}],
        "dataset": "items.jsonl",
        "max_concurrency": CONCURRENCY,
        "evaluation_methods": ["exact_match"],
        "metrics": ["pass_rate"],
    }
    (folder / "config.json").write_text(json.dumps(config))
    slurm.call(
        "assay", "run", "config.json", "-o", "alone", "--set", "max_concurrency=64", cwd=folder
    )
    slurm.call("assay", "run", "config.json", "-o", "root", "--workers", "0", cwd=folder)
    return folder / "root"


def test_the_array_script_as_printed(slurm: Slurm, tmp_path: Path) -> None:
    with running(Options(skill=0.7, latency_ms=LATENCY * 1000)) as url:
        root = begun(slurm, tmp_path, url)
        paid = stats(url)["requests"]
        (tmp_path / "job.sh").write_text(
            slurm.call("assay", "worker", str(root), "--script", "slurm", "--count", "4")
        )
        job = slurm.call("sbatch", "--parsable", "job.sh", cwd=tmp_path).strip()
        slurm.until(lambda: len(rows(root, "responses")) > 20)
        os.kill(living(root)[0], signal.SIGKILL)
        slurm.until(lambda: len(rows(root, "responses")) > 80 and len(living(root)) > 0)
        drained = slurm.call("squeue", "-h", "-t", "RUNNING", "-o", "%K").split()[0]
        slurm.call("scancel", "--signal=TERM", "--batch", f"{job}_{drained}")
        # What was drained waits in the queue; all others run to their end without it.
        slurm.until(
            lambda: slurm.call("squeue", "-h", "-o", "%K %t").split() == [drained, "PD"], 120
        )
        slurm.call("scontrol", "update", f"JobId={job}_{drained}", "StartTime=now")
        slurm.until(lambda: not slurm.call("squeue", "-h"))
        calls = stats(url)["requests"] - paid
    alone = tmp_path / "alone"
    for stem in ("responses", "evaluation_results"):
        assert Counter(row["key"] for row in rows(root, stem)) == Counter(
            row["key"] for row in rows(alone, stem)
        )
        assert len(rows(root, stem)) == ITEMS
    assert (root / "metrics.jsonl").read_bytes() == (alone / "metrics.jsonl").read_bytes()
    # a killed worker; a drained one repeats less
    assert calls <= ITEMS + 2 * (CONCURRENCY + 3 * CONCURRENCY / LATENCY)
    assert "the same command resumes" in (tmp_path / f"assay-{job}_{drained}.log").read_text()


def test_the_example(slurm: Slurm, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("output"))
    slurm.call("assay", "run", "examples/cluster/config.yaml", "-o", "alone", cwd=tmp_path)
    job = slurm.call("sbatch", "--parsable", "examples/cluster/slurm.sh", cwd=tmp_path).strip()
    slurm.until(lambda: not slurm.call("squeue", "-h"))
    logs = "".join(file.read_text() for file in tmp_path.glob(f"assay-{job}_*.log"))
    metrics = tmp_path / "output" / "cluster" / "metrics.jsonl"
    assert metrics.exists(), logs
    assert metrics.read_bytes() == (tmp_path / "alone" / "metrics.jsonl").read_bytes()
