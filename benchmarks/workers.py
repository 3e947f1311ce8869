"""Several processes on one machine: `--workers 2` against two separate commands with half of the rows each.

Alternating, best of three each; whole commands, from start to end.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import msgspec

from benchmarks.aggregation import SAMPLES, write_rows
from benchmarks.measure import Line

ROWS, RESPONSES, ANSWERS = 1_000_000, 400_000, 4
METRICS = """
metrics:
  - {name: pass@1, facets: [metadata.model_id, prompt_template]}
  - {name: pass@5, facets: [metadata.model_id, prompt_template]}
  - {name: mean, facets: [metadata.model_id], interval: bootstrap}
  - {name: mean}
"""
SCORING = "evaluation_methods: [exact_match, f1]\nmetrics: [mean]\n"
Words = list[str]


def aggregating() -> list[Line]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config, whole, *halves = [
            folder / file for file in ("c.yaml", "evaluation_results.jsonl", "0.jsonl", "1.jsonl")
        ]
        config.write_text(METRICS)
        write_rows(name, ROWS)
        _halve(whole, halves, ROWS // (8 * SAMPLES) * 4 * SAMPLES)  # by items: four tasks have each

        def command(rows: Path) -> Words:
            return ["aggregate", str(rows), "-c", str(config)]

        return [_compared("aggregating 1M rows", ROWS, command, whole, halves)]


def evaluating() -> list[Line]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config, whole, *halves = [folder / file for file in ("c.yaml", "whole", "0", "1")]
        config.write_text(SCORING)
        items, middle = range(RESPONSES // ANSWERS), RESPONSES // ANSWERS // 2
        for each, part in zip(
            (whole, *halves), (items, items[:middle], items[middle:]), strict=True
        ):
            _write_run(each, part)

        def command(rows: Path) -> Words:
            output = tempfile.mkdtemp(dir=folder)
            return ["evaluate", str(rows), "-c", str(config), "-o", output, "--no-progress"]

        return [_compared("evaluating 400,000 responses", RESPONSES, command, whole, halves)]


def _write_run(folder: Path, items: range) -> None:
    """Four answers to each item, as another program may have left them."""
    encode = msgspec.json.Encoder().encode
    folder.mkdir()
    with (folder / "items.jsonl").open("wb") as file:
        for item in items:
            data = {"question": f"{item} + 1"}
            file.write(
                encode(
                    {"id": f"item-{item}", "data": data, "ground_truth": {"answer": str(item + 1)}}
                )
                + b"\n"
            )
    with (folder / "responses.jsonl").open("wb") as file:
        for item, sample in product(items, range(ANSWERS)):
            answer = {
                "item_id": f"item-{item}",
                "sample_index": sample,
                "model_name": "m",
                "response": str(item + 1),
            }
            file.write(
                encode({**answer, "key": f"{item:030x}{sample:02x}", "outcome": "ok"}) + b"\n"
            )


def _halve(file: Path, halves: list[Path], middle: int) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    for half, part in zip(halves, (lines[:middle], lines[middle:]), strict=True):
        half.write_bytes(b"".join(part))


def _compared(
    what: str, rows: int, command: Callable[[Path], Words], whole: Path, halves: list[Path]
) -> Line:
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(3):
        theirs.append(_together(*(command(half) for half in halves)))
        ours.append(_together([*command(whole), "--workers", "2"]))
    alone = _together(command(whole))
    detail = f"{rows / min(ours):,.0f} rows/s; two commands {rows / min(theirs):,.0f}, one {rows / alone:,.0f}"
    return Line(f"{what} with 2 workers / two commands", min(theirs) / min(ours), ">=", 0.9, detail)


def _together(*commands: Words) -> float:
    """Seconds until all have ended, which begin at the same time."""
    began = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "assay", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for words in commands
    ]
    for process in running:
        _, errors = process.communicate()
        if process.returncode:
            raise RuntimeError(errors.decode()[-2000:])
    return time.perf_counter() - began


BENCHMARKS = [aggregating, evaluating]
