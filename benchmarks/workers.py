"""Several processes on one machine: `--workers 2` against two separate commands with half of the rows each."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.aggregation import SAMPLES, write_rows
from benchmarks.measure import Line

ROWS, TRIES = 1_000_000, 5
CONFIG = """
metrics:
  - {name: pass@1, facets: [metadata.model_id, prompt_template]}
  - {name: pass@5, facets: [metadata.model_id, prompt_template]}
  - {name: mean, facets: [metadata.model_id], interval: bootstrap}
  - {name: mean}
"""


def together(*commands: list[str]) -> float:
    """Seconds until all have ended, which begin at the same time."""
    began = time.perf_counter()
    running = [
        subprocess.Popen([sys.executable, "-m", "assay", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for words in commands
    ]
    if any(process.wait() for process in running):
        raise RuntimeError("a command failed")
    return time.perf_counter() - began


def aggregating() -> list[Line]:
    """Alternating, best of five each; the whole commands, from start to end."""
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "c.yaml").write_text(CONFIG)
        write_rows(name, ROWS)
        lines = (folder / "evaluation_results.jsonl").read_bytes().splitlines(keepends=True)
        middle = len(lines) // (2 * 4 * SAMPLES) * 4 * SAMPLES  # whole items
        files = [folder / "evaluation_results.jsonl", folder / "half-0.jsonl", folder / "half-1.jsonl"]
        for file, half in zip(files[1:], (lines[:middle], lines[middle:]), strict=True):
            file.write_bytes(b"".join(half))
        del lines
        whole, *halves = [["aggregate", str(file), "-c", str(folder / "c.yaml")] for file in files]
        for _ in range(TRIES):
            theirs.append(together(*halves))
            ours.append(together([*whole, "--workers", "2"]))
        alone = together(whole)
    detail = f"{ROWS / min(ours):,.0f} rows/s; two commands {ROWS / min(theirs):,.0f}, one {ROWS / alone:,.0f}"
    return [Line("aggregating 1M rows with 2 workers / two commands", min(theirs) / min(ours), ">=", 0.9, detail)]


BENCHMARKS = [aggregating]
