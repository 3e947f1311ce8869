"""The metadata file of a run: what ran, on what, and what it used, from the engine's own rows and calls."""

import subprocess
import sys
import time
from array import array
from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
import numpy as np

from assay import __version__
from assay.interfaces import Log
from assay.records import Manifest
from assay.store.repair import read_rows

if TYPE_CHECKING:
    from assay.formats.sygra.experiment import Result, SygraRun

VERSION = "1.0.0"


class _Completion(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None


class _Call(msgspec.Struct, gc=False):
    completion: _Completion
    step: str = ""
    model_name: str = ""
    seconds: float = 0.0


class Use:
    """The calls of one model or one node; 8 bytes a call are held, for the percentiles."""

    def __init__(self) -> None:
        self.prompt_tokens = self.completion_tokens = 0
        self.cost: float | None = None
        self.seconds = array("d")

    def add(self, call: _Call) -> None:
        self.prompt_tokens += call.completion.prompt_tokens or 0
        self.completion_tokens += call.completion.completion_tokens or 0
        if call.completion.cost is not None:
            self.cost = (self.cost or 0.0) + call.completion.cost
        self.seconds.append(call.seconds)

    def shown(self) -> dict[str, Any]:
        calls = len(self.seconds)
        tokens = _tokens([self])
        average = round(tokens["total_tokens"] / calls, 2) if calls else None
        return {
            "token_statistics": {**tokens, "average_tokens_per_request": average},
            "performance": {"total_requests": calls, "latency_statistics": latency(self.seconds)},
            "cost": {"total_cost_usd": self.cost},
        }


def _tokens(uses: Collection[Use]) -> dict[str, int]:
    prompt = sum(use.prompt_tokens for use in uses)
    completion = sum(use.completion_tokens for use in uses)
    total = prompt + completion
    return {
        "total_prompt_tokens": prompt,
        "total_completion_tokens": completion,
        "total_tokens": total,
    }


def latency(seconds: "array[float]") -> dict[str, float | None]:
    """Seconds of a call: smallest, largest, mean, median, sample deviation and percentiles."""
    ordered = np.sort(np.array(seconds, np.float64))
    size = len(ordered)
    if not size:
        return dict.fromkeys(("min", "max", "mean", "median", "std_dev", "p50", "p95", "p99"))
    percentiles = quantiles(ordered.tolist(), n=100) if size > 1 else [ordered[0]] * 99
    numbers = {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": ordered.mean(),
        "median": np.median(ordered),
        "std_dev": ordered.std(ddof=1) if size > 1 else 0.0,
        **{f"p{percent}": percentiles[percent - 1] for percent in (50, 95, 99)},
    }
    return {name: round(float(value), 6) for name, value in numbers.items()}


def run_metadata(
    run: "SygraRun", result: "Result", dataset: Manifest, calls: Log, started: float
) -> dict[str, Any]:
    """The file's content."""
    options, ended = run.options, time.time()
    sources: Any = run.data_config.get("source") or {}
    source: dict[str, Any] = sources[0] if isinstance(sources, list) else sources
    models: defaultdict[str, Use] = defaultdict(Use)
    nodes: defaultdict[str, Use] = defaultdict(Use)
    for _, call in read_rows(calls, _Call):
        models[call.model_name].add(call)
        nodes[call.step].add(call)
    return {
        "metadata_version": VERSION,
        "generated_at": _time(ended),
        "execution": {
            "task_name": run.task.name,
            "run_name": options.run_name,
            "output_dir": str(run.output_dir),
            "batch_size": options.batch_size,
            "checkpoint_interval": 1,
            "resumable": True,
            "debug": options.debug,
            "environment": {
                "python_version": ".".join(map(str, sys.version_info[:3])),
                "sygra_version": None,
                "assay_version": __version__,
            },
            "git": _git(run.task.base),
            "timing": {
                "start_time": _time(started),
                "end_time": _time(ended),
                "duration_seconds": round(ended - started, 3),
            },
        },
        "dataset": {
            "source_type": source.get("type"),
            "source_path": source.get("repo_id") or source.get("file_path"),
            "start_index": options.start_index,
            "dataset_version": None,
            "dataset_hash": dataset.digest,
            "num_records_processed": result.total,
        },
        "aggregate_statistics": _statistics(run, result, models.values()),
        "models": {
            name: {
                **use.shown(),
                "parameters": dict(run.models[name].use.params) if name in run.models else {},
            }
            for name, use in sorted(models.items())
        },
        "nodes": {name: use.shown() for name, use in sorted(nodes.items())},
    }


def _statistics(run: "SygraRun", result: "Result", models: Collection[Use]) -> dict[str, Any]:
    total, failed = result.total, result.failed
    requests = sum(len(use.seconds) for use in models)
    retries = sum(lane.retries for lane in run.progress.of("run"))
    costs = [use.cost for use in models if use.cost is not None]
    cost = sum(costs) if costs else None
    return {
        "records": {
            "total_processed": total,
            "total_failed": failed,
            "success_rate": round((total - failed) / total, 6) if total else None,
        },
        "tokens": _tokens(models),
        "requests": {
            "total_requests": requests,
            "total_retries": retries,
            "total_failures": failed,
            "retry_rate": round(retries / requests, 6) if requests else None,
            "failure_rate": round(failed / total, 6) if total else None,
        },
        "cost": {
            "total_cost_usd": cost,
            "average_cost_per_record": None if cost is None or not total else cost / total,
        },
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(timespec="seconds")


def _git(base: Path) -> dict[str, Any]:
    """What the folder is a checkout of; nulls where it is not one."""
    commit = _asked(base, "rev-parse", "HEAD")
    status = _asked(base, "status", "--porcelain") if commit else None
    return {
        "commit_hash": commit,
        "branch": _asked(base, "rev-parse", "--abbrev-ref", "HEAD") if commit else None,
        "is_dirty": None if status is None else bool(status),
        "remote_url": _without_password(_asked(base, "remote", "get-url", "origin"))
        if commit
        else None,
    }


def _asked(base: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *words], cwd=base, capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _without_password(address: str | None) -> str | None:
    if not address or "://" not in address:
        return address
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], *parts[2:]))
