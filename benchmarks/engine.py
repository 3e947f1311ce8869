"""The whole flow against the mock server, and what it costs in memory and time as it grows."""

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from assay.server import Options, running
from benchmarks.measure import Line, child

CONCURRENCY = 64


def write_dataset(path: Path, items: int) -> None:
    with path.open("w") as file:
        for i in range(items):
            row = {
                "id": f"item-{i}",
                "data": {"question": f"What is {i} + {i % 7}?"},
                "ground_truth": str(i + i % 7),
            }
            file.write(json.dumps(row) + "\n")


def config(folder: str, url: str, samples: int = 1) -> dict[str, Any]:
    return {
        "name": "bench",
        "models": [{"name": "mock", "endpoint": url, "max_concurrency": CONCURRENCY}],
        "dataset": str(Path(folder) / "items.jsonl"),
        "prompt_template": "{{question}} Answer with only the number.",
        "sample_params": {"temperature": 0.7, "num_samples": samples},
        "evaluation_methods": ["exact_match"],
        "metrics": [{"name": "pass@1", "facets": ["metadata.model_id"]}],
        "output_dir": str(Path(folder) / "out"),
    }


def run_flow(folder: str, url: str, samples: int = 1) -> float:
    """Seconds for inference, scoring and metrics, imports not counted."""
    import assay

    began = time.perf_counter()
    result = assay.run(config(folder, url, samples))
    assert result.run is not None
    assert result.run.complete
    return time.perf_counter() - began


def run_bare_loop(url: str, items: int) -> float:
    """The same requests from a bare aiohttp loop that keeps nothing."""
    import aiohttp

    async def loop() -> float:
        numbers = iter(range(items))
        connector = aiohttp.TCPConnector(limit=CONCURRENCY)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def work() -> None:
                for i in numbers:
                    prompt = f"What is {i} + {i % 7}? Answer with only the number."
                    body = {
                        "model": "mock",
                        "messages": [{"role": "user", "content": prompt}],
                        "temperature": 0.7,
                    }
                    async with session.post(f"{url}/chat/completions", json=body) as response:
                        answer = await response.json()
                    assert answer["choices"][0]["message"]["content"]

            began = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
            return time.perf_counter() - began

    return asyncio.run(loop())


def throughput() -> list[Line]:
    """The full flow against a bare loop, alternating, best of three each."""
    items = 10_000
    ours: list[float] = []
    bare: list[float] = []
    with running(Options()) as url:
        for _ in range(3):
            bare.append(child(run_bare_loop, url, items)["result"])
            with tempfile.TemporaryDirectory() as folder:
                write_dataset(Path(folder) / "items.jsonl", items)
                ours.append(child(run_flow, folder, url)["result"])
    ratio = min(bare) / min(ours)
    detail = f"{items / min(ours):,.0f} samples/s, scored and aggregated; bare aiohttp {items / min(bare):,.0f}/s"
    return [Line("full flow / bare aiohttp loop, requests per second", ratio, ">=", 0.6, detail)]


def growth() -> list[Line]:
    """Memory and time at ten times the size."""
    found: dict[int, dict[str, Any]] = {}
    with running(Options()) as url:
        for items in (10_000, 100_000):
            with tempfile.TemporaryDirectory() as folder:
                write_dataset(Path(folder) / "items.jsonl", items)
                found[items] = child(run_flow, folder, url, 2)
                if items == 100_000:
                    reopening = _reopening(folder, url)
    small, large = found[10_000], found[100_000]
    return [
        Line(
            "peak memory, 200,000 samples / 20,000",
            large["peak"] / small["peak"],
            "<=",
            1.25,
            _mb(small, large),
        ),
        Line("peak memory at 200,000 samples, MB", large["peak"], "<=", 200),
        Line(
            "time, 100,000 items / 10,000",
            large["result"] / small["result"],
            "<=",
            11,
            f"{large['result']:.1f} s",
        ),
        *reopening,
    ]


def _mb(small: dict[str, Any], large: dict[str, Any]) -> str:
    return f"{large['peak']:.0f} MB / {small['peak']:.0f} MB"


def _reopening(folder: str, url: str) -> list[Line]:
    again = min(child(run_flow, folder, url, 2)["result"] for _ in range(3))
    bare = min(
        child(decode_all, str(Path(folder) / "out" / "responses.jsonl"))["result"] for _ in range(3)
    )
    detail = f"{again:.3f} s / {bare:.3f} s"
    return [
        Line("opening a finished run of 200,000 / msgspec pass", again / bare, "<=", 1.5, detail)
    ]


def decode_all(path: str) -> float:
    decode = msgspec.json.Decoder().decode
    began = time.perf_counter()
    with open(path, "rb") as file:
        for line in file:
            decode(line)
    return time.perf_counter() - began


BENCHMARKS = [throughput, growth]
