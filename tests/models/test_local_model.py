"""The real model, by llama.cpp: its tokens, its log-probabilities, answers that are unparsed, and what a kill costs."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from math import exp
from pathlib import Path
from typing import Any

import psutil
import pytest

import assay
from assay.errors import LaneError, PermanentError, UserError
from assay.interfaces import Completion, Model, Request
from assay.models._gguf_file import _header, weights
from assay.models.gguf import gguf
from assay.models.local import local, local_models, place, pull
from tests.models.gguf_files import gguf_file
from tests.support import wait_for

pytestmark = [
    pytest.mark.local,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="needs llama.cpp"),
]

EXAMPLE = Path(__file__).parents[2] / "examples/local/config.yaml"
ITEMS = 5


@pytest.fixture(scope="module", autouse=True)
def model_is_here() -> None:
    pull()


def answers(model: Model, *texts: str, **params: Any) -> list[Completion]:
    """One after the other, by one server."""

    async def go() -> list[Completion]:
        try:
            requests = [
                Request([{"role": "user", "content": text}], {"temperature": 0, **params})
                for text in texts
            ]
            return [await model.complete(request) for request in requests]
        finally:
            await model.close()

    return asyncio.run(go())


def run_example(folder: Path, **options: Any) -> dict[tuple[str, str], dict[str, Any]]:
    assay.run(EXAMPLE, output_dir=str(folder), limit=ITEMS, **options)
    return rows_of(folder)


def rows_of(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The responses, by item and prompt; each once."""
    rows = [json.loads(line) for line in (folder / "responses.jsonl").read_text().splitlines()]
    by_cell = {(row["item_id"], row["metadata"]["prompt_template"]): row for row in rows}
    assert len(by_cell) == len(rows)
    return by_cell


def said(
    rows: dict[tuple[str, str], dict[str, Any]],
) -> dict[tuple[str, str], tuple[str, list[float]]]:
    return {
        cell: (row["response"], [token["logprob"] for token in row["logprobs"]])
        for cell, row in rows.items()
    }


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first items of the example, run once."""
    folder = tmp_path_factory.mktemp("local") / "out"
    run_example(folder)
    return folder


def test_the_rows_have_real_tokens_and_log_probabilities(example: Path) -> None:
    rows = rows_of(example)
    assert len(rows) == 2 * ITEMS
    for row in rows.values():
        tokens = row["logprobs"]
        assert row["outcome"] == "ok"
        assert "".join(token["token"] for token in tokens) == row["response"]
        # the token that ends an answer has no text
        assert row["completion_tokens"] - len(tokens) in (0, 1)
        assert row["prompt_tokens"] > 10
        assert row["served_model"] == "local"
        assert row["cost"] == 0
        for token in tokens:
            chances = [exp(other["logprob"]) for other in token["top_logprobs"]]
            assert chances == sorted(chances, reverse=True)
            # temperature 0 takes the likeliest
            assert token["logprob"] == token["top_logprobs"][0]["logprob"] <= 0
            assert sum(chances) <= 1 + 1e-5


def test_some_answers_are_unparsed_and_counted_so(example: Path) -> None:
    labels = [
        json.loads(line) for line in (example / "evaluation_results.jsonl").read_text().splitlines()
    ]
    outcomes = {
        outcome: sum(label["outcome"] == outcome for label in labels)
        for outcome in ("scored", "unparsed")
    }
    assert sum(outcomes.values()) == 2 * ITEMS
    assert outcomes["scored"]
    assert outcomes["unparsed"]
    metrics = [json.loads(line) for line in (example / "metrics.jsonl").read_text().splitlines()]
    assert sum(metric["unparsed_count"] for metric in metrics) == outcomes["unparsed"]


def test_the_same_answers_in_another_run_by_path(example: Path, tmp_path: Path) -> None:
    """Another process, another port, another place of the file, two answers at a time: the same to the last digit."""
    shutil.copy(place(), tmp_path / "elsewhere.gguf")
    model = {
        "name": "local",
        "type": "gguf",
        "path": str(tmp_path / "elsewhere.gguf"),
        "parallel": 2,
    }
    again = run_example(tmp_path / "out", overrides={"models": [model]})
    assert said(again) == said(rows_of(example))
    assert {row["key"] for row in again.values()} == {
        row["key"] for row in rows_of(example).values()
    }


def test_a_run_that_is_killed_resumes_and_leaves_no_server(example: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    responses = out / "responses.jsonl"
    command = [
        sys.executable,
        "-m",
        "assay",
        "run",
        str(EXAMPLE),
        "-o",
        str(out),
        "--limit",
        str(ITEMS),
    ]
    environ = {**os.environ, "ASSAY_STATE_DIR": str(tmp_path / "state")}
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_for(
            lambda: responses.exists() and responses.read_bytes().count(b"\n") >= 3, seconds=120
        )
        servers = psutil.Process(process.pid).children(recursive=True)
        assert any("_llama_server" in word for server in servers for word in server.cmdline())
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: not any(server.is_running() for server in servers), seconds=30)
    kept = said(rows_of(out))
    assert 3 <= len(kept) < 2 * ITEMS
    resumed = run_example(out)
    assert said(resumed) == said(rows_of(example))
    assert kept.items() <= said(resumed).items()


def test_log_probabilities_are_those_of_the_weights() -> None:
    """transformers has -0.2581 on the same weights; quantised kernels differ by some thousandths."""
    (answer,) = answers(
        local("m", api="completions"), "The capital of France is", max_tokens=1, logprobs=1
    )
    assert answer.text == " Paris"
    assert answer.logprobs is not None
    assert answer.logprobs[0]["logprob"] == pytest.approx(-0.2581, abs=0.005)


def test_answers_do_not_depend_on_earlier_ones_and_seeds_repeat() -> None:
    questions = ["Name a colour.", "Name a colour of the sky.", "Name a colour."]
    first, _, third = answers(local("m"), *questions, max_tokens=8, logprobs=True)
    assert first.text == third.text
    assert first.logprobs == third.logprobs
    warm = {"temperature": 1.0, "max_tokens": 12}
    one, same = answers(local("m"), *["Tell me a story."] * 2, seed=7, **warm)
    (other,) = answers(local("m"), "Tell me a story.", seed=8, **warm)
    assert one.text == same.text != other.text


def test_a_prompt_beyond_the_context() -> None:
    with pytest.raises(PermanentError, match="the prompt is too long for the model"):
        answers(local("m", context=256), "word " * 300, max_tokens=4)
    (cut,) = answers(local("m", context=256), "Write a long story about a dog.")
    assert cut.finish_reason == "length"
    assert cut.prompt_tokens is not None
    assert cut.completion_tokens is not None
    assert cut.prompt_tokens + cut.completion_tokens == 256


def test_weights_that_llama_cpp_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "odd.gguf").write_bytes(gguf_file())
    with pytest.raises(LaneError) as caught:
        answers(gguf("odd", path=str(tmp_path / "odd.gguf"), log=str(tmp_path / "log")), "x")
    assert "failed to load model" in caught.value.where
    assert "Traceback" not in caught.value.where


def test_the_real_file_is_measured_exactly_and_refused_when_cut(tmp_path: Path) -> None:
    size = place().stat().st_size
    with place().open("rb") as file:
        assert _header(file, "")[1] == size == local_models()[0].size
    assert weights(place()).context == 8192
    cut = tmp_path / "cut.gguf"
    shutil.copy(place(), cut)
    for length in (size - 1, size // 2, 1_785_664, 1_000_000, 100, 4):
        os.truncate(cut, length)
        with pytest.raises(UserError, match="truncated"):
            gguf("m", path=str(cut))
