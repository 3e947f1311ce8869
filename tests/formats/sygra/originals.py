"""Files as SyGra itself leaves them: the records of a run, and the report about them."""

import json
from pathlib import Path
from typing import Any


def unit(correct: bool, golden: Any, predicted: Any) -> dict[str, Any]:
    return {
        "correct": correct,
        "golden": {"text": golden},
        "predicted": {"text": predicted},
        "metadata": {},
    }


FIELDS = ("original_index", "problem", "topic", "predicted_topic", "exact_match")
VALUES = [  # as the newer version writes them: an empty record for a failure, in the order of completion
    (5, "Where?", "Art", "art", unit(True, "Art", "art")),
    (None, None, None, None, None),
    (2, "Who?", "Music", "Art", unit(False, "Music", "Art")),
]
ORIGINAL = [dict(zip(FIELDS, values, strict=True)) for values in VALUES]
REPORT = {
    "exact_match-accuracy": {"accuracy": 0.5},
    "exact_match-precision": {
        "average_precision": 0.5,
        "precision_per_class": {"art": 1.0, "Art": 0.0},
    },
    "exact_match-pass@k": {"pass@1": 0.5, "pass@2": 1.0},
    "other-accuracy": {"accuracy": 0.1},
}


def write_original(folder: Path) -> None:
    """Write the records and the report of a run, without its metadata."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = "2026-01-01_10-00-00"
    (folder / f"run_output_{stamp}.json").write_text(json.dumps(ORIGINAL, indent=4))
    summary = {"total_records": 3, "timestamp": "2026-01-01 10:00:01", "status": "success"}
    report = [{"evaluation_summary": summary, "results": REPORT}]
    (folder / f"run_MetricCollatorPostProcessor_{stamp}.json").write_text(json.dumps(report))
