"""`assay report` over many labels of one experiment, and over many folders: how fast its time grows."""

import math
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measure import Line, child

FEW, MANY = 50, 2_000
RESPONSES = 100


def write_experiment(folder: str, labels: int, responses: int) -> None:
    """Items, responses of two models, every label of each, and the means of the labels by model."""
    from assay.engine.aggregate.aggregate import Aggregator
    from assay.engine.aggregate.measure import bind_metric
    from assay.store.stores import FlatStore

    path = Path(folder)
    path.mkdir(parents=True)
    answers = [_response(number) for number in range(responses)]
    _write(path / "items.jsonl", [_item(number) for number in range(responses)])
    _write(path / "responses.jsonl", answers)
    _write(
        path / "evaluation_results.jsonl",
        [_label(answer, number) for answer in answers for number in range(labels)],
    )
    store = FlatStore(path)
    Aggregator(store).aggregate([store.id], [bind_metric(type="mean", facets=["model_name"])])


def write_folders(root: str, folders: int) -> None:
    for number in range(folders):
        write_experiment(f"{root}/experiment-{number:04}", 1, 4)


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def _item(number: int) -> dict[str, Any]:
    return {"id": f"item-{number}", "data": {"question": f"What is {number} + 1?"}}


def _response(number: int) -> dict[str, Any]:
    model = f"model-{number % 2}"
    return {
        "item_id": f"item-{number}",
        "sample_index": 0,
        "model_name": model,
        "task": model,
        "key": f"{number:032x}",
        "prompt": f"What is {number} + 1?",
        "response": str(number + 1),
        "inference_time": 0.1,
        "outcome": "ok",
        "metadata": {"model_id": model},
    }


def _label(answer: dict[str, Any], number: int) -> dict[str, Any]:
    passed = hash((answer["item_id"], number)) % 3 > 0
    names = ("item_id", "sample_index", "model_name")
    return {
        **{name: answer[name] for name in names},
        "label": f"label-{number:04}",
        "scorer": f"scorer-{number:04}",
        "responses": [answer["key"]],
        "passed": passed,
        "score": float(passed),
        "outcome": "scored",
        "metadata": {},
    }


def write_report(folder: str) -> float:
    """Return the seconds of the processor that a report needs, its index included."""
    import time

    from assay.viewer.report import report

    began = time.process_time()
    report([folder], f"{folder}.html")
    return time.process_time() - began


def report_growth() -> list[Line]:
    """From few labels or folders to forty times as many: an exponent of 1 is forty times the time."""
    lines: list[Line] = []
    for what in ("labels", "folders"):
        seconds: list[float] = []
        for number in (FEW, MANY):
            with tempfile.TemporaryDirectory() as place:
                folder = f"{place}/made"
                if what == "labels":
                    child(write_experiment, folder, number, RESPONSES)
                else:
                    child(write_folders, folder, number)
                seconds.append(child(write_report, folder)["result"])
        exponent = math.log(seconds[1] / seconds[0]) / math.log(MANY / FEW)
        detail = f"{seconds[0]:.2f} s of {FEW}, {seconds[1]:.1f} s of {MANY:,}"
        lines.append(Line(f"report: exponent in {what}", exponent, "<=", 1.1, detail))
    return lines


BENCHMARKS = [report_growth]
