"""A run under way, followed from outside: its status file, the events, how many may listen."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from assay.engine.calls.progress import LaneProgress
from assay.viewer import requests, server
from assay.viewer.live import progress_of
from tests.support import Lab, wait_for
from tests.viewer.client import Client, viewing

RUNNING = {"state": "running", "processed_samples": 3, "failed_samples": 1}


@contextmanager
def listening(client: Client) -> Iterator[Any]:
    """The answer to /events, to be read line by line."""
    with closing(http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)) as connection:
        connection.request("GET", "/events", headers={"cookie": client.cookie})
        with closing(
            connection.getresponse()
        ) as answer:  # it has the connection's socket, which else nobody closes
            assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream")
            yield answer


def news(answer: Any) -> Any:
    """The next event; heartbeats keep the connection, so that its timeout ends nothing."""
    latest = time.monotonic() + 60
    while line := answer.readline():
        assert time.monotonic() < latest, "only heartbeats"
        if line.startswith(b"data: "):
            return json.loads(line[6:])
    return None


def write_status(folder: Path, **fields: Any) -> None:
    temporary = folder / "new"
    temporary.write_text(json.dumps({**RUNNING, "last_update": time.time(), **fields}))
    temporary.replace(folder / "status.json")


def test_events_follow_what_changes(tmp_path: Path) -> None:
    Lab(tmp_path).run()
    lanes = {
        "calculator": {"total": 8, "present": 2, "done": 2, "errors": 1, "retries": 5, "cost": None}
    }
    with viewing(tmp_path) as client, listening(client) as answer:
        first = news(answer)
        assert first["experiments"] == client.page("experiments")["experiments"]
        assert first["live"] == {}
        write_status(
            tmp_path / "out",
            rate=2.5,
            left_seconds=1.6,
            waiting="the server asks to wait",
            models=lanes,
        )
        second = news(answer)
        assert (second["experiments"][0]["state"], second["experiments"][0]["responses"]) == (
            "running",
            4,
        )
        assert second["live"] == {
            "out": {
                "rate": 2.5,
                "left_seconds": 1.6,
                "cost": None,
                "tokens": None,
                "waiting": "the server asks to wait",
                "models": {"calculator": {"total": 8, "done": 4, "errors": 1, "retries": 5}},
            }
        }
        write_status(tmp_path / "out", state="complete")
        assert news(answer)["live"] == {}


def test_a_real_run_reports_itself(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.write(
        "model.py", "import time\n\ndef calculator(prompt):\n    time.sleep(0.7)\n    return '1'\n"
    )
    lab.config["max_concurrency"] = 1
    seen: list[dict[str, Any]] = []
    with viewing(tmp_path) as client, listening_later(client, lab) as answer:
        while (told := news(answer)) is not None:
            seen += [entry for entry in told["live"].values() if entry["models"]]
            if seen and not told["live"]:
                break
    assert all(entry["models"]["calculator"]["total"] == 8 for entry in seen)
    done = [entry["models"]["calculator"]["done"] for entry in seen]
    assert done == sorted(done)
    moving = [entry for entry in seen if 0 < entry["models"]["calculator"]["done"] < 8]
    assert moving
    assert all(0 < entry["rate"] < 8 and entry["left_seconds"] > 0 for entry in moving)


@contextmanager
def listening_later(client: Client, lab: Lab) -> Iterator[Any]:
    """As soon as there is an experiment."""
    thread = threading.Thread(target=lab.run)
    thread.start()
    try:
        wait_for((lab.folder / "out/status.json").exists)
        with listening(client) as answer:
            yield answer
    finally:
        thread.join()


def test_why_a_lane_waits() -> None:
    lane = LaneProgress("m", why="the server asks to wait", waiting_until=time.time() + 3600)
    assert lane.waiting().startswith("the server asks to wait until ")
    lane.waiting_until = 0
    assert lane.waiting() == "the server asks to wait"
    lane.ended = 1.0
    assert lane.waiting() == ""
    lane.why = "stopped: gone"
    assert lane.waiting() == "stopped: gone"


def test_a_status_file_that_cannot_be_read_is_no_progress(tmp_path: Path) -> None:
    assert progress_of(tmp_path) is None
    for text in ("", "{", "[]", '{"models": 1}', '{"rate": "fast"}'):
        (tmp_path / "status.json").write_text(text)
        assert progress_of(tmp_path) is None
    (tmp_path / "status.json").write_text("{}")
    assert progress_of(tmp_path) is not None


def test_few_may_listen_and_a_listener_may_leave(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(requests, "HEARTBEAT", 0.1)
    Lab(tmp_path).run()
    with viewing(tmp_path) as client:
        held: list[socket.socket] = []
        for _ in range(server.MOST_STREAMS):
            connection = socket.create_connection(("127.0.0.1", client.port), timeout=20)
            own = f"host: 127.0.0.1:{client.port}\r\ncookie: {client.cookie}\r\n"
            connection.sendall(f"GET /events HTTP/1.1\r\n{own}\r\n".encode())
            assert connection.recv(10).startswith(b"HTTP/1.1 2")
            held.append(connection)
        status, _, content = client.ask("/events")  # it ends: to be asked for again
        assert status == 200
        assert content.startswith(b"retry: 5000\n\ndata: {")
        text = b""
        while b": still here" not in text:
            text += held[0].recv(65536)
        for connection in held:
            connection.close()
        wait_for(lambda: client.server.streams._value == server.MOST_STREAMS)  # type: ignore[attr-defined]
        assert client.ask("/events", "HEAD")[0] == 200
        assert client.ask("/events", cookie=None)[0] == 403


def test_the_status_of_a_finished_run(tmp_path: Path) -> None:
    Lab(tmp_path).run()
    status = json.loads((tmp_path / "out/status.json").read_text())
    assert (status["state"], status["rate"], status["left_seconds"], status["waiting"]) == (
        "complete",
        0,
        None,
        "",
    )
    assert status["tokens"] == 0
