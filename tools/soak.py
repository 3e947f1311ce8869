"""`make soak MINUTES=10`: kill, stop, starve and damage experiments until the time is up; then count.

    python -m tools.soak [--minutes 10] [--seed 0]

Each experiment is run again and again with one attack a time, and at last in peace. Then every cell must have its row
once, the metrics must be those of an undisturbed run, and the server must not have been paid twice for more than the
calls in flight and the rows that were damaged. A gate on what an attack left must not give a verdict.
"""

import argparse
import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assay.server import Options, running, stats

ITEMS, SAMPLES, CONCURRENCY = 60, 3, 4
CELLS = ITEMS * SAMPLES
ATTACKS = 12  # on each experiment
ROWS = ("responses.jsonl", "evaluation_results.jsonl")
SCORER = """
async def judge(item, response, *, context):
    verdict = await context.complete([{"role": "user", "content": f"{item.id}: {response.response}"}], model="mock")
    return {"passed": len(verdict.text) % 2 == 0}
"""


class Soak:
    """One experiment under attack; `figures` counts what was done to all of them, `faults` says what went wrong."""

    def __init__(self, folder: Path, url: str, draw: random.Random, figures: Counter[str]) -> None:
        self.folder, self.url, self.draw, self.figures = folder, url, draw, figures
        self.out = folder / "out"
        self.faults: list[str] = []
        self.allowed = 0  # calls that may be paid again
        (folder / "judge.py").write_text(SCORER)
        rows = [
            {"id": f"q{n}", "question": f"{n} + {n}", "ground_truth": str(2 * n)}
            for n in range(ITEMS)
        ]
        (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        config = {
            "dataset": "items.jsonl",
            "models": [{"name": "mock", "endpoint": url}],
            "prompt_template": "What is {{question}}?",
            "sample_params": {"num_samples": SAMPLES},
            "evaluation_methods": ["judge.py:judge", "exact_match"],
            "metrics": ["pass_rate"],
            "max_concurrency": CONCURRENCY,
        }
        (folder / "config.yaml").write_text(json.dumps(config))

    def command(self, out: Path, *fault: str) -> list[str]:
        words = ["run", str(self.folder / "config.yaml"), "-o", str(out), "--no-progress"]
        return (
            [sys.executable, "-m", "tools.soak", *fault, *words]
            if fault
            else [sys.executable, "-m", "assay", *words]
        )

    def run(self) -> None:
        undisturbed = self.folder / "undisturbed"
        self._finish(undisturbed)
        before = stats(self.url)["requests"]
        for _ in range(ATTACKS):
            self.draw.choice(
                [self._kill, self._kill, self._stop, self._starve, self._flip, self._tear]
            )()
            if self.draw.random() < 0.2:
                self._gate()
        self._finish(self.out)
        paid = stats(self.url)["requests"] - before
        damaged = sum(len(_lines(self.out / "rejected" / name)) for name in ROWS)
        self.allowed += 2 * damaged
        self.figures["calls paid again"] += max(0, paid - 2 * CELLS)
        self._expect(
            paid <= 2 * CELLS + self.allowed,
            f"{paid} calls for {2 * CELLS}, {self.allowed} may be twice",
        )
        for name in ROWS:
            rows, wanted = _keys(self.out / name), _keys(undisturbed / name)
            self.figures["rows lost"] += len(wanted - rows)
            self.figures["rows twice"] += sum(count - 1 for count in rows.values())
            self._expect(rows == wanted, f"{name} has {len(rows)} keys, {len(wanted)} wanted")
        values = [
            [row["value"] for row in _lines(out / "metrics.jsonl")]
            for out in (self.out, undisturbed)
        ]
        self._expect(values[0] == values[1], f"metrics {values[0]}, undisturbed {values[1]}")

    def _expect(self, holds: bool, fault: str) -> None:
        if not holds:
            self.faults.append(fault)

    def _finish(self, out: Path) -> str:
        child = subprocess.run(self.command(out), capture_output=True, text=True, timeout=120)
        self._expect(child.returncode == 0, f"exit {child.returncode}: {child.stderr[-500:]}")
        self._expect("Traceback" not in child.stderr + child.stdout, child.stderr[-500:])
        return " ".join(child.stderr.split())

    def _started(self) -> "subprocess.Popen[bytes]":
        """A run, at a random moment."""
        quiet = subprocess.DEVNULL
        child = subprocess.Popen(self.command(self.out), stdout=quiet, stderr=quiet)
        size, until = self._size(), time.monotonic() + 10
        while child.poll() is None and self._size() == size and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(self.draw.uniform(0, 0.1))
        return child

    def _size(self) -> int:
        return sum(path.stat().st_size for name in ROWS if (path := self.out / name).exists())

    def _kill(self) -> None:
        child = self._started()
        child.kill()
        child.wait()
        self.figures["kills"] += 1
        self.allowed += CONCURRENCY

    def _stop(self) -> None:
        child = self._started()
        with suppress(ProcessLookupError):
            child.send_signal(self.draw.choice([signal.SIGTERM, signal.SIGINT]))
        code = child.wait(30)
        self._expect(code in (0, 130), f"stopped with exit {code}")
        self.figures["stops"] += 1

    def _starve(self) -> None:
        """The n-th write, sync or rename fails."""
        fault = (self.draw.choice(["ENOSPC", "EIO", "EDQUOT"]), str(self.draw.randrange(1, 120)))
        child = subprocess.run(
            self.command(self.out, *fault), capture_output=True, text=True, timeout=60
        )
        self._expect(
            child.returncode in (0, 1), f"{fault}: exit {child.returncode}: {child.stderr[-500:]}"
        )
        self._expect("Traceback" not in child.stderr, child.stderr[-500:])
        self.figures["refused writes"] += 1
        self.allowed += 2 * CONCURRENCY

    def _flip(self) -> None:
        """One bit of sealed rows, the file's time as before: the next run must name the block."""
        self._finish(self.out)
        path = self.out / self.draw.choice(ROWS)
        content, stat = bytearray(path.read_bytes()), path.stat()
        content[self.draw.randrange(len(content))] ^= 1 << self.draw.randrange(8)
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self._expect(
            f"of {path.name} (bytes" in self._finish(self.out), "a flipped bit was not found"
        )
        self.figures["flips"] += 1

    def _tear(self) -> None:
        path = self.out / self.draw.choice(ROWS)
        size = path.stat().st_size if path.exists() else 0
        if size:
            os.truncate(path, size - self.draw.randrange(1, min(size, 300)))
            self.figures["torn ends"] += 1
            self.allowed += 2

    def _gate(self) -> None:
        # responses that were torn later have their labels
        whole = len(_keys(self.out / ROWS[1])) >= 2 * CELLS
        gate = [
            sys.executable,
            "-m",
            "assay",
            "gate",
            str(self.out),
            "--min",
            "0",
            "--label",
            "exact_match",
        ]
        code = subprocess.run(gate, capture_output=True, timeout=60).returncode
        self._expect(
            whole or code not in (0, 3), f"a gate on unfinished rows gave a verdict: exit {code}"
        )
        self.figures["gates"] += 1


def _lines(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError):
            rows.append(json.loads(line))
    return rows


def _keys(path: Path) -> Counter[tuple[str, int]]:
    return Counter((row.get("key", ""), row.get("part", [0])[0]) for row in _lines(path))


def soak(minutes: float, seed: int) -> tuple[Counter[str], list[str]]:
    """What was done, and what went wrong."""
    figures: Counter[str] = Counter({"rows lost": 0, "rows twice": 0})
    faults: list[str] = []
    until, draw = time.monotonic() + 60 * minutes, random.Random(seed)
    with running(Options(latency_ms=5)) as url:
        while time.monotonic() < until and len(faults) < 10:
            with TemporaryDirectory(prefix="assay-soak-") as folder:
                experiment = Soak(Path(folder), url, draw, figures)
                experiment.run()
                faults += experiment.faults
            figures["experiments"] += 1
            if sys.stderr.isatty():
                print("\r" + _text(figures), end="", file=sys.stderr)
    return figures, faults


def _text(figures: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(figures.items()))


def _with_fault(kind: str, number: int, words: list[str]) -> None:
    """`assay WORDS` in this process, where the n-th change of a file fails."""
    from assay.cli import main

    calls = 0

    def failing(real: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number:
                raise OSError(getattr(errno, kind), os.strerror(getattr(errno, kind)))
            return real(*arguments, **more)

        return call

    for name in ("write", "fsync", "replace"):
        setattr(os, name, failing(getattr(os, name)))
    main(words)


def main() -> int:
    """Soak, print the figures, exit 1 after a fault."""
    if len(sys.argv) > 1 and sys.argv[1] in errno.errorcode.values():
        _with_fault(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
        return 0
    parser = argparse.ArgumentParser(
        prog="python -m tools.soak", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    figures, faults = soak(arguments.minutes, arguments.seed)
    print("\r" + _text(figures))
    for fault in faults:
        print(f"fault: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
