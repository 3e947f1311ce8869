"""`benchmarks:` in a config: what it stands for, written out and read again."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import assay
from assay.config import load, resolved
from assay.errors import ConfigError

TASK = """
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
doc_to_text: "What is {{{{a}}}} + {{{{b}}}}?"
doc_to_target: "{{{{a + b}}}}"
num_fewshot: 2
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "sums.jsonl").write_text("".join(f'{{"a": {n}, "b": {n % 3}}}\n' for n in range(9)))
    (tmp_path / "tasks/sums.yaml").write_text(TASK.format(data=tmp_path / "sums.jsonl"))
    monkeypatch.setenv("ASSAY_TASKS", str(tmp_path / "tasks"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(**more: Any) -> dict[str, Any]:
    return {"models": ["demo:small"], "benchmarks": ["sums"], "output_dir": "out", **more}


def names(result: Any) -> list[str]:
    return [row["benchmark"] for row in result.metrics]


def test_a_config_that_was_written_out_is_read_as_the_same(folder: Path) -> None:
    loaded = load(config(evaluation_methods=["contains"], metrics=["pass_rate"]))
    assert loaded.dataset is not None
    assert [method.name for method in loaded.evaluation_methods][1:] == ["contains"]
    written = resolved(loaded)
    assert written["dataset"] is None
    assert [method["name"] for method in written["evaluation_methods"]] == ["contains"]
    (folder / "again.yaml").write_text(yaml.safe_dump(written))
    assert resolved(load(folder / "again.yaml")) == written


def test_the_same_folder_is_run_scored_and_measured_again(folder: Path) -> None:
    first = assay.run(config())
    rows = (folder / "out/responses.jsonl").read_bytes()
    assert names(first) == ["sums"]
    assert names(assay.run(config())) == ["sums"]
    assert names(assay.evaluate("out")) == ["sums"]
    assert (folder / "out/responses.jsonl").read_bytes() == rows


def test_a_limit_is_one_for_each_task_and_in_the_name() -> None:
    assert names(assay.run("sums", models="demo:small", limit=4)) == ["sums (modified: limit 4)"]
    assert names(assay.run(config(limit=4))) == ["sums (modified: limit 4)"]


def test_what_was_changed_stands_behind_the_name() -> None:
    entry = {"task": "sums", "num_fewshot": 0, "seed": 1, "system_instruction": "Add."}
    (name,) = names(assay.run(config(benchmarks=[entry])))
    assert name == "sums (modified: num_fewshot 2→0, system_instruction Add., seed 1)"


def test_a_changed_task_is_scored_again_and_asked_only_where_requests_change(folder: Path) -> None:
    assay.run(config())
    rows = (folder / "out/responses.jsonl").read_bytes()
    task = folder / "tasks/sums.yaml"
    task.write_text(
        task.read_text() + "filter_list: [{name: x, filter: [{function: take_first}]}]\n"
    )
    result = assay.run(config())
    assert [row["label"] for row in result.metrics] == ["exact_match,x"]
    assert (folder / "out/responses.jsonl").read_bytes() == rows


def test_every_entry_is_set_by_a_star() -> None:
    loaded = load(
        config(benchmarks=["sums", {"task": "sums", "limit": 3}]),
        overrides={"benchmarks.*.limit": 2},
    )
    assert [entry.limit for entry in loaded.benchmarks] == [2, 2]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"benchmarks": ["sum"]}, "no benchmark 'sum'"),
        ({"dataset": "sums.jsonl"}, "benchmarks bring their own dataset"),
        ({"prompts": ["{{a}}"]}, "benchmarks bring their own prompts"),
        ({"benchmarks": [{"task": "sums", "shots": 1}]}, "unknown key 'shots'"),
        ({"benchmarks": [{"task": "sums", "include_path": "nowhere"}]}, "nowhere"),
        ({"benchmarks": [{"task": "sums", "limit": -1}]}, "limit"),
    ],
)
def test_mistakes_are_told_with_their_place(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load(config(**more))


def test_a_strangers_item_cannot_name_code(folder: Path) -> None:
    """The folder of a task is code: it counts only where the config names it."""
    entry = {"task": "sums", "include_path": str(folder / "tasks")}
    assay.run(config(benchmarks=[entry]))
    text = (folder / "out/config.yaml").read_text()
    (folder / "out/config.yaml").write_text(
        text.replace(f"include_path: {folder / 'tasks'}", 'include_path: ""')
    )
    assay.trust()
    result = assay.evaluate("out", retry_errors=True)
    assert "which the config does not name" in str(result.failures)
