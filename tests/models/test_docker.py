"""The `docker:` keys, through a `docker` on the PATH that serves as the container would, and notes what it is told."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.interfaces import Completion
from assay.models.llama_cpp import llama_cpp
from assay.models.vllm import vllm
from assay.registry import check_params

DOCKER = f"""#!{sys.executable}
import json, os, sys
with open(os.environ["DOCKER_CALLS"], "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "run":
    port = sys.argv[sys.argv.index("-p") + 1].split(":")[1]
    os.execv(sys.executable, [sys.executable, "-m", "assay.server", "--skill", "1.0", "--port", port])
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[str]]]:
    program = tmp_path / "docker"
    program.write_text(DOCKER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_CALLS", str(tmp_path / "calls"))
    return lambda: [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]


def made(make: Any, tmp_path: Path, **options: Any) -> Any:
    return make("m", **check_params(make, {"log": str(tmp_path / "log"), **options}))


def test_vllm(calls: Callable[[], Any], ask: Callable[..., Completion], tmp_path: Path) -> None:
    docker = {
        "env": ["HF_TOKEN"],
        "args": ["--max-model-len", "4096"],
        "options": ["--shm-size", "1g"],
    }
    model = made(vllm, tmp_path, model_path="org/weights", model_name="api", docker=docker)
    assert ask(model, "What is 17 * 23?").text == "391"
    run, remove = calls()
    name, published = run[3], run[5]
    assert published.startswith("127.0.0.1:")
    assert published.endswith(":8000")
    assert run == [
        *(
            "run",
            "--rm",
            "--name",
            name,
            "-p",
            published,
            "--gpus",
            "all",
            "-e",
            "HF_TOKEN",
            "--ipc=host",
        ),
        *(
            "--shm-size",
            "1g",
            "vllm/vllm-openai:latest",
            "--model",
            "org/weights",
            "--served-model-name",
            "api",
        ),
        *("--port", "8000", "--max-model-len", "4096"),
    ]
    assert remove == ["rm", "--force", name]


def test_llama_cpp(
    calls: Callable[[], Any], ask: Callable[..., Completion], tmp_path: Path
) -> None:
    docker = {"models_volume": "/data/gguf", "image": "local/llama:1", "gpus": "none"}
    model = made(llama_cpp, tmp_path, model_path="small.gguf", docker=docker)
    assert ask(model, "What is 17 * 23?").text == "391"
    run, remove = calls()
    assert run[6:] == [
        *(
            "-v",
            "/data/gguf:/models",
            "local/llama:1",
            "--model",
            "/models/small.gguf",
            "--alias",
            "m",
        ),
        *("--host", "0.0.0.0", "--port", "8080"),
    ]
    assert remove == ["rm", "--force", run[3]]


def test_a_worker_that_has_some_gpus_gives_its_container_those(
    calls: Callable[[], Any],
    ask: Callable[..., Completion],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert ask(made(vllm, tmp_path, model_path="w", docker={}), "What is 17 * 23?").text == "391"
    assert calls()[0][6:8] == ["--gpus", '"device=2,3"']


def test_the_host_port_is_used(
    calls: Callable[[], Any], ask: Callable[..., Completion], tmp_path: Path
) -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    model = made(vllm, tmp_path, model_path="w", docker={"host_port": port})
    assert ask(model, "What is 2+2?").text == "4"
    assert calls()[0][5] == f"127.0.0.1:{port}:8000"
    assert model.base == f"http://127.0.0.1:{port}/v1"
