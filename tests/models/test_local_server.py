"""Servers that a model starts: they become healthy or say why not, and nothing of them is left, even after kill -9."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from assay.errors import LaneError, UserError
from assay.interfaces import Completion, Request
from assay.models import _local_server
from assay.models._local_openai import ServedModel
from assay.models.llama_cpp import llama_cpp
from assay.models.vllm import vllm
from assay.registry import model as models
from tests.support import wait_for

Ask = Callable[..., Completion]
MOCK = [sys.executable, "-m", "assay.server", "--skill", "1.0", "--port", "{port}"]
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
far = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("started", far.pid, flush=True)
time.sleep(600)
"""
PARENT = """
import asyncio, sys
from assay.models.vllm import vllm

async def main():
    model = vllm("m", command=sys.argv[2:], log=sys.argv[1])
    await model.open()
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def served(model: Any) -> ServedModel:
    assert isinstance(model, ServedModel)
    return model


def supervisors() -> list[psutil.Process]:
    """Children of ours that look after a server; other tests have servers of their own."""
    return [
        child
        for child in psutil.Process().children()
        if any("children.py" in word for word in child.cmdline())
    ]


def failing(model: Any) -> LaneError:
    async def go() -> None:
        try:
            await model.open()
        finally:
            await model.close()

    with pytest.raises(LaneError) as caught:
        asyncio.run(go())
    return caught.value


@pytest.mark.parametrize("make", [vllm, llama_cpp])
def test_it_starts_at_the_first_request_and_ends_with_close(
    make: Any, ask: Ask, tmp_path: Path
) -> None:
    model = served(make("m", command=MOCK, log=str(tmp_path / "logs/server.log")))
    assert model.exclusive
    for _ in range(2):  # closed, it can be opened again
        assert ask(model, "What is 17 * 23?").text == "391"
        assert supervisors() == []
    assert (tmp_path / "logs/server.log").read_text().count('"url"') == 2


def test_without_a_command_it_is_only_a_client(honest: str, ask: Ask) -> None:
    model = served(vllm("m", endpoint=honest))
    assert not model.exclusive
    assert ask(model, "What is 2+2?").text == "4"
    assert model.identity == {
        "type": "vllm",
        "name": "m",
        "model_name": "m",
        "model_path": None,
        "api": "chat",
        "revision": None,
        "extra_body": {},
    }


def test_a_log_that_nobody_asked_for_goes_with_a_good_run(ask: Ask) -> None:
    model = served(vllm("m", command=MOCK))
    assert model.server is not None
    ask(model, "x")
    assert model.server.log.name.startswith("assay-m-")
    assert not model.server.log.exists()


def test_many_first_requests_start_one_server(tmp_path: Path) -> None:
    async def go() -> set[str]:
        model = vllm("m", command=MOCK, log=str(tmp_path / "log"))
        request = Request([{"role": "user", "content": "What is 2+2?"}])
        answers = await asyncio.gather(*(model.complete(request) for _ in range(20)))
        await model.close()
        return {answer.text for answer in answers}

    assert asyncio.run(go()) == {"4"}
    assert (tmp_path / "log").read_text().count('"url"') == 1


def test_a_command_is_filled_in_and_given_as_text_too(ask: Ask, tmp_path: Path) -> None:
    script = "import sys; print(sys.argv[1:]); sys.exit(3)"
    command = f"{sys.executable} -c '{script}' --model {{model_path}} --name {{model_name}} --port {{port}}"
    error = failing(vllm("m", model_name="api", model_path="/w/x", port=None, command=command))
    log, _, lines = error.where.partition(", which ends so:\n")
    assert error.what == "the server of 'm' ended with exit code 3"
    assert "['--model', '/w/x', '--name', 'api', '--port', '" in lines
    Path(log).unlink()


def test_a_server_that_never_becomes_healthy_shows_its_log(tmp_path: Path) -> None:
    script = "import time; print('loading \\x1b[31mweights', flush=True); time.sleep(600)"
    log = tmp_path / "server.log"
    model = vllm(
        "m",
        command=[sys.executable, "-c", script],
        port=free_port(),
        start_timeout=0.6,
        log=str(log),
    )
    error = failing(model)
    assert "was not healthy within 0.6 s" in error.what
    assert error.where == f"{log}, which ends so:\n    loading \\x1b[31mweights"
    assert "start_timeout" in error.fix
    assert supervisors() == []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_port_in_use_is_refused_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = failing(vllm("m", command=MOCK, port=port))
    assert f"cannot use port {port}: Address already in use" in error.what


def test_a_program_that_is_not_there_is_named() -> None:
    assert (
        "there is no program 'no-such-vllm'"
        in failing(vllm("m", command="no-such-vllm --port {port}")).what
    )


def test_a_server_that_dies_stops_its_lane_with_its_log(tmp_path: Path) -> None:
    async def go() -> None:
        model = served(vllm("m", command=MOCK, log=str(tmp_path / "log")))
        await model.open()
        (supervisor,) = supervisors()
        (server,) = supervisor.children()
        server.kill()
        wait_for(lambda: supervisor.status() == psutil.STATUS_ZOMBIE)
        try:
            await model.complete(Request([{"role": "user", "content": "x"}]))
        finally:
            await model.close()

    with pytest.raises(LaneError, match="ended with exit code 137"):
        asyncio.run(go())


def test_a_stubborn_server_and_what_it_started_elsewhere_end_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_local_server, "GRACE", 0.1)
    log = tmp_path / "log"
    command = [sys.executable, "-c", STUBBORN]
    failing(vllm("m", command=command, port=free_port(), start_timeout=1.0, log=str(log)))
    far = int(log.read_text().split()[1])
    assert not psutil.pid_exists(far)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_parent_ends(number: signal.Signals, tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log"), *MOCK],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    family = psutil.Process(parent.pid).children(recursive=True)
    assert len(family) == 2
    os.kill(parent.pid, number)
    parent.wait()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
    parent.stdout.close()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"command": []}, "`command` is empty"),
        ({"command": "server"}, "does not say the port"),
        ({"command": "server {port} {model_path}"}, "needs the model's path"),
        (
            {"command": "server {port}", "docker": {"models_volume": "/w"}, "model_path": "x"},
            "two ways",
        ),
        ({"docker": {}}, "`model_path`"),
        ({"docker": {"imgae": "x"}, "model_path": "x"}, "unknown field `imgae`"),
    ],
)
def test_keys_that_do_not_fit_are_refused(options: dict[str, Any], part: str) -> None:
    from assay.registry import check_params

    for make in (vllm, llama_cpp):
        with pytest.raises(UserError) as caught:
            make("m", **check_params(make, options))
        assert part in str(caught.value)


def test_the_name_with_a_dot_is_found() -> None:
    assert models.get("llama.cpp") is llama_cpp
    assert "llama.cpp" in models.names()
    assert "llama_cpp" not in models.names()
