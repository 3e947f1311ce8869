"""Every task and group that lm-eval ships, as lm-eval itself reads it.

`LM_EVAL_PYTHON` names an interpreter that has lm-eval; without it, it is that of the tests.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assay.errors import UserError
from assay.formats.lm_eval.tasks.definition import Hook, TaskMember
from assay.formats.lm_eval.tasks.definitions import _Build
from assay.formats.lm_eval.tasks.index import IndexEntry, index
from tests.formats.lm_eval.folders import write

PYTHON = os.environ.get("LM_EVAL_PYTHON") or (sys.executable if find_spec("lm_eval") else "")
pytestmark = [
    pytest.mark.benchmarks,
    pytest.mark.skipif(not PYTHON, reason="lm-eval is not installed"),
]
KINDS = {"TASK": "task", "GROUP": "group", "TAG": "tag", "PY_TASK": "class"}
REFUSED_BY_BOTH = {"t0_eval"}  # a member of it has no name
BETTER = {  # where the harness has an error of its own
    "flan_held_in": "an `include` of a task that is written in a group",
    "openllm": "keys for a group's tasks rename them all to the group's name",
    "toksuite_abridged": "a group that is named and written out",
}


def view(*folders: Path) -> Iterator[dict[str, Any]]:
    script = Path(__file__).with_name("harness_view.py")
    command = [PYTHON, str(script), *map(str, folders)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        yield from map(json.loads, process.stdout)
    assert process.returncode == 0


def plain(value: Any) -> Any:
    if isinstance(value, Hook):
        return f"!function {value.folder}/{value.name}"
    if isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if name not in ("file", "changes")]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


def described(member: TaskMember) -> Any:
    if member.definition is not None:
        return plain(member.definition)
    metrics = [
        {"filter_list": None, "aggregation": "mean", "weight_by_size": True, **entry}
        for entry in member.aggregate
    ]
    for entry in metrics:
        entry["filter_list"] = (
            [entry["filter_list"]]
            if isinstance(entry["filter_list"], str)
            else entry["filter_list"]
        )
    children = [described(child) for child in member.members]
    return {
        "group": member.name,
        "aggregate": plain(metrics),
        "version": member.version,
        "members": children,
    }


def is_same(entry: IndexEntry, line: dict[str, Any], build: _Build) -> bool:
    if entry.kind == "tag":
        return list(entry.members) == line["tags"]
    if entry.kind == "class":
        return True
    try:
        made = json.loads(json.dumps(described(*build.entry(entry, {})), default=repr))
    except UserError:
        return False
    return made == line.get("made")


def differences(root: Path, lines: Iterator[dict[str, Any]]) -> tuple[list[str], int]:
    whole = index([root])
    build, entries = _Build(whole, {}), dict(whole.entries)
    names: list[str] = []
    count = 0
    for line in lines:
        name, count = line["name"], count + 1
        entry = entries.pop(name, None)
        same = entry is not None and (entry.kind, entry.file) == (KINDS[line["kind"]], line["file"])
        if not same or not entry or not is_same(entry, line, build):
            names.append(name)
    return sorted([*names, *entries]), count


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("ASSAY_TASKS", raising=False)
    monkeypatch.setattr("assay.formats.lm_eval.tasks.index.installed_tasks", lambda: None)


def test_a_folder_of_our_own(tmp_path: Path) -> None:
    files = {
        "a/_base": "dataset_path: x\nmetadata: {version: 1}\nmetric_list: [{metric: acc}]\ntask_list: [1]\n",
        "a/one.yaml": "include: _base\ntask: one\ntag: [t, u]\nprocess_docs: !function utils.f\n",
        "a/two.yaml": "include: [_base, ../b/_more]\ntask: two\ntag: t\nmetadata: 3\n",
        "a/twice.yaml": "task: one\n",
        "a/diamond.yaml": "include: [_base, _again]\ntask: diamond\n",
        "a/_again": "include: _base\n",
        "a/broken.yaml": "task: [\n",
        "b/_more": "doc_to_text: !function more.f\ngeneration_kwargs: {temperature: 1, max_gen_toks: 3}\nmetadata:\n",
        "b/g.yaml": """
            group: g
            repeats: 2
            task: [t, {task: two, doc_to_text: q}, {group: h, task: [one, {task: n, dataset_path: p}]}]
        """,
        "b/k.yaml": """
            group: k
            task: [{group: g, num_fewshot: 3}]
            aggregate_metric_list: {metric: acc, filter_list: x}
        """,
        "b/t.yaml": "task: t\n",
    }
    root = write(tmp_path / "tasks", files)
    assert differences(root, view(root)) == ([], 6)


def test_all_that_is_shipped() -> None:
    lines = view()
    first = next(lines)
    root = Path(first["file"]).parents[
        len(Path(first["file"]).parts) - 1 - Path(first["file"]).parts.index("tasks")
    ]

    def all_lines() -> Iterator[dict[str, Any]]:
        yield first
        yield from lines

    names, count = differences(root, all_lines())
    assert set(names) == {*BETTER, *REFUSED_BY_BOTH}
    assert count > 14_000
