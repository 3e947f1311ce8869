import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from assay.errors import AssayError
from assay.server import MockServer, Options, running, stats

COMMAND = [sys.executable, "-m", "assay.server"]


def test_in_an_event_loop(send: Callable[..., Any]) -> None:
    async def go() -> None:
        server = MockServer(Options(skill=1.0))
        await server.start()
        status, _, _ = await asyncio.to_thread(send, server.url, "/health")
        assert status == 200
        await server.close()
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(send, server.url, "/health")

    asyncio.run(go())


def test_a_port_in_use_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    with running() as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(AssayError, match="did not start"), running(Options(port=port)):
            pass
    assert f"port {port} cannot be used" in capfd.readouterr().err


def test_several_processes_share_a_port() -> None:
    with running(Options(processes=3)) as url:
        port = int(url.rpartition(":")[2])
        children = psutil.Process().children(recursive=True)
        listeners = [
            child
            for child in children
            if any(
                entry.laddr.port == port
                for entry in child.net_connections()
                if entry.status == "LISTEN"
            )
        ]
        assert len(listeners) == 3
        assert stats(url)["requests"] == 0
    assert not any(child.is_running() for child in listeners)


def test_the_server_ends_when_its_parent_is_killed() -> None:
    script = (
        "import sys\nfrom assay.server import running\n"
        "with running() as url:\n    print(url, flush=True)\n    sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdout.readline()
    (child,) = psutil.Process(parent.pid).children()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running()
    parent.stdin.close()
    parent.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(number: signal.Signals) -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        assert b'"url":"http://127.0.0.1:' in child.stdout.readline()
        child.send_signal(number)
        assert child.wait(timeout=10) == 0


def test_a_wrong_flag_value_is_a_usage_error() -> None:
    done = subprocess.run(
        [*COMMAND, "--rate-429", "7"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "rate_429 is 7.0, not a share" in done.stderr
