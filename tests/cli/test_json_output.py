"""`--json`: every line of standard output is JSON and the last one is the result, however a run ends."""

import json
import signal
from pathlib import Path

import pytest

from assay.server import Options, running, stats
from tests.cli.shell import Shell, ended
from tests.support import wait_for


def test_events_and_then_the_result(shell: Shell) -> None:
    result = shell.run("--json")
    assert result.code == 0
    events = result.events()
    assert [event["event"] for event in events[:-1]] == ["progress"] * (len(events) - 1)
    assert events[-1]["event"] == "result"
    assert events[-1]["ok"] is True
    assert events[-1]["folder"] == str(shell.out)
    assert events[-1]["run"]["counts"] == {"ok": 4}
    assert events[-1]["metrics"][0]["value"] == 1.0
    assert result.err == ""
    assert [event["event"] for event in shell.run("--json", "--no-progress").events()] == ["result"]


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"dataset": "missing.jsonl"}, 2, "missing.jsonl"),
        ({"modles": []}, 2, "did you mean 'models'?"),
        (
            {"models": [{"name": "gone", "endpoint": "http://127.0.0.1:9"}], "max_retries": 0},
            1,
            "does not answer",
        ),
    ],
)
def test_a_failure_is_a_result_too(
    shell: Shell, change: dict[str, object], code: int, said: str
) -> None:
    shell.config |= change
    result = shell.run("--json")
    assert result.code == code
    assert result.result["event"] == "result"
    assert (result.result["ok"], result.result["exit_code"]) == (False, code)
    assert said in result.result["error"]
    assert said in result.err


def test_an_interrupted_run_says_so(tmp_path: Path) -> None:
    with running(Options(latency_ms=100)) as url:
        shell = Shell(tmp_path, url, items=50)
        child = shell.start("run", "CONFIG", "--json", "-j", "2")
        wait_for(lambda: stats(url)["requests"] > 2)
        child.send_signal(signal.SIGINT)
        result = ended(child)
    assert result.code == 130
    assert (result.result["ok"], result.result["exit_code"]) == (False, 130)


def test_text_from_models_cannot_break_the_lines(shell: Shell) -> None:
    shell.write("mine.py", 'def odd(prompt):\n    return "a\\nb\\u2028c\\x1b[2J"\n')
    shell.config |= {
        "models": ["mine.py:odd"],
        "metrics": [{"name": "pass_rate", "facets": ["response"]}],
    }
    result = shell.run("--json")
    assert result.code == 0
    assert "\x1b" not in result.out
    assert [json.loads(line) for line in result.out.split("\n") if line]


def test_a_reader_that_goes_away_is_no_traceback(shell: Shell) -> None:
    child = shell.start("run", "CONFIG", "--json")
    assert child.stdout is not None
    child.stdout.close()
    child.stdout = None
    result = ended(child)
    assert result.code in (0, 1)
    assert len(shell.keys()) == 4
