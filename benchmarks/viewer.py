"""The viewer over a million responses with their evaluations, about a gigabyte: pages against the least that they could
take."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.aggregation import SAMPLES, _aggregate, write_rows
from benchmarks.measure import Line, child

ROWS = 1_000_000
NAME = "big"
_WORDS = (
    "the",
    "answer",
    "follows",
    "from",
    "what",
    "was",
    "asked",
    "and",
    "nothing",
    "else",
    "that",
    "of",
    "it",
    "so",
)


def write_experiment(folder: str, rows: int) -> None:
    """Responses and evaluations that belong together, items, sealed by a manifest; a few metrics."""
    from assay.records import Manifest, Response
    from assay.store.seal import seal
    from assay.store.stores import FlatStore

    encode = msgspec.json.Encoder().encode
    write_rows(folder, rows)
    path = Path(folder)
    with (path / "items.jsonl").open("wb") as file:
        for number in range(rows // (4 * SAMPLES)):
            item = {"id": f"item-{number}", "data": {"question": f"What is {number} + {number}?"}}
            file.write(encode({**item, "metadata": {"kind": f"kind-{number % 7}"}}) + b"\n")
    with (path / "responses.jsonl").open("wb") as file:
        for number in range(rows):
            cell, sample = divmod(number, SAMPLES)
            item, task = divmod(cell, 4)
            words = " ".join(
                _WORDS[(number * 31 + at * 7) % len(_WORDS)] for at in range(12 + number % 9)
            )
            row = Response(
                item_id=f"item-{item}",
                sample_id=f"item-{item}_sample_{sample}",
                sample_index=sample,
                total_samples=SAMPLES,
                model_name=f"model-{task % 2}",
                prompt=f"What is {item} + {item}?\nAnswer with only the result.",
                response=f"{words}: {2 * item + number % 3}",
                inference_time=(number * 2654435761 % 1009) / 1009,
                timestamp=1763237000.123456,
                metadata={
                    "model_id": f"model-{task % 2}",
                    "prompt_template": f"prompt-{task // 2}",
                    "sampling": {"temperature": 0.7, "max_tokens": 512},
                    "finish_reason": "stop",
                    "response_id": f"chatcmpl-{number:012d}",
                },
                total_tokens=20 + number % 50,
                key=f"{number:016x}{number:016x}",
                task=f"model-{task % 2}/prompt-{task // 2}",
                cost=1e-6 * (number % 50),
                served_model=f"model-{task % 2}-2026",
            )
            file.write(encode(row) + b"\n")
    _aggregate(folder, None)  # writes metrics.jsonl
    store = FlatStore(path)
    for kind in ("run", "evaluation"):
        manifest = Manifest(kind=kind, id=store.id, complete=True, planned=rows, present=rows)
        seal(manifest, store.log(kind, store.id))
        store.put_manifest(manifest)


class _Row(msgspec.Struct):
    """What an index needs of a response, at least."""

    class Metadata(msgspec.Struct):
        model_id: str
        prompt_template: str

    item_id: str
    sample_index: int
    key: str
    task: str
    response: str
    inference_time: float
    metadata: Metadata


class _Label(msgspec.Struct):
    item_id: str
    label: str
    passed: bool | None
    score: float | None
    outcome: str
    responses: list[str]


def decode(root: str) -> float:
    """Seconds to decode what an index needs, and to keep nothing."""
    began = time.perf_counter()
    for name, kind in (("responses", _Row), ("evaluation_results", _Label)):
        decode = msgspec.json.Decoder(kind).decode
        with (Path(root) / NAME / f"{name}.jsonl").open("rb") as file:
            for line in file:
                decode(line)
    return time.perf_counter() - began


# Whole processes, which import what they need: the experiments and their metrics as other commands read them, and the
# two pages that one sees first.
_LISTED = """
import sys, msgspec
from assay.analysis.look.ls import ls
from assay.engine.experiment.resolve import find_source
from assay.store.table.decode import read_rows
listed = ls(sys.argv[1])
logs = [log for entry in listed for log in find_source(entry.folder).logs("aggregation")]
rows = [row for log in logs for row in read_rows(log, dict)]
assert rows
msgspec.json.encode([listed, rows])
"""
_SHOWN = """
import sys, msgspec
from assay.viewer.experiments import Experiments
from assay.viewer.pages import page
experiments = Experiments([sys.argv[1]])
pages = [page(experiments, name, {}) for name in ("experiments", "leaderboard")]
assert pages[1]["rows"] if isinstance(pages[1], dict) else pages[1].rows
msgspec.json.encode(pages)
"""


def seconds_of(script: str, root: str) -> float:
    """Seconds of a process, from its start to its end; the best of five."""
    seconds: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", script, root], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def first_samples(root: str) -> list[float]:
    """Seconds to the first page of samples where there is no index yet, and to the index."""
    from assay.viewer.experiments import Experiments
    from assay.viewer.index.opening import open_index
    from assay.viewer.pages import page

    os.environ["ASSAY_STATE_DIR"] = f"{root}/state"
    experiments, began = Experiments([root]), time.perf_counter()
    assert page(experiments, "samples", {})["rows"]
    first = time.perf_counter() - began
    index, share = open_index(experiments, NAME, wait=True)
    assert (len(index), share) == (ROWS, None)
    return [first, time.perf_counter() - began]


SOUGHT = "nothing that OF it"


def filtered(root: str) -> list[float]:
    """Seconds of a page that filters by label, response and item, and of one that searches for a text."""
    from assay.viewer.experiments import Experiments
    from assay.viewer.pages import page

    os.environ["ASSAY_STATE_DIR"] = f"{root}/state"
    where = ["model_id=model-1", "kind=kind-3"]
    joined = {"passed": ["failed"], "where": where, "sort": ["latency"], "descending": ["true"]}
    seconds: list[float] = []
    for query in (joined, {"search": [SOUGHT]}):
        experiments, began = Experiments([root]), time.perf_counter()
        msgspec.json.encode(page(experiments, "samples", query))
        seconds.append(time.perf_counter() - began)
    return seconds


def asked_of_duckdb(root: str) -> list[float]:
    """The same of the files, their columns given."""
    import duckdb

    def table(name: str, columns: dict[str, str]) -> str:
        given = ", ".join(f"{column}: '{kind}'" for column, kind in columns.items())
        path = f"{root}/{NAME}/{name}.jsonl"
        return f"read_json('{path}', format='newline_delimited', columns={{{given}}})"

    responses = {"item_id": "VARCHAR", "key": "VARCHAR", "prompt": "VARCHAR", "response": "VARCHAR"}
    responses |= {"inference_time": "DOUBLE", "metadata": "STRUCT(model_id VARCHAR)"}
    labels = {"label": "VARCHAR", "passed": "BOOLEAN", "score": "DOUBLE", "responses": "VARCHAR[]"}
    items = {"id": "VARCHAR", "metadata": "STRUCT(kind VARCHAR)"}
    joined = f"""
        SELECT r.*, e.score, count(*) OVER () AS total FROM {table("responses", responses)} r
        JOIN {table("evaluation_results", labels)} e ON e.responses[1] = r.key
        JOIN {table("items", items)} i ON i.id = r.item_id
        WHERE NOT e.passed AND r.metadata.model_id = 'model-1' AND i.metadata.kind = 'kind-3'
        ORDER BY r.inference_time DESC LIMIT 50"""
    sought = f"""
        SELECT r.*, count(*) OVER () AS total FROM {table("responses", responses)} r
        WHERE r.response ILIKE '%{SOUGHT}%' OR r.prompt ILIKE '%{SOUGHT}%' OR r.item_id ILIKE '%{SOUGHT}%' LIMIT 50"""
    seconds: list[float] = []
    for query in (joined, sought):
        began = time.perf_counter()
        duckdb.connect(":memory:").execute(query).fetchall()
        seconds.append(time.perf_counter() - began)
    return seconds


def memory(root: str) -> list[float]:
    """Resident memory in MB after 5 and after 50 pages."""
    from assay.viewer.experiments import Experiments
    from assay.viewer.pages import page

    os.environ["ASSAY_STATE_DIR"] = f"{root}/state"
    experiments = Experiments([root])
    resident: list[float] = []
    for number in range(50):
        sort = ("order", "latency", "score", "item", "disagreement")[number % 5]
        query: dict[str, Any] = {
            "sort": [sort],
            "offset": [str(number * 997)],
            "where": [f"kind=kind-{number % 7}"],
        }
        page(experiments, ("samples", "samples", "matrix")[number % 3], query)
        page(experiments, "sample", {"item": [f"item-{number}"]})
        if number in (4, 49):
            status = Path("/proc/self/status").read_text()
            resident.append(int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024)
    return resident


def reported(root: str) -> float:
    """Seconds to write a report where there is no index yet."""
    from assay.viewer.report import report

    os.environ["ASSAY_STATE_DIR"] = f"{root}/another state"
    began = time.perf_counter()
    report([f"{root}/{NAME}"], f"{root}/report.html", force=True)
    return time.perf_counter() - began


def aggregated(root: str) -> float:
    """Seconds of what `assay aggregate` does of the same rows, imports not counted."""
    return _aggregate(f"{root}/{NAME}", None)


def viewer() -> list[Line]:
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / NAME).mkdir()
        child(write_experiment, f"{root}/{NAME}", ROWS)
        bare, page = seconds_of(_LISTED, root), seconds_of(_SHOWN, root)
        least = min(child(decode, root)["result"] for _ in range(2))
        built = child(first_samples, root)
        first, index = built["result"]
        ours = [
            min(seconds)
            for seconds in zip(*(child(filtered, root)["result"] for _ in range(3)), strict=True)
        ]
        theirs = [
            min(each)
            for each in zip(
                *(child(asked_of_duckdb, root)["result"] for _ in range(3)), strict=True
            )
        ]
        paged = child(memory, root)
        few, many = paged["result"]
        written = child(reported, root)["result"]
        measured = min(child(aggregated, root)["result"] for _ in range(2))
    times = [f"{own:.2f} s / {other:.2f} s" for own, other in zip(ours, theirs, strict=True)]
    return [
        Line(
            *("first pages of the viewer / ls and the metrics", page / bare, "<=", 2),
            f"processes: experiments and leaderboard {page:.2f} s / ls and metrics.jsonl {bare:.2f} s",
        ),
        Line("first page of 1M samples without an index, s", first, "<=", 1),
        Line(
            "report of 1M samples / aggregating them",
            written / measured,
            "<=",
            3,
            f"{written:.1f} s / {measured:.1f} s",
        ),
        Line(
            "index of 1M samples / narrow msgspec decode",
            index / least,
            "<=",
            4,
            f"{index:.1f} s / {least:.1f} s",
        ),
        Line("peak memory of making that index, MB", built["peak"], "<=", 200),
        Line("peak memory of 50 pages, MB", paged["peak"], "<=", 200),
        Line("filtered page of 1M samples / duckdb", ours[0] / theirs[0], "<=", 1.5, times[0]),
        Line("searched page of 1M samples / duckdb", ours[1] / theirs[1], "<=", 1.5, times[1]),
        Line(
            "memory after 50 pages / after 5",
            many / few,
            "<=",
            1.05,
            f"{many:.0f} MB / {few:.0f} MB",
        ),
    ]


BENCHMARKS = [viewer]
