"""Processes of `assay` that start quickly: forks of one that has the interpreter, the libraries and what most commands
import of Assay, which reads no variable and no folder when it is imported.

Each is a process of its own, with its own folder, environment, output and exit code. That commands import what they
need, in any order, is seen where they start from nothing: from the wheel (`tests/test_wheel.py`), and on those pages of
the documentation that `tests/test_docs.py` names. `Parent` is for tests that call `assay` one at a time, `on_path` for
scripts, where several may run at once.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Lock

LIBRARIES = "asyncio click csv decimal email.message jinja2 msgspec numpy ssl statistics uuid xxhash yaml zipfile"
ASSAY = (
    "assay.cli assay.config.loader assay.datasets.jsonl assay.demo.solver assay.engine.place "
    "assay.engine.experiment.plan assay.metrics.pass_rate assay.models.demo assay.reports.progress "
    "assay.reports.run assay.reports.terminal assay.scorers.exact_match"
)
# variables that are read before there is an `assay`
AT_START_NAMES = "PYTHON", "LC_", "LANG", "TZ", "LD_", "OPENBLAS_", "OMP_"
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


# What a script finds as `assay`: asks for a fork with its own streams, and ends as the fork does.
CLIENT = """#!{python} -SE
import json, os, socket, sys
started = json.loads(os.environ["ASSAY_FORKS"])
here = {{name: value for name, value in os.environ.items() if name.startswith(tuple(started["names"]))}}
if here != started["values"]:
    os.execv(started["python"], [started["python"], "-m", "assay", *sys.argv[1:]])
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as parent:
    parent.connect(started["path"])
    request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(parent, [request], [0, 1, 2])
    code = int(parent.recv(64))
sys.exit(code if code >= 0 else 128 - code)
"""


@contextmanager
def on_path(environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """An environment in which scripts find an `assay` whose processes are forks."""
    with TemporaryDirectory(prefix="assay-forks-") as folder:
        program, path = Path(folder, "assay"), f"{folder}/socket"
        program.write_text(CLIENT.format(python=sys.executable))
        program.chmod(0o755)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(path)
            listener.listen()
            command = [sys.executable, __file__, "--listen", str(listener.fileno())]
            fds, pipe = [listener.fileno()], subprocess.PIPE
            process = subprocess.Popen(command, pass_fds=fds, stdin=pipe, stdout=subprocess.DEVNULL)
        started = {
            "path": path,
            "python": sys.executable,
            "names": AT_START_NAMES,
            "values": at_start(environ),
        }
        try:
            path = os.pathsep.join([folder, environ["PATH"]])
            yield {**environ, "ASSAY_FORKS": json.dumps(started), "PATH": path}
        finally:
            assert process.stdin is not None
            process.stdin.close()  # which ends it
            process.wait()


def listen(listener: socket.socket) -> None:
    """Fork at each connection, until standard input ends; returns in the fork, as `serve` does."""
    load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what answers a connection
    while listener in select.select([listener, 0], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            break
        connection.close()
    else:
        os._exit(0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    listener.close()
    request, fds, _, _ = socket.recv_fds(connection, LARGEST, 3)
    child = os.fork()
    if child:
        for fd in range(3):
            os.close(fd)
        for fd in fds:
            os.close(fd)
        connection.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
        os._exit(0)
    connection.close()
    become(request, fds)


def at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(AT_START_NAMES)}


def load() -> None:
    for name in (*LIBRARIES.split(), *ASSAY.split()):
        import_module(name)
    gc.freeze()  # or every fork would copy it all, to look through it at its end


def serve(requests: socket.socket) -> None:
    """Fork at each request; returns in the fork, which has become what was asked for."""
    load()
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
    become(request, fds)


def become(request: bytes, fds: list[int]) -> None:
    """Take the words, folder, environment and streams of a request: output and errors, or all three."""
    words, folder, environ = json.loads(request)
    for number, fd in enumerate(fds, start=3 - len(fds)):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["-m", *words]
    sys.path[0] = os.getcwd()


if __name__ == "__main__":
    if sys.argv[1] == "--listen":
        listen(socket.socket(fileno=int(sys.argv[2])))
    else:
        serve(socket.socket(fileno=int(sys.argv[1])))
    runpy._run_module_as_main("assay")
