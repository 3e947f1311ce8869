"""Where the openai model goes and with which key, and token probabilities."""

from collections.abc import Callable

import pytest

from assay.errors import LaneError, UserError
from assay.interfaces import Completion
from assay.models.openai import OpenAIModel, base_url, openai

KEY = "sk-secret-0123456789"
Ask = Callable[..., Completion]


def made(endpoint: str | None = None) -> OpenAIModel:
    model = openai("m", endpoint=endpoint)
    assert isinstance(model, OpenAIModel)
    return model


def test_the_base_url_counts_where_no_endpoint_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made().base == "http://localhost:1234/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1/")
    assert made().base == "https://gateway.example/v1"
    assert made("http://localhost:9").base == "http://localhost:9/v1"


def test_the_key_also_belongs_to_the_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1/")
    assert made()._transport._headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in made("https://other.example/v1")._transport._headers
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert "authorization" not in made()._transport._headers


def test_logprobs_have_one_shape(strange: str, ask: Ask) -> None:
    top = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -3.0}]
    chat = ask(openai("m", endpoint=strange), "logprobs").logprobs
    assert chat == [{"token": "4", "logprob": -0.1, "top_logprobs": []}]
    text = ask(openai("m", endpoint=strange, api="completions"), "x").logprobs
    assert text == [
        {"token": "4", "logprob": -0.1, "top_logprobs": top},
        {"token": ".", "logprob": -0.2, "top_logprobs": []},
    ]
    for name in ("logprobs-odd", "reasoning"):
        assert ask(openai("m", endpoint=strange), name).logprobs is None


def test_a_server_that_lists_the_model_is_believed(strange: str, ask: Ask) -> None:
    with pytest.raises(LaneError) as caught:
        ask(openai("m", model_name="assay-demo", endpoint=strange), "404")
    assert "path of `endpoint`" in str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "base"),
    [
        ("http://localhost:1234", "http://localhost:1234/v1"),
        ("http://localhost:1234/", "http://localhost:1234/v1"),
        ("http://localhost:1234/v1/", "http://localhost:1234/v1"),
        ("https://x.example/api/v3", "https://x.example/api/v3"),
    ],
)
def test_endpoint_with_or_without_a_path(endpoint: str, base: str) -> None:
    assert base_url(endpoint) == base


@pytest.mark.parametrize(
    "endpoint", ["localhost:1234", "ftp://x", "http://", "http://x:port", "", "http://x/?key=1"]
)
def test_an_endpoint_that_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(UserError, match="not the address of a server"):
        openai("m", endpoint=endpoint)
