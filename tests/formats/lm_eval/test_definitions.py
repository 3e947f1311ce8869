"""Names → definitions."""

import re
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.lm_eval.tasks.definition import Definition, FewShotKeys, TaskMember
from assay.formats.lm_eval.tasks.definitions import definitions, members
from tests.formats.lm_eval.folders import write

FILES = {
    "a.yaml": "task: a\ntag: some\ndataset_path: x\nnum_fewshot: 2\nmetadata: {version: 1.5}\n",
    "b.yaml": "task: b\ntag: some\ndataset_path: x\nnum_fewshot: 0\nmetadata: 7\n",
    "c.yaml": "task: c\ndataset_path: y\noutput_type: multiple_choice\ntask_alias: see\n",
    "group.yaml": """
        group: top
        group_alias: Top
        repeats: 3
        task:
          - a
          - {task: b, num_fewshot: 4, task_alias: bee}
          - group: inner
            aggregate_metric_list: {metric: acc}
            task: [c, {task: written, dataset_path: z, doc_to_text: q}]
        aggregate_metric_list: [{metric: acc, weight_by_size: false}]
        metadata: {version: 2}
    """,
    "outer.yaml": "group: outer\ntask: [some, {group: top, gen_prefix: P}]\n",
    "loop.yaml": "group: loop\ntask: [{group: again, task: [loop]}]\n",
    "lost.yaml": "group: lost\ntask: [aa]\n",
    "broken.yaml": "task: broken\ngeneration_kwargs: {\n",
}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("ASSAY_TASKS", raising=False)
    monkeypatch.setattr("assay.formats.lm_eval.tasks.index.installed_tasks", lambda: None)
    return write(tmp_path / "tasks", FILES)


def named(items: list[TaskMember]) -> list[Any]:
    return [
        [item.name, named(item.members)] if item.definition is None else item.name for item in items
    ]


@pytest.mark.parametrize(
    "names,expected",
    [
        (["c", "a"], ["c", "a"]),
        (["c,a", "b"], ["c", "a", "b"]),
        (["[ab]", "a"], ["a", "b"]),
        (["some"], ["a", "b"]),
        (["some", "a"], ["a", "b"]),
        (["top"], [["top", ["a", "b", ["top::inner", ["c", "top::inner::written"]]]]]),
        (
            ["outer"],
            [
                [
                    "outer",
                    ["a", "b", ["top", ["a", "b", ["top::inner", ["c", "top::inner::written"]]]]],
                ]
            ],
        ),
    ],
)
def test_what_names_stand_for(root: Path, names: list[str], expected: list[Any]) -> None:
    assert named(members(names, include_path=[root])) == expected


def test_paths(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(members([f"{root}/a.yaml"])) == ["a"]
    assert named(members([f"{root}/[ab].yaml"])) == ["a", "b"]
    folder = write(
        root.parent / "folder", {"x.yaml": "task: x", "y.yaml": "task: y", "deep/z.yaml": "task: z"}
    )
    assert named(members([str(folder)])) == ["x", "y"]
    monkeypatch.chdir(root.parent)
    write(root.parent / "a", {"x.yaml": "task: x"})  # a folder with a task's name hides nothing
    assert named(members(["a"], include_path=[root])) == ["a"]


def test_groups(root: Path) -> None:
    (top,) = members(["top"], include_path=[root])
    assert (top.alias, top.aggregate, top.version) == (
        "Top",
        [{"metric": "acc", "weight_by_size": False}],
        2,
    )
    assert top.members[2].aggregate == [{"metric": "acc"}]
    tasks = {task.task: task for task in definitions([top])}
    # keys of a group are its tasks' keys
    assert [task.repeats for task in tasks.values()] == [3, 3, 3, 3]
    assert (tasks["b"].num_fewshot, tasks["b"].task_alias) == (4, "bee")
    assert (top.members[0].version, top.members[1].alias) == (1.5, "bee")
    assert all(task.changes == {} for task in tasks.values())
    (outer,) = members(["outer"], include_path=[root])
    assert [task.gen_prefix for task in definitions([outer.members[2]])] == ["P"] * 4
    assert outer.members[0].definition
    assert outer.members[0].definition.gen_prefix is None


def test_defaults(root: Path) -> None:
    a, c = definitions(members(["a", "c"], include_path=[root]))
    assert a == Definition(
        task="a",
        file=str(root / "a.yaml"),
        dataset_path="x",
        num_fewshot=2,
        generation_kwargs={
            "temperature": 0.0,
            "do_sample": False,
            "max_gen_toks": 256,
            "until": ["\n\n"],
        },
        fewshot_config=FewShotKeys(fewshot_delimiter="\n\n", target_delimiter=" "),
        metadata={"version": 1.5, "config_source": str(root / "a.yaml")},
    )
    assert c.generation_kwargs is None


def test_metadata(root: Path) -> None:
    (b,) = definitions(members(["b"], include_path=[root], overrides={"metadata": {"length": 4}}))
    assert b.metadata == {"_metadata": 7, "config_source": str(root / "b.yaml"), "length": 4}
    assert b.changes == {"metadata.length": (None, 4)}
    (top,) = members(["top"], include_path=[root])
    assert definitions([top])[3].metadata == {}


@pytest.mark.parametrize(
    "text,expected",
    [
        (
            "generation_kwargs: {temperature: 0, do_sample: no}",
            {"temperature": 0.0, "do_sample": False, "until": ["D"]},
        ),
        ("generation_kwargs: {until: []}", {"until": []}),
        (
            "generation_kwargs:",
            {"temperature": 0.0, "do_sample": False, "max_gen_toks": 256, "until": ["D"]},
        ),
        ("generation_kwargs: {}\noutput_type: loglikelihood", {"until": ["D"]}),
    ],
)
def test_generation(root: Path, text: str, expected: dict[str, Any]) -> None:
    write(root, {"g.yaml": f"task: g\nfewshot_delimiter: D\n{text}\n"})
    (task,) = definitions(members(["g"], include_path=[root]))
    assert task.generation_kwargs == expected
    assert isinstance((task.generation_kwargs or {}).get("temperature", 0.0), float)


def test_few_shot_settings_are_the_tasks_unless_they_are_set(root: Path) -> None:
    text = """
        task: f
        fewshot_split: dev
        doc_to_text: q
        doc_to_target: t
        gen_prefix: P
        process_docs: !function u.f
        fewshot_config: {sampler: first_n, doc_to_text: Q, gen_prefix: null, target_delimiter: ""}
    """
    write(root, {"f.yaml": text})
    (task,) = definitions(members(["f"], include_path=[root]))
    assert task.fewshot_config == FewShotKeys(
        sampler="first_n",
        split="dev",
        process_docs=task.process_docs,
        doc_to_text="Q",
        doc_to_target="t",
        fewshot_delimiter="\n\n",
        target_delimiter="",
    )


def test_overrides(root: Path) -> None:
    overrides = {
        "num_fewshot": 5,
        "generation_kwargs": {"temperature": 1, "until": ["\n\n"]},
        "description": "Hello. ",
    }
    a, b, c = definitions(members(["a,b,c"], include_path=[root], overrides=overrides))
    assert (a.num_fewshot, b.num_fewshot, c.num_fewshot) == (5, 0, 5)  # a task that says 0 keeps it
    assert a.generation_kwargs
    assert a.generation_kwargs["temperature"] == 1
    assert a.changes == {
        "num_fewshot": (2, 5),
        "description": ("", "Hello. "),
        "generation_kwargs.temperature": (0.0, 1),
    }
    assert c.changes == {"num_fewshot": (None, 5), "description": ("", "Hello. ")}
    (same,) = definitions(
        members(["a"], include_path=[root], overrides={"num_fewshot": 2, "repeats": 1})
    )
    assert same.changes == {}
    assert (
        definitions(members(["c"], include_path=[root], overrides={"num_fewshot": 0}))[0].changes
        == {}
    )


def test_definitions_share_no_values(root: Path) -> None:
    write(
        root,
        {
            "_s": "generation_kwargs: {until: [x]}",
            "s.yaml": "include: _s\ntask: s",
            "t.yaml": "include: _s\ntask: t",
        },
    )
    s, t = definitions(
        members(["s", "t"], include_path=[root], overrides={"generation_kwargs": {"top_p": 1}})
    )
    assert s.generation_kwargs is not None
    assert s.generation_kwargs == t.generation_kwargs
    s.generation_kwargs["until"].append("y")
    assert t.generation_kwargs == {"until": ["x"], "top_p": 1}


@pytest.mark.parametrize(
    "names,what,fix",
    [
        (["tap"], "there is no benchmark 'tap'", "did you mean 'top'?"),
        (["zz*"], r"there is no benchmark 'zz\*'", "list benchmarks"),
        (["broken"], "the task 'broken' cannot be read: broken YAML", ""),
        (["gone.yaml"], "there is no file gone.yaml", ""),
        (["top", "a"], "the task 'a' is in both 'top' and 'a'", "name only one"),
        (
            ["top", "outer"],
            "the task 'a' is in both 'top' and 'a'|is in both 'top' and 'outer'",
            "",
        ),
        (["loop"], "the group 'loop' is a member of itself: loop › loop::again › loop", ""),
        (["lost"], "a member of the group 'lost': there is no benchmark 'aa'", ""),
    ],
)
def test_names_that_stand_for_nothing(root: Path, names: list[str], what: str, fix: str) -> None:
    with pytest.raises(UserError, match=what) as error:
        members(names, include_path=[root])
    assert fix in error.value.fix


def test_the_place_of_a_broken_file_is_named(root: Path) -> None:
    with pytest.raises(UserError) as error:
        members(["broken"], include_path=[root])
    assert error.value.where == f"{root}/broken.yaml:3"


def test_nothing_is_installed() -> None:
    with pytest.raises(UserError, match="no tasks are installed") as error:
        members(["gsm8k"])
    assert "pip install lm-eval" in error.value.fix


@pytest.mark.parametrize(
    "text,what",
    [
        ("doc_to_txt: x", "a task has no key 'doc_to_txt'"),
        ("changes: {}", "a task has no key 'changes'"),
        ("fewshot_config: {number: 3}", "a task has no key 'number'"),
        ("fewshot_config: [3]", "fewshot_config must be keys with values"),
        ("output_type: generate", "unknown output_type 'generate'"),
        ("metric_list: acc", "metric_list must be a list"),
        ("metric_list: [acc]", "an entry of metric_list must be keys with values, not 'acc'"),
        ("num_fewshot: many", "num_fewshot must be a whole number"),
        ("generation_kwargs: {temperature: warm}", "temperature"),
        ("class: !function m.C", "the task 'bad' cannot run: a task written in Python"),
    ],
)
def test_keys_that_no_task_has(root: Path, text: str, what: str) -> None:
    write(root, {"bad.yaml": f"task: bad\n{text}\n"})
    with pytest.raises(UserError, match=what) as error:
        members(["bad"], include_path=[root])
    assert "bad.yaml" in error.value.where


def test_overrides_that_no_task_has(root: Path) -> None:
    with pytest.raises(UserError, match="a task has no key 'shots'"):
        members(["a"], include_path=[root], overrides={"shots": 3})
    with pytest.raises(
        UserError, match=re.escape("generation_kwargs must have keys and values, not 3")
    ):
        members(["a"], include_path=[root], overrides={"generation_kwargs": 3})
