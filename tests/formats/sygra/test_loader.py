"""Names of a task's YAML are looked up in its own folder, whatever was loaded before."""

import sys
from pathlib import Path

import pytest

from assay.errors import UserError
from assay.formats.sygra.modules import Loader


def folder(path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def test_a_folder_does_not_see_the_one_before(tmp_path: Path) -> None:
    first = folder(
        tmp_path / "first",
        {"tasks/eval/utils.py": "class UnitMetrics: ...\n", "loader_helper.py": "x = 1\n"},
    )
    second = folder(tmp_path / "second", {"tasks/qa/task.py": "y = 2\n"})
    load = Loader(first)
    assert load("tasks.eval.utils.UnitMetrics").__module__ == "tasks.eval.utils"
    assert load("loader_helper.x") == 1
    load = Loader(second)
    assert load("tasks.eval.utils.MetricCollatorPostProcessor").__module__.startswith("assay.")
    assert load("tasks.qa.task.y") == 2
    with pytest.raises(UserError, match="no module 'loader_helper'"):
        load("loader_helper.x")
    assert str(first) not in sys.path
