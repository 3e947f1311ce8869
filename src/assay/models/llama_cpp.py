"""llama.cpp: the OpenAI client, and a server that is started for the run if the model says how."""

from typing import Any

from assay.models._local_openai import MODELS, Image, Served, served_model
from assay.sdk import Model, UserError, model

_ARGUMENTS = [
    "--model",
    "{model_path}",
    "--alias",
    "{model_name}",
    "--host",
    "0.0.0.0",
    "--port",
    "{port}",
]
_IMAGE = Image("ghcr.io/ggml-org/llama.cpp:server-cuda", 8080, _ARGUMENTS, root=MODELS)


@model(name="llama.cpp", params=Served, local=True, reach="runs")
def llama_cpp(
    name: str,
    *,
    endpoint: str = "http://localhost:8080/v1",
    start_timeout: float = 300.0,
    **server: Any,
) -> Model:
    """A model of a llama.cpp server: one that runs at `endpoint`, or one started by `command` or in a container.

    Parameters:
    endpoint: the address of a server that runs already
    start_timeout: how many seconds a server may take to become healthy
    """
    settings = Served(**server)
    if settings.docker is not None and (
        settings.model_path is None or settings.docker.models_volume is None
    ):
        raise UserError(
            "the container needs `model_path` and `docker.models_volume`",
            where=f"model {name!r}",
            fix="the GGUF file, and the folder that it is in",
        )

    return served_model(
        name, settings, endpoint, type="llama.cpp", start_timeout=start_timeout, image=_IMAGE
    )
