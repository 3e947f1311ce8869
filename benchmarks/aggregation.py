"""Metrics of a million rows against a bare msgspec decode of only the needed fields of the same file."""

import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measure import Line, child

SAMPLES = 10


class Needed(msgspec.Struct):
    """What pass@k by two facets needs of a row."""

    class Metadata(msgspec.Struct):
        model_id: str
        prompt_template: str

    item_id: str
    sample_index: int
    label: str
    passed: bool | None
    score: float | None
    outcome: str
    scorer: str
    metadata: Metadata


def write_rows(folder: str, rows: int) -> None:
    """As the engine writes them: two models, two prompts, ten samples of every item."""
    from assay.records import Evaluation

    encode = msgspec.json.Encoder().encode
    with (Path(folder) / "evaluation_results.jsonl").open("wb") as file:
        for number in range(rows):
            cell, sample = divmod(number, SAMPLES)
            item, task = divmod(cell, 4)
            passed = number * 2654435761 % 97 < 40
            row = Evaluation(
                item_id=f"item-{item}",
                sample_id=f"item-{item}_sample_{sample}",
                sample_index=sample,
                label="exact_match",
                model_name=f"model-{task % 2}",
                passed=passed,
                score=float(passed),
                evaluation_time=1.5e-06,
                timestamp=1763237000.123456,
                metadata={
                    "model_id": f"model-{task % 2}",
                    "prompt_template": f"prompt-{task // 2}",
                    "sampling": {"temperature": 0.7, "max_tokens": 512},
                    "finish_reason": "stop",
                    "response_id": f"chatcmpl-{number:012d}",
                },
                key=f"{number * 2654435761 % 2**64:016x}{number:016x}",
                responses=[f"{number:016x}{number:016x}"],
                scorer="exact_match",
            )
            file.write(encode(row) + b"\n")


def write_behind(folder: str, rows: int) -> None:
    """The responses and items of `write_rows`."""
    with (Path(folder) / "responses.jsonl").open("w") as file:
        for number in range(rows):
            cell, sample = divmod(number, SAMPLES)
            item, task = divmod(cell, 4)
            file.write(
                f'{{"item_id":"item-{item}","sample_index":{sample},"model_name":"model-{task % 2}",'
                f'"response":"an answer","outcome":"ok","key":"{number:016x}{number:016x}",'
                f'"inference_time":{number % 977 / 8},"total_tokens":{number % 613},'
                f'"metadata":{{"region":"r{number % 3}"}}}}\n'
            )
    with (Path(folder) / "items.jsonl").open("w") as file:
        for item in range(rows // SAMPLES // 4 + 1):
            file.write(
                f'{{"id":"item-{item}","data":{{"q":"?"}},"metadata":{{"level":{item % 4}}}}}\n'
            )


def aggregate_with(folder: str, count: int, facets: list[str]) -> None:
    """Compute so many metrics, with responses and items behind the rows."""
    from assay.engine.aggregate.aggregate import Aggregator
    from assay.engine.aggregate.measure import bind_metric
    from assay.store.stores import FlatStore

    types = ("pass_rate", "pass_at_k", "mean", "latency")
    metrics = [
        bind_metric(name=f"m{number}", type=types[number % 4], facets=facets)
        for number in range(count)
    ]
    (Path(folder) / "manifest.json").unlink(missing_ok=True)
    store = FlatStore(Path(folder))
    Aggregator(store).aggregate([store.id], metrics, runs=[store.id], datasets=[store.id])


def memory_of_labels(few: int = 500_000, many: int = 1_000_000) -> list[Line]:
    """Bytes that a further label costs, for several numbers of metrics."""
    own, behind = ["metadata.model_id", "prompt_template"], ["model_id", "region", "level"]
    peaks: dict[tuple[int, int, bool], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for rows in (few, many):
            write_rows(folder, rows)
            write_behind(folder, rows)
            for count in (1, 4, 12):
                for joins in (False, True):
                    facets = behind if joins else own
                    peak = child(aggregate_with, folder, count, facets)["peak"]
                    peaks[rows, count, joins] = peak
    return [
        Line(
            f"bytes of a label, {count} metrics{', facets of responses and items' * joins}",
            (peaks[many, count, joins] - peaks[few, count, joins]) * (1 << 20) / (many - few),
            "<=",
            60,
        )
        for count in (1, 4, 12)
        for joins in (False, True)
    ]


def aggregate(folder: str) -> float:
    """Seconds for pass@1, pass@5 and their intervals, imports not counted."""
    return _aggregate(folder, None)


def _aggregate(folder: str, manifest: Any) -> float:
    from assay.engine.aggregate.aggregate import Aggregator
    from assay.engine.aggregate.measure import bind_metric
    from assay.store.stores import FlatStore

    facets = ["metadata.model_id", "prompt_template"]
    metrics = [
        bind_metric(name=f"pass@{k}", type="pass_at_k", params={"k": k}, facets=facets)
        for k in (1, 5)
    ]
    (Path(folder) / "manifest.json").unlink(missing_ok=True)
    store = FlatStore(Path(folder))
    if manifest is not None:
        store.put_manifest(manifest)
    began = time.perf_counter()
    rows = Aggregator(store).aggregate([store.id], metrics)
    seconds = time.perf_counter() - began
    assert [row["ci_method"] for row in rows] == ["wilson_of_items"] * 8
    return seconds


def aggregate_sealed(folder: str) -> float:
    """The same of rows that a manifest has sealed, so that their bytes are checked."""
    from assay.records import Manifest
    from assay.store.seal import seal
    from assay.store.stores import FlatStore

    store = FlatStore(Path(folder))
    manifest = Manifest(kind="evaluation", id=store.id, complete=True)
    seal(manifest, store.log("evaluation", store.id))
    return _aggregate(folder, manifest)


def decode(folder: str) -> float:
    decode = msgspec.json.Decoder(Needed).decode
    began = time.perf_counter()
    with (Path(folder) / "evaluation_results.jsonl").open("rb") as file:
        for line in file:
            decode(line)
    return time.perf_counter() - began


def aggregation() -> list[Line]:
    """Alternating, best of three each."""
    found: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for rows in (100_000, 1_000_000):
            write_rows(folder, rows)
            tries = [
                (child(aggregate, folder), child(decode, folder), child(aggregate_sealed, folder))
                for _ in range(3)
            ]
            found[rows] = {
                "ours": min(ours["result"] for ours, _, _ in tries),
                "bare": min(bare["result"] for _, bare, _ in tries),
                "sealed": min(sealed["result"] for _, _, sealed in tries),
                "peak": min(ours["peak"] for ours, _, _ in tries),
            }
    small, large = found[100_000], found[1_000_000]
    detail = f"{large['ours']:.2f} s / {large['bare']:.2f} s"
    return [
        Line(
            "aggregating 1M rows / narrow msgspec decode",
            large["ours"] / large["bare"],
            "<=",
            1.25,
            detail,
        ),
        Line(
            "aggregating 1M sealed rows / 1M rows without a seal",
            large["sealed"] / large["ours"],
            "<=",
            1.05,
        ),
        Line("peak memory of aggregating 1M rows, MB", large["peak"], "<=", 200),
        Line("aggregating 1M rows / 100,000 rows", large["ours"] / small["ours"], "<=", 10.5),
    ]


BENCHMARKS = [aggregation, memory_of_labels]
