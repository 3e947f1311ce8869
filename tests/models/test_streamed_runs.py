"""Streamed runs, from rows: what is asked, what is kept, what the numbers are."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import assay
from assay.errors import UserError
from assay.server import Options, running, stats


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(Options(skill=1, latency_ms=30, token_ms=5)) as address:
        yield address


def config(folder: Path, url: str, items: int = 12, **more: Any) -> dict[str, Any]:
    rows = [
        {"id": str(n), "question": f"What is {n} * 7? Think step by step.", "ground_truth": "x"}
        for n in range(items)
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "name": "streamed",
        "dataset": str(folder / "items.jsonl"),
        "models": [{"name": "m", "endpoint": url, "stream": True, "max_concurrency": 3}],
        "prompt_template": "{{question}}",
        "evaluation_methods": ["contains"],
        "metrics": ["mean"],
        "output_dir": str(folder / "out"),
        **more,
    }


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_streaming_is_in_no_key_and_its_absence_in_no_byte(tmp_path: Path) -> None:
    with running(Options(skill=1)) as url:
        models = [{"name": "m", "endpoint": url}]
        whole = assay.run(config(tmp_path, url, models=models))
        before = (tmp_path / "out" / "responses.jsonl").read_bytes()
        assert b"stream" not in before
        assay.run(config(tmp_path, url, models=models, sample_params={"stream": True}))
        assay.run(config(tmp_path, url))
        assert stats(url)["requests"] == 12
        assert (tmp_path / "out" / "responses.jsonl").read_bytes() == before
        there = str(tmp_path / "there")
        assay.run(
            config(tmp_path, url, models=models, sample_params={"stream": True}, output_dir=there)
        )
    rows = [json.loads(line) for line in before.splitlines()]
    streamed = read(Path(there, "responses.jsonl"))
    assert whole.run is not None
    assert {row["key"]: row["response"] for row in rows} == {
        row["key"]: row["response"] for row in streamed
    }
    assert all(row["metadata"]["stream"]["ttft"] > 0 for row in streamed)
    assert all("stream" not in row["metadata"]["sampling"] for row in streamed)
    assert {row["completion_tokens"] for row in rows} == {
        row["completion_tokens"] for row in streamed
    }


def test_broken_streams_are_tried_again_and_counted(tmp_path: Path) -> None:
    rates = dict.fromkeys(("rate_torn", "rate_garbage", "rate_unfinished", "rate_error_event"), 0.1)
    with running(Options(skill=1, seed=5, **rates)) as url:
        result = assay.run(config(tmp_path, url, items=60, max_retries=30))
        faults = sum(stats(url)["faults"].values())
    assert result.run is not None
    assert faults > 10
    assert (result.run.counts, result.run.metadata["retries"]) == ({"ok": 60}, {"m": faults})
    with running(Options(skill=1)) as url:
        models = [{"name": "m", "endpoint": url}]
        assay.run(
            config(tmp_path, url, items=60, models=models, output_dir=str(tmp_path / "sound"))
        )
    answers = [
        {row["item_id"]: row["response"] for row in read(tmp_path / name / "responses.jsonl")}
        for name in ("out", "sound")
    ]
    assert answers[0] == answers[1]


def test_metrics_of_streams(tmp_path: Path, url: str) -> None:
    names = [
        "ttft",
        "time_between_tokens",
        "generation_speed",
        {"name": "slow", "type": "ttft", "params": {"statistic": "p95"}},
    ]
    result = assay.run(config(tmp_path, url, metrics=names))
    rows = [row["metadata"]["stream"] for row in read(tmp_path / "out" / "responses.jsonl")]
    found = {row["metric_name"]: row for row in result.metrics}
    assert found["ttft"]["value"] == pytest.approx(np.mean([row["ttft"] for row in rows]))
    assert found["time_between_tokens"]["value"] == pytest.approx(
        np.mean([row["time_between_tokens"] for row in rows])
    )
    assert found["generation_speed"]["value"] == pytest.approx(
        np.median([row["generation_speed"] for row in rows])
    )
    assert found["slow"]["value"] == pytest.approx(np.quantile([row["ttft"] for row in rows], 0.95))
    for row in found.values():
        assert row["ci_low"] <= row["value"]
        if row is not found["slow"]:  # of so few rows none need lie above the true p95
            assert row["value"] <= row["ci_high"] < math.inf
    assert found["slow"]["ci_high"] is None
    demo = assay.run(
        config(
            tmp_path, "", models=["demo:d"], metrics=names[:1], output_dir=str(tmp_path / "demo")
        )
    )
    assert demo.metrics[0]["value"] is None
    assert "stream: true" in demo.metrics[0]["reason"]


@pytest.mark.parametrize("value", ["yes please", 3, None])
def test_stream_is_true_or_false(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UserError, match="stream must be true or false"):
        assay.run(config(tmp_path, "http://127.0.0.1:1", sample_params={"stream": value}))
