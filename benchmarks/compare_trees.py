"""Two trees side by side: the same workloads, CPU time and peak memory, in interleaved pairs.

    python -m benchmarks.compare_trees OLD NEW [--pairs 9] [--only NAME …]

Both trees run under this interpreter and its packages; only `src` differs. What counts is the CPU time of the whole
process, user and system: on a busy machine the clock on the wall says little. The pairs are A B, B A, A B …, so that
what changes slowly hits both. The ratio is the Hodges–Lehmann estimate of the pairs' log ratios, its bounds are those
of Wilcoxon's signed rank test: no assumption about how the noise is spread. A workload is slower if even its lower
bound is above 1.05; with fewer than six pairs no bound is good enough to say so. This process stays small, because a
child's peak memory begins with that of its parent.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.trees.core import SERVER
from benchmarks.trees.workloads import WORKLOADS, Words, Workload

MOST = 1.05
LEVEL = 0.95


class Cost(NamedTuple):
    seconds: float
    megabytes: float


class Estimate(NamedTuple):
    """A ratio with its bounds; `level` is what they really cover, less than wanted for few pairs."""

    ratio: float
    low: float
    high: float
    level: float


class Tree:
    """A checkout, and a scratch folder for what it makes."""

    def __init__(self, path: str, scratch: Path, server: str) -> None:
        self.source = Path(path).resolve() / "src"
        if not (self.source / "assay").is_dir():
            raise SystemExit(f"{path} has no src/assay")
        self.scratch = scratch
        self.server = server

    def prepare(self, workload: Workload) -> None:
        folder = self.scratch / workload.name
        folder.mkdir(parents=True)
        workload.inputs(folder)
        for path in folder.rglob("*.yaml"):
            path.write_text(path.read_text().replace(SERVER, self.server))
        for command in workload.setup:
            self.run(workload, command)

    def measure(self, workload: Workload) -> Cost:
        """One run of all its commands, from a fresh start."""
        folder = self.scratch / workload.name
        for pattern in workload.fresh:
            for path in folder.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        commands = workload.command if isinstance(workload.command, list) else [workload.command]
        costs = [self.run(workload, command) for command in commands]
        return Cost(sum(cost.seconds for cost in costs), max(cost.megabytes for cost in costs))

    def run(self, workload: Workload, command: Words | str) -> Cost:
        words = ["-c", command] if isinstance(command, str) else ["-m", "assay", *command]
        with (self.scratch / "output.txt").open("w+") as output:
            child = subprocess.Popen(
                [sys.executable, *words],
                cwd=self.scratch / workload.name,
                env=environment(self.source),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode:
                output.seek(0)
                raise SystemExit(
                    f"{workload.name} in {self.source}: {command}\n{output.read()[-3000:]}"
                )
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def environment(source: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    }
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return {**kept, **threads, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0", "COLUMNS": "120"}


@contextmanager
def serving(source: Path) -> Iterator[str]:
    """One mock server for both trees."""
    command = [sys.executable, "-m", "assay.server", "--until-stdin-closes", "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment(source), stdin=pipe, stdout=pipe, text=True
    ) as child:
        assert child.stdout
        yield json.loads(child.stdout.readline())["url"]
        child.communicate()


def estimate(ratios: Sequence[float]) -> Estimate:
    """The median of all averages of two log ratios, and the bounds that the signed rank test does not reject."""
    logs = [math.log(ratio) for ratio in ratios]
    count = len(logs)
    averages = sorted((logs[i] + logs[j]) / 2 for i in range(count) for j in range(i, count))
    ways = [1]  # how many sets of the ranks 1 … count have each sum
    for rank in range(1, count + 1):
        none = [0] * rank
        ways = [
            without + with_it for without, with_it in zip(ways + none, none + ways, strict=True)
        ]
    place, outside = 0, ways[0]
    while (outside + ways[place + 1]) / 2**count <= (1 - LEVEL) / 2:
        place += 1
        outside += ways[place]
    level = 1 - 2 * outside / 2**count
    return Estimate(
        *(math.exp(value) for value in (median(averages), averages[place], averages[-1 - place])),
        level,
    )


def verdict_of(time: Estimate, memory: float) -> str:
    if time.low > MOST and time.level >= LEVEL:
        return "SLOWER"
    if memory > MOST:
        return "MORE MEMORY"
    return "unsure" if time.high > MOST else "ok"


def compared(workload: Workload, trees: Sequence[Tree], pairs: int) -> tuple[str, bool]:
    """A line about a workload, and whether it holds."""
    for tree in trees:
        tree.prepare(workload)
        tree.measure(workload)  # warm-up: byte code, caches
    costs: list[list[Cost]] = [[], []]
    for pair in range(pairs):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            costs[side].append(trees[side].measure(workload))
    for tree in trees:
        shutil.rmtree(tree.scratch / workload.name)
    old, new = costs
    time = estimate(
        [after.seconds / before.seconds for before, after in zip(old, new, strict=True)]
    )
    memory = median(cost.megabytes for cost in new) / median(cost.megabytes for cost in old)
    verdict = verdict_of(time, memory)
    seconds = [median(cost.seconds for cost in side) for side in costs]
    line = (
        f"{workload.name:<15} {seconds[0]:>7.2f} {seconds[1]:>7.2f} {time.ratio:>7.3f} {time.low:>7.3f} "
        f"{time.high:>7.3f} {time.level:>5.0%} {memory:>7.3f}  {verdict}"
    )
    return line, verdict in ("ok", "unsure")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare_trees", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("old", help="a checkout")
    parser.add_argument("new", help="another one")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=[workload.name for workload in WORKLOADS]
    )
    options = parser.parse_args(words)
    chosen = [
        workload for workload in WORKLOADS if not options.only or workload.name in options.only
    ]
    print(
        f"{'workload':<15} {'old s':>7} {'new s':>7} {'ratio':>7} {'low':>7} {'high':>7} {'level':>5} {'memory':>7}"
    )
    holds: list[bool] = []
    with TemporaryDirectory() as scratch, serving(Path(options.old).resolve() / "src") as url:
        trees = [
            Tree(path, Path(scratch) / side, url)
            for side, path in (("a", options.old), ("b", options.new))
        ]
        for workload in chosen:
            line, held = compared(workload, trees, options.pairs)
            print(line, flush=True)
            holds.append(held)
    print(
        f"{sum(holds)} of {len(holds)} workloads hold: no lower bound and no memory ratio above {MOST:g}"
    )
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
