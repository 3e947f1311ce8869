"""The documentation is executed, page by page, so that it cannot rot.

Every block of a page runs in order, in one folder that has `examples/`, the logs of other tools and
the files that the pages mention: `sh` as a script that must succeed (lines that install, call `make` or never end are
left out), `python` as a script, `yaml` through the config's loader on top of MINIMAL. A block whose first line is
`# name.yaml` or `# name.py` is also saved under that name. After `<!-- output -->` a `text` block holds lines of what
the block before it printed, in order; `…` stands for any text. What comes after `<!-- local -->` needs the local model
and is left to `make test-local`, what comes after `<!-- benchmarks -->` needs lm-eval and is left to
`make test-benchmarks`.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from html import unescape
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import NamedTuple

import click
import pytest

import assay
from assay import registry
from assay.cli import COMMANDS, group
from assay.config import load
from assay.config.source import scalar
from tests.cli import forks

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "AGENTS.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
MINIMAL = {"models": ["demo:small"], "dataset": "items.jsonl"}
MENTIONED = {
    "items.jsonl": '{"id": "1", "data": {"question": "What is 1 + 1?"}, "ground_truth": "2"}\n',
    "items.csv": "id,question,answer\n1,What is 1 + 1?,2\n",
    "strict.txt": "{{question}}",
    "code.py": "def answer(prompt): ...\ndef score(response, ground_truth): ...\ndef rows(): ...\n",
    "my_model.py": "def answer(prompt): ...\n",
    "output/first/responses.jsonl": "",
}
PORT = "8137"  # what the pages write; the test takes a free one instead
COMMON_FLAGS = {"--help", "-h", "--version", "--debug", "--json"}
PICTURE = ROOT / "docs/images/demo.svg"
BLOCK = re.compile(
    r"(?ms)^(?:<!-- (?P<mark>output|local|benchmarks) -->\n+)?```(?P<kind>\w+)\n(?P<text>.*?)^```$"
)
# where `assay` is started as a user starts it; elsewhere its processes are forks of one that has the libraries, but for
# pages that leave some running or kill them
FROM_NOTHING = (
    "README.md",
    "docs/een.md",
    "docs/index.md",
    "docs/run.md",
    "docs/sql.md",
    "docs/view.md",
)
LEAVES_PROCESSES = re.compile(r"&$|\bkill\b|command: assay", re.MULTILINE)
CHECKED_ONLY = re.compile(r"(?:make|pip install|assay view output/demo)\b.*")
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("EVAL_")},
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "COLUMNS": "100",
}


class Block(NamedTuple):
    line: int
    kind: str
    text: str
    mark: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            text.count("\n", 0, found.start("text")),
            found["kind"],
            found["text"],
            found["mark"] or "",
        )
        for found in BLOCK.finditer(text)
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    # of other tools, which the pages about them read
    for logs in (ROOT / "tests/formats").glob("*/logs"):
        shutil.copytree(logs, tmp_path / logs.relative_to(ROOT))
    for name, text in MENTIONED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_every_block_runs(name: str, folder: Path, forked: dict[str, str]) -> None:
    text = (ROOT / name).read_text()
    starts_from_nothing = name in FROM_NOTHING or LEAVES_PROCESSES.search(text)
    run_blocks(name, folder, environ=ENVIRONMENT if starts_from_nothing else forked)


@pytest.fixture(scope="session")
def forked() -> Iterator[dict[str, str]]:
    with forks.on_path(ENVIRONMENT) as environ:
        yield environ


@pytest.mark.local
@pytest.mark.parametrize(
    "name", [name for name in NAMES if "<!-- local -->" in (ROOT / name).read_text()]
)
def test_every_block_runs_with_the_local_model(name: str, folder: Path) -> None:
    run_blocks(name, folder, "local")


@pytest.mark.benchmarks
@pytest.mark.parametrize(
    "name", [name for name in NAMES if "<!-- benchmarks -->" in (ROOT / name).read_text()]
)
def test_every_block_runs_with_the_harness(name: str, folder: Path) -> None:
    run_blocks(name, folder, "benchmarks")


def run_blocks(
    name: str, folder: Path, has: str = "", environ: dict[str, str] = ENVIRONMENT
) -> None:
    printed: str | None = ""
    for block in blocks(ROOT / name):
        where = f"{name}:{block.line}"
        if block.mark in ("local", "benchmarks") and block.mark != has:
            printed = None
            continue
        saved = re.match(r"# ([\w./-]+\.(?:yaml|py))\n", block.text)
        if saved:
            (folder / saved[1]).write_text(block.text)
        if block.mark == "output":
            if printed is not None:
                assert_shown(block.text, printed, where)
        elif block.kind == "yaml":
            given = scalar(block.text)
            load(given if "benchmarks" in given else {**MINIMAL, **given}, environ={})
        elif block.kind == "python":
            printed = executed([sys.executable, "-W", "error", "-c", block.text], where)
        elif block.kind == "sh":
            script = without_setup(block.text, where)
            printed = executed(["bash", "-euo", "pipefail", "-c", script], where, environ)


def executed(command: list[str], where: str, environ: dict[str, str] = ENVIRONMENT) -> str:
    """What a command prints, errors included. What it left running is ended with it."""
    with TemporaryFile("w+") as output:
        with subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        ) as process:
            try:
                process.wait(timeout=60)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        printed = output.read()
    assert process.returncode == 0, f"{where}: exit code {process.returncode}\n{printed}"
    return printed


def without_setup(script: str, where: str) -> str:
    """The script less the lines that would install something, call `make`, whose targets must exist, or never end."""
    kept: list[str] = []
    for line in script.splitlines():
        if not CHECKED_ONLY.fullmatch(line):
            kept.append(line)
            continue
        command, *words = line.partition("#")[0].split()
        if command == "make":
            targets = {word for word in words if "=" not in word}
            assert targets <= make_targets(), f"{where}: the Makefile has no target for `{line}`"
        elif command == "pip":
            assert words in offered(), f"{where}: `{line}` is not what pyproject.toml offers"
    return "\n".join(kept).replace(PORT, free_port())


def offered() -> list[list[str]]:
    """The words after `pip` that install the package or one of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [f"'{project['name']}[{extra}]'" for extra in project["optional-dependencies"]]
    return [["install", what] for what in (".", project["name"], *extras)]


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@cache
def make_targets() -> set[str]:
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def assert_shown(shown: str, printed: str, where: str) -> None:
    lines = iter(words(printed))
    for wanted in words(shown):
        pattern = re.sub(r"([\[*?])", r"[\1]", wanted).replace("…", "*")
        assert any(fnmatchcase(line, pattern) for line in lines), (
            f"{where}: {wanted!r} is not in\n{printed}"
        )


def words(text: str) -> list[str]:
    """The lines of a text without blank ones, rules and the spaces that only align."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if line.strip("─ ")]


@pytest.mark.parametrize("name", NAMES)
def test_every_relative_link_resolves(name: str) -> None:
    page = ROOT / name
    prose = BLOCK.sub("", page.read_text())
    for target in re.findall(r"\]\((?!\w+://)([^)\s]+)\)", prose):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name}: {target}"
        assert not anchor or anchor in anchors(file), f"{name}: {target}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_names_every_flag_of_its_command(command: str) -> None:
    page = (ROOT / f"docs/{command}.md").read_text()
    found = group.get_command(click.Context(group), command)
    assert found is not None
    flags = {
        flag
        for option in found.params
        if isinstance(option, click.Option) and not option.hidden
        for flag in option.opts
    }
    assert {
        flag for flag in flags - COMMON_FLAGS if f"`{flag}" not in page and f"/{flag}" not in page
    } == set()


def test_the_first_page_names_every_command_and_common_flag() -> None:
    index = (ROOT / "docs/index.md").read_text()
    assert [name for name in [*COMMANDS, *COMMON_FLAGS] if f"`{name}`" not in index] == []


@pytest.mark.parametrize("kind", ["dataset", "prompt", "model", "task", "scorer", "metric"])
def test_a_page_names_every_plug_in_of_its_kind(kind: str) -> None:
    page = (ROOT / f"docs/{kind}s.md").read_text()
    built_in = getattr(registry, kind).names()
    assert built_in
    assert [name for name in built_in if f"`{name}`" not in page] == []


def test_the_python_page_names_everything_public() -> None:
    page = (ROOT / "docs/python.md").read_text()
    public = [name for name in dir(assay) if not name.startswith("_")]
    assert [name for name in public if not re.search(rf"\b{name}\b", page)] == []


def test_the_picture_shows_what_the_demo_prints(folder: Path) -> None:
    assert seen(PICTURE.read_text()) == seen(picture(folder))


def seen(drawing: str) -> list[str]:
    """The texts of an SVG."""
    return words(unescape(re.sub(r"<[^>]*>", "\n", drawing)))


def picture(folder: Path) -> str:
    """The demo's table as an SVG that asks no other server for a font."""
    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    result = assay.run(ROOT / "examples/demo/config.yaml", output_dir=str(folder / "demo"))
    table = assay.sheet(result).tables[0]
    console = Console(record=True, width=88, file=StringIO())
    console.print("$ assay run examples/demo/config.yaml", markup=False, highlight=False)
    console.print(Text.from_ansi(assay.Sheet([table]).form(width=88, colour=True)))
    drawn = console.export_svg(title="assay", theme=MONOKAI, unique_id="demo")
    return re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        PICTURE.write_text(picture(Path(temporary)))
