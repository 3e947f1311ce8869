"""Every short form means its long form."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.config import (
    Config,
    MethodConfig,
    MetricConfig,
    ModelConfig,
    PromptConfig,
    TaskConfig,
    parse_model,
)
from assay.errors import ConfigError, UserError

Loaded = Callable[..., Config]
LOCAL = {"endpoint": "http://localhost:1234/v1"}


def config_of(loaded: Loaded, **keys: Any) -> Config:
    return loaded({"models": ["m"], "dataset": "d.jsonl", **keys})


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("m", ModelConfig(name="m", params=LOCAL)),
        ({"name": "m"}, ModelConfig(name="m", params=LOCAL)),
        (
            "llama3:8b@http://h:1",
            ModelConfig(name="llama3:8b", params={"endpoint": "http://h:1/v1"}),
        ),
        (
            "mistral:7b@http://h:1",
            ModelConfig(name="mistral:7b", params={"endpoint": "http://h:1/v1"}),
        ),
        ({"name": "llama3:8b", **LOCAL}, ModelConfig(name="llama3:8b", params=LOCAL)),
        (
            {"name": "llama3:8b", "model_name": "l"},
            ModelConfig(name="llama3:8b", params={"model_name": "l", **LOCAL}),
        ),
        (
            "openai:gpt",
            ModelConfig(
                name="gpt", params={"endpoint": "https://api.openai.com/v1"}, type="openai"
            ),
        ),
        ({"name": "gpt", "type": "openai"}, ModelConfig(name="gpt", params=LOCAL)),
        ("anthropic:claude", ModelConfig(name="claude", type="anthropic")),
        (
            "groq:org/m:free",
            ModelConfig(name="groq:org/m:free", type="groq", params={"model_name": "org/m:free"}),
        ),
        (
            {"name": "groq:m", "timeout": 9},
            ModelConfig(name="groq:m", type="groq", params={"model_name": "m"}, timeout=9),
        ),
        ("demo:small", ModelConfig(name="small", type="demo")),
        ("m@http://h:1", ModelConfig(name="m", params={"endpoint": "http://h:1/v1"})),
        ("openai:a@b@https://h/v1/", ModelConfig(name="a@b", params={"endpoint": "https://h/v1"})),
        (
            {"name": "m", "type": "demo", "skill": 0.5},
            ModelConfig(name="m", type="demo", params={"skill": 0.5}),
        ),
        (
            {
                "name": "m",
                "type": "demo",
                "config": {"skill": 0.1, "timeout": 9, "latency_ms": 1},
                "skill": 0.5,
            },
            ModelConfig(name="m", type="demo", params={"skill": 0.5, "latency_ms": 1}, timeout=9),
        ),
        (
            {"name": "m", "type": "demo", "params": {"skill": 0.5}, "config": {"skill": 0.1}},
            ModelConfig(name="m", type="demo", params={"skill": 0.5}),
        ),
        (
            {"name": "m", "api_key_env": "K"},
            ModelConfig(name="m", params={"api_key": "${K}", **LOCAL}),
        ),
        ({"name": "m", "api_key": None}, ModelConfig(name="m", params=LOCAL)),
        ({"name": "m", "api_key": "none"}, ModelConfig(name="m", params=LOCAL)),
    ],
)
def test_models(loaded: Loaded, short: Any, long: ModelConfig) -> None:
    assert config_of(loaded, models=[short]).models == [long]
    assert config_of(loaded, models=short).models == [long]


@pytest.mark.parametrize(
    ("written", "used"),
    [
        ("http://h", "http://h/v1"),
        ("http://h/", "http://h/v1"),
        ("http://h:1/v1/", "http://h:1/v1"),
        ("https://h/proxy", "https://h/proxy/v1"),
        ("https://h/v1beta/openai/", "https://h/v1beta/openai"),
        ("http://h/v1/chat/completions", "http://h/v1"),
    ],
)
def test_an_endpoint_gets_its_version_once(loaded: Loaded, written: str, used: str) -> None:
    config = config_of(loaded, models=[{"name": "m", "endpoint": written}])
    assert config.models[0].params["endpoint"] == used


def test_a_function_as_a_model(loaded: Loaded, folder: Path) -> None:
    (folder / "my.py").write_text("def answer(prompt): ...\n")
    found = {"path": str(folder / "my.py"), "function_name": "answer"}
    assert config_of(loaded, models="my.py:answer").models == [
        ModelConfig(name="answer", type="python", params=found)
    ]
    long = {
        "name": "a",
        "type": "python",
        "path": "my.py",
        "function_name": "answer",
        "params": {"x": 1},
    }
    assert config_of(loaded, models=[long]).models[0].params == {**found, "params": {"x": 1}}
    assert (
        config_of(loaded, models=[{"name": "a", "type": "my.py:answer"}]).models[0].type
        == f"{found['path']}:answer"
    )


def test_parse_model(folder: Path) -> None:
    known = [ModelConfig(name="gpt-4"), ModelConfig(name="demo:x")]
    assert parse_model("demo:x", known) is known[1]
    assert parse_model("demo:small", known) == ModelConfig(name="small", type="demo")
    assert parse_model("new@http://h", known).params == {"endpoint": "http://h/v1"}
    assert parse_model("anything").params == LOCAL
    judge = {"name": "judge", "endpoint": "${URL}", "api_key": "${JUDGE_KEY}"}
    assert parse_model(judge, environ={"URL": "http://h"}).params == {
        "endpoint": "http://h/v1",
        "api_key": "${JUDGE_KEY}",
    }
    with pytest.raises(UserError, match="there is no model 'gtp-4'") as caught:
        parse_model("gtp-4", known)
    assert caught.value.fix.startswith("did you mean 'gpt-4'?")
    with pytest.raises(ConfigError, match=r"there is no file 'no\.py'"):
        parse_model("no.py:f", known)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("exact_match", MethodConfig(name="exact_match", type="exact_match")),
        ({"exact_match": None}, MethodConfig(name="exact_match", type="exact_match")),
        ({"type": "contains"}, MethodConfig(name="contains", type="contains")),
        (
            {"exact_match": {"a": 1}},
            MethodConfig(name="exact_match", type="exact_match", params={"a": 1}),
        ),
        (
            {"name": "loose", "type": "exact_match", "params": {"a": 1}, "timeout": 5},
            MethodConfig(name="loose", type="exact_match", params={"a": 1}, timeout=5),
        ),
        ("pack.module.score", MethodConfig(name="pack.module.score", type="pack.module.score")),
        (
            {"name": "f", "module": "pack.module"},
            MethodConfig(name="f", type="custom", module="pack.module", function_name="f"),
        ),
    ],
)
def test_evaluation_methods(loaded: Loaded, short: Any, long: MethodConfig) -> None:
    assert config_of(loaded, evaluation_methods=[short]).evaluation_methods == [long]


@pytest.mark.parametrize(
    "short",
    [
        "my.py:f",
        {"name": "f", "type": "my.py:f"},
        {"type": "custom", "path": "my.py", "function_name": "f"},
    ],
)
def test_custom_functions(loaded: Loaded, folder: Path, short: Any) -> None:
    (folder / "my.py").touch()
    config = config_of(loaded, evaluation_methods=[short], metrics=[short])
    file = str(folder / "my.py")
    assert config.evaluation_methods == [
        MethodConfig(name="f", type="custom", path=file, function_name="f")
    ]
    assert config.metrics == [MetricConfig(name="f", type="custom", path=file, function_name="f")]


def test_metrics(loaded: Loaded) -> None:
    config = config_of(
        loaded,
        metrics=[
            "mean",
            "pass@5",
            {"name": "pass@2", "facets": "model_name", "labels": ["a"]},
            {"pass_at_k": {"k": 3}},
            {"name": "pass@7", "type": "mean", "labels": "b", "on_error": "wrong"},
        ],
    )
    assert [(m.name, m.type, m.params) for m in config.metrics] == [
        ("mean", "mean", {}),
        ("pass@5", "pass_at_k", {"k": 5}),
        ("pass@2", "pass_at_k", {"k": 2}),
        ("pass_at_k", "pass_at_k", {"k": 3}),
        ("pass@7", "mean", {}),
    ]
    assert (config.metrics[2].facets, config.metrics[2].labels.include) == (["model_name"], ["a"])
    assert (config.metrics[4].labels.include, config.metrics[4].on_error) == (["b"], "wrong")


MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "{{question}}"}]


@pytest.mark.parametrize(
    ("keys", "prompts"),
    [
        ({}, [PromptConfig()]),
        ({"prompt_template": "{{q}}"}, [PromptConfig(text="{{q}}")]),
        ({"eval_prompt_template": "{{q}}"}, [PromptConfig(text="{{q}}")]),
        ({"prompt_template": MESSAGES}, [PromptConfig(messages=MESSAGES)]),
        (
            {"prompt_templates": ["a {{q}}", "b"]},
            [PromptConfig(text="a {{q}}"), PromptConfig(text="b")],
        ),
        ({"prompt_templates": MESSAGES}, [PromptConfig(messages=MESSAGES)]),
        (
            {"prompt_templates": {"plain": "a", "chat": MESSAGES, "long": {"text": "c"}}},
            [
                PromptConfig(name="plain", text="a"),
                PromptConfig(name="chat", messages=MESSAGES),
                PromptConfig(name="long", text="c"),
            ],
        ),
        ({"prompts": [{"name": "n", "text": "a"}]}, [PromptConfig(name="n", text="a")]),
        (
            {"prompt_template": "$x is ${NOT_A_VARIABLE}"},
            [PromptConfig(text="$x is ${NOT_A_VARIABLE}")],
        ),
    ],
)
def test_prompts(loaded: Loaded, keys: dict[str, Any], prompts: list[PromptConfig]) -> None:
    assert config_of(loaded, **keys).prompts == prompts


@pytest.mark.parametrize("given", ["p/t.txt", {"path": "p/t.txt"}, {"path": "${FOLDER}/t.txt"}])
def test_prompts_in_files(loaded: Loaded, folder: Path, given: Any) -> None:
    (folder / "p").mkdir()
    (folder / "p/t.txt").write_text("Q: {{question}}\n")
    expected = PromptConfig(text="Q: {{question}}\n", path=str(folder / "p/t.txt"))
    config = loaded(
        {"models": "m", "dataset": "d.jsonl", "prompt_template": given}, environ={"FOLDER": "p"}
    )
    assert config.prompts == [expected]


@pytest.mark.parametrize(
    ("name", "kind", "params"),
    [
        ("a.json", "json", {}),
        ("a.csv", "csv", {}),
        ("a.tsv", "tsv", {}),
        ("a.NDJSON", "jsonl", {}),
    ],
)
def test_a_dataset_is_typed_by_its_suffix(
    loaded: Loaded, folder: Path, name: str, kind: str, params: Any
) -> None:
    (folder / name).touch()
    for given in (name, {"path": name}, {"type": "file", "path": name}):
        dataset = config_of(loaded, dataset=given).dataset
        assert dataset is not None
        assert (dataset.type, dataset.path, dataset.params) == (kind, str(folder / name), params)


@pytest.mark.parametrize(
    "given",
    [
        "my.py:rows",
        {"type": "custom", "path": "my.py", "function_name": "rows"},
        {"path": "my.py", "function_name": "rows"},
    ],
)
def test_a_function_as_a_dataset(loaded: Loaded, folder: Path, given: Any) -> None:
    (folder / "my.py").touch()
    dataset = config_of(loaded, dataset=given).dataset
    assert dataset is not None
    assert (dataset.type, dataset.path, dataset.function_name) == (
        "function",
        str(folder / "my.py"),
        "rows",
    )


def test_tasks(loaded: Loaded, folder: Path) -> None:
    (folder / "my.py").touch()
    config = loaded(
        {
            "dataset": "d.jsonl",
            "tasks": ["my.py:agent", {"name": "b", "function": "pack.agent"}, "pack.graph"],
        }
    )
    assert config.tasks == [
        TaskConfig(name="agent", path=str(folder / "my.py"), function_name="agent"),
        TaskConfig(name="b", function="pack.agent"),
        TaskConfig(name="graph", function="pack.graph"),
    ]


@pytest.mark.parametrize(
    "keys",
    [
        {"workflow": {"max_workers": 3}},
        {"max_workers": 3},
        {"max_concurrency": 3},
        {"workflow": {"batch_size": 2}, "max_workers": 3},
    ],
)
def test_workflow(loaded: Loaded, keys: dict[str, Any]) -> None:
    assert config_of(loaded, **keys).max_concurrency == 3


def test_names(loaded: Loaded, folder: Path) -> None:
    text = "{models: m, dataset: d.jsonl}"
    assert loaded(text, file="trial.yaml").name == "trial"
    (folder / "sub").mkdir()
    (folder / "sub/d.jsonl").touch()
    nested = loaded(text, file="sub/config.yaml")
    assert (nested.name, nested.output_dir) == ("sub", str(folder / "output/sub"))
    assert config_of(loaded).name == "assay"
    assert config_of(loaded, name="../a b/ü").output_dir == str(folder / "output/_a b_ü")
