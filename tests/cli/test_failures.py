"""Total failure is an exit code, and every failure has its reasons next to the numbers."""

import json
import math
import signal
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree

import pytest

import assay
from assay.server import Options, running
from tests.cli.shell import Shell, ended
from tests.support import wait_for

SCORER = """
    def mine(item, response):
        return respons.response == item.ground_truth
    def sometimes(item, response):
        if item.id == "q2":
            raise ValueError(f"no {item.id}")
        return True
"""


@pytest.fixture
def broken(shell: Shell) -> Shell:
    shell.write("mine.py", SCORER)
    shell.config["evaluation_methods"] = [{"name": "mine", "path": "mine.py"}, "exact_match"]
    return shell


def test_a_bug_in_a_scorer(broken: Shell) -> None:
    ended = broken.run()
    assert ended.code == 1
    reason = "NameError: name 'respons' is not defined (mine.py, line 3: return respons.response == item.ground_truth)"
    assert f"errors: 4 of 4 rows of mine: {reason}" in ended.words
    assert f"assay trace {broken.out} q0" in ended.out
    assert "error: every row of 'mine' is an error" in ended.err
    status = json.loads((broken.out / "status.json").read_text())
    assert status["errors"] == [f"4 of 4 rows of mine: {reason} (for example item q0)"]
    listed = broken.call("ls", str(broken.folder))
    assert "failed" in listed.out
    assert reason in listed.out
    again = broken.run("--json")
    assert (again.code, again.result["ok"], again.result["failed"]) == (1, False, ["mine"])
    assert again.result["failures"][0]["reasons"][0]["count"] == 4


def test_debug_shows_the_traceback_of_user_code_once(broken: Shell) -> None:
    ended = broken.run("--debug")
    assert ended.err.count("line 3, in mine\n") == 1


def test_some_failures_are_told_and_more_than_a_tenth_exits_1(broken: Shell) -> None:
    broken.config["evaluation_methods"] = [{"name": "sometimes", "path": "mine.py"}]
    assert broken.run().code == 0  # by itself, only errors of responses count
    broken.config["max_error_rate"] = 0.1
    ended = broken.run()
    assert ended.code == 1
    assert (
        "1 of 4 labels are errors, more than the allowed share of 0.1 (`max_error_rate`)"
        in ended.err
    )
    assert "if missing" in ended.out  # it is measured all the same
    assert "errors: 1 of 4 rows of sometimes: ValueError: no q2 (mine.py, line 6" in ended.words
    assert f"assay trace {broken.out} q2" in ended.out
    again = broken.run("--json")
    assert (again.code, again.result["ok"], again.result["failed"]) == (1, False, [])
    assert again.result["too_many_errors"].startswith("1 of 4 labels are errors")
    broken.config["max_error_rate"] = 1
    assert broken.run().code == 0


def test_max_error_rate_counts_labels(broken: Shell) -> None:
    broken.config["evaluation_methods"] = [{"name": "sometimes", "path": "mine.py"}]
    ended = broken.run("--max-error-rate", "0.2")
    assert ended.code == 1
    assert "1 of 4 labels are errors, more than the allowed share of 0.2" in ended.err
    assert broken.run("--max-error-rate", "0.25").code == 0


@contextmanager
def answering(status: int, body: bytes) -> Generator[str]:
    """The address of a server that answers every request alike."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "body"), [(400, b'{"error": {"message": "no such field"}}'), (200, b"<html>hello")]
)
def test_a_server_that_answers_nonsense(shell: Shell, status: int, body: bytes) -> None:
    with answering(status, body) as url:
        shell.config["models"] = [{"name": "mock", "endpoint": url, "max_retries": 0}]
        ended = shell.run()
    assert ended.code == 1
    assert "errors: 4 of 4 rows of mock: " in ended.words


def test_a_python_model_that_raises(shell: Shell) -> None:
    shell.write("mine.py", "def broken(prompt):\n    raise RuntimeError('down')\n")
    shell.config["models"] = ["mine.py:broken", shell.model("mock")]
    ended = shell.run()
    assert ended.code == 1, "one model of two is enough"
    assert "4 of 4 rows of broken: RuntimeError: down (mine.py, line 2" in ended.words
    assert "rows of exact_match" not in ended.words, (
        "what the responses tell is not told again by every scorer"
    )


def test_answers_that_are_not_a_number(shell: Shell) -> None:
    shell.rows = [{**row, "ground_truth": math.nan} for row in shell.rows]
    ended = shell.run()
    assert ended.code == 2
    assert "exact_match has nothing to compare with in any item" in ended.words


def test_junit_has_the_reasons(broken: Shell, tmp_path: Path) -> None:
    assert broken.run().code == 1
    report = tmp_path / "junit.xml"
    broken.call(
        "gate", str(broken.out), "--label", "exact_match", "--min", "0.5", "--junit", str(report)
    )
    assert "4 of 4 rows of mine" in (ElementTree.parse(report).findtext("system-err") or "")
    gated = broken.call("gate", str(broken.out), "--label", "mine", "--min", "0.5")
    assert gated.code != 0
    assert "no row with the label 'mine' has a verdict" in gated.words


def test_user_code_that_prints_leaves_json_alone(shell: Shell) -> None:
    shell.write(
        "mine.py", "print('loaded')\ndef loud(prompt):\n    print('asked')\n    return '4'\n"
    )
    shell.config["models"] = ["mine.py:loud"]
    for words in (["run", "CONFIG", "--json"], ["plan", "CONFIG", "--json"]):
        ended = shell.call(*words)
        assert ended.code == 0
        assert all(isinstance(event, dict) for event in ended.events())
        assert "loaded" in ended.err


def test_a_narrowed_run_says_that_its_metrics_are_over_more(shell: Shell) -> None:
    assert shell.run().code == 0
    note = "the metrics are over all 4 responses of the folder, 2 of which were asked for now"
    assert note in shell.run("--limit", "2").words
    assert note not in shell.run().words


def test_ls_counts_the_rows_of_a_run_that_is_under_way(tmp_path: Path) -> None:
    with running(Options(latency_ms=400)) as url:
        shell = Shell(tmp_path, url, items=200)
        with shell.start("run", "CONFIG", "-j", "4") as child:
            wait_for(lambda: any(listed.responses for listed in assay.ls(tmp_path)), seconds=30)
            (listed,) = assay.ls(tmp_path)
            assert (listed.state, listed.planned) == ("running", 200)
            assert 0 < listed.responses <= len(shell.lines())
            child.send_signal(signal.SIGINT)
            ended(child, 10)
    (listed,) = assay.ls(tmp_path)
    assert (listed.state, listed.responses) == ("stopped", len(shell.lines()))


@pytest.mark.parametrize("verb", ["evaluate", "aggregate"])
def test_scoring_and_measuring_again_fail_alike(broken: Shell, verb: str) -> None:
    assert broken.run().code == 1
    again = broken.call(verb, str(broken.out))
    assert again.code == 1
    assert "errors: 4 of 4 rows of mine: NameError" in again.words
