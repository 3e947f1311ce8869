"""Graphs: a two-node one against a plain prompt on the same items, and the output files as they grow."""

import json
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from assay.server import Options as ServerOptions, running
from benchmarks.engine import CONCURRENCY, run_flow, write_dataset
from benchmarks.measure import Line, child

ITEMS = 10_000


def write_task(folder: str, *, asks: bool = True) -> None:
    """`tasks/bench`: ask, then compare; or, without a model, only the comparison."""
    ask = {
        "node_type": "llm",
        "model": {"name": "mock", "parameters": {"temperature": 0.7}},
        "prompt": [{"user": "{question} Answer with only the number."}],
        "output_keys": "predicted",
    }
    metrics = {
        "node_type": "lambda",
        "lambda": "tasks.eval.utils.UnitMetrics",
        "golden_key": "answer",
        "predicted_key": "predicted" if asks else "question",
        "unit_metrics_map": [{"name": "exact_match", "params": {"key": "text"}}],
        "output_keys": ["exact_match_result"],
    }
    names = ["START", *(["ask"] if asks else []), "unit_metrics", "END"]
    graph = {
        "data_config": {"source": {"type": "disk", "file_path": "records.jsonl"}},
        "graph_config": {
            "nodes": {"ask": ask, "unit_metrics": metrics} if asks else {"unit_metrics": metrics},
            "edges": [{"from": one, "to": other} for one, other in pairwise(names)],
        },
        "output_config": {
            "output_map": {
                name: {"from": name} for name in ("id", "question", "exact_match_result")
            }
        },
        "graph_post_process": [
            {
                "processor": "tasks.eval.utils.MetricCollatorPostProcessor",
                "params": {
                    "aggregator_metrics_map": [
                        {"name": "accuracy", "unit_metrics_results": "exact_match_result"}
                    ]
                },
            }
        ],
    }
    path = Path(folder) / "tasks/bench/graph_config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(graph))


def write_records(folder: str, items: int) -> None:
    """The items of the core's benchmark as records."""
    source = Path(folder) / "items.jsonl"
    write_dataset(source, items)
    with source.open() as rows, (Path(folder) / "records.jsonl").open("w") as file:
        for line in rows:
            row = json.loads(line)
            file.write(
                json.dumps({"id": row["id"], **row["data"], "answer": row["ground_truth"]}) + "\n"
            )


def run_graph(folder: str, url: str) -> float:
    """Seconds for the graph, the output file and the report, imports not counted."""
    from assay.formats.sygra.experiment import Options, SygraRun
    from assay.threads import run_blocking

    if url:
        (Path(folder) / "models.yaml").write_text(yaml.safe_dump({"mock": {"url": url}}))
    options = Options(
        task="bench", base=folder, num_records=0, batch_size=CONCURRENCY, disable_metadata=True
    )
    began = time.perf_counter()
    result = run_blocking(SygraRun(options).run)
    assert result.ok
    assert result.failed == 0
    return time.perf_counter() - began


def graph_throughput() -> list[Line]:
    """A graph of a model and a metric against a prompt and a scorer, alternating, best of three each."""
    core: list[float] = []
    graph: list[float] = []
    with running(ServerOptions()) as url:
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                write_records(folder, ITEMS)
                write_task(folder)
                core.append(child(run_flow, folder, url)["result"])
                graph.append(child(run_graph, folder, url)["result"])
    detail = f"{ITEMS / min(graph):,.0f}/s against {ITEMS / min(core):,.0f}/s"
    return [
        Line(
            "two-node graph / plain prompt, samples per second",
            min(core) / min(graph),
            ">=",
            0.7,
            detail,
        )
    ]


def project(folder: str) -> int:
    """Write the output file and the report of a finished run once more, as both formats."""
    from assay.formats.sygra.eval_utils import MetricCollatorPostProcessor
    from assay.formats.sygra.outputs import Records, write_records
    from assay.store.stores import FlatStore

    (rows,) = (Path(folder) / "tasks/bench/.assay").iterdir()
    store = FlatStore(rows)
    records = Records(store.log("dataset", store.id), store.log("run", store.id), ["id"])
    write_records(Path(folder) / "again.json", records.lines(), "json")
    write_records(Path(folder) / "again.jsonl", records.lines(), "jsonl")
    entries = [{"name": "accuracy", "unit_metrics_results": "exact_match_result"}]
    MetricCollatorPostProcessor(entries).process(records, {})
    return len(records)


def graph_growth() -> list[Line]:
    """Memory at ten times the records: of a whole run, and of making its files from the rows."""
    runs: dict[int, dict[str, Any]] = {}
    files: dict[int, dict[str, Any]] = {}
    for items in (10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            write_records(folder, items)
            write_task(folder, asks=False)
            runs[items] = child(run_graph, folder, "")
            files[items] = child(project, folder)
    return [
        _memory("graph, output and report: memory, 100,000 records / 10,000", runs, 1.5),
        _memory("output and report alone: memory, 100,000 records / 10,000", files, 1.25),
    ]


def _memory(what: str, found: dict[int, dict[str, Any]], bound: float) -> Line:
    small, large = found[10_000], found[100_000]
    detail = f"{large['peak']:.0f} MB / {small['peak']:.0f} MB, {large['seconds']:.1f} s"
    return Line(what, large["peak"] / small["peak"], "<=", bound, detail)


BENCHMARKS = [graph_throughput, graph_growth]
