"""The viewer's server: who may ask, what happens to broken and hostile requests, and `assay view` as a command."""

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings, strategies as st

from assay.engine.experiment import trust
from assay.errors import UserError
from assay.viewer import document, requests, server
from assay.viewer.experiments import Experiments
from tests.cli.shell import COMMAND
from tests.support import Lab, wait_for
from tests.viewer.client import Client, viewing

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("lab")
    Lab(folder).run()
    with viewing(folder) as client:
        yield client


# ---- who may ask


@pytest.mark.parametrize(
    "headers, status",
    [
        ({}, 200),
        ({"origin": "http://{own}"}, 200),
        ({"host": "localhost:{port}"}, 200),
        ({"host": "localhost:{port}", "origin": "http://localhost:{port}"}, 200),
        ({"host": "localhost:{port}", "origin": "http://{own}"}, 403),
        ({"host": "evil.example:{port}"}, 403),
        ({"host": "127.0.0.1"}, 403),
        ({"host": "127.0.0.1:1"}, 403),
        ({"host": "[::1]:{port}"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "https://{own}"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"cookie": None}, 403),
        ({"cookie": "assay-{port}=wrong"}, 403),
        ({"cookie": "assay={token}"}, 403),
        ({"cookie": 'assay-{port}="; \x01=;;;'}, 403),
        ({"cookie": "assay-{port}=\xff\xfe"}, 403),
        ({"cookie": '\x01=;; a b; other=["x"]; assay-{port}=old; assay-{port}={token}; x'}, 200),
    ],
)
def test_data_is_for_our_own_page(
    client: Client, headers: dict[str, str | None], status: int
) -> None:
    fields = {"own": f"127.0.0.1:{client.port}", "port": client.port, "token": client.server.token}
    told = {name: value and value.format(**fields) for name, value in headers.items()}
    assert client.ask("/data/experiments", **told)[0] == status


def test_the_token_becomes_a_cookie_and_leaves_the_address(client: Client) -> None:
    status, headers, _ = client.ask(f"/?token={client.server.token}", cookie=None)
    assert (status, headers["location"]) == (303, "/")
    assert headers["set-cookie"].startswith(f"assay-{client.port}={client.server.token};")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(headers["set-cookie"].split("; "))
    status, headers, content = client.ask("/?token=wrong", cookie=None)
    assert (status, "set-cookie" in headers) == (403, False)
    assert client.server.token.encode() not in content
    assert client.ask("/?token=wrong")[0] == 303  # an old bookmark of somebody who is in


def test_two_viewers_do_not_log_each_other_out(client: Client) -> None:
    with viewing(*client.server.experiments.roots) as other:
        both = f"{client.cookie}; {other.cookie}"
        assert [each.ask("/data/experiments", cookie=both)[0] for each in (client, other)] == [
            200,
            200,
        ]


def test_the_token_outlives_the_server_and_is_private(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    first = server.private_token()
    file = tmp_path / "state/view/token"
    assert server.private_token() == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)  # others could have read it
    second = server.private_token()
    assert second != first
    file.write_text("short")
    assert server.private_token() not in (first, second, "short")
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "state").write_text("in the way")
    assert server.private_token() != server.private_token()


def test_the_document_holds_nothing_and_may_not_be_framed(client: Client) -> None:
    status, headers, content = client.ask("/", cookie=None)
    assert status == 200
    assert content == b"".join(document.document("Assay"))
    assert client.server.token.encode() not in content
    assert content.count(b"<script>") == 1
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'none'")
    assert "unsafe" not in policy["script-src"]
    assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert headers["x-content-type-options"] == "nosniff"


# ---- writing


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"origin": None}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"cookie": None}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"content_type": None}, 415),
        ({"content_length": "x"}, 411),
        ({"content_length": "-1"}, 411),
        ({"content_length": "٣"}, 411),
        ({"transfer_encoding": "chunked"}, 411),
        ({"content_length": str(requests.LARGEST_BODY + 1)}, 413),
        ({"content_length": "9" * 4000}, 413),
        ({"content_length": "0" * 20 + "9" * 10}, 413),
        ({"content_length": "0" * 5000 + "2"}, 413),
        ({}, 422),
    ],
)
def test_who_may_write(client: Client, headers: dict[str, str | None], status: int) -> None:
    told = {"host": f"127.0.0.1:{client.port}", "cookie": client.cookie, "origin": client.own}
    told |= {"content-type": "application/json", "content-length": "2"}
    told |= {name.replace("_", "-"): value for name, value in headers.items()}  # type: ignore[dict-item]
    lines = [f"{name}: {value}\r\n".encode() for name, value in told.items() if value is not None]
    answer = client.raw(b"POST /labels HTTP/1.1\r\n", *lines, b"\r\n{}")
    assert answer.split(b" ", 2)[1] == b"%d" % status
    assert set(json.loads(answer.partition(b"\r\n\r\n")[2])) == {"what", "where", "fix"}


def test_a_body_that_never_ends_is_not_waited_for(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LONGEST_REQUEST", 0.3)
    head = f"POST /labels HTTP/1.1\r\nhost: 127.0.0.1:{client.port}\r\ncontent-length: 100\r\n\r\n".encode()
    started = time.monotonic()
    assert client.raw(head, b"{", end=False) == b""
    assert time.monotonic() - started < 10


# ---- broken requests


def well(client: Client) -> None:
    assert client.ask("/data/experiments")[0] == 200


@pytest.mark.parametrize(
    "request_, status",
    [
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (b"GET / HTTP/x\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"<script>alert(1)</script> / HTTP/1.1\r\n\r\n", 501),
        (b"PUT /labels HTTP/1.1\r\n\r\n", 501),
        (b"OPTIONS * HTTP/1.1\r\n\r\n", 501),
        (b"TRACE / HTTP/1.1\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nhost: {own}\r\nhost: evil\r\n\r\n", 403),
        (b"GET http://evil/ HTTP/1.1\r\nhost: {own}\r\n\r\n", 403),
        (b"GET /data/x?" + b"&".join([b"a=1"] * 2000) + b" HTTP/1.1\r\nhost: {own}\r\n\r\n", 400),
        (b"GET /\xff\x00\x1b[2J HTTP/1.1\r\nhost: {own}\r\n\r\n", 403),
        (b"GET /../../etc/passwd HTTP/1.1\r\nhost: {own}\r\n{cookie}\r\n\r\n", 404),
        (b"GET /data/../server HTTP/1.1\r\nhost: {own}\r\n{cookie}\r\n\r\n", 422),
        (b"GET /data/review?experiment=../../etc HTTP/1.1\r\nhost: {own}\r\n{cookie}\r\n\r\n", 422),
    ],
)
def test_broken_requests_get_a_small_answer(client: Client, request_: bytes, status: int) -> None:
    own, cookie = f"127.0.0.1:{client.port}".encode(), f"cookie: {client.cookie}".encode()
    answer = client.raw(request_.replace(b"{own}", own).replace(b"{cookie}", cookie))
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.split(b" ", 2)[1] == b"%d" % status
    assert len(content) < 1000
    assert b"Traceback" not in content
    assert set(json.loads(content)) == {"what", "where", "fix"}
    well(client)


@settings(max_examples=60)
@given(st.binary(max_size=300), st.booleans())
def test_whatever_is_sent_the_server_stays(client: Client, garbage: bytes, proper: bool) -> None:
    head = (
        f"GET /data/experiments HTTP/1.1\r\nhost: 127.0.0.1:{client.port}\r\n".encode()
        if proper
        else b""
    )
    answer = client.raw(head + garbage + b"\r\n\r\n")
    assert not answer or re.match(rb"HTTP/1\.[01] [2345]\d\d |\{", answer)
    assert b"Traceback" not in answer


def test_head_and_what_follows_a_get_with_a_body(client: Client) -> None:
    status, headers, content = client.ask("/data/experiments", "HEAD")
    assert (status, content) == (200, b"")
    assert int(headers["content-length"]) == len(client.ask("/data/experiments")[2])
    own = f"host: 127.0.0.1:{client.port}\r\n".encode()
    smuggled = b"GET /x HTTP/1.1\r\n" + own + b"\r\n"
    answer = client.raw(
        b"GET / HTTP/1.1\r\n" + own + b"content-length: %d\r\n\r\n" % len(smuggled) + smuggled
    )
    assert answer.count(b"HTTP/1.1 ") == 1


def test_slow_and_many_clients(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that say nothing take all places; the next one is turned away, and soon all places are free."""
    monkeypatch.setattr(server, "LONGEST_REQUEST", 0.5)
    idle = [
        socket.create_connection(("127.0.0.1", client.port), timeout=20)
        for _ in range(server.MOST_CONNECTIONS)
    ]
    before = threading.active_count()
    turned_away = client.raw(b"GET / HTTP/1.1\r\n\r\n")
    assert turned_away == b"" or turned_away.startswith(b"HTTP/1.1 503")
    assert threading.active_count() <= before + server.MOST_CONNECTIONS
    wait_for(lambda: client.raw(b"x\r\n\r\n").startswith(b"HTTP/1.1 400"))
    for connection in idle:
        connection.close()
    well(client)


# ---- errors of pages


def test_mistakes_and_bugs_are_told(
    client: Client, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def told(error: Exception) -> tuple[int, Any]:
        def page(*_: Any) -> Any:
            raise error

        monkeypatch.setattr(requests, "page", page)
        status, _, content = client.ask("/data/experiments")
        return status, json.loads(content)

    mistake = UserError("what \x1b[2J", where="where", fix="fix")
    assert told(mistake) == (422, {"what": "what \\x1b[2J", "where": "where", "fix": "fix"})
    assert told(FileNotFoundError(2, "No such file", "/gone"))[1]["where"] == "/gone"
    status, bug = told(KeyError("x"))
    assert (status, bug["what"]) == (500, "internal error: KeyError: 'x'")
    assert "--debug" in bug["fix"]
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(client.server, "debug", True)
    told(KeyError("x"))
    assert "Traceback" in capfd.readouterr().err
    monkeypatch.undo()
    well(client)


def test_a_folder_that_is_deleted_while_it_is_open(tmp_path: Path) -> None:
    Lab(tmp_path).run()
    with viewing(tmp_path / "out") as client:
        well(client)
        shutil.rmtree(tmp_path / "out")
        status, _, content = client.ask("/data/experiments")
        assert (status, "no folder" in json.loads(content)["what"]) == (422, True)
        assert client.ask("/")[0] == 200


def test_a_foreign_folder_that_points_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lab(tmp_path).run()
    rows = tmp_path / "out/evaluation_results.jsonl"
    rows.rename(tmp_path / "elsewhere.jsonl")
    rows.symlink_to(tmp_path / "elsewhere.jsonl")
    with viewing(tmp_path / "out") as client:
        assert client.page("experiments")["experiments"][0]["state"] == "complete"
        status, _, content = client.ask("/data/review?experiment=out")
        assert (status, "not of your Assay's making" in json.loads(content)["what"]) == (422, True)
        assert "--trust" in json.loads(content)["fix"]
        monkeypatch.setattr(trust._Process, "trusts", True)
        assert client.ask("/data/review?experiment=out")[0] == 200


def test_folders_that_cannot_be_read_are_listed_as_broken(tmp_path: Path) -> None:
    Lab(tmp_path).run()
    shutil.copytree(tmp_path / "out", os.fsdecode(os.fsencode(tmp_path / "out") + b"/bad\xff"))
    for name, content in (("deep", '{"run":' + '{"x":' * 10**5), ("none", "")):
        (tmp_path / "out" / name).mkdir()
        (tmp_path / "out" / name / "manifest.json").write_text(content)
    (tmp_path / "out/runs").mkdir()
    os.mkfifo(tmp_path / "out/runs/pipe.json")
    with viewing(tmp_path / "out") as client:
        states = {
            entry["id"]: entry["state"] for entry in client.page("experiments")["experiments"]
        }
        assert states == {
            "out": "complete",
            "bad\\udcff": "broken",
            "deep": "broken",
            "none": "broken",
        }
        for id in states:
            assert client.ask(f"/data/samples?experiment={quote(id)}")[0] == (
                200 if id == "out" else 422
            )
        assert client.page("samples")["all"] > 0


def test_a_folder_of_an_older_assay() -> None:
    with viewing(FIXTURES / "made_by_0_1") as client:
        listed = client.page("experiments")["experiments"]
        assert len(listed) == len(Experiments([FIXTURES / "made_by_0_1"]).list()) > 0
        assert all(entry["problem"] is None for entry in listed)


# ---- the command


def view(*words: str, **environ: str) -> "subprocess.Popen[str]":
    named = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    }
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*COMMAND, "view", *words], env=named | environ, **pipes)


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path, client: Client) -> None:
    root = str(client.server.experiments.roots[0])
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    with view(root, "--port", "0", BROWSER=f"{browser} %s") as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", address)
        assert process.stdout.readline() == "Ctrl+C stops the server\n"
        wait_for(lambda: opened.exists() and opened.read_text().strip() == address)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stdout.read() == ""
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_without_a_browser_the_address_is_enough(client: Client) -> None:
    with view(str(client.server.experiments.roots[0]), "--port", "0") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        assert "open this address in a browser" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_what_cannot_be_viewed(tmp_path: Path, client: Client) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "log.eval").write_text("")
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        root = str(client.server.experiments.roots[0])
        cases = {
            (str(tmp_path / "empty"),): ("there are no experiments below", "assay run"),
            (str(tmp_path / "nowhere"),): ("there is no folder", "name a folder"),
            (str(tmp_path / "log.eval"),): ("is a file, not a folder", "assay import"),
            (root, "--port", str(port)): (
                f"port {port} cannot be used: Address already in use",
                "--port 0",
            ),
        }
        for words, (what, fix) in cases.items():
            with view("--no-open", *words) as process:
                out, err = process.communicate(timeout=20)
            assert (process.returncode, out) == (2, "")
            assert what in err
            assert fix in err
