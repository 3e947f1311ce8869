"""What many folders and many labels cost: time grows as they do, however small each of them is."""

import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Line, child

FEW, MANY = 50, 2000
EXPONENT = 1.1
ROWS = 3
RESPONSES = 100


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


def write_labels(root: Path, count: int) -> None:
    """One experiment whose responses have many labels each."""
    keys = [f"{row:032x}" for row in range(RESPONSES)]
    (root / "only").mkdir()
    with (root / "only/responses.jsonl").open("w") as file:
        for row, key in enumerate(keys):
            response = {"item_id": str(row), "model_name": "m", "response": "x", "key": key}
            file.write(json.dumps(response) + "\n")
    with (root / "only/evaluation_results.jsonl").open("w") as file:
        for row, key in enumerate(keys):
            for label in range(count):
                score = {"item_id": str(row), "label": f"l{label}", "scorer": "s", "score": 1.0}
                file.write(json.dumps({**score, "responses": [key]}) + "\n")


def query(root: str, by: str, count: int) -> float:
    """Return the CPU seconds of a grouped query over all folders."""
    import time

    import assay

    began = time.process_time()
    select = f"select {by}, avg(score) s from evaluations group by all"
    found = assay.sql(sorted(Path(root).iterdir()), select)
    assert len(found) == count
    return time.process_time() - began


def exponent_in(what: str, by: str, write: Callable[[Path, int], None]) -> list[Line]:
    """Return the exponent of a grouped query in the number of groups."""
    seconds: list[float] = []
    for count in (FEW, MANY):
        with tempfile.TemporaryDirectory() as root:
            write(Path(root), count)
            seconds.append(min(child(query, root, by, count)["result"] for _ in range(2)))
    exponent = math.log(seconds[1] / seconds[0]) / math.log(MANY / FEW)
    detail = f"{seconds[0]:.2f} s / {seconds[1]:.2f} s of CPU"
    return [Line(f"sql: exponent in {what}, {FEW} to {MANY:,}", exponent, "<=", EXPONENT, detail)]


def folders_in_sql() -> list[Line]:
    """The exponent in the number of folders."""
    return exponent_in("folders", "source", write_folders)


def labels_in_sql() -> list[Line]:
    """The exponent in the number of labels of each response."""
    return exponent_in("labels", "label", write_labels)


BENCHMARKS = [folders_in_sql, labels_in_sql]
