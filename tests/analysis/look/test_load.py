"""Load tests and streamed runs, from rows: what is asked, what is kept, what the numbers are."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.analysis.look.load import covered, measured
from assay.errors import BudgetError, UserError
from assay.records import Manifest
from assay.server import Options, running, stats
from assay.store.stores import FlatStore

COMMAND = [sys.executable, "-m", "assay"]


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
        "name": "load",
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


spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


@given(spans)
def test_the_time_under_way_is_that_of_counting_seconds(parts: list[tuple[int, int]]) -> None:
    seconds = {second for start, length in parts for second in range(start, start + length)}
    starts = np.array([start for start, _ in parts], np.float64)
    ends = np.array([start + length for start, length in parts], np.float64)
    assert covered(starts, ends) == len(seconds)


def test_numbers_from_rows_by_hand(tmp_path: Path) -> None:
    """Two spans of 4 s that overlap by half, a pause of an hour, an error of 2 s."""
    rows: list[dict[str, Any]] = [
        {
            "timestamp": 104.0,
            "inference_time": 4.0,
            "completion_tokens": 6,
            "metadata": {"stream": {"ttft": 1.0}},
        },
        {
            "timestamp": 106.0,
            "inference_time": 4.0,
            "completion_tokens": 10,
            "metadata": {"stream": {"ttft": 3.0}},
        },
        {"timestamp": 3706.0, "inference_time": 2.0, "outcome": "errored"},
        {"timestamp": 5000.0, "inference_time": 9.0, "model_name": "other"},
    ]
    store = FlatStore(tmp_path / "4")
    lines = [
        json.dumps({"item_id": str(n), "model_name": "m", **row}).encode() + b"\n"
        for n, row in enumerate(rows)
    ]
    store.put_manifest(Manifest(kind="run", id="4", metadata={"retries": {"m": 7}}))
    store.log("run", "4").append(b"".join(lines))
    level = measured(store, "m", 4)
    assert (level.requests, level.errors, level.retries, level.seconds) == (3, 1, 7, 8.0)
    assert (level.in_flight, level.requests_per_second, level.tokens_per_second) == (
        10 / 8,
        2 / 8,
        16 / 8,
    )
    assert level.latency is not None
    assert level.ttft is not None
    assert (level.latency.median, level.ttft.median) == (4.0, 2.0)
    assert level.ttft.p95 == pytest.approx(np.quantile([1.0, 3.0], 0.95))
    assert level.time_between_tokens is None


def test_levels_hold_their_number_of_calls_and_are_asked_once(tmp_path: Path) -> None:
    with running(Options(skill=1, latency_ms=30, token_ms=5)) as url:
        first = assay.load_test(config(tmp_path, url, items=24), levels=[6, 1], limit=24)
        asked = stats(url)
        again = assay.load_test(config(tmp_path, url, items=24), levels=[1, 6], limit=24)
        assert stats(url)["requests"] == asked["requests"] == 48
    assert asked["max_in_flight"] == 6, "whatever the model's own limit"
    assert [level.level for level in first.levels] == [1, 6]
    one, six = first.levels
    assert one.in_flight == pytest.approx(1, abs=0.05)
    assert one.latency is not None
    assert one.ttft is not None
    assert 0.03 < one.ttft.median < one.latency.median
    assert six.in_flight is not None
    assert 4 < six.in_flight <= 6.05
    assert six.requests_per_second is not None
    assert one.requests_per_second is not None
    assert six.requests_per_second > 2 * one.requests_per_second
    assert (again.levels, first.failed) == (first.levels, [])
    assert not list((tmp_path / "out").glob("*.jsonl")), "the experiment's own rows are its own"
    for name in ("throughput", "tokens", "latency"):
        ElementTree.parse(tmp_path / "out" / "load" / f"{name}.svg")
    table = assay.sheet(first).form(width=80)
    assert max(map(len, table.splitlines()[:4])) <= 80
    assert len(assay.sheet(first).form("csv").splitlines()) == 3
    assert "<svg" in first._repr_html_()


def test_a_load_test_resumes(tmp_path: Path) -> None:
    """Killed in the middle: the same command asks only for what is missing."""
    with running(Options(skill=1, latency_ms=60)) as url:
        file = tmp_path / "config.json"
        file.write_text(json.dumps(config(tmp_path, url)))
        command = [*COMMAND, "run", str(file), "--load", "1,2", "--no-progress"]
        child = subprocess.Popen(command, env={**os.environ, "COLUMNS": "80"})
        while stats(url)["requests"] < 4:
            time.sleep(0.02)
        child.kill()
        child.wait()
        kept = (tmp_path / "out/load/1/responses.jsonl").read_bytes()
        before = stats(url)["requests"]
        done = subprocess.run([*command, "--json"], capture_output=True, check=True, text=True)
        assert stats(url)["requests"] - before == 24 - kept.count(b"\n")
    assert (tmp_path / "out/load/1/responses.jsonl").read_bytes().startswith(kept)
    result = json.loads(done.stdout.splitlines()[-1])
    assert [level["requests"] for level in result["levels"]] == [12, 12]
    assert result["levels"][0]["in_flight"] == pytest.approx(1, abs=0.05), (
        "the pause does not count"
    )


def test_models_that_do_not_stream_and_servers_that_refuse(tmp_path: Path) -> None:
    demo = [{"name": "d", "type": "demo"}]
    load = assay.load_test(config(tmp_path, "", models=demo), levels=[1])
    assert load.levels[0].ttft is None
    assert any("d streamed no answer" in note for note in load.notes)
    with running(Options(capacity=2, latency_ms=20, retry_after=0.01)) as url:
        refused = assay.load_test(
            config(tmp_path, url, output_dir=str(tmp_path / "few")), levels=[6]
        )
    (level,) = refused.levels
    assert (level.errors, level.retries > 0) == (0, True)
    assert any("tried again" in note for note in refused.notes)
    with running(Options(rate_500=1.0)) as url:
        broken = assay.load_test(
            config(tmp_path, url, output_dir=str(tmp_path / "no"), max_retries=0), levels=[2]
        )
    assert broken.failed == ["m at 2"]
    assert any("HTTP 500" in note for note in broken.notes)
    assert "–" in str(assay.sheet(broken))


def test_what_a_load_test_refuses(tmp_path: Path, url: str) -> None:
    refused: Any = (
        {"levels": []},
        {"levels": [0]},
        {"levels": [1], "mode": "full"},
        {"levels": [1], "workers": 2},
    )
    for options in refused:
        with pytest.raises(UserError):
            assay.load_test(config(tmp_path, url), **options)
    (tmp_path / "code.py").write_text("def task(item): return 1\n")
    tasks = [{"name": "t", "function": f"{tmp_path}/code.py:task"}]
    with pytest.raises(UserError, match="needs a model"):
        assay.load_test(config(tmp_path, url, models=[], tasks=tasks), levels=[1])
    (tmp_path / "out" / "load").mkdir(parents=True)
    (tmp_path / "out" / "load" / "latency.svg").write_text("mine")
    load = assay.load_test(config(tmp_path, url), levels=[4])
    assert (tmp_path / "out" / "load" / "latency.svg").read_text() == "mine"
    assert any("pictures were not written" in note for note in load.notes)


def test_a_budget_is_for_all_levels_together(tmp_path: Path, url: str) -> None:
    small: dict[str, Any] = {"budget": {"tokens": 400}, "sample_params": {"max_tokens": 20}}
    with pytest.raises(BudgetError):
        assay.load_test(config(tmp_path, url, **small), levels=[1, 2, 4])
    rows = [row for file in tmp_path.rglob("responses.jsonl") for row in read(file)]
    assert 12 < len(rows) < 36
    assert sum(row["total_tokens"] for row in rows) <= 400


# ---- streamed runs


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
        assert row["ci_low"] <= row["value"] <= row["ci_high"]
        assert math.isfinite(row["ci_high"])
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
