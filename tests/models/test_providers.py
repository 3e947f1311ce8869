"""Every provider by its name, through `assay run`, at its real address: a proxy leads to a fake that writes down host,
path, headers and body. What is expected here is what the providers' public documentation says."""

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from assay.config import parse_model
from assay.config.providers import factory_params, providers
from assay.models._sigv4 import Keys, signature_headers
from assay.registry import model
from tests.models.fake_providers import Asked, Fake, certified, faked

CHAT = "/chat/completions"
VARIABLES = {
    "AZURE_OPENAI_ENDPOINT": "https://openai-lab.openai.azure.com/",
    "AWS_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "session-0123456789",
    "GOOGLE_CLOUD_PROJECT": "lab-1",
    "GOOGLE_CLOUD_LOCATION": "europe-west4",
    "CLOUDFLARE_ACCOUNT_ID": "acc0unt",
}


class Expected(NamedTuple):
    host: str
    path: str
    variable: str
    header: str = "authorization"
    model: str = "m"


def bearer(host: str, path: str, variable: str, model: str = "m") -> Expected:
    return Expected(host, path + CHAT, variable, model=model)


REMOTE = {
    "openai": bearer("api.openai.com", "/v1", "OPENAI_API_KEY"),
    "anthropic": Expected("api.anthropic.com", "/v1/messages", "ANTHROPIC_API_KEY", "x-api-key"),
    "google": Expected(
        "generativelanguage.googleapis.com",
        "/v1beta/models/m:generateContent",
        "GEMINI_API_KEY",
        "x-goog-api-key",
    ),
    "vertex": Expected(
        "europe-west4-aiplatform.googleapis.com",
        "/v1/projects/lab-1/locations/europe-west4/publishers/google/models/m:generateContent",
        "GOOGLE_OAUTH_ACCESS_TOKEN",
    ),
    "azure": Expected(
        "openai-lab.openai.azure.com",
        "/openai/v1/chat/completions",
        "AZURE_OPENAI_API_KEY",
        "api-key",
    ),
    "bedrock": Expected(
        "bedrock-runtime.eu-west-1.amazonaws.com",
        "/model/org.m-v1%3A0/converse",
        "",
        model="org.m-v1:0",
    ),
    "mistral": bearer("api.mistral.ai", "/v1", "MISTRAL_API_KEY"),
    "groq": bearer("api.groq.com", "/openai/v1", "GROQ_API_KEY", "openai/gpt-oss-20b"),
    "together": bearer("api.together.xyz", "/v1", "TOGETHER_API_KEY", "org/m"),
    "fireworks": bearer(
        "api.fireworks.ai", "/inference/v1", "FIREWORKS_API_KEY", "accounts/fireworks/models/m"
    ),
    "openrouter": bearer("openrouter.ai", "/api/v1", "OPENROUTER_API_KEY", "org/m:free"),
    "deepseek": bearer("api.deepseek.com", "/v1", "DEEPSEEK_API_KEY"),
    "xai": bearer("api.x.ai", "/v1", "XAI_API_KEY"),
    "cohere": bearer("api.cohere.ai", "/compatibility/v1", "COHERE_API_KEY"),
    "cerebras": bearer("api.cerebras.ai", "/v1", "CEREBRAS_API_KEY"),
    "moonshot": bearer("api.moonshot.ai", "/v1", "MOONSHOT_API_KEY"),
    "hf": bearer("router.huggingface.co", "/v1", "HF_TOKEN", "org/m:fastest"),
    "nvidia": bearer("integrate.api.nvidia.com", "/v1", "NVIDIA_API_KEY"),
    "deepinfra": bearer("api.deepinfra.com", "/v1/openai", "DEEPINFRA_API_KEY"),
    "sambanova": bearer("api.sambanova.ai", "/v1", "SAMBANOVA_API_KEY"),
    "dashscope": bearer("dashscope-intl.aliyuncs.com", "/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    "zai": bearer("api.z.ai", "/api/paas/v4", "ZAI_API_KEY"),
    "baseten": bearer("inference.baseten.co", "/v1", "BASETEN_API_KEY"),
    "novita": bearer("api.novita.ai", "/v3/openai", "NOVITA_API_KEY"),
    "hyperbolic": bearer("api.hyperbolic.xyz", "/v1", "HYPERBOLIC_API_KEY"),
    "vercel": bearer("ai-gateway.vercel.sh", "/v1", "AI_GATEWAY_API_KEY"),
    "scaleway": bearer("api.scaleway.ai", "/v1", "SCW_SECRET_KEY"),
    "cloudflare": bearer(
        "api.cloudflare.com",
        "/client/v4/accounts/acc0unt/ai/v1",
        "CLOUDFLARE_API_TOKEN",
        "@cf/org/m",
    ),
}
LOCAL = {
    "ollama": "http://localhost:11434/v1/chat/completions",
    "lmstudio": "http://localhost:1234/v1/chat/completions",
    "vllm": "http://localhost:8000/v1/chat/completions",
    "sglang": "http://localhost:30000/v1/chat/completions",
    "llama.cpp": "http://localhost:8080/v1/chat/completions",
    "litellm": "http://localhost:4000/v1/chat/completions",
}
QUESTION = [{"role": "user", "content": "What is 1 + 1?"}]
GENERATION = {"maxOutputTokens": 7, "seed": 5, "temperature": 0.5}
GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": "What is 1 + 1?"}]}],
    "generationConfig": GENERATION,
}
BODIES: dict[str, Any] = {
    "openai": {
        "model": "m",
        "max_completion_tokens": 7,
        "seed": 5,
        "temperature": 0.5,
        "messages": QUESTION,
    },
    "azure": {
        "model": "m",
        "max_completion_tokens": 7,
        "seed": 5,
        "temperature": 0.5,
        "messages": QUESTION,
    },
    "mistral": {
        "model": "m",
        "max_tokens": 7,
        "random_seed": 5,
        "temperature": 0.5,
        "messages": QUESTION,
    },
    "anthropic": {"model": "m", "max_tokens": 7, "temperature": 0.5, "messages": QUESTION},
    "google": GEMINI,
    "vertex": GEMINI,
    "bedrock": {
        "inferenceConfig": {"maxTokens": 7, "temperature": 0.5},
        "messages": [{"role": "user", "content": [{"text": "What is 1 + 1?"}]}],
    },
}


def key_of(variable: str) -> str:
    return f"key-0123456789-{variable.lower()}"


def model_of(name: str) -> Any:
    """As `-m` has it; names that lose their prefix would be one name."""
    text = f"{name}:{REMOTE[name].model}"
    return {"name": f"a {name}", "type": name, "model_name": "m"} if name == "anthropic" else text


def run(
    folder: Path, proxy: str, authority: Path, models: list[Any]
) -> subprocess.CompletedProcess[str]:
    """`assay run` as a user types it, with a key for every provider."""
    config = {
        "dataset": "items.jsonl",
        "models": models,
        "evaluation_methods": ["exact_match"],
        "metrics": ["pass_rate"],
        "sample_params": {"max_tokens": 7, "seed": 5, "temperature": 0.5},
        "output_dir": "out",
        "max_retries": 0,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "items.jsonl").write_text(
        '{"id": "1", "question": "What is 1 + 1?", "ground_truth": "2"}\n'
    )
    keys = {
        expected.variable: key_of(expected.variable)
        for expected in REMOTE.values()
        if expected.variable
    }
    named = dict.fromkeys(("https_proxy", "HTTPS_PROXY"), proxy)
    hidden = {"no_proxy", "NO_PROXY", "REQUESTS_CA_BUNDLE"}
    outer = {
        name: value
        for name, value in os.environ.items()
        if name not in hidden and "API_KEY" not in name
    }
    return subprocess.run(
        [sys.executable, "-m", "assay", "run", "config.json", "--no-progress"],
        env={**outer, **named, **keys, **VARIABLES, "SSL_CERT_FILE": str(authority)},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    """What each host was asked by one run over all providers."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make certificates")
    folder = tmp_path_factory.mktemp("providers")
    tls, authority = certified(folder, [expected.host for expected in REMOTE.values()])
    fake = Fake()
    with faked(fake, tls) as proxy:
        ended = run(folder, proxy, authority, [model_of(name) for name in REMOTE])
    assert ended.returncode == 0, ended.stderr
    rows = [
        json.loads(line) for line in (folder / "out" / "responses.jsonl").read_text().splitlines()
    ]
    assert [row["response"] for row in rows] == ["2"] * len(REMOTE)
    everything = "".join(path.read_text() for path in (folder / "out").rglob("*") if path.is_file())
    assert "key-0123456789" not in everything + ended.stdout + ended.stderr
    assert {target.removesuffix(":443") for target in fake.tunnels} == {
        asked.host for asked in fake.asked
    }
    return {asked.host: asked for asked in fake.asked}


def test_every_row_is_expected() -> None:
    assert {*REMOTE, *LOCAL} == {*providers()}


@pytest.mark.parametrize("name", REMOTE)
def test_address_headers_and_body(seen: dict[str, Asked], name: str) -> None:
    expected = REMOTE[name]
    asked = seen[expected.host]
    assert (asked.method, asked.path) == ("POST", expected.path)
    assert asked.headers["content-type"] == "application/json"
    chat = {
        "model": expected.model,
        "max_tokens": 7,
        "seed": 5,
        "temperature": 0.5,
        "messages": QUESTION,
    }
    assert asked.json == BODIES.get(name, chat)
    if name == "bedrock":
        return
    start = "Bearer " if expected.header == "authorization" else ""
    assert asked.headers[expected.header] == start + key_of(expected.variable)
    others = {"authorization", "x-api-key", "api-key", "x-goog-api-key"} - {expected.header}
    assert not others & asked.headers.keys()


def test_anthropic_is_told_its_version(seen: dict[str, Asked]) -> None:
    assert seen["api.anthropic.com"].headers["anthropic-version"] == "2023-06-01"


def test_bedrock_is_signed(seen: dict[str, Asked]) -> None:
    asked = seen[REMOTE["bedrock"].host]
    time = asked.headers["x-amz-date"]
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    keys = Keys(*(VARIABLES[name] for name in names))
    again = signature_headers(
        *("POST", f"https://{asked.host}{asked.path}", asked.body, keys),
        region="eu-west-1",
        service="bedrock",
        now=datetime.strptime(time, "%Y%m%dT%H%M%SZ"),
    )
    assert asked.headers["authorization"] == again["authorization"]
    assert asked.headers["x-amz-security-token"] == VARIABLES["AWS_SESSION_TOKEN"]
    assert (
        f"Credential=AKIDEXAMPLE/{time[:8]}/eu-west-1/bedrock/aws4_request"
        in asked.headers["authorization"]
    )
    assert "host;x-amz-date;x-amz-security-token" in asked.headers["authorization"]


@pytest.mark.parametrize("name", LOCAL)
def test_local_servers_need_no_key(name: str) -> None:
    entry = parse_model(f"{name}:llama3:8b")
    type, params = factory_params(entry.type, entry.params, {})
    made = model.get(type)(entry.name, **params)
    assert (made._transport.url, made.model_name) == (LOCAL[name], "llama3:8b")
    assert "authorization" not in made._transport._headers


@pytest.mark.parametrize(
    ("entry", "variables", "address"),
    [
        (
            "azure:d",
            {"AZURE_OPENAI_ENDPOINT": "lab"},
            "https://lab.openai.azure.com/openai/v1/chat/completions",
        ),
        (
            {"name": "d", "type": "azure", "endpoint": "https://lab.openai.azure.com/openai/v1/"},
            {},
            "https://lab.openai.azure.com/openai/v1/chat/completions",
        ),
        (
            {"name": "x", "type": "azure", "model_name": "my d", "api_version": "2024-10-21"},
            {"AZURE_OPENAI_ENDPOINT": "https://lab.openai.azure.com"},
            "https://lab.openai.azure.com/openai/deployments/my%20d/chat/completions?api-version=2024-10-21",
        ),
        (
            {"name": "d", "type": "azure", "api": "responses"},
            {"AZURE_OPENAI_ENDPOINT": "lab", "OPENAI_API_VERSION": "2025-04-01-preview"},
            "https://lab.openai.azure.com/openai/responses?api-version=2025-04-01-preview",
        ),
        (
            "vertex:g",
            {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_OAUTH_ACCESS_TOKEN": "t"},
            "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/g:generateContent",
        ),
        (
            "bedrock:arn:aws:bedrock:us-east-1:1:inference-profile/x",
            {"AWS_REGION": "us-east-1", "AWS_BEARER_TOKEN_BEDROCK": "t"},
            "https://bedrock-runtime.us-east-1.amazonaws.com"
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/converse",
        ),
        (
            {
                "name": "g",
                "type": "gemini",
                "endpoint": "https://gateway.example",
                "api_key": "${K}",
            },
            {},
            "https://gateway.example/v1beta/models/g:generateContent",
        ),
        (
            {"name": "m", "type": "groq", "endpoint": "https://gateway.example"},
            {},
            "https://gateway.example/v1" + CHAT,
        ),
    ],
)
def test_other_addresses(entry: Any, variables: dict[str, str], address: str) -> None:
    parsed = parse_model(entry)
    keys = {
        name: "k"
        for provider in providers().values()
        for name in provider.key
        if provider.type == "azure"
    }
    type, params = factory_params(parsed.type, parsed.params, {**keys, **variables})
    assert model.get(type)(parsed.name, **params)._transport.url == address


def test_a_key_goes_to_no_other_address() -> None:
    variables = {
        name: "key-0123456789" for provider in providers().values() for name in provider.key
    }
    for name in REMOTE:
        entry = parse_model({"name": "m", "type": name, "endpoint": "https://gateway.example/v1"})
        _, params = factory_params(entry.type, entry.params, variables)
        assert "key-0123456789" not in json.dumps(params)
        address = f"https://{REMOTE[name].host}.gateway.example/v1"
        assert "key-0123456789" not in json.dumps(
            factory_params(name, {"endpoint": address}, variables)[1]
        )


def test_a_file_that_the_config_names_wins_over_the_environment() -> None:
    variables = {
        **VARIABLES,
        "AWS_BEARER_TOKEN_BEDROCK": "b",
        "GOOGLE_OAUTH_ACCESS_TOKEN": "g",
        "AWS_PROFILE": "other",
    }
    assert factory_params("bedrock", {"profile": "lab"}, variables)[1] == {
        "profile": "lab",
        "region": "eu-west-1",
    }
    assert "api_key" not in factory_params("vertex", {"credentials": "file.json"}, variables)[1]


def test_the_page_has_every_provider_with_its_variables() -> None:
    page = (Path(__file__).parents[2] / "docs" / "providers.md").read_text()
    for name, provider in providers().items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(f"`{variable}`" in row for variable in provider.key)
        assert not provider.local or f"`{provider.endpoint}`" in row


def test_the_table_is_of_one_form() -> None:
    for name, provider in providers().items():
        assert re.fullmatch(r"[a-z.]+", name)
        assert len(provider.about) < 27
        assert provider.local == provider.endpoint.startswith("http://localhost:")
        assert provider.type in model.names()
        assert provider.key or provider.local
