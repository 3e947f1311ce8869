"""A paired comparison of many items against drawing resamples of item numbers, and one of many labels."""

import json
import math
import random
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from assay.analysis.compare.compare import compare
from assay.stats.paired import Differences, interval, significance
from benchmarks.measure import Line

ITEMS, RESAMPLES = 100_000, 10_000
LABELS, RESPONSES = (50, 200, 2000), 100
DRAWN = 200  # resamples that the plain way is timed for; its time is proportional to their number


def paired() -> list[Line]:
    """Interval and test of 100,000 items with five samples on each side."""
    random = np.random.default_rng(1)
    differences = random.binomial(5, 0.62, ITEMS) / 5 - random.binomial(5, 0.6, ITEMS) / 5
    ours = min(_ours(differences) for _ in range(5))
    plain = min(_plain(differences) for _ in range(3)) * RESAMPLES / DRAWN
    detail = f"{ours * 1000:.1f} ms / {plain:.1f} s, the latter from {DRAWN} resamples"
    return [
        Line("index resamples / paired comparison, 100,000 items", plain / ours, ">=", 20, detail)
    ]


def _ours(differences: np.ndarray) -> float:
    began = time.perf_counter()
    found = Differences(differences)
    interval(found)
    significance(found)
    return time.perf_counter() - began


def _plain(differences: np.ndarray) -> float:
    random = np.random.default_rng(2)
    began = time.perf_counter()
    means = [differences[random.integers(0, ITEMS, ITEMS)].mean() for _ in range(DRAWN)]
    np.quantile(means, (0.025, 0.975))
    return time.perf_counter() - began


def labels() -> list[Line]:
    """`compare --all-labels` of two experiments: how its CPU time grows with the number of labels."""
    with TemporaryDirectory() as folder:
        seconds = [_all_labels(Path(folder) / str(count), count) for count in LABELS]
    exponent = math.log(seconds[-1] / seconds[0]) / math.log(LABELS[-1] / LABELS[0])
    shown = zip(LABELS, seconds, strict=True)
    detail = ", ".join(f"{count:,} labels {each:.2f} s" for count, each in shown)
    return [Line("compare --all-labels, exponent in labels", exponent, "<=", 1.1, detail)]


def _all_labels(folder: Path, count: int) -> float:
    """CPU seconds for this many labels of the same responses."""
    paths = [folder / name for name in ("one", "other")]
    for seed, path in enumerate(paths):
        path.mkdir(parents=True)
        draw = random.Random(seed)
        with (path / "evaluation_results.jsonl").open("w") as file:
            for response in range(RESPONSES):
                for label in range(count):
                    score = float(draw.random() < 0.6)
                    row = {"item_id": f"q{response}", "label": f"label{label}", "score": score}
                    file.write(json.dumps({**row, "outcome": "scored", "scorer": "s"}) + "\n")
    began = time.process_time()
    compare(paths, all_labels=True)
    return time.process_time() - began


BENCHMARKS = [paired, labels]
