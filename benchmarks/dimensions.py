"""What many folders cost: time grows as they do, however small each of them is."""

import json
import math
import tempfile
from pathlib import Path

from benchmarks.measure import Line, child

FEW, MANY = 50, 2000
EXPONENT = 1.1
ROWS = 3


def write_folders(root: Path, count: int) -> None:
    """Experiments with a few responses and labels each."""
    for folder in range(count):
        place = root / f"e{folder:05}"
        place.mkdir()
        keys = [f"{folder * ROWS + row:032x}" for row in range(ROWS)]
        rows = [
            {"item_id": str(row), "model_name": "m", "response": "x", "key": key}
            for row, key in enumerate(keys)
        ]
        labels = [
            {"item_id": str(row), "label": "good", "scorer": "s", "score": 1.0, "responses": [key]}
            for row, key in enumerate(keys)
        ]
        for name, table in (("responses", rows), ("evaluation_results", labels)):
            (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))


def query(root: str) -> float:
    """Return the CPU seconds of a grouped query over all folders."""
    import time

    import assay

    began = time.process_time()
    select = "select source, avg(score) s from evaluations group by all"
    found = assay.sql(sorted(Path(root).iterdir()), select)
    assert len(found) == len(list(Path(root).iterdir()))
    return time.process_time() - began


def folders_in_sql() -> list[Line]:
    """The exponent in the number of folders."""
    seconds: list[float] = []
    for count in (FEW, MANY):
        with tempfile.TemporaryDirectory() as root:
            write_folders(Path(root), count)
            seconds.append(min(child(query, root)["result"] for _ in range(2)))
    exponent = math.log(seconds[1] / seconds[0]) / math.log(MANY / FEW)
    detail = f"{seconds[0]:.2f} s / {seconds[1]:.2f} s of CPU"
    what = f"sql: exponent in folders, {FEW} to {MANY:,}"
    return [Line(what, exponent, "<=", EXPONENT, detail)]


BENCHMARKS = [folders_in_sql]
