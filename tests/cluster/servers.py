"""Real object stores on loopback for the tests of this folder, and a proxy before them that misbehaves by a plan."""

import base64
import hmac
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

KEY, SECRET = "TESTKEYID", "test-secret-never-shown"
READER, READER_SECRET = "READERKEYID", "reader-secret-never-shown"
BUCKET = "testbucket"
WAIT = 60.0
_ACCOUNT, _ACCOUNT_KEY = (
    "assay",
    base64.b64encode(b"a key for tests on loopback only!" * 2).decode(),
)


class MissingError(Exception):
    """A program is not installed."""


class StoreServer:
    """A server process. `environ` is what a client needs."""

    def __init__(
        self,
        url: str,
        command: Sequence[str],
        environ: dict[str, str],
        log: Path,
        own: dict[str, str] | None = None,
    ) -> None:
        self.url = url
        self.environ = environ
        self._command = list(command)
        self._log = log
        self._own = own or {}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self._own},
                start_new_session=True,
            )
        address = urlsplit(self.url)
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=2)
            try:
                connection.request("GET", "/")
                connection.getresponse().read()
                return
            except OSError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.1)
            finally:
                connection.close()
        self.kill()
        raise RuntimeError(
            f"{self._command[0]} did not start: {self._log.read_text(errors='replace')[-2000:]}"
        )

    def kill(self) -> None:
        """At once, as a power cut would."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def program(name: str) -> str:
    """The path of a program from a wheel, wherever pip has put it."""
    places = [Path(sys.executable).parent, Path(sys.prefix, "azurite/node_modules/.bin")]
    places += [Path(entry) / "bin" for entry in sys.path if entry]
    found = shutil.which(name, path=os.pathsep.join(map(str, places))) or shutil.which(name)
    if found is None:
        raise MissingError(f"there is no program {name!r}: make test-cluster installs it")
    return found


def free_port(beside: int = 0) -> int:
    """A port that is free, below those that the kernel gives to clients; so is the one `beside` further up."""
    while True:
        port = random.SystemRandom().randrange(20_000, 22_700)
        if all(_is_free(number) for number in {port, port + beside}):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def s3_environ(url: str, key: str = KEY, secret: str = SECRET) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@contextmanager
def seaweed(folder: Path) -> Generator[StoreServer]:
    """SeaweedFS, with a bucket, a writer and a reader. What it was sent is in the folder, and survives a kill."""
    folder.mkdir(parents=True, exist_ok=True)
    identities = [
        {
            "name": "writer",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin"],
        },
        {
            "name": "reader",
            "credentials": [{"accessKey": READER, "secretKey": READER_SECRET}],
            "actions": ["Read", "List"],
        },
    ]
    config = folder / "identities.json"
    config.write_text(json.dumps({"identities": identities}))
    ports = {name: free_port(beside=10_000) for name in ("master", "volume", "filer", "s3")}
    data = folder / "data"
    data.mkdir(exist_ok=True)
    command = [
        program("weed"),
        "server",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-dir={data}",
        *(f"-{name}.port={port}" for name, port in ports.items()),
        "-s3",
        f"-s3.config={config}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-volume.max=20",
        "-master.volumeSizeLimitMB=64",
        "-master.telemetry=false",
    ]
    url = f"http://127.0.0.1:{ports['s3']}"
    with _running(StoreServer(url, command, s3_environ(url), folder / "log")) as server:
        make_bucket(url)
        yield server


@contextmanager
def moto(folder: Path) -> Generator[StoreServer]:
    """moto's S3, in memory, with a bucket; it takes any credentials."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running(StoreServer(url, command, s3_environ(url), folder / "log")) as server:
        make_bucket(url)
        yield server


@contextmanager
def rclone(folder: Path) -> Generator[StoreServer]:
    """A store that takes no notice of conditions: it overwrites what it was asked to create."""
    (folder / "data" / BUCKET).mkdir(parents=True, exist_ok=True)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        program("rclone"),
        "serve",
        "s3",
        "--addr",
        f"127.0.0.1:{port}",
        "--auth-key",
        f"{KEY},{SECRET}",
    ]
    command += [
        "--config",
        str(folder / "none.conf"),
        "--vfs-cache-mode",
        "off",
        str(folder / "data"),
    ]
    with _running(StoreServer(url, command, s3_environ(url), folder / "log")) as server:
        yield server


@contextmanager
def azurite(folder: Path) -> Generator[StoreServer]:
    """Azure's emulator, if npm has installed it; `az://testbucket` is made."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [program("azurite-blob"), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += [
        "--location",
        str(folder),
        "--skipApiVersionCheck",
        "--silent",
        "--disableTelemetry",
    ]
    environ = {
        "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": _ACCOUNT_KEY,
        "AZURE_STORAGE_ENDPOINT": f"{url}/{_ACCOUNT}",
    }
    accounts = {"AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_ACCOUNT_KEY}"}
    with _running(StoreServer(url, command, environ, folder / "log", accounts)) as server:
        _make_container(url)
        yield server


def _make_container(url: str, name: str = BUCKET) -> None:
    """Signed as Azure's "Authorize with Shared Key" says: no client that makes containers is among our packages."""
    sent = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
    headers = "".join(f"{key}:{value}\n" for key, value in sent.items())
    text = "PUT" + 12 * "\n" + f"{headers}/{_ACCOUNT}/{_ACCOUNT}/{name}\nrestype:container"
    signature = base64.b64encode(
        hmac.digest(base64.b64decode(_ACCOUNT_KEY), text.encode(), "sha256")
    ).decode()
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
    sent |= {"Authorization": f"SharedKey {_ACCOUNT}:{signature}", "Content-Length": "0"}
    connection.request("PUT", f"/{_ACCOUNT}/{name}?restype=container", headers=sent)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status not in (201, 409):
        raise RuntimeError(f"azurite answered {answer.status}: {content[:300]!r}")


@contextmanager
def _running(server: StoreServer) -> Generator[StoreServer]:
    server.start()
    try:
        yield server
    finally:
        server.kill()


def make_bucket(url: str, name: str = BUCKET) -> None:
    import boto3  # comes with moto

    keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=url, **keys)
    deadline = time.monotonic() + WAIT
    while True:  # a store that listens may not have its volumes yet
        try:
            client.create_bucket(Bucket=name)
            client.put_object(Bucket=name, Key=".ready", Body=b"1")
            client.delete_object(Bucket=name, Key=".ready")
            return
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


# ---- a store that misbehaves

FAULTS = ("slow_down", "lost_reply", "cut", "delay", "stale", "conflict", "reset")


class Faulty:
    """What a proxy does: `share` of the requests that any of the `faults` fits get one. The faults take turns, so each
    of them occurs, and no two runs differ by chance."""

    def __init__(
        self, upstream: str, faults: Sequence[str] = FAULTS, *, share: float = 0.2
    ) -> None:
        self.upstream = urlsplit(upstream)
        self.share = share
        self.counts: Counter[str] = Counter()
        self._turns = list(faults)
        self._due = 0.0
        self._guard = threading.Lock()
        self._listings: dict[str, tuple[int, list[tuple[str, str]], bytes]] = {}

    def next(self, method: str, headers: object, listing: bool) -> str:
        """The fault of the next request; empty for none."""
        fits = {
            "cut": method == "GET",
            "stale": listing,
            "lost_reply": method in ("PUT", "DELETE"),
            "conflict": method == "PUT" and "if-none-match" in str(headers).lower(),
        }
        with self._guard:
            fault = next((fault for fault in self._turns if fits.get(fault, True)), "")
            self._due += self.share if fault else 0.0
            if self._due < 1.0:
                return ""
            self._due -= 1.0
            self._turns.remove(fault)
            self._turns.append(fault)
            self.counts[fault] += 1
            return fault

    def old_listing(
        self, path: str, answer: tuple[int, list[tuple[str, str]], bytes]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        with self._guard:
            return self._listings.setdefault(path, answer)


@contextmanager
def faulty(plan: Faulty) -> Generator[str]:
    """The address of a proxy on loopback that does what the plan says."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            listing = self.command == "GET" and "list-type" in self.path
            fault = plan.next(self.command, self.headers, listing)
            if fault == "slow_down":
                self._answer(503, [], b"<Error><Code>SlowDown</Code></Error>")
                return
            if fault == "conflict":
                self._answer(409, [], b"<Error><Code>ConditionalRequestConflict</Code></Error>")
                return
            if fault == "reset":
                self._hang_up()
                return
            status, headers, content = self._forward(body)
            if listing and status == 200:
                old = plan.old_listing(self.path, (status, headers, content))
                if fault == "stale":
                    status, headers, content = old
            if fault == "lost_reply":
                self._hang_up()
            elif fault == "delay":
                time.sleep(0.2)
                self._answer(status, headers, content)
            elif fault == "cut" and len(content) > 1:
                self._answer(status, headers, content, sent=len(content) // 2)
                self._hang_up()
            else:
                self._answer(status, headers, content)

        def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection(
                plan.upstream.hostname or "", plan.upstream.port, timeout=30
            )
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():  # Host is part of the signature
                connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            content = answer.read()
            hop = ("connection", "transfer-encoding", "content-length", "keep-alive")
            headers = [
                (name, value) for name, value in answer.getheaders() if name.lower() not in hop
            ]
            if self.command == "HEAD":
                headers.append(("Content-Length", answer.getheader("Content-Length") or "0"))
            connection.close()
            return answer.status, headers, content

        def _answer(
            self,
            status: int,
            headers: list[tuple[str, str]],
            content: bytes,
            sent: int | None = None,
        ) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content if sent is None else content[:sent])

        def _hang_up(self) -> None:
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, format: str, *args: object) -> None:
            pass

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that hung up

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
