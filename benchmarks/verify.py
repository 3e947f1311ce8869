"""Verifying a folder against evaluating and aggregating the same rows."""

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Line, child

ITEMS, SAMPLES = 10_000, 5


def write_folder(folder: str) -> None:
    """An experiment of two models whose answers have a hundred words, run, scored and measured."""
    import assay

    os.chdir(folder)
    rows = (
        {"id": f"q{n}", "question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(ITEMS)
    )
    Path("items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("model.py").write_text(
        "def answer(prompt):\n    n = int(prompt.split()[2])\n"
        "    return 'words of an answer ' * 20 + str(n + (n % 3 > 0))\n"
    )
    model = {"type": "python", "path": "model.py", "function_name": "answer"}
    config = {
        "name": "bench",
        "dataset": "items.jsonl",
        "models": [{"name": "small", **model}],
        "prompt_template": "{{question}}",
        "num_samples": SAMPLES,
        "evaluation_methods": [
            "exact_match",
            "contains",
            {"name": "f1", "params": {"threshold": 0}},
        ],
        "metrics": [
            {"name": "pass@1", "facets": ["model_name"]},
            {"name": "mean", "facets": ["model_name"]},
        ],
        "output_dir": "out",
    }
    Path("config.yaml").write_text(json.dumps(config))
    assay.run("config.yaml")


def _small(folder: str) -> str:
    """A folder of few rows, for what takes time only once in a process."""
    import assay

    small = Path(folder) / "small"
    if not small.exists():
        assay.run(str(Path(folder) / "config.yaml"), output_dir=str(small), limit=3)
    return str(small)


def evaluate(folder: str) -> float:
    """Seconds of processor time for labels and metrics, in a folder that has none; imports not counted."""
    import assay

    again = Path(folder) / "again"
    shutil.rmtree(again, ignore_errors=True)
    assay.evaluate(_small(folder), output_dir=str(again))
    shutil.rmtree(again)
    began = time.process_time()
    assay.evaluate(str(Path(folder) / "out"), output_dir=str(again))
    return time.process_time() - began


def verify(folder: str) -> float:
    """Seconds of processor time for all that `assay verify` does; imports not counted."""
    import assay

    assay.verify(_small(folder))
    began = time.process_time()
    (found,) = assay.verify(str(Path(folder) / "out"))
    seconds = time.process_time() - began
    assert found.ok, found
    assert (
        sum(checked.verified for checked in found.checked if checked.part == "labels")
        == 3 * ITEMS * SAMPLES
    )
    return seconds


def verify_time() -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        child(write_folder, folder)
        pairs = [
            (child(verify, folder)["result"], child(evaluate, folder)["result"]) for _ in range(3)
        ]
        verified, evaluated = (min(times) for times in zip(*pairs, strict=True))
    detail = f"{verified:.2f} s and {evaluated:.2f} s for {3 * ITEMS * SAMPLES:,} labels"
    return [Line("verify / evaluate and aggregate", verified / evaluated, "<=", 1.5, detail)]


BENCHMARKS = [verify_time]
