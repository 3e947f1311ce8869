"""Graphs: a two-node one against a plain prompt on the same items, and the output files as they grow."""

import json
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from assay.server import Options, running
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
        "output_config": {"output_map": {name: {"from": name} for name in ("id", "question", "exact_match_result")}},
        "graph_post_process": [
            {
                "processor": "tasks.eval.utils.MetricCollatorPostProcessor",
                "params": {
                    "aggregator_metrics_map": [{"name": "accuracy", "unit_metrics_results": "exact_match_result"}]
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
            file.write(json.dumps({"id": row["id"], **row["data"], "answer": row["ground_truth"]}) + "\n")


def run_graph(folder: str, url: str) -> float:
    """Seconds for the graph, the output file and the report, imports not counted."""
    from assay.formats.sygra import run
    from assay.formats.sygra.experiment import SygraRun as SygraRun

    if url:
        (Path(folder) / "models.yaml").write_text(yaml.safe_dump({"mock": {"url": url}}))
    began = time.perf_counter()
    result = run("bench", base=folder, num_records=0, batch_size=CONCURRENCY, disable_metadata=True)
    assert result.ok
    assert result.failed == 0
    return time.perf_counter() - began


def graph_throughput() -> list[Line]:
    """A graph of a model and a metric against a prompt and a scorer, alternating, best of three each."""
    core: list[float] = []
    graph: list[float] = []
    with running(Options()) as url:
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                write_records(folder, ITEMS)
                write_task(folder)
                core.append(child(run_flow, folder, url)["result"])
                graph.append(child(run_graph, folder, url)["result"])
    detail = f"{ITEMS / min(graph):,.0f}/s against {ITEMS / min(core):,.0f}/s"
    return [Line("two-node graph / plain prompt, samples per second", min(core) / min(graph), ">=", 0.7, detail)]


def graph_growth() -> list[Line]:
    """Memory of a run with its output file and report at ten times the records."""
    found: dict[int, dict[str, Any]] = {}
    for items in (10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            write_records(folder, items)
            write_task(folder, asks=False)
            found[items] = child(run_graph, folder, "")
    small, large = found[10_000], found[100_000]
    detail = f"{large['peak']:.0f} MB / {small['peak']:.0f} MB, {large['result']:.1f} s"
    return [
        Line(
            "graph, output and report: memory at 100,000 records / 10,000",
            large["peak"] / small["peak"],
            "<=",
            1.25,
            detail,
        )
    ]


BENCHMARKS = [graph_throughput, graph_growth]
