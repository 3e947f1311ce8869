"""`assay run NAME` leaves an experiment like any other; what a user meets on the way is told in one line."""

from pathlib import Path
from typing import Any

import pytest

from assay.api import sheet
from assay.formats.lm_eval.asking.data import Pulled
from tests.cli.shell import Shell
from tests.formats.verbs import read_by_every_verb

SUMS = """
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
test_split: test
doc_to_text: "What is {{a}} + {{b}}?"
doc_to_target: "{{a + b}}"
num_fewshot: 2
"""
CHOICES = """
task: choices
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "What is {{a}} + {{b}}?"
doc_to_choice: ["{{a + b}}", "0"]
doc_to_target: 0
"""
HOOK = """
def text(doc):
    if doc["a"] == 4:
        raise ValueError("four")
    return f"What is {doc['a']} + {doc['b']}?"
"""
GROUP = """
group: both
task: [choices, sums]
aggregate_metric_list: [{metric: acc}]
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/sums.yaml").write_text(SUMS)
    (tmp_path / "tasks/choices.yaml").write_text(CHOICES)
    (tmp_path / "tasks/group.yaml").write_text(GROUP)
    (tmp_path / "sums.jsonl").write_text("".join(f'{{"a": {n}, "b": {n % 3}}}\n' for n in range(9)))
    shell = Shell(tmp_path)
    shell.environ["ASSAY_TASKS"] = "tasks"
    return shell


def ran(shell: Shell, *words: str) -> dict[str, Any]:
    ended = shell.call("run", *words, "-m", "demo:large", "--json")
    assert ended.code == 0, ended.said
    return ended.result


def test_every_verb_reads_what_a_run_leaves(shell: Shell) -> None:
    result = ran(shell, "both", "-o", "out/first")
    rows = read_by_every_verb(shell, shell.folder / "out/first", item="sums/3", label="exact_match")
    assert [row["value"] for row in rows] == [row["value"] for row in result["metrics"]]
    assert [row["benchmark"] for row in rows] == ["choices", "choices", "sums", "both"]
    ran(shell, "both", "-o", "out/second", "--limit", "5")
    compared = shell.call("compare", "out/first", "out/second", "--label", "exact_match", "--json")
    assert compared.code == 0, compared.said
    assert compared.result["pairs"][0]["items"] == 5


def test_a_failure_counts_where_it_belongs(shell: Shell) -> None:
    """A document that cannot be asked is a row of its task and of the task's groups, and of no other label."""
    (shell.folder / "tasks/hooks.py").write_text(HOOK)
    broken = CHOICES.replace(
        'doc_to_text: "What is {{a}} + {{b}}?"', "doc_to_text: !function hooks.text"
    )
    (shell.folder / "tasks/choices.yaml").write_text(broken)
    rows = {
        (row["benchmark"], row["label"]): row for row in ran(shell, "both", "-o", "out")["metrics"]
    }
    assert sorted(rows) == [
        ("both", "acc"),
        ("choices", "acc"),
        ("choices", "acc_norm"),
        ("sums", "exact_match"),
    ]
    for place in (("choices", "acc"), ("both", "acc")):
        assert (rows[place]["used_sample_count"], rows[place]["errored_count"]) == (8, 1)
    told = shell.call("trace", "out", "choices/4")
    assert "hooks.py:4" in told.said
    assert "ValueError: four" in told.words


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run sum -m demo:x", "there is no benchmark 'sum'"),
        ("run sums", "there is no model"),
        ("run sums -m demo:x --num-fewshot 30", "30"),
        ("run sums -m demo:x --include-path nowhere", "nowhere"),
        ("show nothing", "there is no plug-in and no benchmark 'nothing'"),
        ("list benchmarks zzz", "no benchmark has 'zzz' in its name"),
        ("list scorer --unsupported", "are about benchmarks"),
        ("benchmarks pull nothing -o data", "there is no benchmark 'nothing'"),
    ],
)
def test_mistakes_are_one_message(shell: Shell, words: str, told: str) -> None:
    ended = shell.call(*words.split())
    assert ended.code == 2, ended.said
    assert told in ended.words


def test_a_broken_file_hinders_no_other(shell: Shell) -> None:
    (shell.folder / "tasks/broken.yaml").write_text("task: [\n")
    listed = shell.call("list", "benchmarks", "--unsupported")
    assert listed.code == 0, listed.said
    assert "broken.yaml" in listed.words.replace(" ", "")  # a long path is broken anywhere
    ran(shell, "sums", "-o", "out")


def test_data_of_the_hub_is_asked_for_by_name(shell: Shell) -> None:
    shell.environ["HF_HUB_OFFLINE"] = "1"
    (shell.folder / "tasks/hub.yaml").write_text(
        SUMS.replace("task: sums", "task: hub").replace(": json", ": some/one")
    )
    ended = shell.call("run", "hub", "-m", "demo:x")
    assert ended.code == 2, ended.said
    assert "some/one" in ended.words
    assert "assay benchmarks pull hub -o DIR" in ended.words


def test_what_was_pulled_is_a_table_and_nothing_is_a_failure(shell: Shell) -> None:
    rows = {"test": 1200, "train": 34}
    text = str(
        sheet(
            [
                Pulled(name="some/one", tasks=["hub"], rows=rows),
                Pulled(name="x", tasks=[], problem="no"),
            ]
        )
    )
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["some/one", "1", "1,234", "here"],
        ["x", "0", "0", "no"],
    ]
    shell.environ["HF_HUB_OFFLINE"] = "1"
    task = SUMS.replace("task: sums", "task: hub").replace(": json", ": some/one")
    (shell.folder / "tasks/hub.yaml").write_text(task)
    ended = shell.call("benchmarks", "pull", "hub", "-o", "data")
    assert ended.code == 1, ended.said
    assert "some/one" in ended.words
    assert "nothing was pulled" in ended.words
