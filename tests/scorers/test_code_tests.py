"""Code from a model: it runs, it is measured by its tests, and it can do no harm. Every attack here is a real one."""

import os
import socket
from pathlib import Path
from typing import Any

import psutil
import pytest

from assay.engine.evaluate.bind import bind_scorer
from assay.errors import UserError
from assay.records import Item, Response
from assay.scorers import code_tests as module
from assay.scorers.code_tests import Limits, Verdict, code_of, code_tests, run_tests
from tests.support import Lab

LIMITS = Limits(seconds=10, memory=256 << 20, files=1 << 20, processes=8, allow_unsafe=False)
HASTY = LIMITS._replace(seconds=1)


def ran(code: str, *tests: str, limits: Limits = LIMITS, entry_point: str | None = None) -> Verdict:
    return run_tests(code, list(tests or ["assert True"]), entry_point, limits)


def can_close_off() -> bool:
    try:
        ran("x = 1")
    except UserError:
        return False
    return True


pytestmark = pytest.mark.skipif(not can_close_off(), reason="the system has no namespaces for us")


def test_each_test_counts() -> None:
    found = ran("def add(a, b): return a + b", "assert add(1, 2) == 3", "assert add(1, 2) == 4, 'no'", "undefined")
    assert found.passed == 1
    assert [problem.split(":")[:2] for problem in found.problems] == [
        ["test 2", " AssertionError"],
        ["test 3", " NameError"],
    ]


def test_a_check_function_is_called_with_the_entry_point() -> None:
    test = "def check(candidate):\n    assert candidate(2) == 4"
    assert ran("def double(x): return 2 * x", test, entry_point="double").passed == 1
    assert ran("def double(x): return x", test, entry_point="double").passed == 0


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import sys; sys.exit(0)", "SystemExit"),
        ("import os; os._exit(0)", "ended its process early"),
        ("import os\nif os.fork(): os._exit(0)", "ended its process early"),
        ('print(\'{"ok": true, "test": 0, "done": true}\'); raise ValueError', "ValueError"),
        ("x = 'a' * 10**9", "MemoryError"),
        ("open('big', 'w').write('a' * 3_000_000)", "too large|No space"),
        ("import socket; socket.create_connection(('1.1.1.1', 53), 1)", "unreachable"),
        ("open('/tmp/assay-outside', 'w')", "Read-only"),
        ("open('/dev/shm/assay-outside', 'w')", "Read-only"),
        ("import os; os.remove(os.__file__)", "Read-only|Permission"),
        ("open('/etc/shadow').read()", "Permission"),
        ("import os; os.kill(1, 0); [os.kill(pid, 9) for pid in range(2, 4_000_000, 1000)]", "No such process"),
    ],
)
def test_attempts_that_fail(code: str, why: str) -> None:
    found = ran(code)
    assert found.passed == 0
    assert any(part in found.problems[0] for part in why.split("|")), found.problems


def test_loops_and_fork_bombs_end_with_their_time() -> None:
    assert ran("while True: pass", limits=HASTY).problems == ["the code took longer than 1 s"]
    bomb = "import os\nos.setsid()\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    before = {process.pid for process in psutil.process_iter()}
    assert ran(bomb, limits=HASTY).passed == 0
    left = [process for process in psutil.process_iter(["cmdline"]) if process.pid not in before]
    assert [
        process for process in left if any("_sandbox_child" in word for word in process.info["cmdline"] or [])
    ] == []


def test_processes_are_counted() -> None:
    code = "import os\nmade = 0\ntry:\n    while os.fork():\n        made += 1\n    os._exit(0)\nexcept OSError: pass"
    assert ran(code, "assert made < 8").passed == 1


def test_our_servers_cannot_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), 1):
            assert (
                "unreachable" in ran(f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)").problems[0]
            )


def test_no_secret_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hush")
    code = "import os, glob\ntexts = [str(dict(os.environ))]\nfor path in glob.glob('/proc/*/environ'):\n"
    code += "    try:\n        texts.append(open(path, errors='replace').read())\n    except OSError:\n        pass"
    assert ran(code, "assert not any('hush' in text for text in texts)").passed == 1


def test_it_has_a_folder_of_its_own_that_is_gone_afterwards() -> None:
    found = ran(
        "import os\nopen('note', 'w').write('x')", "assert os.listdir('.') == ['note']", "assert 0, os.getcwd()"
    )
    assert found.passed == 1
    folder = found.problems[0].rpartition(" ")[2]
    assert "assay-code-" in folder
    assert not Path(folder).exists()


def test_where_it_cannot_be_closed_off_it_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    broken = "raise OSError('no namespaces here')"
    child.write_text(module._CHILD.read_text().replace("uid, gid = os.getuid(), os.getgid()\n", f"{broken}\n", 1))
    monkeypatch.setattr(module, "_CHILD", child)
    with pytest.raises(UserError, match="cannot be closed off here: no namespaces"):
        ran("x = 1")
    open_limits = HASTY._replace(allow_unsafe=True)
    assert ran("x = 1", "assert x == 1", limits=open_limits).passed == 1
    assert ran("while True: pass", limits=open_limits).passed == 0


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("Try\n```\nx = 1\n```\nor\n```py\ny = 2\n```\n```sh\nls\n```", "y = 2\n"),
        ("x = 1", "x = 1"),
        ("<think>```python\nno\n```</think>```python\nx = 1", "x = 1"),
        ("```python\nif\n```", None),
        ("This is no code.", None),
        ("", None),
    ],
)
def test_code_is_found(answer: str, code: str | None) -> None:
    assert code_of(answer) == code


def test_the_block_with_the_entry_point_is_taken() -> None:
    assert code_of("```python\ndef f(): ...\n```\nUsage:\n```python\nprint(1)\n```", "f") == "def f(): ...\n"


def test_a_config_must_say_that_code_may_run() -> None:
    with pytest.raises(UserError, match="allow_code"):
        bind_scorer(code_tests)


async def no_code_without_leave() -> Any:
    item, response = Item(id="i", ground_truth="assert True"), Response(item_id="i", response="x = 1")
    return await code_tests(item, response, context=None, allow_code=False)  # type: ignore[arg-type]


def test_false_means_no() -> None:
    import asyncio

    with pytest.raises(UserError, match="runs code that a model wrote"):
        asyncio.run(no_code_without_leave())


def test_a_whole_run(lab: Lab) -> None:
    lab.write("model.py", "def calculator(prompt): return '```python\\ndef f(x): return x + 1\\n```'\n")
    for row, test in zip(
        lab.rows, ["assert f(1) == 2", "assert f(1) == 3", ["assert f(0) == 1", "f(9)"], None], strict=True
    ):
        row["ground_truth"] = {"tests": test}
    lab.config["sample_params"] = {"num_samples": 1}
    lab.config["evaluation_methods"] = [{"name": "code_tests", "params": {"allow_code": True, "seconds": 5}}]
    lab.run()
    rows = {row["item_id"]: (row["outcome"], row["score"]) for row in lab.read("evaluation_results.jsonl")}
    assert rows == {"q0": ("scored", 1.0), "q1": ("scored", 0.0), "q2": ("scored", 1.0), "q3": ("errored", None)}
    assert os.listdir(lab.folder / "out")
