"""The names of folders of tasks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.errors import UserError
from assay.formats.lm_eval.tasks.index import index
from tests.formats.lm_eval.folders import write

TASK = "dataset_path: {}\noutput_type: multiple_choice\n"
FILES = {
    "a/_common": TASK.format("org/data") + "num_fewshot: 3\n",
    "a/one.yaml": "include: _common\ntask: one\ntag: [easy, all]\ndataset_name: first\n",
    "a/two.yaml": "include: _common\ntask: two\ntag: easy\n",
    "b/group.yaml": "group: both\ntask: [one, {task: two, repeats: 2}, {group: inner, task: [one]}]\ntag: no\n",
    "c/python.yaml": "task: four\nclass: !function code.Four\n",
    "c/fragment.yaml": "dataset_path: x\n",
    "d/broken.yaml": "task: [\n",
    "__pycache__/no.yaml": "task: no\n",
    ".ipynb_checkpoints/no.yaml": "task: no\n",
    "notes.yml": "task: no\n",
}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("ASSAY_TASKS", raising=False)
    monkeypatch.setattr("assay.formats.lm_eval.tasks.index.installed_tasks", lambda: None)
    return tmp_path / "state"


def test_names_with_their_kinds(tmp_path: Path) -> None:
    root = write(tmp_path / "tasks", FILES)
    whole = index([root])
    kinds = {name: entry.kind for name, entry in whole.entries.items()}
    assert kinds == {
        "one": "task",
        "two": "task",
        "easy": "tag",
        "all": "tag",
        "both": "group",
        "four": "class",
    }
    one = whole.entries["one"]
    assert (one.file, one.tags) == (str(root / "a/one.yaml"), ("easy", "all"))
    assert (one.output_type, one.dataset_path, one.dataset_name, one.num_fewshot) == (
        "multiple_choice",
        "org/data",
        "first",
        3,
    )
    assert whole.entries["easy"].members == ("one", "two")
    assert whole.entries["both"].members == ("one", "two", "inner")
    assert (
        whole.entries["four"].unsupported
        == "a task written in Python (class:) that does more than ask for a text"
    )


def test_a_broken_file_is_reported_and_the_others_are_there(tmp_path: Path) -> None:
    root = write(tmp_path / "tasks", FILES)
    for _ in range(2):  # made, then read
        (broken,) = index([root]).broken
        assert broken.file == str(root / "d/broken.yaml")
        assert broken.where == f"{root}/d/broken.yaml:2"


def test_the_first_file_of_a_folder_and_the_last_folder_have_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(
        tmp_path / "1",
        {"a.yaml": "task: t\ntag: x", "b.yaml": "task: t", "c.yaml": "task: u\ntag: x"},
    )
    second = write(tmp_path / "2", {"z.yaml": "task: t\ntag: x"})
    assert index([first]).entries["t"].file == str(first / "a.yaml")
    assert index([first]).entries["x"].members == ("t", "u")
    both = index([first, second]).entries
    assert both["t"].file == str(second / "z.yaml")
    assert both["x"].members == ("t",)
    assert index([second, first]).entries["t"].file == str(first / "a.yaml")
    monkeypatch.setenv("ASSAY_TASKS", f"{first}{os.pathsep}{second}")
    assert index().entries["t"].file == str(second / "z.yaml")
    assert index([first]).entries["t"].file == str(first / "a.yaml")


def test_a_task_whose_name_is_a_tag_before_it_is_dropped_and_a_tag_after_it_joins(
    tmp_path: Path,
) -> None:
    root = write(
        tmp_path / "tasks",
        {"a.yaml": "task: a\ntag: b", "b.yaml": "task: b", "c.yaml": "task: c\ntag: a"},
    )
    whole = index([root]).entries
    assert (whole["b"].kind, whole["b"].members) == ("tag", ("a",))
    assert (whole["a"].kind, whole["a"].members) == ("task", ("c",))


@pytest.mark.parametrize("change", ["a/one.yaml", "a/_common", "new.yaml", "../outside"])
def test_a_change_is_seen(tmp_path: Path, change: str) -> None:
    write(tmp_path, {"outside": "dataset_path: far"})
    root = write(tmp_path / "tasks", FILES | {"far.yaml": "include: ../outside\ntask: far"})
    before = index([root])
    write(root, {change: TASK.format("org/other/data") + "task: new\n"})
    after = index([root])
    assert before != after


def test_an_unchanged_folder_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "tasks", FILES)
    calls: list[tuple[int, int]] = []
    made = index([root], lambda done, total: calls.append((done, total)))
    assert calls == [(0, 6), (6, 6)]
    monkeypatch.setattr("assay.formats.lm_eval.tasks.task_keys.load", None)
    assert index([root], lambda done, total: calls.append((done, total))) == made
    assert len(calls) == 2


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"\x94\xa1x\x80\x90\x90"])
def test_a_spoilt_index_is_made_anew(tmp_path: Path, state: Path, content: bytes) -> None:
    root = write(tmp_path / "tasks", FILES)
    made = index([root])
    (file,) = (state / "benchmarks").iterdir()
    file.write_bytes(content)
    assert index([root]) == made


def test_an_installed_package_is_known_by_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "site/lm_eval/tasks", FILES)
    (tmp_path / "site/lm_eval-0.4.13.dist-info").mkdir()
    made = index([root])
    write(root, {"new.yaml": "task: new"})
    assert index([root]) == made
    (tmp_path / "site/lm_eval-0.4.13.dist-info").rename(tmp_path / "site/lm_eval-0.5.0.dist-info")
    assert "new" in index([root]).entries


def test_reading_needs_no_yaml_and_no_numpy(tmp_path: Path) -> None:
    root = write(tmp_path / "tasks", FILES)
    index([root])
    code = (
        "import sys; from assay.formats.lm_eval.tasks import index; index.installed_tasks = lambda: None;"
        "i = index.index(sys.argv[1:]);"
        "print(len(i.entries), [e.unsupported for e in i.entries.values()] and "
        "sorted({'yaml', 'jinja2', 'numpy', 'lm_eval'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["6", "[]"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not there"):
        index([tmp_path / "no"])
