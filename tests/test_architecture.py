"""The house defends itself: what its plan promises, checked on the tree (the checks are in `tests/house.py`). Import
directions are import-linter's job, sizes that of `tools/house.py` (both in `make check`); here it is made sure that
import-linter's contracts cover every room.
"""

import tomllib
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.house import (
    CHECKS,
    Check,
    class_names_used_twice,
    commands_that_pass_the_door,
    formats_that_know_one_another,
    names_of_formats_outside,
    names_that_say_nothing,
    rooms_without_a_sign,
)

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/assay"
STARTS = {"__init__", "__main__", "pytest_plugin"}  # what starts the program is above all layers


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_house_keeps_to_its_plan(check: Check) -> None:
    problems = check(PACKAGE)
    assert not problems, "\n" + "\n".join(problems)


def plant(package: Path, files: dict[str, str]) -> Path:
    """A package with these files; folders get an `__init__.py` with a proper sign."""
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(dedent(text))
    for folder in {path.parent for path in package.rglob("*.py")}:
        while folder != package.parent:
            if not (folder / "__init__.py").exists():
                (folder / "__init__.py").write_text('"""A room. Nothing else is here."""\n')
            folder = folder.parent
    return package


SOUND = {
    "errors.py": "class UserError(Exception): ...",
    "cli/run.py": "from assay.api import run\nfrom assay.errors import UserError\nfrom assay.cli.show import show",
    "cli/show.py": "import click",
    "engine/run/run.py": "class Runner: ...\nclass _Row: ...",
    "engine/evaluate/evaluate.py": "class Evaluator: ...\nclass _Row: ...",
    "formats/quizzer/__init__.py": '"""Quizzer files. No numbers are made here."""\nfrom assay.formats.names import x',
    "formats/names.py": "x = 1  # quizzer or foreign",
    "formats/foreign_words/__init__.py": '"""Foreign words. They are not explained."""\n',
    "prompts/long.txt": "a text about strangers",
}
BROKEN: list[tuple[Check, dict[str, str], str]] = [
    (
        names_of_formats_outside,
        {"cli/run.py": "# for Foreign Words"},
        "cli/run.py:1: # for Foreign Words",
    ),
    (names_of_formats_outside, {"data/foreign_words.txt": ""}, "data/foreign_words.txt: its name"),
    (
        names_of_formats_outside,
        {"data/schema.json": '"foreign-words"'},
        'data/schema.json:1: "foreign-words"',
    ),
    (
        formats_that_know_one_another,
        {"formats/quizzer/command.py": "def f():\n    from assay.formats.foreign_words import x"},
        "formats/quizzer/command.py: imports assay.formats.foreign_words",
    ),
    (
        commands_that_pass_the_door,
        {"cli/ls.py": "import assay.store.log"},
        "cli/ls.py: imports assay.store.log",
    ),
    (
        commands_that_pass_the_door,
        {"cli/ls.py": "def f():\n    from assay import apiary, run", "apiary.py": ""},
        "cli/ls.py: imports assay.apiary",
    ),
    (
        class_names_used_twice,
        {"store/log.py": "class Runner: ..."},
        "Runner: engine/run/run.py, store/log.py",
    ),
    (names_that_say_nothing, {"text/utils.py": ""}, "text/utils.py"),
    (
        names_that_say_nothing,
        {"text/words.py": "class WordManager: ..."},
        "text/words.py: WordManager",
    ),
    (names_that_say_nothing, {"text/words.py": "class BaseWord: ..."}, "text/words.py: BaseWord"),
    (
        rooms_without_a_sign,
        {"text/__init__.py": '"""Words. Many of them."""'},
        "text/__init__.py: 'Words. Many of them.'",
    ),
    (
        rooms_without_a_sign,
        {"text/__init__.py": '"""Only words."""'},
        "text/__init__.py: 'Only words.'",
    ),
    (rooms_without_a_sign, {"text/__init__.py": ""}, "text/__init__.py: ''"),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_sound_tree_passes(check: Check, tmp_path: Path) -> None:
    names = {f"scorers/scorer_{number}.py": "" for number in range(20)}
    assert check(plant(tmp_path / "assay", {**SOUND, **names})) == []


@pytest.mark.parametrize(
    ("check", "files", "problem"), BROKEN, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_broken_tree_fails(
    check: Check, files: dict[str, str], problem: str, tmp_path: Path
) -> None:
    problems = check(plant(tmp_path / "assay", {**SOUND, **files}))
    assert any(line.endswith(problem) for line in problems), problems


def contracts(kind: str) -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return [contract for contract in settings["contracts"] if contract["type"] == kind]


def modules() -> set[str]:
    return {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }


def test_every_room_has_its_place_in_the_layers() -> None:
    (contract,) = (
        contract for contract in contracts("layers") if contract["containers"] == ["assay"]
    )
    layers = [name.strip(" ()") for line in contract["layers"] for name in line.split("|")]
    present = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    assert present - set(layers) == STARTS
    assert set(layers) <= present
    assert len(layers) == len(set(layers))


def test_formats_are_independent_by_contract() -> None:
    (contract,) = contracts("independence")
    assert contract["modules"] == ["assay.formats.*"]


def test_the_command_line_has_one_door_by_contract() -> None:
    """Every room but api and errors is forbidden to cli/."""
    (contract,) = contracts("forbidden")
    assert contract["source_modules"] == ["assay.cli"]
    rooms = modules() - STARTS - {"api", "errors", "cli"}
    assert contract["forbidden_modules"] == [f"assay.{name}" for name in sorted(rooms)]
