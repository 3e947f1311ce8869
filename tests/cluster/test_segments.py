"""The machine of tests/store/test_segments.py on real S3 servers."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from typing import ClassVar
from uuid import uuid4

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from assay.store.shared.objects import Objects, open_objects
from tests.store.test_segments import SegmentMachine, settled
from tools.soak_cluster import weed

pytestmark = pytest.mark.cluster


class BucketMachine(SegmentMachine):
    bucket: ClassVar[str] = ""

    def opened(self) -> Objects:
        return open_objects(f"{self.bucket}/{uuid4().hex}")


@contextmanager
def moto() -> Generator[dict[str, str]]:
    """A server in memory, with a bucket."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, quiet = f"http://127.0.0.1:{port}", subprocess.DEVNULL
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    try:
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(
                    urllib.request.Request(f"{url}/soak", method="PUT"), timeout=5
                ).close()
                break
            except OSError:
                assert time.monotonic() < until, "moto does not start"
                time.sleep(0.2)
        keys = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
        yield {"AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", **keys}
    finally:
        process.kill()
        process.wait()


def test_on_seaweedfs(monkeypatch: pytest.MonkeyPatch) -> None:
    with weed() as server:
        _run(monkeypatch, server.environ, examples=12)


def test_on_moto(monkeypatch: pytest.MonkeyPatch) -> None:
    with moto() as environ:
        _run(monkeypatch, environ, examples=8)


def _run(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], examples: int) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    open_objects("s3://soak/probe", probe=True)
    machine = type("OnServer", (BucketMachine,), {"bucket": "s3://soak"})
    run_state_machine_as_test(
        machine, settings=settings(settled, max_examples=examples, stateful_step_count=15)
    )
