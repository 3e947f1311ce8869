"""Code that is scored cannot score itself, read what is not its own, or hurt who scores it. At every level that this
machine has, and always at the weakest."""

import ctypes
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psutil
import pytest

from assay.scorers._sandbox.run import (
    Level,
    NotStartedError,
    SandboxLimits,
    Verdict,
    run_tests,
    try_out,
)
from tests.faults.forgeries import FORGERIES

LIMITS = SandboxLimits(seconds=10, memory=400 << 20, files=1 << 20, processes=8)
HASTY = LIMITS._replace(seconds=1)
LEVELS: list[Level] = ["bubblewrap", "namespaces", "weak"]


@cache
def missing(level: Level) -> str | None:
    try:
        try_out(level)
    except NotStartedError as error:
        return str(error)
    return None


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Level:
    if (reason := missing(request.param)) is not None:
        pytest.skip(f"{request.param}: {reason}")
    return request.param


@pytest.fixture
def closed(level: Level) -> Level:
    if level == "weak":
        pytest.skip("weak does not close everything")
    return level


@pytest.fixture
def without_files(level: Level) -> Level:
    if level == "weak" and ctypes.CDLL(None).syscall(444, None, 0, 1) < 1:
        pytest.skip("weak needs Landlock for this")
    return level


def ran(
    code: str,
    *tests: str,
    level: Level,
    limits: SandboxLimits = LIMITS,
    entry_point: str | None = None,
) -> Verdict:
    return run_tests(code, list(tests), entry_point, limits, level)


CODES = {forgery.code: forgery.name for forgery in FORGERIES}


@pytest.mark.parametrize("code", CODES, ids=CODES.get)
def test_no_forgery_passes(code: str, level: Level) -> None:
    forgeries = [forgery for forgery in FORGERIES if forgery.code == code]
    limits = HASTY if any(forgery.hasty for forgery in forgeries) else LIMITS
    verdict = ran(code, *(forgery.test for forgery in forgeries), level=level, limits=limits)
    assert verdict.passed == 0, [forgery.name for forgery in forgeries]
    assert verdict.problems


def test_there_are_enough_of_them() -> None:
    assert len(FORGERIES) >= 60
    assert len({forgery.name for forgery in FORGERIES}) == len(FORGERIES)


RIGHT = "def f(x): return x * 2"


def test_honest_answers(level: Level) -> None:
    assert ran(RIGHT, "assert f(2) == 4", "assert f('a') == 'aa'", level=level) == Verdict(2, [])
    assert (
        ran("def f(x): return x + 1", "assert f(2) == 4", "assert f(1) == 2", level=level).passed
        == 1
    )


def worked(level: Level, *attempts: str) -> list[str]:
    """Those of these lines of code that did not fail."""
    start = "import os, socket, glob, ctypes\n"
    code = start + "\n".join(
        f"def f{number}():\n    {line}" for number, line in enumerate(attempts)
    )
    verdict = ran(code, *(f"f{number}()" for number in range(len(attempts))), level=level)
    failed = {int(problem.split(":")[0].removeprefix("test ")) - 1 for problem in verdict.problems}
    return [line for number, line in enumerate(attempts) if number not in failed]


def test_files_of_the_user_are_not_there(without_files: Level, tmp_path: Path) -> None:
    secret = tmp_path / "items.jsonl"
    secret.write_text("hush")
    os.chmod(tmp_path, 0o755)
    files = (
        secret,
        Path(__file__),
        Path.home() / ".profile",
        "/etc/shadow",
        "/etc/passwd",
        f"/proc/{os.getpid()}/mem",
    )
    assert worked(without_files, *(f"open({str(path)!r}).read(9)" for path in files)) == []
    folders = (
        tmp_path,
        Path(__file__).parent,
        Path("/etc"),
        Path("/root"),
        Path("/home"),
        Path("/var"),
    )
    names = [
        (folder, name)
        for folder in folders
        for name in (os.listdir(folder) if os.access(folder, os.R_OK) else [])
    ]
    seen = [
        f"assert {name!r} in os.listdir({str(folder)!r})"
        for folder, name in names
        if name not in (".pyenv",)
    ]
    assert set(worked(without_files, *seen[:20])) <= {"assert 'ld.so.cache' in os.listdir('/etc')"}
    worked(
        without_files,
        *(f"open({str(path)!r}, 'a').write('x')" for path in (secret, __file__)),
        f"os.remove({str(secret)!r})",
    )
    assert secret.read_text() == "hush"
    assert Path(__file__).read_text().startswith('"""Code')


def test_nothing_outside_can_be_written(without_files: Level) -> None:
    paths = (
        "/dev/shm/x",
        "/var/tmp/x",
        "/run/x",
        "/usr/x",
        "/x",
        "/dev/x",
        "/etc/x",
        "/proc/sys/vm/swappiness",
    )
    modules = ("__import__('_sandbox.child').child", "__import__('json')", "os")
    attempts = [f"open({path!r}, 'w').write('1')" for path in paths]
    attempts += [f"open({module}.__file__, 'r+')" for module in modules]
    attempts += [f"os.mkdir(os.path.dirname({module}.__file__) + '/x')" for module in modules]
    assert worked(without_files, *attempts) == []


def test_its_own_folder_is_small_and_gone_afterwards(closed: Level) -> None:
    before = set(os.listdir("/tmp"))
    code = "import os\ndef f():\n    for n in range(9): open(f'/tmp/{n}', 'w').write('a' * 900_000)"
    assert "No space" in ran(code, "f()", level=closed).problems[0]
    assert {name for name in os.listdir("/tmp") if name.startswith("assay-code")} <= before


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[dict[str, socket.socket]]:
    """A server of each kind that a user may have, and nobody may reach."""
    made = {
        f"('127.0.0.1', {{port}})|{socket.SOCK_STREAM}": socket.create_server(("127.0.0.1", 0)),
        f"{str(tmp_path / 's')!r}|unix": socket.socket(socket.AF_UNIX),
        f"{chr(0) + 'assay-' + str(os.getpid())!r}|unix": socket.socket(socket.AF_UNIX),
    }
    paths = list(made)
    made[paths[1]].bind(str(tmp_path / "s"))
    made[paths[2]].bind("\0assay-" + str(os.getpid()))
    for server in made.values():
        server.listen()
        server.settimeout(0.05)
    port = made[paths[0]].getsockname()[1]
    yield {path.replace("{port}", str(port)): server for path, server in made.items()}
    for server in made.values():
        server.close()


def test_no_server_is_reached(level: Level, servers: dict[str, socket.socket]) -> None:
    for address, server in servers.items():
        place, _, kind = address.rpartition("|")
        family = "AF_UNIX" if kind == "unix" else "AF_INET"
        assert worked(level, f"socket.socket(socket.{family}).connect({place})") == []
        with pytest.raises(TimeoutError):
            server.accept()
    assert (
        worked(
            level, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))"
        )
        == []
    )


def test_no_environment_is_seen(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hush")
    code = "import os, glob\ntexts = [str(dict(os.environ))]\nfor path in glob.glob('/proc/*/environ'):\n"
    code += "    try:\n        texts.append(open(path, errors='replace').read())\n    except OSError:\n        pass"
    assert ran(code, "assert not any('hush' in text for text in texts)", level=level).passed == 1


def test_no_rights_are_won(level: Level) -> None:
    attempts = (
        "assert ctypes.CDLL(None).unshare(0x10000000) == 0",
        "assert ctypes.CDLL(None).mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None) == 0",
        "assert ctypes.CDLL(None).syscall(56, 0x10000011, 0, 0, 0, 0) >= 0",
        "assert ctypes.CDLL(None).shmget(0, 1 << 20, 0o1600) >= 0",
        "os.setuid(0)",
        "os.memfd_create('x')",
        f"__import__('resource').prlimit({os.getpid()}, 7, (3, 3))",
    )
    assert worked(level, *attempts) == []


def test_other_processes_are_not_there(closed: Level) -> None:
    code = "import os\npids = [name for name in os.listdir('/proc') if name.isdigit()] if os.path.exists('/proc') else []"
    assert (
        ran(code, f"assert len(pids) < 5 and '{os.getpid()}' not in pids", level=closed).passed == 1
    )


def test_nothing_is_left_behind(level: Level) -> None:
    before = {process.pid for process in psutil.process_iter()}
    code = "import os, time\ndef f():\n    for n in range(3):\n        if not os.fork():\n            os.setsid()\n"
    code += "            if os.fork(): os._exit(0)\n            time.sleep(60)\n            os._exit(0)\n    return 1"
    ran(code, "assert f() == 1", level=level)
    left = [process for process in psutil.process_iter(["cmdline"]) if process.pid not in before]
    ours = [
        process
        for process in left
        if any("_sandbox" in word for word in process.info["cmdline"] or [])
    ]
    assert psutil.wait_procs(ours, timeout=5)[1] == []


def test_all_ends_when_assay_is_killed(level: Level, tmp_path: Path) -> None:
    code = "import os, time\\ntry: os.fork() or os.setsid()\\nexcept OSError: pass\\nwhile True: time.sleep(1)"
    call = f"run_tests('{code}', ['1'], None, SandboxLimits(60, 400 << 20, 1 << 20, 8), '{level}')"
    assay = subprocess.Popen(
        [sys.executable, "-c", f"from assay.scorers._sandbox.run import *\n{call}"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    below: list[psutil.Process] = []
    deadline = time.monotonic() + 20
    while len(below) < 4 and time.monotonic() < deadline:
        below = psutil.Process(assay.pid).children(recursive=True)
        time.sleep(0.05)
    assay.kill()
    assay.wait()
    assert len(below) >= 4
    assert psutil.wait_procs(below, timeout=10)[1] == []


def test_processes_are_counted(closed: Level) -> None:
    code = "import os\nmade = 0\ntry:\n    while os.fork():\n        made += 1\n    os._exit(0)\nexcept OSError: pass"
    assert ran(code, "assert made < 8", level=closed).passed == 1


def test_many_at_the_same_time(level: Level) -> None:
    """Processes of two answers know nothing of each other."""
    found: list[Verdict] = []
    codes = [RIGHT, "def f(x): return 1", RIGHT, "import os\nos.kill(-1, 9)"]
    threads = [
        threading.Thread(
            target=lambda code=code: found.append(ran(code, "assert f(2) == 4", level=level))
        )
        for code in codes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(verdict.passed for verdict in found) == 2
