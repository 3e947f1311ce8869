"""Configs with een-eval's keys: they load, they mean what its readers expect, and they run."""

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.config import Config, ModelConfig, load
from assay.config.loader import where
from assay.errors import ConfigError

SCORING = """\
def exact(response, ground_truth, inference_result=None, **params):
    right = response.strip() == ground_truth["solution"]
    return {"labels": [{"label": {"name": "right"}, "result": {"passed": right, "score": float(right)}}]}

def half(response, ground_truth, inference_result=None, **params):
    return params.get("share", 0.5)

def share(results, **params):
    return [{"metric_name": "share", "value": sum(row["passed"] for row in results) / len(results)}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a dataset and functions."""
    monkeypatch.chdir(tmp_path)
    rows = [{"task": f"What is {n} + 1?", "solution": str(n + 1)} for n in range(3)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "scoring.py").write_text(SCORING)
    (tmp_path / "ask.md").write_text("{{ task }}")
    return tmp_path


def config(**keys: Any) -> dict[str, Any]:
    """A config of one model, with these keys besides."""
    return {"models": [{"name": "small"}], "dataset": "sums.jsonl", **keys}


def model(**keys: Any) -> ModelConfig:
    return load(config(models=[{"name": "small", **keys}]), environ={}).models[0]


def test_a_models_config_has_its_name_at_the_server_and_its_sampling(folder: Path) -> None:
    given = {"model": "small-v2", "temperature": 0.0, "max_tokens": 64, "endpoint": "http://h:1"}
    made = model(type="openai", config=given, inference={"max_tokens": 9, "think": False})
    assert made.params == {"model_name": "small-v2", "endpoint": "http://h:1/v1"}
    assert made.inference == {"temperature": 0.0, "max_tokens": 9, "think": False}


def test_what_loaded_before_means_what_it_meant(folder: Path) -> None:
    assert model(config={"model_name": "m", "endpoint": "http://h:1"}) == model(
        model_name="m", endpoint="http://h:1"
    )
    docker = {"image": "i", "host_port": 1, "models_volume": "/m", "args": ["--x"]}
    made = model(type="llama.cpp", model_path="a.gguf", docker=docker)
    assert made.params == {"model_path": "a.gguf", "docker": docker}
    assert model(type="vllm", model_path="a", docker={}).params["docker"] == {}
    assert "docker" not in model(type="vllm", model_path="a", inference={}).params
    # a function's own parameters are its own, whatever their names
    method = {"name": "half", "path": "scoring.py", "params": {"ground_truth_field": "solution"}}
    loaded = load(config(evaluation_methods=[method]), environ={})
    assert loaded.evaluation_methods[0].params == {"ground_truth_field": "solution"}
    (folder / "model.py").write_text("def f(prompt, temperature): return ''\n")
    python = {"path": "model.py", "function_name": "f", "params": {"temperature": 1}}
    assert model(type="python", **python).params["params"] == {"temperature": 1}


def test_flags_of_a_container(folder: Path) -> None:
    docker = {
        "models_volume": "/m",
        "host_port": 1236,
        "n_gpu_layers": 99,
        "no_mmap": True,
        "verbose": False,
        "context_size": 8000,
        "container_port": 8000,
    }
    made = model(type="llama.cpp", params={"model_path": "a.gguf"}, docker_params=docker)
    assert made.params["model_path"] == "a.gguf"
    assert made.params["docker"] == {
        "models_volume": "/m",
        "host_port": 1236,
        "args": ["--n-gpu-layers", "99", "--no-mmap", "--ctx-size", "8000"],
    }


def test_a_vllm_model_of_an_image(folder: Path) -> None:
    given = {"model": "org/small", "docker_image": "vllm/own:1", "gpu_count": 2, "port": 8001}
    assert model(type="vllm", config=given).params == {
        "model_name": "org/small",
        "model_path": "org/small",
        "port": 8001,
        "docker": {"image": "vllm/own:1", "gpus": "2"},
    }


def test_the_short_dataset_and_the_sections_of_the_command_line(folder: Path) -> None:
    given = {
        "file_path": "sums.jsonl",
        "input_field": "task",
        "expected_output_field": "solution",
        "sample_size": 2,
        "filter_condition": "solution != '9'",
    }
    loaded = load(
        config(
            dataset=given,
            output={"directory": "there", "save_predictions": True, "save_intermediate": True},
            inference={"batch_size": 8, "max_workers": 3, "timeout": 30},
        ),
        environ={},
    )
    assert loaded.dataset is not None
    assert loaded.dataset.path == str(folder / "sums.jsonl")
    assert loaded.dataset.fields == {"ground_truth": "solution"}
    assert (loaded.dataset.sample, loaded.dataset.filter) == (2, "solution != '9'")
    assert loaded.prompts[0].text == "{{ task }}"
    assert loaded.output_dir == str(folder / "there")
    assert (loaded.max_concurrency, loaded.timeout) == (3, 30)


def test_a_template_says_more_than_the_input_field(folder: Path) -> None:
    given = {"path": "sums.jsonl", "input_field": "task"}
    loaded = load(config(dataset=given, eval_prompt_template="Solve {{ task }}"), environ={})
    assert [prompt.text for prompt in loaded.prompts] == ["Solve {{ task }}"]


def test_methods_and_metrics_in_every_shape(folder: Path) -> None:
    loaded = load(
        config(
            evaluation_methods=[
                "exact_match",
                {"name": "length_check", "params": {"max_length": 9}},
                {"name": "loose", "type": "contains", "config": {"case_sensitive": False}},
                {"name": "keys", "type": "json_match", "config": {"required_keys": ["a"]}},
                {"name": "own", "type": "custom", "function": "scoring.half"},
                {"name": "file", "type": "custom", "function": "scoring.py:half"},
                {
                    "name": "strict",
                    "type": "exact_match",
                    "params": {"response_field": "text", "ground_truth_field": "solution"},
                },
            ],
            metrics=[{"name": "p5", "type": "pass_at_k", "config": {"k": 5}}],
        ),
        environ={},
    )
    methods = {method.name: method for method in loaded.evaluation_methods}
    assert methods["loose"].params == {"case_sensitive": False}
    assert methods["keys"].params == {"expected_keys": ["a"]}
    assert (methods["own"].module, methods["own"].function_name) == ("scoring", "half")
    assert (methods["file"].path, methods["file"].function_name) == (
        str(folder / "scoring.py"),
        "half",
    )
    assert methods["strict"].params == {"expected": "solution"}
    assert loaded.metrics[0].params == {"k": 5}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"output": {"directory": "a", "format": "b"}}, "unknown key 'output'"),
        ({"output": {"directory": "a"}, "output_dir": "b"}, "unknown key 'output'"),
        ({"inference": 3}, "unknown key 'inference'"),
        ({"dataset": {"path": "sums.jsonl", "input_field": "a b"}}, "unknown key 'input_field'"),
        ({"dataset": {"path": "sums.jsonl", "params": {"safe": 1}}}, "no parameter 'safe'"),
        ({"models": [{"name": "m", "config": {"temprature": 1}}]}, "no parameter 'temprature'"),
        ({"models": [{"name": "m", "config": 5}]}, "config"),
        ({"models": [{"name": "m", "config": {"model": "x"}, "inference": 5}]}, "inference"),
        ({"evaluation_methods": [{"name": "a", "type": "custom", "function": 7}]}, "function"),
        ({"evaluation_methods": [{"name": "exact_match", "config": 7}]}, "params"),
        (
            {"evaluation_methods": [{"name": "contains", "params": {"ground_truth_field": "no"}}]},
            "no field 'no'",
        ),
    ],
)
def test_what_means_nothing_is_refused(folder: Path, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        assay.validate(config(prompt_template="{{ task }}", **{"metrics": ["mean"], **keys}))


def test_a_problem_is_where_it_was_written(folder: Path) -> None:
    text = """\
    models:
      - name: small
        config: {model: x, temperature: 5, endpoint: "nowhere"}
    dataset: sums.jsonl
    """
    (folder / "config.yaml").write_text(text.replace("\n    ", "\n").lstrip())
    with pytest.raises(ConfigError) as caught:
        load("config.yaml", environ={})
    assert "config.yaml:2" in str(caught.value)
    assert where(Config(name="a", output_dir="b", source="config.yaml"), "models", 0)


def test_a_whole_config_runs_in_its_two_modes(folder: Path, url: str) -> None:
    (folder / "sums.yaml").write_text(
        f"""\
dataset: {{type: file, path: sums.jsonl, params: {{save: true}}}}
models:
  - {{name: first, type: openai, config: {{model: a, temperature: 0.0, endpoint: "{url}"}}}}
  - {{name: second, endpoint: "{url}"}}
evaluation_methods:
  - {{name: right, type: custom, path: scoring.py, function_name: exact, params: {{strict: no}}}}
  - {{name: half, type: custom, path: scoring.py, function_name: half}}
  - name: same
    type: exact_match
    params: {{response_field: generated_text, ground_truth_field: solution}}
metrics:
  - {{name: "pass@1", type: pass_at_k, facets: [model_name], params: {{k: 1}}}}
  - {{name: share, type: custom, path: scoring.py, function_name: share}}
prompt_template: {{path: ask.md}}
sample_params: {{temperature: 0.5, max_tokens: 64, num_samples: 2}}
output_dir: results
workflow: {{mode: inference, batch_size: 4, max_workers: 2}}
resume: true
logging: {{level: INFO}}
"""
    )
    asked = assay.run("sums.yaml")
    assert (asked.run and asked.run.present, asked.evaluation, asked.metrics) == (12, None, [])
    rows = [
        json.loads(line) for line in (folder / "results/responses.jsonl").read_text().splitlines()
    ]
    sampling = {row["model_name"]: row["metadata"]["sampling"]["temperature"] for row in rows}
    assert sampling == {"first": 0.0, "second": 0.5}
    measured = assay.run("sums.yaml", mode="evaluation")
    values = {
        (row["metric_name"], row["label"], row.get("model_name")): row["value"]
        for row in measured.metrics
    }
    for label in ("right", "same", "half"):  # a bare number above 0 passes
        assert values["share", label, None] == 1.0
        assert values["pass@1", label, "first"] == 1.0
