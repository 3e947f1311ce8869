"""Rows in a bucket and workers on Ray, against the same on disk and in plain processes. Needs what `make test-cluster`
installs; without it there is nothing to measure, and the table says so."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from assay.server import Options, running
from benchmarks.engine import config, write_dataset
from benchmarks.measure import Line, child

CELLS, TRIES = 10_000, 3
SEGMENTS, ROWS_OF_ONE = 1_000, 1_000
RAY_ITEMS = 40_000
SILENT: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def cpu_of_run(folder: str, url: str, place: str) -> float:
    """CPU seconds of this process for a whole run, imports not counted."""
    import assay
    import assay.engine.cluster.placement

    began = resource.getrusage(resource.RUSAGE_SELF)
    result = assay.run({**config(folder, url), "output_dir": place})
    assert result.run is not None
    assert result.run.complete
    ended = resource.getrusage(resource.RUSAGE_SELF)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def rows_to_s3() -> list[Line]:
    """Alternating, best of three each."""
    if not find_spec("obstore"):
        return missing("rows to S3 / rows to disk")
    from tests.cluster.servers import BUCKET, seaweed

    disk: list[float] = []
    bucket: list[float] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        seaweed(Path(folder) / "s3") as server,
        running(Options()) as url,
    ):
        os.environ.update(server.environ)
        write_dataset(Path(folder) / "items.jsonl", CELLS)
        for attempt in range(TRIES):
            disk.append(child(cpu_of_run, folder, url, f"{folder}/out-{attempt}")["result"])
            bucket.append(child(cpu_of_run, folder, url, f"s3://{BUCKET}/out-{attempt}")["result"])
    detail = f"{1e6 * min(bucket) / CELLS:.0f} µs CPU a row; on disk {1e6 * min(disk) / CELLS:.0f}"
    return [Line("rows to S3 / rows to disk, CPU", min(bucket) / min(disk), "<=", 1.25, detail)]


# ---- resuming


def big_config(folder: str, place: str) -> dict[str, Any]:
    return {
        **config(folder, "http://127.0.0.1:9/v1", ROWS_OF_ONE),
        "output_dir": place,
        "evaluation_methods": [],
        "metrics": [],
    }


def finished_run(folder: str, place: str) -> None:
    """A run of a million rows in a bucket, as workers leave it; the rows are made up, everything else is not."""
    import asyncio
    from contextlib import AsyncExitStack

    from assay.api import experiment
    from assay.engine.cluster.finish import Finish
    from assay.engine.cluster.placement import Opening
    from assay.records import Manifest

    async def make() -> None:
        step = experiment(big_config(folder, place))
        root = step.by_workers.root  # type: ignore[union-attr]
        async with AsyncExitStack() as stack:
            bound = step.open(stack)
            generation = await Opening(root, step, bound, 250).run()
            line = b'{"item_id":"item-%d","sample_index":%d,"response":"%s","key":"%032x"}\n'
            for shard in range(generation.shards):
                rows = [
                    line % (shard, at, b"x" * 500, shard * ROWS_OF_ONE + at)
                    for at in range(ROWS_OF_ONE)
                ]
                generation.segments(root.objects, "responses", shard).commit(b"".join(rows))
                part = Manifest(
                    kind="run",
                    id=step.id,
                    present=ROWS_OF_ONE,
                    counts={"ok": ROWS_OF_ONE},
                    complete=True,
                )
                root.objects.create(generation.finished(shard), msgspec.json.encode({"run": part}))
            await Finish(root, generation, step, bound).run()

    asyncio.run(make())


def resume(folder: str, place: str) -> float:
    """Seconds until a finished run is known to be finished, in a process that has not seen it before."""
    import assay
    import assay.engine.cluster.placement
    import assay.store.shared.cloud

    os.environ["ASSAY_STATE_DIR"] = tempfile.mkdtemp(dir=folder)
    began = time.perf_counter()
    result = assay.run(big_config(folder, place))
    seconds = time.perf_counter() - began
    assert result.run is not None
    assert (result.run.complete, result.run.present) == (True, SEGMENTS * ROWS_OF_ONE)
    return seconds


def read_manifests(place: str) -> float:
    """Seconds to read the run's manifest and those of its shards."""
    from assay.store.shared.objects import open_objects

    began = time.perf_counter()
    objects = open_objects(place)
    names = ["manifest.json", *(f"shards/0/{shard:05}.json" for shard in range(SEGMENTS))]
    assert all(objects.read_many(names))
    return time.perf_counter() - began


def resuming_on_s3() -> list[Line]:
    """Best of three each."""
    if not find_spec("obstore"):
        return missing("resuming a finished run on S3 / reading its manifests")
    from tests.cluster.servers import BUCKET, seaweed

    with tempfile.TemporaryDirectory() as folder, seaweed(Path(folder) / "s3") as server:
        os.environ.update(server.environ)
        write_dataset(Path(folder) / "items.jsonl", SEGMENTS)
        place = f"s3://{BUCKET}/big"
        child(finished_run, folder, place)
        ours = min(child(resume, folder, place)["result"] for _ in range(TRIES))
        theirs = min(child(read_manifests, place)["result"] for _ in range(TRIES))
    detail = f"{ours:.2f} s; {SEGMENTS:,} manifests {theirs:.2f} s"
    return [
        Line("resuming 1M rows on S3 / reading their manifests", ours / theirs, "<=", 3, detail)
    ]


# ---- Ray


def ray_init() -> float:
    """Seconds until a Ray of this machine alone is ready."""
    import ray

    began = time.perf_counter()
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    return time.perf_counter() - began


def seconds_of(*commands: list[str]) -> float:
    """Until all have ended, which begin at the same time."""
    began = time.perf_counter()
    started = [
        subprocess.Popen([sys.executable, "-m", "assay", *words, "--no-progress"], **SILENT)
        for words in commands
    ]
    if any(process.wait() for process in started):
        raise RuntimeError("a command failed")
    return time.perf_counter() - began


def on_ray() -> list[Line]:
    """Two workers on Ray against two processes with half of the items each; and a run of four items, which is little
    but starting, on a Ray that it starts itself, against the same with two local workers. Alternating, best of two."""
    if not find_spec("ray"):
        return missing("workers on Ray / plain processes")
    ray = [sys.executable, "-m", "ray.scripts.scripts"]
    times: dict[str, list[float]] = {}
    environ = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    head = [
        "start",
        "--head",
        "--num-cpus=2",
        "--include-dashboard=false",
        "--node-ip-address=127.0.0.1",
        "--port=0",
    ]
    with tempfile.TemporaryDirectory() as folder, running(Options()) as url:
        for name, items in (("whole", RAY_ITEMS), ("half", RAY_ITEMS // 2), ("tiny", 4)):
            (Path(folder) / name).mkdir()
            write_dataset(Path(folder) / name / "items.jsonl", items)
            on = {"on": {"ray": {"address": "local"}}} if name == "tiny" else {}
            text = msgspec.json.encode({**config(f"{folder}/{name}", url), **on})
            (Path(folder) / name / "config.yaml").write_bytes(text)
        subprocess.run([*ray, *head], check=True, env=environ, **SILENT)
        try:
            for attempt in range(2):

                def command(name: str, place: str, *words: str, number: int = attempt) -> list[str]:
                    return [
                        "run",
                        f"{folder}/{name}/config.yaml",
                        "-o",
                        f"{folder}/{place}-{number}",
                        *words,
                    ]

                plain = seconds_of(command("half", "a"), command("half", "b"))
                times.setdefault("plain", []).append(plain)
                times.setdefault("ray", []).append(
                    seconds_of(command("whole", "ray", "--on", "ray", "--workers", "2"))
                )
                here = command("tiny", "few", "--workers", "2", "--set", "on=null")
                times.setdefault("tiny", []).append(seconds_of(here))
                times.setdefault("tiny on Ray", []).append(
                    seconds_of(command("tiny", "few-ray", "--workers", "2"))
                )
                times.setdefault("init", []).append(child(ray_init)["result"])
        finally:
            subprocess.run([*ray, "stop", "--force"], check=False, **SILENT)
    best = {name: min(seconds) for name, seconds in times.items()}
    starting = best["tiny on Ray"] - best["tiny"]
    detail = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in best.items())
    return [
        Line(
            "2 workers on Ray / 2 plain processes", best["plain"] / best["ray"], ">=", 0.9, detail
        ),
        Line(
            "starting on Ray / ray.init",
            starting / best["init"],
            "<=",
            1.3,
            f"{starting:.1f} s more than locally",
        ),
    ]


def missing(what: str) -> list[Line]:
    print(f"  {what}: not measured (`make test-cluster` installs what it needs)", file=sys.stderr)
    return []


BENCHMARKS = [rows_to_s3, resuming_on_s3, on_ray]
