"""EEN's examples load as they are printed there."""

from pathlib import Path

from assay.config import ModelConfig, PromptConfig, load

OVERVIEW = """\
sample_params:
  temperature: 0.7
  max_tokens: 2000
  num_samples: 16  # Key parameter for pass@k metrics, should set to at least num_trials * k

models:
  - name: "model_name"
    type: "openai"
    config: {...}
  - name: "local_model" # config only name will default to local model runing at http://localhost:1234

dataset: "path/to/dataset.jsonl"
"""
METRICS = """\
metrics:
  # Built-in metrics
  - name: "pass@1"
    type: "pass_at_k"
    facets:
      - metadata.model_id
      - prompt_template
    params:
      k: 1
      num_trials: 16
      aggregation: "mean"
"""
PROMPT = """\
prompt_template: "Solve the following problem: {{question}}"
"""


def test_the_overview_with_metrics_and_prompt(folder: Path) -> None:
    data = folder / "path/to/dataset.jsonl"
    data.parent.mkdir(parents=True)
    data.write_text("{}\n")
    (folder / "een.yaml").write_text(OVERVIEW + METRICS + PROMPT)
    config = load("een.yaml", environ={})

    assert config.name == "een"
    assert config.source == str(folder / "een.yaml")
    assert config.base == str(folder)
    assert config.sample_params == {"temperature": 0.7, "max_tokens": 2000}
    assert config.num_samples == 16
    local = {"endpoint": "http://localhost:1234/v1"}
    assert config.models == [
        ModelConfig(name="model_name", params=local),
        ModelConfig(name="local_model", params=local),
    ]
    assert config.dataset is not None
    assert (config.dataset.type, config.dataset.path) == ("jsonl", str(data))
    assert config.prompts == [PromptConfig(text="Solve the following problem: {{question}}")]
    (metric,) = config.metrics
    assert (metric.name, metric.type) == ("pass@1", "pass_at_k")
    assert metric.facets == ["metadata.model_id", "prompt_template"]
    assert metric.params == {"k": 1, "num_trials": 16, "aggregation": "mean"}
    assert config.output_dir == str(folder / "output" / "een")


def test_each_part_alone_is_enough_for_its_step(folder: Path) -> None:
    (folder / "metrics.yaml").write_text(METRICS)
    assert load("metrics.yaml", environ={}, need="aggregate").metrics[0].type == "pass_at_k"


def test_every_key_that_the_original_knew(folder: Path) -> None:
    """The keys of its loader, with the values of its own example files."""
    (folder / "score.py").write_text("def score(response, ground_truth): ...\n")
    (folder / "full.yaml").write_text(
        """\
models:
  - gpt-4o
  - {name: local, type: openai, model_name: qwen, endpoint: "http://127.0.0.1:8000", api_key: none,
     inference: {temperature: 0}, timeout: 60, max_retries: 1}
dataset: {type: built_in, path: d.jsonl, params: {}}
evaluation_methods:
  - exact_match
  - {name: contains, type: built_in, params: {}}
  - {name: mine, type: custom, path: score.py, function_name: score, params: {strict: true}}
metrics:
  - {name: pass_rate, type: built_in, facets: [model_name], labels: {exclude: [mine]}}
eval_prompt_template: "Q: {{question}}"
workflow: {mode: inference, batch_size: 8, max_workers: 4}
timeout: 30
max_retries: 2
output_dir: out
save_intermediate: true
resume: false
resume_from: earlier
limit: 10
logging: {level: debug, file: log.txt}
env_vars: {CUDA_VISIBLE_DEVICES: 0}
"""
    )
    config = load("full.yaml", environ={})
    gpt, local = config.models
    assert gpt.params == {"endpoint": "http://localhost:1234/v1"}
    assert local.params == {"model_name": "qwen", "endpoint": "http://127.0.0.1:8000/v1"}
    assert (local.inference, local.timeout, local.max_retries) == ({"temperature": 0}, 60.0, 1)
    assert [method.type for method in config.evaluation_methods] == [
        "exact_match",
        "contains",
        "custom",
    ]
    mine = config.evaluation_methods[2]
    assert (mine.path, mine.function_name, mine.params) == (
        str(folder / "score.py"),
        "score",
        {"strict": True},
    )
    assert (config.metrics[0].type, config.metrics[0].labels.exclude) == ("pass_rate", ["mine"])
    assert (config.mode, config.max_concurrency, config.timeout, config.max_retries) == (
        "inference",
        4,
        30.0,
        2,
    )
    assert (config.resume, config.limit, config.output_dir) == (False, 10, str(folder / "out"))
    assert (config.logging.level, config.logging.file) == ("DEBUG", str(folder / "log.txt"))
    assert config.env_vars == {"CUDA_VISIBLE_DEVICES": "0"}
