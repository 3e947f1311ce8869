"""One YAML file of a task with what it includes."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.formats.lm_eval.tasks.definition import Hook
from assay.formats.lm_eval.tasks.task_keys import load
from tests.formats.lm_eval.folders import write

KEYS = st.dictionaries(
    st.sampled_from(["task", "metric_list", "metadata", "task_list", "repeats", "fewshot_config"]),
    st.none()
    | st.integers(0, 3)
    | st.lists(st.integers(0, 3), max_size=2)
    | st.dictionaries(st.just("a"), st.just(1)),
)


@given(local=KEYS, included=st.lists(KEYS, max_size=3), last=KEYS)
def test_keys_are_replaced_whole_from_left_to_right(
    tmp_path_factory: pytest.TempPathFactory,
    local: dict[str, Any],
    included: list[dict[str, Any]],
    last: dict[str, Any],
) -> None:
    folder = tmp_path_factory.mktemp("tasks")
    expected: dict[str, Any] = {}
    for number, keys in enumerate(included):
        deep = {"include": "deep/last"} if number == 0 else {}
        (folder / f"part{number}").write_text(yaml.safe_dump({**keys, **deep}))
        expected |= {**(last if deep else {}), **keys}
    (folder / "deep").mkdir()
    (folder / "deep/last").write_text(yaml.safe_dump(last))
    expected.pop("task_list", None)
    names = [f"part{number}" for number in range(len(included))]
    (folder / "task.yaml").write_text(
        yaml.safe_dump({**local, "include": names[0] if len(names) == 1 else names})
    )
    assert load(folder / "task.yaml") == {**expected, **local}


def test_a_function_belongs_to_the_folder_of_the_file_that_names_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a/task.yaml": "include: ../b/shared\ntask: t\nprocess_docs: !function utils.rows\n",
            "b/shared": "doc_to_text: !function utils.text\nmetric_list: [{metric: !function m.one}]\n",
        },
    )
    keys = load(tmp_path / "a/task.yaml")
    assert keys["process_docs"] == Hook("utils.rows", str(tmp_path / "a"))
    assert keys["doc_to_text"] == Hook("utils.text", str(tmp_path / "b"))
    assert keys["metric_list"] == [{"metric": Hook("m.one", str(tmp_path / "b"))}]
    assert "include" not in keys


def test_an_absolute_include(tmp_path: Path) -> None:
    write(tmp_path, {"x/part": "repeats: 2", "y/t.yaml": f"include: {tmp_path}/x/part"})
    assert load(tmp_path / "y/t.yaml") == {"repeats": 2}


@pytest.mark.parametrize(
    "files",
    [
        {"t.yaml": "include: t.yaml"},
        {"t.yaml": "include: [a, b]", "a": "include: c", "b": "include: c", "c": "x: 1"},
    ],
)
def test_a_file_is_included_once(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files)
    with pytest.raises(UserError, match="included twice") as error:
        load(tmp_path / "t.yaml")
    assert error.value.where == str(tmp_path / ("c" if "c" in files else "t.yaml"))


@pytest.mark.parametrize(
    "text,line,what",
    [
        ("task: t\nmetric_list:\n  - metric: [acc\n", 4, "broken YAML"),
        ("task: !!python/object/apply:os.getcwd []\n", 1, "could not determine a constructor"),
        ("task: t\nx: !other 1\n", 2, "constructor for the tag '!other'"),
        ("a: *b\n", 1, "undefined alias"),
        ("- 1\n", None, "no keys"),
        ("", None, "no keys"),
        ("include: gone\n", None, "it includes gone"),
        ("include: [3]\n", None, "include 3"),
    ],
)
def test_broken_files_are_named_with_the_line(
    tmp_path: Path, text: str, line: int | None, what: str
) -> None:
    file = write(tmp_path, {"t.yaml": text}) / "t.yaml"
    with pytest.raises(UserError, match=what) as error:
        load(file)
    assert error.value.where == (f"{file}:{line}" if line else str(file))
