"""An experiment in a folder, driven through real `assay` processes and a real server on loopback."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from assay.server.process import stats
from tests.cli.forks import Parent

COMMAND = [sys.executable, "-m", "assay"]
# what the tests set themselves
OURS_ALONE = re.compile("EVAL_|COLUMNS$|LINES$|NO_COLOR$|FORCE_COLOR$|TERM$|TTY_")
PARENT = Parent()
NEVER_SHOWN = ("Traceback", "internal error", "Exception ignored", "never awaited", "Warning")


class Ended:
    """How a process ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def said(self) -> str:
        return self.out + self.err

    @property
    def words(self) -> str:
        """All it said on one line, so that the width of a terminal does not matter."""
        return " ".join(self.said.split())

    def events(self) -> list[dict[str, Any]]:
        """The lines of --json."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def result(self) -> dict[str, Any]:
        return self.events()[-1]


class Shell:
    """A folder with a dataset and a config that tests edit, both written anew before each command."""

    def __init__(self, folder: Path, url: str = "", items: int = 4) -> None:
        self.folder = folder
        self.url = url
        self.environ: dict[str, str] = {"COLUMNS": "200"}
        self.rows: list[dict[str, Any]] = [question(number) for number in range(items)]
        self.config: dict[str, Any] = {
            "dataset": "items.jsonl",
            "models": [self.model("mock")],
            "prompt_template": "What is {{question}}?",
            "evaluation_methods": ["exact_match"],
            "metrics": ["pass_rate"],
            "output_dir": str(folder / "out"),
        }

    def model(self, name: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "endpoint": self.url, **more}

    @property
    def out(self) -> Path:
        return Path(self.config["output_dir"])

    def write(self, name: str, text: str) -> Path:
        """A file beside the config, its text dedented."""
        path = self.folder / name
        path.write_text(dedent(text))
        return path

    def save(self) -> Path:
        self.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in self.rows))
        return self.write("config.yaml", json.dumps(self.config, indent=1))

    def start(
        self, *words: str, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        """`assay WORDS`, not waited for; CONFIG among the words is the config."""
        command = [*COMMAND, *self._saved(words)]
        environ = surrounding(**self.environ)
        return subprocess.Popen(
            command, stdout=stdout, stderr=stderr, text=True, cwd=self.folder, env=environ
        )

    def call(self, *words: str, seconds: float = 60.0) -> Ended:
        return assay(
            *self._saved(words),
            folder=self.folder,
            environ=surrounding(**self.environ),
            seconds=seconds,
        )

    def _saved(self, words: tuple[str, ...]) -> list[str]:
        config = str(self.save())
        return [config if word == "CONFIG" else word for word in words]

    def run(self, *words: str, seconds: float = 60.0) -> Ended:
        return self.call("run", "CONFIG", *words, seconds=seconds)

    def lines(self, name: str = "responses.jsonl") -> list[bytes]:
        path = self.out / name
        return path.read_bytes().splitlines() if path.exists() else []

    def read(self, name: str = "responses.jsonl") -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines(name)]

    def keys(self, name: str = "responses.jsonl") -> Counter[tuple[str, int]]:
        """How often each key and part is in the file: every one exactly once, or something is wrong."""
        return Counter((row["key"], row.get("part", [0])[0]) for row in self.read(name))

    def files(self) -> dict[str, bytes]:
        """Every file below the shell's folder, by its relative path."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    @contextmanager
    def counted(self) -> Iterator[Counter[str]]:
        """How many requests the server gets meanwhile, as `["requests"]`; filled in at the end."""
        count: Counter[str] = Counter()
        before = stats(self.url)["requests"]
        yield count
        count["requests"] = stats(self.url)["requests"] - before


def question(number: int) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "data": {"question": f"{number} + 1"},
        "ground_truth": {"answer": str(number + 1)},
    }


def surrounding(**more: str) -> dict[str, str]:
    """The environment of the tests, less what says something about the terminal, and more."""
    return {name: value for name, value in os.environ.items() if not OURS_ALONE.match(name)} | more


def assay(*words: str, folder: Path, environ: dict[str, str], seconds: float = 60.0) -> Ended:
    """`assay WORDS` in a process of its own, from its start to its end."""
    done = PARENT.run([*words], folder, environ, seconds)
    if done is not None:
        return checked(Ended(*done), debug="--debug" in words)
    pipe, command = subprocess.PIPE, [*COMMAND, *words]
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, cwd=folder, env=environ
    ) as child:
        return ended(child, seconds, debug="--debug" in words)


def ended(child: subprocess.Popen[str], seconds: float = 60.0, *, debug: bool = False) -> Ended:
    """Wait for a process; whatever it says, it may not be a traceback, unless it was asked for one."""
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        raise AssertionError(f"not ended after {seconds:g} s\n{out}\n{err}") from None
    return checked(Ended(child.returncode, out or "", err or ""), debug=debug)


def checked(result: Ended, *, debug: bool) -> Ended:
    if not debug:
        shown = [word for word in NEVER_SHOWN if word in result.said]
        assert not shown, result.said
    return result
