"""Keys never get into a Config, a resolved config or an error."""

from collections.abc import Callable
from typing import Any

import pytest

from assay.config import Config, environment, parse_model, resolved, secret, to_yaml
from assay.errors import ConfigError, UserError

Loaded = Callable[..., Config]
Problems = Callable[..., list[UserError]]
KEY = "hush-Very-Secret-0815"


def config_with(**keys: Any) -> dict[str, Any]:
    return {"models": ["m"], "dataset": "d.jsonl", **keys}


@pytest.mark.parametrize(
    "keys",
    [
        {"models": [{"name": "m", "api_key": KEY}]},
        {"models": [{"name": "m", "apikey": KEY}]},
        {"models": [{"name": "m", "config": {"api_key": KEY}}]},
        {"models": [{"name": "m", "params": {"api-key": KEY}}]},
        {"models": [{"name": "m", "api_key": [KEY]}]},
        {"models": [{"name": "m", "api_key": {"x": KEY}}]},
        {"models": [{"name": "m", "api_key": f"${{K:-{KEY}}}"}]},
        {"models": [{"name": "m", "api_key_env": KEY}]},
        {"models": [{"name": "m", "headers": {"Authorization": f"Bearer {KEY}"}}]},
        {"models": [{"name": "m", "headers": {"X-API-Key": KEY}}]},
        {"models": [{"name": "m", "headers": KEY}]},
        {"models": [{"name": "m", "endpoint": f"https://user:{KEY}@host/v1"}]},
        {"models": [{"name": "m", "timeout": "${API_KEY}"}]},
        {"name": "${API_KEY}"},
        {"limit": "${PLAIN}"},
        {"evaluation_methods": [{"exact_match": {"model": {"name": "j", "api_key": KEY}}}]},
        {"dataset": {"path": "d.jsonl", "params": {"token": KEY}}},
        {"env_vars": {"OPENAI_API_KEY": KEY}},
        {"env_vars": {"MY_PASSWORD": KEY}},
        {"sample_params": {"user": "sk-proj-0123456789abcdef"}},
    ],
)
def test_a_literal_secret_is_refused_and_not_printed(
    problems: Problems, keys: dict[str, Any]
) -> None:
    found = problems(config_with(**keys), environ={"API_KEY": KEY, "PLAIN": KEY})
    text = str(ConfigError(found))
    assert KEY not in text
    assert "0123456789abcdef" not in text


def test_a_secret_in_a_flag_or_a_file(problems: Problems) -> None:
    (problem,) = problems(config_with(), overrides={"models.0.api_key": KEY})
    assert (problem.what, problem.where) == (
        "api_key is a literal secret",
        "--set models.0.api_key",
    )
    (problem,) = problems(f"dataset: d.jsonl\nmodels:\n - name: m\n   api_key: {KEY}\n")
    assert (problem.where, problem.fix) == (
        "c.yaml:4 models[0].api_key",
        "write ${VAR} and put it into the environment",
    )
    with pytest.raises(ConfigError) as caught:
        parse_model({"name": "m", "api_key": KEY})
    assert KEY not in str(caught.value)


def test_references_stay_references(loaded: Loaded) -> None:
    environ = {"OPENAI_API_KEY": KEY, "ORG": KEY}
    model = {
        "name": "m",
        "api_key": "${OPENAI_API_KEY}",
        "headers": {"Authorization": "Bearer ${ORG}", "X-Org": "${ORG}"},
    }
    given = config_with(models=[model], env_vars={"OTHER_TOKEN": "${OPENAI_API_KEY}"})
    config = loaded(given, environ=environ)
    assert config.models[0].params["api_key"] == "${OPENAI_API_KEY}"
    assert config.models[0].params["headers"] == model["headers"]
    assert KEY not in repr(config)
    assert KEY not in to_yaml(resolved(config))
    assert loaded(resolved(config), environ=environ) == config
    assert environment(config, environ)["OTHER_TOKEN"] == KEY


def test_secret() -> None:
    assert secret("${K}", {"K": "v"}) == "v"
    assert secret("Bearer ${K}", {"K": "v"}) == "Bearer v"
    assert secret("plain", {}) == "plain"
    assert secret("${K}", {}) is None
    assert secret("Bearer ${K}", {"K": ""}) is None


@pytest.mark.parametrize(
    "keys",
    [
        {"name": "task-classification-0123456789-abcdef"},
        {"sample_params": {"max_tokens": 5, "stop_token": "END"}},
        {"metrics": [{"name": "mean", "facets": ["metadata.token"]}]},
        {"prompt_template": "My api_key is sk-proj-0123456789abcdef: {{question}}"},
        {"models": [{"name": "m", "api_key": "EMPTY", "tokens_per_minute": 100}]},
        {"env_vars": {"OPENAI_API_KEY": "dummy"}},
    ],
)
def test_what_only_looks_a_little_like_a_secret(loaded: Loaded, keys: dict[str, Any]) -> None:
    assert loaded(config_with(**keys)).num_samples == 1
