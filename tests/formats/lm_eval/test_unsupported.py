"""Why a task cannot run, told from its files."""

from pathlib import Path

import pytest

from assay.formats.lm_eval.facade.sources import is_installed
from assay.formats.lm_eval.tasks.index import IndexEntry, index
from tests.formats.lm_eval.folders import write

UTILS = """
    from __future__ import annotations
    import functools
    import json
    import numpy
    import early_package.part
    from evaluate import load
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        import for_types
    try:
        import borne
    except ImportError:
        borne = None
    try:
        import wanted
    except ImportError:
        raise ImportError("please install it")

    def plain(doc): return json.dumps(doc)

    def direct(doc):
        import late_package

    def through(doc): return middle(doc)
    def middle(doc): return direct(doc)

    def judged(doc): import judge_package

    by_name = functools.partial(judged, 1)

    def scored(items):
        return load("bertscore").compute() + load("rouge").compute()

    if __name__ == "__main__":
        import for_programs
"""
ALWAYS = "early_package", "wanted"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("ASSAY_TASKS", raising=False)
    monkeypatch.setattr("assay.formats.lm_eval.tasks.index.installed_tasks", lambda: None)


def entry(folder: Path, keys: str, **files: str) -> IndexEntry:
    write(
        folder,
        {"t.yaml": f"task: t\n{keys}\n", **{f"{name}.py": text for name, text in files.items()}},
    )
    return index([folder]).entries["t"]


@pytest.mark.parametrize(
    "name,packages",
    [
        ("plain", ALWAYS),
        ("direct", ("early_package", "late_package", "wanted")),
        ("through", ("early_package", "late_package", "wanted")),
        ("by_name", ("early_package", "judge_package", "wanted")),
    ],
)
def test_packages_are_those_that_the_function_reaches(
    tmp_path: Path, name: str, packages: tuple[str, ...]
) -> None:
    task = entry(tmp_path / "tasks", f"doc_to_text: !function utils.{name}", utils=UTILS)
    assert task.packages == packages
    lines = " ".join(f"'{package}'" for package in packages)
    assert task.unsupported == f"needs {', '.join(packages)}: pip install {lines}"


def test_packages_of_local_modules(tmp_path: Path) -> None:
    near = (
        "import near_package\ndef used(): import used_package\ndef unused(): import unused_package"
    )
    task = entry(
        tmp_path / "tasks",
        "process_docs: !function utils.f",
        near=near,
        utils="from .near import used as f",
    )
    assert task.packages == ("near_package", "used_package")


def test_metrics_of_the_hub(tmp_path: Path) -> None:
    task = entry(tmp_path / "tasks", "metric_list: [{metric: !function utils.scored}]", utils=UTILS)
    assert task.hub_metrics == ("bertscore",)
    assert task.unsupported == "needs code of the hub: bertscore"


def test_a_package_whose_version_a_module_looks_up(tmp_path: Path) -> None:
    code = "from importlib.metadata import version\nassert version('antlr4-python3-runtime').startswith('4.11')\nf = 1"
    task = entry(tmp_path / "tasks", "doc_to_text: !function utils.f", utils=code)
    assert task.packages == ("antlr4-python3-runtime",)
    assert task.unsupported in (
        "",
        "needs antlr4-python3-runtime: pip install 'antlr4-python3-runtime==4.11'",
    )


@pytest.mark.parametrize(
    "distribution,there",
    [("pip-is-not-called-so", False), ("import-linter", True), ("antlr4-python3-runtime", None)],
)
def test_versions(distribution: str, there: bool | None) -> None:
    from importlib.metadata import PackageNotFoundError, version

    if there is None:
        try:
            there = version(distribution).startswith("4.11")
        except PackageNotFoundError:
            there = False
    assert is_installed(distribution) is there


def test_a_metric_whose_failure_is_borne_at_first(tmp_path: Path) -> None:
    code = "from evaluate import load\ntry:\n    f = load('far/away')\nexcept Exception:\n    f = None\n"
    assert entry(tmp_path / "tasks", "doc_to_text: !function utils.f", utils=code).hub_metrics == (
        "far/away",
    )


@pytest.mark.parametrize(
    "keys,reason",
    [
        ("", ""),
        ("doc_to_image: [picture]", "its documents have images"),
        ("doc_to_audio: sound", "its documents have audio"),
        ("doc_to_text: !function broken.f", "broken Python: broken.py: "),
        ("doc_to_text: !function fine.f", ""),
        ("doc_to_text: !function os.path.join", ""),
        ("doc_to_text: !function gone.f", "needs gone: pip install 'gone'"),
        ("class: !function fine.Task", "a task written in Python (class:)"),
        ("class: !function broken.Task", "broken Python: broken.py: "),
        ("class: !function gone.Task", "a task written in Python (class:)"),
    ],
)
def test_reasons(tmp_path: Path, keys: str, reason: str) -> None:
    task = entry(
        tmp_path / "tasks",
        keys,
        broken="def f(:",
        fine="import sklearn\nfrom lm_eval.utils import x\nf = 1",
    )
    assert task.unsupported.startswith(reason)
    assert bool(reason) == bool(task.unsupported)


def test_tasks_of_the_harness_that_fail_there(tmp_path: Path) -> None:
    reason = "lm-eval 0.4.13 fails, too: doc_to_text gives a tuple"
    for folder, expected in (("lm_eval/tasks", reason), ("tasks", "")):
        write(tmp_path / folder, {"afrobench/mafand/prompt_2/english-african/t.yaml": "task: t\n"})
        assert index([tmp_path / folder]).entries["t"].unsupported == expected


def test_unsafe_code_is_marked(tmp_path: Path) -> None:
    assert entry(tmp_path / "1", "unsafe_code: yes").is_unsafe
    assert not entry(tmp_path / "2", "unsafe_code: no").is_unsafe
