"""What responses took and cost can be compared and gated like scores; and a gate says what it takes."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.analysis.compare.compare import compare
from assay.analysis.compare.gate import gate
from assay.analysis.compare.gate_calibration import Check
from tests.analysis.rows import counted, rows_of, save


def experiment(
    folder: Path, factor: float, *, labels: tuple[str, ...] = ("match",), n: int = 60
) -> Path:
    """Items that take as long on both sides but for a factor and some noise."""
    random, own = np.random.default_rng(1), np.random.default_rng(int(factor * 10))
    seconds = random.lognormal(0, 0.5, n) * factor * own.lognormal(0, 0.1, n)
    rows: list[dict[str, Any]] = []
    for label in labels:
        rows += [
            {**row, "label": label, "responses": [f"{at + 1:04x}" * 8]}
            for at, row in enumerate(counted(n, n))
        ]
    save(folder, rows)
    responses = [
        {
            "key": f"{at + 1:04x}" * 8,
            "item_id": row["item_id"],
            "model_name": "m",
            "response": "x",
            "outcome": "ok",
        }
        | {
            "inference_time": float(seconds[at]),
            "cost": float(seconds[at]) / 100,
            "total_tokens": int(seconds[at] * 99),
        }
        for at, row in enumerate(rows[:n])
    ]
    (folder / "responses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in responses))
    return folder


@pytest.mark.parametrize("metric", ["latency", "cost", "tokens"])
def test_what_is_spent_can_be_compared_and_gated(tmp_path: Path, metric: str) -> None:
    slow = experiment(tmp_path / "slow", 2.0, labels=("match", "other"))
    fast = experiment(tmp_path / "fast", 1.0, labels=("match", "other"))
    comparison = compare([slow, fast], metric=metric)
    (pair,) = comparison.pairs
    assert (comparison.lower_is_better, pair.verdict, pair.items) == (True, "better", 60)
    assert pair.difference < 0
    assert comparison.standings[0].name == "fast"
    seconds = comparison.standings[0].value
    assert gate(fast, metric=metric, max=2 * seconds).outcome == "passed"
    assert gate(slow, metric=metric, max=seconds).outcome == "failed"
    assert gate(fast, baseline=slow, metric=metric, max_drop=0).outcome == "passed"
    assert gate(slow, baseline=fast, metric=metric, max_drop=0).outcome == "failed"


def test_responses_without_a_time_leave_their_items_out(tmp_path: Path) -> None:
    slow, fast = experiment(tmp_path / "slow", 2.0), experiment(tmp_path / "fast", 1.0)
    lines = (fast / "responses.jsonl").read_text().splitlines()
    changed = [
        json.loads(line) | ({"inference_time": None} if at < 10 else {})
        for at, line in enumerate(lines)
    ]
    (fast / "responses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in changed))
    (pair,) = compare([slow, fast], metric="latency").pairs
    assert (pair.items, pair.failed, pair.only_baseline, pair.only_candidate) == (50, 10, 0, 0)
    assert pair.reason == ""  # what failed has no time that could reverse anything


# ---- what a gate takes


def only(path: Path, **bounds: Any) -> Check:
    (check,) = gate(path, **bounds).checks
    return check


def test_an_inconclusive_bound_says_how_many_items_it_takes_at_least(tmp_path: Path) -> None:
    check = only(save(tmp_path / "e", counted(85, 100)), min=0.8)
    assert check.outcome == "inconclusive"
    assert check.low is not None
    assert check.high is not None
    number = math.ceil(100 * (0.8 - check.low) / (check.high - 0.8))
    assert check.why.endswith(f"; it takes at least {number} more items")


def test_a_drop_that_is_inconclusive_says_so_too(tmp_path: Path) -> None:
    old, new = save(tmp_path / "old", counted(60, 80)), save(tmp_path / "new", counted(59, 80))
    check = only(new, baseline=old, max_drop=0.05)
    assert (check.outcome, "; it takes at least " in check.why) == ("inconclusive", True)


# ---- many sides


def test_plainly_different_sides_are_told_apart_however_many(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    for side in range(33):
        verdicts = {
            f"q{n}": [bool(v) for v in random.random(4) < 0.03 * side + 0.02] for n in range(80)
        }
        rows += rows_of(verdicts, model_name=f"m{side:02}")
    found = compare([save(tmp_path / "e", rows)], facet="model_name")
    far = [pair for pair in found.pairs if abs(pair.difference) > 0.3]
    assert (len(found.pairs), len(far) > 150) == (528, True)
    assert all(pair.verdict != "inconclusive" for pair in far)
