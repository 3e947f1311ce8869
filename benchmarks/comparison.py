"""A paired comparison of many items against drawing resamples of item numbers, and ones of many labels and of many
values of a facet."""

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
VALUES, ITEMS_OF_VALUE = (250, 2000), 30  # so many that each is compared with the first
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


def values() -> list[Line]:
    """`compare --facet` of very many values: how its CPU time grows with them."""
    with TemporaryDirectory() as folder:
        seconds = [_values(Path(folder) / str(count), count) for count in VALUES]
    exponent = math.log(seconds[1] / seconds[0]) / math.log(VALUES[1] / VALUES[0])
    shown = zip(VALUES, seconds, strict=True)
    detail = ", ".join(f"{count:,} values {each:.2f} s" for count, each in shown)
    return [Line("compare --facet, exponent in values", exponent, "<=", 1.1, detail)]


def _values(path: Path, count: int) -> float:
    """CPU seconds for this many values of a facet, with the same items each."""
    path.mkdir()
    draw = random.Random(0)
    with (path / "evaluation_results.jsonl").open("w") as file:
        for item in range(ITEMS_OF_VALUE):
            for value in range(count):
                row = {"item_id": f"q{item}", "label": "l", "score": float(draw.random() < 0.6)}
                more = {"outcome": "scored", "scorer": "s", "model_name": f"m{value}"}
                file.write(json.dumps(row | more) + "\n")
    began = time.process_time()
    compare([path], facet="model_name")
    return time.process_time() - began


BENCHMARKS = [paired, labels, values]
