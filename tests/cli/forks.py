"""Processes of `assay` that start quickly: forks of one that has the interpreter, the libraries and what most commands
import of Assay, which reads no variable and no folder when it is imported.

Each is a process of its own, with its own folder, environment, output and exit code. That commands import what they
need, in any order, is seen where they start from nothing: in the documentation (`tests/test_docs.py`).
"""

import atexit
import gc
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock

LIBRARIES = "asyncio click csv decimal email.message jinja2 msgspec numpy ssl statistics uuid xxhash yaml zipfile"
ASSAY = (
    "assay.cli assay.config.loader assay.datasets.jsonl assay.demo.solver assay.engine.cluster.place "
    "assay.engine.experiment.plan assay.metrics.pass_rate assay.models.demo assay.reports.progress "
    "assay.reports.run assay.reports.terminal assay.scorers.exact_match"
)
# variables that are read before there is an `assay`
AT_START = re.compile("PYTHON|LC_|LANG|TZ$|LD_|OPENBLAS_|OMP_")
LARGEST = 1 << 17  # bytes of a request


class Parent:
    """What is forked; one call at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._started: dict[str, str] = {}

    def run(
        self, words: list[str], folder: Path, environ: Mapping[str, str], seconds: float
    ) -> tuple[int, str, str] | None:
        """Exit code, output and errors of `assay WORDS`; None if it has to be a process from the start on."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            parent = self._socket or self._start()
            if at_start(environ) != self._started:
                return None
            with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
                request = json.dumps([words, str(folder), dict(environ)]).encode()
                socket.send_fds(parent, [request], [out.fileno(), err.fileno()])
                code = self._wait(parent, int(parent.recv(LARGEST)), seconds)
                out.seek(0)
                err.seek(0)
                return code, out.read(), err.read()
        finally:
            self._lock.release()

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            null = subprocess.DEVNULL
            process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=null, stdout=null)
        atexit.register(process.wait)
        atexit.register(ours.close)  # first, which ends the process
        self._started = at_start(os.environ)
        self._socket = ours
        return ours

    def _wait(self, parent: socket.socket, child: int, seconds: float) -> int:
        parent.settimeout(seconds)
        try:
            return int(parent.recv(LARGEST))
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            parent.settimeout(None)
            parent.recv(LARGEST)
            raise
        finally:
            parent.settimeout(None)


def at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if AT_START.match(name)}


def serve(requests: socket.socket) -> None:
    """Fork at each request; returns in the fork, which has become what was asked for."""
    for name in (*LIBRARIES.split(), *ASSAY.split()):
        import_module(name)
    gc.freeze()  # or every fork would copy it all, to look through it at its end
    while True:
        request, fds, _, _ = socket.recv_fds(requests, LARGEST, 2)
        if not request:
            os._exit(0)
        child = os.fork()
        if child == 0:
            break
        for fd in fds:
            os.close(fd)
        requests.send(str(child).encode())
        requests.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    requests.close()
    words, folder, environ = json.loads(request)
    for number, fd in enumerate(fds, start=1):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["-m", *words]
    sys.path[0] = os.getcwd()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    runpy._run_module_as_main("assay")
