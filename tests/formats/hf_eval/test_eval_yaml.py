"""eval.yaml files as configs: what they become, that they run, and what is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import assay
from assay.config import load
from assay.errors import UserError
from assay.formats.hf_eval.configs import config_of
from assay.formats.hf_eval.dataset import fill_template, hf_eval, item_of
from assay.formats.hf_eval.definition import EvalTask, Step, is_eval, task_of

ROWS = [
    {"q": f"What is {n} + {n}?", "a": str(2 * n), "n": n % 3, "o": ["x", "y", "z"]}
    for n in range(1, 31)
]
TASK: dict[str, Any] = {
    "id": "sums",
    "split": "test",
    "field_spec": {"input": "q", "target": "a"},
    "solvers": [
        {"name": "prompt_template", "args": {"template": "{prompt}\nOnly the number."}},
        {"name": "generate"},
    ],
    "scorers": [{"name": "match", "args": {"numeric": True}}],
}


def repository(folder: Path, *tasks: dict[str, Any], **top: Any) -> Path:
    """A dataset's repository on this machine."""
    folder.mkdir(exist_ok=True)
    content = {
        "name": "Sums",
        "evaluation_framework": "inspect-ai",
        "tasks": list(tasks) or [TASK],
        **top,
    }
    (folder / "eval.yaml").write_text(yaml.safe_dump(content))
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return folder


def changed(**more: Any) -> dict[str, Any]:
    return {**TASK, **more}


def rows_of(folder: Path, **params: Any) -> list[dict[str, Any]]:
    return [row for _, row in hf_eval(str(folder / "eval.yaml"), **params)]


def test_a_task_runs(tmp_path: Path) -> None:
    config = config_of(repository(tmp_path / "sums", changed(epochs=2)))
    result = assay.run({**config, "models": ["demo:large"], "output_dir": str(tmp_path / "out")})
    (row,) = result.metrics
    assert (row["metric_name"], row["label"], row["total_sample_count"]) == ("mean", "match", 60)
    responses = [
        json.loads(line) for line in (tmp_path / "out" / "responses.jsonl").read_text().splitlines()
    ]
    assert responses[0]["prompt"] == "What is 1 + 1?\nOnly the number."
    labels = [
        json.loads(line)
        for line in (tmp_path / "out" / "evaluation_results.jsonl").read_text().splitlines()
    ]
    by_key = {response["key"]: response["response"] for response in responses}
    truth = {str(number): row["a"] for number, row in enumerate(ROWS, 1)}
    right = [by_key[label["responses"][0]].strip() == truth[label["item_id"]] for label in labels]
    assert row["value"] == pytest.approx(sum(right) / 60)
    assert 0 < row["value"] < 1


def test_the_config_is_an_ordinary_one(tmp_path: Path) -> None:
    task = changed(
        solvers=[
            {
                "name": "generate",
                "args": {"temperature": 0.5, "max_tokens": 20, "stop_seqs": ["\n"]},
            }
        ],
        scorers=[
            {"name": "includes"},
            {"name": "includes", "args": {"ignore_case": False}},
            {"name": "f1"},
        ],
        epochs=4,
        epoch_reducer="pass_at_2",
    )
    config = config_of(repository(tmp_path / "r", task))
    assert config["sample_params"] == {"temperature": 0.5, "max_tokens": 20, "stop": ["\n"]}
    assert config["num_samples"] == 4
    assert config["metrics"] == [
        {"name": "pass@2", "type": "pass_at_k", "params": {"k": 2}, "facets": ["model_name"]}
    ]
    assert [method["name"] for method in config["evaluation_methods"]] == [
        "includes_1",
        "includes_2",
        "f1",
    ]
    load({**config, "models": ["demo:small"]})
    assert config_of(tmp_path / "r" / "eval.yaml", "sums")["dataset"]["params"] == {"task": "sums"}


@pytest.mark.parametrize(
    ("reducer", "scorer", "metric"),
    [
        (None, "match", {"name": "mean", "type": "mean"}),
        ("mean", "f1", {"name": "mean", "type": "mean"}),
        ("max", "match", {"name": "max", "type": "pass_at_k", "params": {"k": 3}}),
        ("max", "f1", {"name": "max", "type": "best_of_k", "params": {"k": 3}}),
    ],
)
def test_reducers(tmp_path: Path, reducer: str | None, scorer: str, metric: dict[str, Any]) -> None:
    task = changed(epochs=3, epoch_reducer=reducer, scorers=[{"name": scorer}])
    assert config_of(repository(tmp_path / "r", task))["metrics"] == [
        {**metric, "facets": ["model_name"]}
    ]


def test_a_judge_is_one_of_ours(tmp_path: Path) -> None:
    scorers = [{"name": "model_graded_qa", "args": {"partial_credit": True, "model": "grader"}}]
    (method,) = config_of(repository(tmp_path / "r", changed(scorers=scorers)))[
        "evaluation_methods"
    ]
    assert (method["type"], method["params"]) == (
        "judge_correctness",
        {"verdicts": "ternary", "model": "grader"},
    )


def test_a_strangers_file_reads_no_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME_OF", "secret place")
    folder = repository(
        tmp_path / "r", changed(scorers=[{"name": "pattern", "args": {"pattern": "${HOME_OF}"}}])
    )
    config = load(folder / "eval.yaml", overrides={"models": ["demo:small"]})
    assert config.evaluation_methods[0].params["pattern"] == "${HOME_OF}"


# ---- rows


def test_multiple_choice_has_letters_and_a_form(tmp_path: Path) -> None:
    task = changed(
        field_spec={"input": "q", "target": "n", "choices": "o"},
        solvers=[{"name": "multiple_choice", "args": {"cot": True, "max_tokens": 9}}],
        scorers=[{"name": "choice"}],
    )
    folder = repository(tmp_path / "r", task)
    first = rows_of(folder)[0]
    (message,) = first["data"]["messages"]
    assert "A) x\nB) y\nC) z" in message["content"]
    assert "one of A,B,C" in message["content"]
    assert "step by step" in message["content"]
    assert (first["ground_truth"], first["id"]) == ("B", "1")
    config = config_of(folder)
    assert config["sample_params"] == {"max_tokens": 9}
    assert config["evaluation_methods"][0]["params"] == {"multiple": False}


def test_shuffled_choices_keep_their_target(tmp_path: Path) -> None:
    task = changed(
        field_spec={"input": "q", "target": "n", "choices": "o"},
        solvers=[{"name": "multiple_choice"}],
        scorers=[{"name": "choice"}],
        shuffle_choices=True,
    )
    folder = repository(tmp_path / "r", task)
    rows = rows_of(folder)
    orders = {tuple(row["data"]["choices"]) for row in rows}
    assert len(orders) > 3
    for row, source in zip(rows, ROWS, strict=True):
        assert row["data"]["choices"]["ABC".index(row["ground_truth"])] == source["o"][source["n"]]  # type: ignore[index]
    assert rows_of(folder) == rows, "the order depends on nothing but the row"


def test_images_go_with_the_text() -> None:
    image = "data:image/png;base64,AAAA"
    task = EvalTask(
        field_spec=task_spec(input="q", target="a", input_image="i"),
        solvers=[Step(name="generate")],
        scorers=[],
    )
    (message,) = item_of(task, {"q": "See?", "a": "yes", "i": image}, 0, "")["data"]["messages"]
    assert message["content"][1] == {"type": "image_url", "image_url": {"url": image}}
    (message,) = item_of(task, {"q": "See?", "a": "yes", "i": None}, 0, "")["data"]["messages"]
    assert message["content"] == "See?"
    with pytest.raises(UserError, match="is not a data URL"):
        item_of(task, {"q": "See?", "a": "yes", "i": "cat.png"}, 0, "")


def task_spec(**fields: Any) -> Any:
    from assay.formats.hf_eval.definition import FieldSpec

    return FieldSpec(**fields)


def test_templates_reach_nothing_but_names() -> None:
    assert (
        fill_template("{a} {a.__class__} {a[0]} {b} {{a}} {a!r}", {"a": "x"})
        == "x {a.__class__} {a[0]} {b} {a} {a!r}"
    )


@pytest.mark.parametrize(
    ("readme", "file", "config"),
    [
        ("", "test.jsonl", "default"),
        ("", "test-00000-of-00001.jsonl", "default"),
        ("", "data/test_all.jsonl", "default"),
        ("", "hard/test.jsonl", "hard"),
        (
            "---\nconfigs:\n- config_name: hard\n  data_files:\n  - split: test\n    path: deep/*.jsonl\n---\n",
            "deep/x.jsonl",
            "hard",
        ),
        (
            "---\nconfigs:\n- config_name: default\n  data_files: all.jsonl\n---\n# Card\n",
            "all.jsonl",
            "default",
        ),
    ],
)
def test_rows_are_found_beside_the_file(
    tmp_path: Path, readme: str, file: str, config: str
) -> None:
    folder = repository(tmp_path / "r", changed(config=config))
    (folder / "test.jsonl").unlink()
    (folder / "README.md").write_text(readme)
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(json.dumps({"q": "?", "a": "!"}) + "\n")
    assert [row["ground_truth"] for row in rows_of(folder)] == ["!"]


def test_rows_that_are_not_there(tmp_path: Path) -> None:
    folder = repository(tmp_path / "r", changed(config="hard"))
    with pytest.raises(UserError, match="no file with the split 'test' of the config 'hard'"):
        rows_of(folder)
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: hard\n  data_files: ../*.jsonl\n---\n"
    )
    with pytest.raises(UserError, match="leaves the repository"):
        rows_of(folder)
    (folder / "README.md").write_text("---\nconfigs: [\n---\n")
    with pytest.raises(UserError, match="the front matter of the README cannot be read"):
        rows_of(folder)
    lettered = {
        "field_spec": {"input": "q", "target": "a", "choices": "o"},
        "solvers": [{"name": "multiple_choice"}],
    }
    with pytest.raises(UserError, match="the target '2' is not the letter of one of 3 choices"):
        rows_of(repository(tmp_path / "t", changed(**lettered, scorers=[{"name": "choice"}])))
    with pytest.raises(UserError, match="the row has no field 'question'"):
        rows_of(
            repository(tmp_path / "s", changed(field_spec={"input": "question", "target": "a"}))
        )


# ---- what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"solvers": [{"name": "use_tools"}, {"name": "generate"}]},
            "the solver 'use_tools' is not supported: it runs tools",
        ),
        (
            {"solvers": [{"name": "generate"}, {"name": "self_critique"}]},
            "the solver 'self_critique' is not supported",
        ),
        ({"solvers": [{"name": "generat"}]}, "unknown solver 'generat'"),
        ({"solvers": [{"name": "generate", "args": {"top_k": 5}}]}, "top_k"),
        (
            {"solvers": [{"name": "prompt_template"}, {"name": "generate"}]},
            "missing required field `template`",
        ),
        (
            {"solvers": [{"name": "system_message", "args": {"template": "x"}}]},
            "no solver asks the model",
        ),
        (
            {"solvers": [{"name": "generate"}, {"name": "generate"}]},
            "go on after the model was asked",
        ),
        ({"solvers": [{"name": "multiple_choice"}]}, "multiple_choice needs choices"),
        ({"solvers": []}, "there are no solvers"),
        ({"scorers": [{"name": "math"}]}, "the scorer 'math' is not supported"),
        ({"scorers": [{"name": "rouge"}]}, "unknown scorer 'rouge'"),
        ({"scorers": [{"name": "pattern", "args": {"pattern": "("}}]}, "unterminated subpattern"),
        (
            {"solvers": [{"name": "multiple_choice", "args": {"template": "{question}"}}]},
            "lacks {question} or {choices}",
        ),
        ({"scorers": [{"name": "choice"}]}, "reads the answers of multiple_choice"),
        ({"scorers": [{"name": "model_graded_qa", "args": {"template": "x"}}]}, "template"),
        ({"scorers": [{"name": "match", "args": {"location": "middle"}}]}, "middle"),
        ({"epoch_reducer": "mode"}, "the reducer 'mode' is not supported"),
        ({"epoch_reducer": "at_least_2"}, "the reducer 'at_least_2' is not supported"),
        ({"epochs": 0}, "epochs begin at 1"),
        ({"sandbox": "docker"}, "sandbox"),
        ({"field_spec": {"input": "q", "files": "f"}}, "files"),
    ],
)
def test_what_is_not_in_the_list_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    folder = repository(tmp_path / "r", changed(**change))
    with pytest.raises(UserError) as caught:
        config_of(folder)
    assert message in str(caught.value)
    assert "eval.yaml:" in str(caught.value), "the line is named"


def test_other_frameworks_and_keys(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="the evaluation framework 'nemo-evaluator' is not supported"
    ):
        config_of(repository(tmp_path / "r", evaluation_framework="nemo-evaluator"))
    with pytest.raises(UserError, match="unknown key 'task'"):
        config_of(repository(tmp_path / "r", task=[]))
    with pytest.raises(UserError, match="there is no task"):
        config_of(repository(tmp_path / "r", tasks=[]))
    (tmp_path / "r" / "eval.yaml").write_text("tasks: [")
    with pytest.raises(UserError, match=r"eval\.yaml"):
        config_of(tmp_path / "r")
    with pytest.raises(UserError, match="cannot be read"):
        config_of(tmp_path / "nothing" / "eval.yaml")


def test_of_several_tasks_one_is_named(tmp_path: Path) -> None:
    folder = repository(tmp_path / "r", TASK, changed(id="hard", config="hard"))
    with pytest.raises(UserError, match="there are 2 tasks") as caught:
        config_of(folder)
    assert "sums, hard" in str(caught.value)
    assert task_of(folder / "eval.yaml", "hard").config == "hard"
    with pytest.raises(UserError, match="there is no task 'hrad'"):
        config_of(folder, "hrad")


def test_an_eval_yaml_is_told_from_a_config() -> None:
    assert is_eval({"tasks": [TASK]})
    assert not any(
        is_eval(data) for data in ({"tasks": ["a.py:f"]}, {"tasks": []}, {"models": []}, [], None)
    )
