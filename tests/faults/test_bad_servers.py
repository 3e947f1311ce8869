"""Servers that answer rubbish, refuse, hang up or are not there: rows that say so, or a quick and clear stop."""

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.server import Options, running
from tests.cli.shell import Shell

pytestmark = pytest.mark.slow
ANSWERS = Path(__file__).with_name("bad_answers.py")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(Options(answers=f"{ANSWERS}:answer", skill=1.0)) as address:
        yield address


def by_model(shell: Shell) -> dict[str, dict[str, Any]]:
    """One row of each model."""
    return {row["model_name"]: row for row in shell.read()}


RUBBISH = {
    "html": ("errored", "transient", "not JSON: <!DOCTYPE html>"),
    "empty": ("errored", "transient", "it is empty"),
    "no-choices": ("errored", "transient", "has no choices"),
    "list": ("errored", "transient", "has no choices"),
    "not-utf8": ("errored", "transient", "not JSON"),
    "lone-surrogate": ("errored", "transient", "not JSON"),
    "deep": ("errored", "transient", "not JSON"),
    "deep-tool": ("errored", "transient", "not JSON"),
    "overflow": ("errored", "transient", "not JSON"),
    "latin-500": ("errored", "transient", "HTTP 500: "),
    "deep-500": ("errored", "transient", "HTTP 500: "),
    "latin-422": ("errored", "permanent", "HTTP 422: "),
    "failing": ("errored", "transient", "HTTP 500: out of order"),
    "bad-request": ("errored", "permanent", "HTTP 400: this prompt is too long"),
    "null-content": ("ok", None, None),
    "wrong-usage": ("ok", None, None),
    "good": ("ok", None, None),
}


def test_rubbish_becomes_rows_that_say_what_it_was(shell: Shell) -> None:
    shell.config |= {
        "models": [shell.model(name) for name in RUBBISH],
        "max_retries": 0,
        "metrics": [{"name": "pass_rate", "facets": ["model_name"]}],
    }
    result = shell.run()
    assert result.code == 1
    assert len(shell.keys()) == len(shell.lines()) == 4 * len(RUBBISH)
    rows = by_model(shell)
    for name, (outcome, kind, error) in RUBBISH.items():
        row = rows[name]
        assert (row["outcome"], row["error_kind"]) == (outcome, kind), name
        assert error in row["error"] if error else row["error"] is None, row["error"]
    assert rows["null-content"]["response"] == ""
    assert rows["wrong-usage"]["response"] == "7"
    assert [
        rows["wrong-usage"][f"{name}_tokens"] for name in ("prompt", "completion", "total")
    ] == [None] * 3
    table, _, used = result.out.partition("tokens in")
    shown = {line.split()[0]: line.split() for line in table.splitlines() if line.strip()}
    assert shown["bad-request"][-2:] == ["4", "errored"]
    assert shown["good"][1:2] == ["1.000"]
    costs = {line.split()[0]: line.split() for line in used.splitlines() if line.strip()}
    assert costs["bad-request"][1:] == ["4", "4", "0", "0", "–"]
    assert costs["wrong-usage"][-1] == "unknown"

    with shell.counted() as calls:
        assert shell.run().code == 1
    transient = [name for name, (_, kind, _) in RUBBISH.items() if kind == "transient"]
    assert calls["requests"] == 4 * len(transient), "only what may go away is tried again"
    assert len(shell.keys()) == len(shell.lines()) == 4 * len(RUBBISH)


def test_permanent_errors_are_counted_and_can_fail_the_run(shell: Shell) -> None:
    shell.config["models"] = [shell.model("half-bad")]
    result = shell.run()
    assert result.code == 1
    assert "1 of 4 responses are errors, more than the allowed share of 0.1" in result.err
    assert "errors 1" in result.err
    assert "1 errored" in result.out
    refused = shell.run("--max-error-rate", "0")
    assert refused.code == 1
    assert "1 of 4 responses are errors" in refused.err
    assert "--retry-errors" in refused.err
    assert shell.run("--max-error-rate", "0.25").code == 0
    with shell.counted() as calls:
        assert shell.run("--retry-errors", "--max-error-rate", "1").code == 0
    assert calls["requests"] == 1
    assert len(shell.keys()) == len(shell.lines()) == 4


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("unauthorised", "refused the API key (HTTP 401: no such key)"),
        ("not-found", "does not know the model 'not-found' (HTTP 404: no such model)"),
        ("redirecting", "redirects to http://127.0.0.1:9/v1"),
    ],
)
def test_a_server_that_refuses_everything_stops_its_lane_at_once(
    shell: Shell, model: str, said: str
) -> None:
    shell.rows = [
        {"id": str(number), "data": {"question": "1 + 1"}, "ground_truth": "2"}
        for number in range(500)
    ]
    shell.config["models"] = [shell.model(model)]
    with shell.counted() as calls:
        result = shell.run("-j", "4")
    assert result.code == 1
    assert said in result.err
    assert shell.url in result.err
    assert calls["requests"] <= 4
    assert shell.lines() == []


def test_one_bad_lane_does_not_cost_the_rows_of_another(shell: Shell) -> None:
    shell.config["models"] = [shell.model("good"), shell.model("unauthorised")]
    assert shell.run().code == 1
    assert [row["model_name"] for row in shell.read()] == ["good"] * 4
    assert shell.run("-m", "good").code == 0


def test_a_judge_that_cannot_be_asked_stops_scoring_and_keeps_the_rest(shell: Shell) -> None:
    shell.write(
        "judge.py",
        """
        async def judge(item, response, *, context, model):
            await context.complete([{"role": "user", "content": item.id}], model=model)
            return True
        """,
    )
    shell.config |= {
        "models": [shell.model("good"), shell.model("unauthorised")],
        "evaluation_methods": [
            "exact_match",
            {"name": "judge.py:judge", "params": {"model": "unauthorised"}},
        ],
    }
    shell.run("-m", "good", "--mode", "inference")
    with shell.counted() as calls:
        stopped = shell.run("-m", "good", "-j", "2")
    assert stopped.code == 1
    assert "refused the API key" in stopped.err
    assert calls["requests"] <= 2
    assert not (shell.out / "metrics.jsonl").exists()
    shell.config["evaluation_methods"][1]["params"]["model"] = "good"
    assert shell.run("-m", "good").code == 0
    assert (
        sorted(row["label"] for row in shell.read("evaluation_results.jsonl"))
        == ["exact_match"] * 4 + ["judge"] * 4
    )


def test_nothing_listening_stops_soon_and_names_the_address(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
    shell.rows = [
        {"id": str(number), "data": {"question": "1 + 1"}, "ground_truth": "2"}
        for number in range(10_000)
    ]
    shell.config |= {"models": [{"name": "gone", "endpoint": address}], "max_retries": 1}
    began = time.monotonic()
    result = shell.run()
    assert result.code == 1
    assert time.monotonic() - began < 15
    assert "does not answer" in result.err
    assert address in result.err
    assert shell.lines() == []
    shell.rows = shell.rows[:4]
    shell.config["models"] = [shell.model("gone")]
    assert shell.run().code == 0, "a mended address goes on"


@pytest.mark.parametrize("fault", ["rate_drop", "rate_torn"])
def test_connections_that_break_are_tried_again(tmp_path: Path, fault: str) -> None:
    with running(Options(seed=3, **{fault: 0.3})) as url:
        shell = Shell(tmp_path, url, items=20)
        shell.config["max_retries"] = 10
        result = shell.run()
    assert result.code == 0
    assert [row["outcome"] for row in shell.read()] == ["ok"] * 20


def test_a_server_that_always_hangs_up_stops_the_run(tmp_path: Path) -> None:
    with running(Options(rate_drop=1)) as url:
        shell = Shell(tmp_path, url, items=200)
        shell.config["max_retries"] = 1
        result = shell.run()
    assert result.code == 1
    assert url in result.err
    assert shell.lines() == []


HANGING = [
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-6\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nx: ",
    b"",
]


@pytest.mark.parametrize("answer", HANGING)
def test_no_answer_keeps_a_run_from_ending(tmp_path: Path, answer: bytes) -> None:
    """The server sends this to everybody and then stays: a request to stop is heard at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        shell = Shell(tmp_path, f"http://127.0.0.1:{listener.getsockname()[1]}", items=1)
        shell.config |= {"max_retries": 0, "timeout": 60}
        with shell.start("run", "CONFIG") as child:
            connection, _ = listener.accept()
            connection.recv(1 << 16)
            connection.sendall(answer)
            time.sleep(0.1)
            began = time.monotonic()
            child.send_signal(signal.SIGTERM)
            time.sleep(0.5)  # two at once are one
            child.send_signal(signal.SIGTERM)
            child.wait(timeout=30)
        connection.close()
    assert time.monotonic() - began < 30
    assert {row["error_kind"] for row in shell.read()} <= {"transient"}


def peak_memory(process: int) -> int:
    """In kilobytes, since the process began to run its own program; 0 when it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return next(
        (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0
    )


def test_an_answer_of_200_megabytes_is_not_held(tmp_path: Path) -> None:
    with running(Options(rate_huge=1)) as url:
        shell = Shell(tmp_path, url, items=3)
        with shell.start("run", "CONFIG") as child:
            peak = 0
            while child.poll() is None:
                peak = max(peak, peak_memory(child.pid))
                time.sleep(0.005)
    assert child.returncode == 1
    assert 0 < peak < 150_000  # kilobytes
    assert [(row["outcome"], row["error_kind"]) for row in shell.read()] == [
        ("errored", "permanent")
    ] * 3
    assert "too large: 200 MB" in shell.read()[0]["error"]
