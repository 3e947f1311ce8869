"""A model server that we start for a run, wait for, and end; its log is kept, and its last lines explain a failure."""

import asyncio
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from assay.children import Launch, Process, start_supervised
from assay.models._transport import Transport
from assay.sdk import LaneError, TransientError, make_folder, private_mode
from assay.text.plain import plain

HEALTH_PATHS = ("/health", "/v1/models")
LOG_LINES = 12
GRACE = 10.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
PROBE_TIMEOUT = 10.0
_TAIL = 16 * 1024


class LocalServer:
    """A server for one model. `launch` makes the command for a port; without `port` any free one is taken."""

    def __init__(
        self,
        name: str,
        launch: Callable[[int], Launch],
        *,
        port: int | None,
        start_timeout: float,
        log: str | None,
    ) -> None:
        self.name = name
        self.start_timeout = start_timeout
        self._launch = launch
        self._wanted = port
        self._log = log
        self._process: Process | None = None
        self._healthy = False
        self.log = Path(log) if log else Path()

    async def start(self, headers: Mapping[str, str]) -> str:
        """Its address, once it is healthy by its answer to these headers. LaneError if it never is."""
        port = _free_port(self._wanted, self.name)
        launch = self._launch(port)
        if shutil.which(launch.command[0]) is None:
            raise LaneError(
                f"the server of {self.name!r} cannot be started: there is no program {launch.command[0]!r}",
                fix="install it, or correct `command`",
            )
        self._healthy = False
        self._spawn(launch)
        address = f"http://127.0.0.1:{port}"
        probe = Transport(address, headers)
        try:
            await self._until_healthy(probe, address)
            self._healthy = True
        except BaseException:
            await self.stop()
            raise
        finally:
            await probe.close()
        return address

    def _spawn(self, launch: Launch) -> None:
        try:
            if self._log is None:
                safe = re.sub(r"[^\w.-]", "_", self.name)
                descriptor, path = tempfile.mkstemp(prefix=f"assay-{safe}-", suffix=".log")
                self.log = Path(path)
            else:
                make_folder(self.log.parent)
                descriptor = os.open(
                    self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, private_mode()
                )
        except OSError as error:
            raise LaneError(
                f"the server's log cannot be written: {error.strerror}", where=str(self.log)
            ) from None
        try:
            self._process = start_supervised(launch, descriptor, GRACE)
        finally:
            os.close(descriptor)

    async def _until_healthy(self, probe: Transport, address: str) -> None:
        end = time.monotonic() + self.start_timeout
        pause = SHORTEST_PAUSE
        while (left := end - time.monotonic()) > 0:
            self.check()
            for path in HEALTH_PATHS:
                try:
                    if (
                        await probe.get(address + path, timeout=min(left, PROBE_TIMEOUT))
                    ).status == 200:
                        self.check()
                        return
                except TransientError:
                    break
            await asyncio.sleep(min(pause, left))
            pause = min(LONGEST_PAUSE, pause * 1.2)
        raise LaneError(
            f"the server of {self.name!r} was not healthy within {self.start_timeout:g} s",
            where=self._where(),
            fix="raise `start_timeout`, or see its log",
        )

    def check(self) -> None:
        """LaneError if the server has ended."""
        code = self._process.poll() if self._process is not None else None
        if code is not None:
            raise LaneError(
                f"the server of {self.name!r} ended with exit code {code}",
                where=self._where(),
                fix="see its log",
            )

    def _where(self) -> str:
        """The log and its last lines, without those about our own questions."""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
            lines = log.read().decode(errors="replace").splitlines()
        asked = re.compile(rf"GET ({'|'.join(HEALTH_PATHS)}) ")
        kept = [line for line in lines if line.strip() and not asked.search(line)]
        shown = "".join(f"\n    {plain(line.rstrip())[:300]}" for line in kept[-LOG_LINES:])
        return f"{self.log}, which ends so:{shown}" if shown else f"{self.log}, which is empty"

    async def stop(self) -> None:
        """End the server and all that it started. A log that nobody asked for goes too, if nothing went wrong."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        if self._log is None and self._healthy and process.poll() is None:
            self.log.unlink(missing_ok=True)
        process.stdin.close()
        while process.poll() is None:
            await asyncio.sleep(0.02)


def _free_port(wanted: int | None, name: str) -> int:
    """The wanted port, if nobody listens there, or any free one."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            raise LaneError(
                f"the server of {name!r} cannot use port {wanted}: {error.strerror}",
                fix="end the program that listens there, give another port, or leave it out: any free one is taken",
            ) from None
        return listener.getsockname()[1]
