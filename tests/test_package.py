"""What the package says about itself: one name, one version, one licence, wherever they are written."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import assay
from assay.errors import DISTRIBUTION, install_command

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text())
FOLDERS = ("benchmarks", "docs", "examples", "fuzz", "src", "tests", "tools", "web", ".github")
TEXTS = {".cff", ".md", ".py", ".sh", ".svg", ".toml", ".ts", ".tsx", ".txt", ".yaml", ".yml"}
OLD_NAME = re.compile(  # of a package to install, or to look up: in a requirement, an extra, a call
    r"(?<![\w./-])assay(?:\[|==)|version\([\"']assay[\"']\)"
    r"|pip install [^\n#`]*(?<![\w./-])assay(?![\w-])"
)


def texts() -> Iterator[Path]:
    """The files of the repository that people write, but this. The changelog tells what was."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != "CHANGELOG.md")
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            left_out = path == Path(__file__) or {"fixtures", "node_modules"} & {*path.parts}
            if path.suffix in TEXTS and not left_out:
                yield path


def test_the_name_stands_once() -> None:
    assert PROJECT["name"] == DISTRIBUTION == "assay-eval"
    assert PROJECT["scripts"] == {"assay": "assay.cli:main"}
    code = [
        path for path in (ROOT / "src").rglob("*.py") if f'"{DISTRIBUTION}"' in path.read_text()
    ]
    assert code == [ROOT / "src/assay/errors.py"]


def test_nothing_tells_to_install_the_old_name() -> None:
    paths = [*texts()]
    assert {ROOT / "README.md", ROOT / "action.yml", ROOT / "src/assay/errors.py"} <= {*paths}
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in paths
        for match in OLD_NAME.finditer(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "hint",
    [
        "pip install assay",
        "pip install -U 'assay[sql]'",
        "assay[hf]",
        "[assay==0.2]",
        "version('assay')",
    ],
)
def test_the_old_name_would_be_found(hint: str) -> None:
    assert OLD_NAME.search(f"do `{hint}` first")


def test_extras_name_extras_of_this_package() -> None:
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    own = [need for needs in extras.values() for need in needs if need.startswith("assay")]
    assert own
    for need in own:
        name, _, chosen = need.rstrip("]").partition("[")
        assert name == DISTRIBUTION
        assert {*chosen.split(",")} <= {*extras}


def test_every_hint_names_an_extra() -> None:
    assert install_command("sql,frames") == "pip install 'assay-eval[sql,frames]'"
    named = {
        extra
        for path in texts()
        for found in re.findall(
            r"(?:assay-eval\[|install_command\([\"'])([\w,]+)[\]\"']", path.read_text()
        )
        for extra in found.split(",")
    }
    assert {"sql", "hf", "neural"} <= named <= {*PROJECT["optional-dependencies"]}


def test_one_version() -> None:
    assert PROJECT["version"] == assay.__version__ == CITATION["version"]
    assert f"\n## {assay.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_one_licence() -> None:
    assert PROJECT["license"] == CITATION["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert not [entry for entry in PROJECT["classifiers"] if entry.startswith("License ::")]


def test_one_author() -> None:
    assert PROJECT["authors"] == CITATION["authors"] == [{"name": "The Assay authors"}]
    assert CITATION["cff-version"] == "1.2.0"
    assert {"message", "title"} <= {*CITATION}


def test_the_viewers_packages_have_their_licences() -> None:
    """What is in its scripts: all that web/ needs, less what build.mjs leaves out and a program's own parser."""
    locked: dict[str, Any] = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    left_out = {"entities", "linkify-it", "argparse", "@types/trusted-types"}
    inside = {
        f"{name} {entry['version']}"
        for path, entry in locked.items()
        if path and not entry.get("dev")
        if (name := path.removeprefix("node_modules/")) not in left_out
    }
    notices = (ROOT / "web/LICENSES.txt").read_text()
    assert {*re.findall(r"(?m)^-{80}\n(\S+ [\d.]+)$", notices)} == inside


def test_the_workflow_runs_what_everybody_runs() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert all(
        re.fullmatch(r"[\w/-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step
    )
    assert workflow["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_a_template_of_an_issue_has_what_is_needed(name: str) -> None:
    form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text())
    assert form["name"]
    assert form["description"]
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(ids) == len({*ids}) > 0
    assert all(
        part["attributes"].get("label") or part["type"] == "markdown" for part in form["body"]
    )
