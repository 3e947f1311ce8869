"""A million rows change their format: CPU time against a bare pass over the same rows, and memory that stays flat."""

import tempfile
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from benchmarks.measure import Line, child

ROWS = 1_000_000  # half of them responses, half evaluations
BOUNDS = {"een": 3, "csv": 5}
MEMORY = 40  # bytes a row, of about 600 on disk


class Rows:
    """Results as a reader gives them."""

    dataset = "bench"
    planned = None
    rejected = 0

    def __init__(self, count: int) -> None:
        self.count = count
        self.source = {"format": "bench", "count": count}
        self.facts: dict[str, Any] = {}

    def cases(self) -> Iterator[Any]:
        from assay.foreign import ForeignCase
        from assay.records import Evaluation, Response

        metadata = {
            "model_id": "m",
            "prompt_template": "short",
            "sampling": {"temperature": 0.7, "max_tokens": 200},
        }
        for number in range(self.count // 2):
            item, model = f"q{number // 2}", f"model-{number % 2}"
            key, sample = _key("response", number), f"{item}_sample_0"
            answer = Response(
                item_id=item,
                sample_id=sample,
                model_name=model,
                prompt=f"Which one is number {number}? Answer with only the result.",
                response=f"It is {number % 97}, as far as anybody can tell from what is said here.",
                inference_time=number / 7,
                timestamp=1.75e9 + number,
                metadata=metadata,
                total_tokens=30,
                prompt_tokens=20,
                completion_tokens=10,
                key=key,
                task=f"{model}/short",
                cost=number / 1e6,
            )
            label = Evaluation(
                item_id=item,
                sample_id=sample,
                label="exact_match",
                model_name=model,
                score=float(number % 2),
                passed=bool(number % 2),
                detailed_results={"explanation": f"{number % 97} is what was expected"},
                timestamp=1.75e9 + number,
                metadata=metadata,
                key=_key("label", number),
                responses=[key],
                scorer="exact_match",
            )
            data = {"question": f"Which one is number {number // 2}?"}
            yield ForeignCase(
                {"id": item, "data": data, "ground_truth": str(number // 2 % 97)}, answer, [label]
            )

    def notes(self) -> list[str]:
        return []

    def headlines(self) -> list[Any]:
        return []


def _key(kind: str, number: int) -> str:
    """As a run makes them: all bits differ, and the first 64 are what rows are joined by."""
    return blake2b(f"{kind} {number}".encode(), digest_size=16).hexdigest()


def write_folder(folder: str, count: int) -> None:
    from assay.engine.experiment.imports.results import import_one
    from assay.foreign import Read

    import_one(Read("bench", Rows(count)), Path(folder))


def bare(folder: str) -> float:
    """CPU seconds for reading all rows and writing them again, nothing else."""
    import msgspec

    from assay.records import Evaluation, Response

    encode, began = msgspec.json.Encoder().encode, time.process_time()
    kinds = {
        "items.jsonl": dict,
        "responses.jsonl": Response,
        "evaluation_results.jsonl": Evaluation,
    }
    for name, kind in kinds.items():
        decode = msgspec.json.Decoder(kind).decode
        with open(f"{folder}/{name}", "rb") as source, open(f"{folder}/.bare", "wb") as target:
            for line in source:
                target.write(encode(decode(line)) + b"\n")
    return time.process_time() - began


def convert(source: str, target: str, format: str) -> float:
    import assay

    began = time.process_time()
    assay.convert(source, target, to=format)
    return time.process_time() - began


def convert_time(rows: int = ROWS) -> list[Line]:
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        sizes = {count: f"{folder}/own-{count}" for count in (rows // 10, rows)}
        for count, own in sizes.items():
            child(write_folder, own, count)
        plain = min(child(bare, sizes[rows])["result"] for _ in range(2))
        for format, bound in BOUNDS.items():
            done = {
                count: child(convert, own, f"{own}.{format}", format)
                for count, own in sizes.items()
            }
            took, large, small = done[rows]["result"], done[rows]["peak"], done[rows // 10]["peak"]
            what = f"convert {rows:,} rows to {format}"
            detail = f"{took:.1f} s / {plain:.1f} s; {rows / took:,.0f} rows/s"
            lines.append(
                Line(f"{what} / a bare read and write, CPU", took / plain, "<=", bound, detail)
            )
            grown = (large - small) * 2**20 / (rows - rows // 10)
            lines.append(
                Line(
                    f"{what}: bytes of memory a row",
                    grown,
                    "<=",
                    MEMORY,
                    f"{large:.0f} MB / {small:.0f} MB",
                )
            )
    return lines


BENCHMARKS = [convert_time]
