"""vLLM: the OpenAI client, and a server that is started for the run if the model says how."""

from typing import Any

from assay.models._local_openai import Image, Served, served_model
from assay.sdk import Model, UserError, model

_IMAGE = Image(
    "vllm/vllm-openai:latest",
    8000,
    ["--model", "{model_path}", "--served-model-name", "{model_name}", "--port", "{port}"],
    options=["--ipc=host"],
)


@model(params=Served, local=True, reach="runs")
def vllm(
    name: str,
    *,
    endpoint: str = "http://localhost:8000/v1",
    start_timeout: float = 600.0,
    **server: Any,
) -> Model:
    """A model of a vLLM server: one that runs at `endpoint`, or one started by `command` or in a container.

    Parameters:
    endpoint: the address of a server that runs already
    start_timeout: how many seconds a server may take to become healthy
    """
    settings = Served(**server)
    if settings.docker is not None and settings.model_path is None:
        raise UserError(
            "the container needs `model_path`",
            where=f"model {name!r}",
            fix="a repository's name or a folder",
        )

    return served_model(
        name, settings, endpoint, type="vllm", start_timeout=start_timeout, image=_IMAGE
    )
