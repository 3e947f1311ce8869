"""The flow against a server that misbehaves, measured against the same server behaving."""

import tempfile
import time
from pathlib import Path
from typing import Any

from assay.server import Options, running
from benchmarks.engine import config, write_dataset
from benchmarks.measure import Line, child

ITEMS = 10_000
RATES = {"rate_429": 0.10, "rate_500": 0.05, "rate_drop": 0.05, "rate_torn": 0.02}


def run_inference(folder: str, url: str) -> dict[str, Any]:
    """Seconds for all responses, how many there are, and how many distinct keys they have."""
    import assay

    given = {**config(folder, url), "max_retries": 12}
    began = time.perf_counter()
    result = assay.run(given, mode="inference")
    seconds = time.perf_counter() - began
    rows = list(assay.RunRepository(assay.FlatStore(result.folder)).responses("out"))
    return {
        "seconds": seconds,
        "ok": sum(row.outcome == "ok" for row in rows),
        "keys": len({row.key for row in rows}),
    }


def under_faults() -> list[Line]:
    """Of the throughput that the fault rates leave: a share of calls is lost, so that much more must be made."""
    found: dict[bool, dict[str, Any]] = {}
    for faulty in (False, True):
        with running(Options(retry_after=0, seed=7, **(RATES if faulty else {}))) as url:
            best: dict[str, Any] | None = None
            for _ in range(2):
                with tempfile.TemporaryDirectory() as folder:
                    write_dataset(Path(folder) / "items.jsonl", ITEMS)
                    done = child(run_inference, folder, url)["result"]
                if best is None or done["seconds"] < best["seconds"]:
                    best = done
            assert best is not None
            found[faulty] = best
    possible = ITEMS / found[False]["seconds"] * (1 - sum(RATES.values()))
    made = ITEMS / found[True]["seconds"]
    detail = f"{made:,.0f}/s of {possible:,.0f}/s; 10 % 429, 5 % 500, 5 % dropped, 2 % torn"
    answered = found[True]["ok"] / ITEMS
    return [
        Line(
            "throughput under faults / what they leave possible", made / possible, ">=", 0.6, detail
        ),
        Line(
            "share of samples answered under faults",
            answered,
            ">=",
            1.0,
            f"{found[True]['keys']} distinct rows",
        ),
    ]


BENCHMARKS = [under_faults]
