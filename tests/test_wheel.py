"""The wheel, installed into an empty environment far from the repository: the demo runs, every verb answers."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEPENDENCIES = (
    "click",
    "jinja2",
    "markupsafe",
    "msgspec",
    "numpy",
    "pyreqwest",
    "yaml",
    "rich",
    "pygments",
)
DATA = (".txt", ".md", ".json", ".yaml", ".jsonl", ".typed", ".js", ".css")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, because building leaves files behind."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    (source / "web").mkdir()
    for name in ("pyproject.toml", "README.md", "MANIFEST.in", "LICENSE", "web/LICENSES.txt"):
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(
        ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    # otherwise pip fetches setuptools, as `make` did
    offline = ["--no-build-isolation"] if _can_build() else []
    pip("wheel", "--no-deps", *offline, "-w", str(target), str(source))
    (built,) = target.glob("assay_eval-*.whl")
    return built


def _can_build() -> bool:
    """Whether the installed setuptools builds wheels by itself."""
    return find_spec("setuptools") is not None and tuple(
        map(int, version("setuptools").split(".")[:2])
    ) >= (77, 0)


@pytest.fixture(scope="module")
def bin(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel; its dependencies are those of this one."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False)
    python = place / "bin/python"
    pip("--python", str(python), "install", "--no-deps", "--no-index", "--no-compile", str(wheel))
    (packages,) = place.glob("lib/python*/site-packages")
    specs = [find_spec(name) for name in DEPENDENCIES]
    folders = {str(Path(spec.origin).parents[1]) for spec in specs if spec and spec.origin}
    (packages / "dependencies.pth").write_text("\n".join(sorted(folders)) + "\n")
    return place / "bin"


def pip(*words: str) -> None:
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *words)


def run(*command: str, folder: Path | None = None) -> str:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "COLUMNS": "100"
    }
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_has_every_file_and_no_other(wheel: Path) -> None:
    source = ROOT / "src"
    files = (
        path for path in (source / "assay").rglob("*") if path.is_file() and path.suffix != ".pyc"
    )
    ours = {path.relative_to(source).as_posix() for path in files}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == ours
    assert {Path(name).suffix for name in packed} == {".py", *DATA}


def test_the_wheel_has_its_name_and_its_licences(wheel: Path) -> None:
    packed = zipfile.ZipFile(wheel)
    (folder,) = {name.split("/")[0] for name in packed.namelist() if ".dist-info/" in name}
    about = message_from_bytes(packed.read(f"{folder}/METADATA"))
    assert (about["Name"], about["License-Expression"]) == ("assay-eval", "Apache-2.0")
    assert about.get_all("License-File") == ["LICENSE", "web/LICENSES.txt"]
    for name in about.get_all("License-File", []):
        assert packed.read(f"{folder}/licenses/{name}") == (ROOT / name).read_bytes()


def test_the_package_is_that_of_the_environment(bin: Path, tmp_path: Path) -> None:
    place = run(
        str(bin / "python"), "-c", "import assay; print(assay.__file__)", folder=tmp_path
    ).strip()
    assert Path(place).is_relative_to(bin.parent)


def test_an_example_runs(bin: Path, tmp_path: Path) -> None:
    assay = str(bin / "assay")
    examples = re.findall(
        r"^ *([a-z][a-z-]+)", run(assay, "init", "--list", folder=tmp_path), re.MULTILINE
    )
    assert "qa" in examples
    run(assay, "init", "here", folder=tmp_path)
    shown = run(assay, "run", "config.yaml", "-o", "out", "--no-progress", folder=tmp_path / "here")
    assert "files:" in shown
    assert {"responses.jsonl", "metrics.jsonl"} <= {
        path.name for path in (tmp_path / "here/out").iterdir()
    }


def test_the_demo_needs_nothing_but_the_wheel(bin: Path, tmp_path: Path) -> None:
    shown = run(str(bin / "assay"), "demo", "--no-progress", folder=tmp_path)
    assert "demo-large" in shown
    assert shown.endswith("now: assay view output/demo\n")
    assert [path.name for path in tmp_path.iterdir()] == ["output"]
    listed = run(str(bin / "assay"), "ls", "output", "--json", folder=tmp_path)
    assert '"demo"' in listed


def test_every_verb_explains_itself(bin: Path, tmp_path: Path) -> None:
    verbs = list(verbs_of(bin, [], tmp_path))
    assert {("run",), ("judge", "label"), ("mixeval", "score"), ("sygra",), ("import",)} <= set(
        verbs
    )
    assert len(verbs) > 25


def verbs_of(bin: Path, words: list[str], folder: Path) -> Iterator[tuple[str, ...]]:
    """The verbs below these words, each asked for its help."""
    shown = run(str(bin / "assay"), *words, "--help", folder=folder)
    assert shown.startswith("Usage: assay")
    listed = shown.partition("Commands:\n")[2]
    for verb in re.findall(r"^  ([a-z][a-z-]*)(?:  |$)", listed, re.MULTILINE):
        yield (*words, verb)
        yield from verbs_of(bin, [*words, verb], folder)
