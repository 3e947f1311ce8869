"""What one pays before anything happens."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Line

ROUNDS = 9


def _fastest(command: list[str]) -> float:
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times[1:])


def help_time() -> list[Line]:
    bare = _fastest([sys.executable, "-c", "import click"])
    ours = _fastest([str(Path(sys.executable).with_name("assay")), "--help"])
    detail = f"{ours * 1000:.0f} ms / {bare * 1000:.0f} ms"
    return [Line("assay --help / python -c 'import click'", ours / bare, "<=", 3, detail)]


def packages() -> list[Line]:
    """What the core brings into an empty environment, itself included."""
    root = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip"]
        install = [*pip, "install", "-q", "-c", str(root / "constraints.txt"), str(root)]
        subprocess.run(install, check=True, capture_output=True)
        listed = subprocess.run(
            [*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True
        )
    names = [line.split("==")[0] for line in listed.stdout.split()]
    core = [name for name in names if name not in ("pip", "setuptools", "wheel")]
    return [Line("packages that the core installs", len(core), "<=", 24, ", ".join(core))]


def verbs() -> list[Line]:
    """Commands that do not need the engine, against `assay --help`."""
    assay = str(Path(sys.executable).with_name("assay"))
    bare = _fastest([assay, "--help"])
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "list scorer": ["list", "scorer"],
            "show exact_match": ["show", "exact_match"],
            "schema": ["schema"],
            "ls": ["ls", folder],
            "--version": ["--version"],
            "init --list": ["init", "--list"],
            "dataset ls": ["dataset", "ls", "--repository", folder],
        }
        times = {name: _fastest([assay, *words]) for name, words in commands.items()}
    slowest = max(times, key=lambda name: times[name])
    detail = ", ".join(f"{name} {seconds / bare:.2f}" for name, seconds in times.items())
    return [
        Line(
            f"slowest verb that needs no engine ({slowest}) / assay --help",
            times[slowest] / bare,
            "<=",
            1.5,
            detail,
        )
    ]


BENCHMARKS = [help_time, verbs, packages]
