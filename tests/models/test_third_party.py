"""The openai model against a real third-party server: LiteLLM's proxy, with our mock server behind it.

It is not among our dependencies: `pip install 'litellm[proxy]'` somewhere, and name its program in ASSAY_LITELLM or
have it on the PATH.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay.errors import LaneError, PermanentError, TransientError
from assay.interfaces import Completion
from assay.models.openai import openai
from assay.models.vllm import vllm
from assay.server import Options, running

LITELLM = os.environ.get("ASSAY_LITELLM") or shutil.which("litellm")
KEY = "sk-assay-third-party-0123456789"
Ask = Callable[..., Completion]

pytestmark = pytest.mark.skipif(
    not LITELLM, reason="needs LiteLLM's proxy on the PATH or named in ASSAY_LITELLM"
)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Started, waited for and ended by the same code that looks after vLLM."""
    import asyncio

    from assay.models._local_openai import ServedModel

    folder = tmp_path_factory.mktemp("litellm")
    strange = Path(__file__).parent / "strange_answers.py"
    with (
        running(Options(skill=1.0)) as honest,
        running(Options(answers=f"{strange}:answer")) as odd,
    ):
        models = [
            {
                "model_name": name,
                "litellm_params": {"model": "openai/x", "api_base": f"{url}/v1", "api_key": "none"},
            }
            for name, url in (("honest", honest), ("odd", odd))
        ]
        config = {"model_list": models, "litellm_settings": {"num_retries": 0, "telemetry": False}}
        (folder / "config.yaml").write_text(json.dumps(config))
        os.environ |= {"LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        command = [
            str(LITELLM),
            "--config",
            str(folder / "config.yaml"),
            "--host",
            "127.0.0.1",
            "--port",
            "{port}",
        ]
        server = vllm(
            "proxy", command=command, start_timeout=120, api_key=KEY, log=str(folder / "log")
        )
        assert isinstance(server, ServedModel)
        with asyncio.Runner() as loop:
            loop.run(server.open())
            yield server.base
            loop.run(server.close())


def test_an_answer(proxy: str, ask: Ask) -> None:
    answer = ask(
        openai("honest", endpoint=proxy, api_key=KEY),
        "What is 17 * 23?",
        params={"temperature": 0.5},
    )
    assert (answer.text, answer.finish_reason, answer.served_model) == ("391", "stop", "honest")
    assert answer.total_tokens == 5


def test_tools_and_reasoning(proxy: str, ask: Ask) -> None:
    tools = [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
        }
    ]
    called = ask(
        openai("honest", endpoint=proxy, api_key=KEY), "What is 2+2?", params={"tools": tools}
    )
    assert called.tool_calls is not None
    assert called.tool_calls[0]["function"]["name"] == "f"
    assert ask(openai("odd", endpoint=proxy, api_key=KEY), "reasoning").reasoning == "two and two"


def test_errors_pass_through(proxy: str, ask: Ask) -> None:
    with pytest.raises(LaneError, match="does not know the model 'honets'") as unknown:
        ask(openai("honets", endpoint=proxy, api_key=KEY), "x")
    assert "did you mean 'honest'?" in unknown.value.fix
    odd = openai("odd", endpoint=proxy, api_key=KEY)
    with pytest.raises(PermanentError, match="too long for the model"):
        ask(odd, "400")
    with pytest.raises(TransientError) as busy:
        ask(odd, "429")
    assert busy.value.overload
